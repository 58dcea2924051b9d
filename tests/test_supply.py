"""The locked versions are what pyproject.toml asks for; CI and development install nothing else."""

import runpy
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent


def locked() -> dict[str, str]:
    lines = (ROOT / "requirements.lock").read_text().splitlines()
    pins = [line.split()[0].split("==") for line in lines if not line.startswith("#")]
    return {canonicalize_name(name): version for name, version in pins}


def test_every_locked_file_has_a_checksum_and_no_address() -> None:
    for line in (ROOT / "requirements.lock").read_text().splitlines()[1:]:
        pin, *checksums = line.split()
        assert "==" in pin
        assert checksums
        assert all(sum_.startswith("--hash=sha256:") for sum_ in checksums)
        assert "/" not in line


def test_what_is_asked_for_is_locked() -> None:
    """If this fails, run ``make lock`` and commit requirements.lock."""
    wanted: list[str] = runpy.run_path(str(ROOT / "tools" / "lock.py"))["wanted"]()
    pins = locked()
    assert len(wanted) > 40
    for asked in map(Requirement, wanted):
        if asked.marker is None or asked.marker.evaluate():
            found = pins.get(canonicalize_name(asked.name))
            assert found is not None, f"{asked} is not in requirements.lock; run `make lock`"
            assert asked.specifier.contains(found, prereleases=True), f"{asked}, but {found} is locked; run `make lock`"


def test_development_installs_what_is_locked() -> None:
    recipe = (ROOT / "Makefile").read_text().split(".venv/ready:")[1].split("@touch")[0]
    assert "--require-hashes" in recipe
    assert "--requirement requirements.lock" in recipe
