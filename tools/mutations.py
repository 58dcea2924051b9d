"""Make wrong edits of the mathematics, one at a time, and report which ones the tests do not catch.

`mutations.toml` lists the edits. Each one is made in a copy of the sources and tested there: it is caught if one of its
tests fails, and survives if all of them pass. The checkout does not change. There is one copy per core, with its own
environment and build, so that only the edited kernel is compiled again.

Run ``python -m tools mutations`` for all edits, or ``python -m tools mutations linear joint`` for those with one of these
words in their file or name. An edit whose text is no longer in the sources is listed. The exit code is 1 if an edit
survives or is out of date.
"""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
import tomllib
import venv
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
PACKAGE = Path("src", "bayesvote")
OUT_OF_DATE = "out of date"
IGNORED = shutil.ignore_patterns(".*", "__pycache__", "build", "dist", "reproduced")
WORTH_A_COPY = 20  # edits; with fewer, another build of the kernels takes longer than it saves
LONGEST = 300  # seconds for the tests of an edit, because an edit may cause an endless loop
PASSED, FAILED = 0, 1  # exit codes of pytest; others mean that no test ran


class Mutation(NamedTuple):
    """A wrong edit: file in the package, old and new text, and the tests that must fail."""

    name: str
    file: str
    old: str
    new: str
    tests: list[str]

    @property
    def compiled(self) -> bool:
        """True if the file is compiled."""
        return self.file.endswith((".pyx", ".pxd", ".h"))

    def places(self, text: str) -> list[re.Match[str]]:
        """Return the places of the old text in a file, whatever its white space."""
        pattern = r"\s+".join(map(re.escape, self.old.split()))
        return list(re.finditer(pattern, text))

    def apply(self, text: str) -> str:
        """Return a file with the edit made, or raise ValueError unless it fits in exactly one place."""
        places = self.places(text)
        if len(places) != 1:
            raise ValueError(f"{self.name!r} must fit one place in {self.file}, but fits {len(places)}.")
        first, last = places[0].span()
        lead = self.new[: len(self.new) - len(self.new.lstrip())] if not self.old[:1].isspace() else ""
        tail = self.new[len(self.new.rstrip()) :] if not self.old[-1:].isspace() else ""
        return text[:first] + lead + self.new.strip() + tail + text[last:]


class Copy:
    """The sources in a folder of their own, with their kernels, and an environment that imports them."""

    def __init__(self, folder: Path) -> None:
        self.root, self.build, self.spare = folder / "copy", folder / "build", folder / "spare"
        self.python = folder / "venv" / Path(sys.executable).relative_to(sys.prefix)
        shutil.copytree(ROOT, self.root, ignore=IGNORED)
        self._make_environment(folder / "venv")
        if not self._meson("setup", "-Doptimization=1", str(self.build), str(self.root)) or not self.compile():
            sys.exit("mutations: the kernels do not compile. See the messages above.")
        suffix = sysconfig.get_config_var("EXT_SUFFIX")
        for source in (self.root / PACKAGE).rglob("*.pyx"):
            source.with_name(source.stem + suffix).symlink_to(self.build / "src" / (source.stem + suffix))

    def compile(self) -> bool:
        """Compile what has changed; return whether that went well."""
        return self._meson("compile", "-C", str(self.build))

    def test(self, tests: Sequence[str], longest: float | None = None) -> int:
        """Run tests in the copy until one fails; return pytest's exit code, FAILED if it crashed or took too long."""
        command: list[str] = [
            str(self.python),
            "-B",
            "-m",
            "pytest",
            "-x",
            "-p",
            "no:cacheprovider",
            "--no-header",
            "-rN",
            *tests,
        ]
        try:
            done = subprocess.run(command, cwd=self.root, timeout=longest, capture_output=True, text=True, check=False)
        except subprocess.TimeoutExpired:
            return FAILED
        if done.returncode > FAILED or (done.returncode != PASSED and longest is None):
            print(done.stdout[-3000:], done.stderr[-3000:], sep="\n")
        return FAILED if done.returncode < 0 else done.returncode

    def mutated(self, mutation: Mutation) -> int | None:
        """Test an edit and undo it; return None if it does not compile."""
        path = self.root / PACKAGE / mutation.file
        before, stamp = path.read_text(encoding="utf-8"), path.stat()
        if mutation.compiled:
            shutil.copytree(self.build, self.spare)  # restored with the file's time, or ninja would compile it again
        path.write_text(mutation.apply(before), encoding="utf-8")
        try:
            if mutation.compiled and not self.compile():
                return None
            return self.test(mutation.tests, LONGEST)
        finally:
            path.write_text(before, encoding="utf-8")
            os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
            if mutation.compiled:
                shutil.rmtree(self.build)
                self.spare.rename(self.build)

    def _make_environment(self, folder: Path) -> None:
        """Make an environment with everything installed here, except that the package comes from the copy."""
        venv.create(folder, symlinks=os.name == "posix")
        paths = sysconfig.get_paths(vars={"base": str(folder), "platbase": str(folder)})
        # Only paths. The import hooks of this environment would import the checkout.
        installed = [self.root / "src", sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]
        Path(paths["purelib"], "copy.pth").write_text("\n".join(map(str, installed)), encoding="utf-8")

    def _meson(self, *arguments: str) -> bool:
        environment = os.environ | {"PATH": os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))}
        command = [sys.executable, "-m", "mesonbuild.mesonmain", *arguments]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            print(done.stdout[-3000:], done.stderr[-3000:], sep="\n")
        return done.returncode == 0


def mutations(words: Sequence[str]) -> list[Mutation]:
    """Return all edits of the list, or those with one of the words in their file or name."""
    with open(Path(__file__).with_suffix(".toml"), "rb") as file:
        listed = [Mutation(**entry) for entry in tomllib.load(file)["mutation"]]
    return [one for one in listed if not words or any(word in f"{one.file} {one.name}" for word in words)]


def fits(mutation: Mutation) -> bool:
    """Return True if the edit fits the sources and its tests exist; print why not otherwise."""
    path = ROOT / PACKAGE / mutation.file
    try:
        if not path.exists():
            raise ValueError(f"{mutation.name!r} names {mutation.file}, which does not exist.")
        mutation.apply(path.read_text(encoding="utf-8"))
        for test in mutation.tests:
            if not (ROOT / test.partition("::")[0]).exists():
                raise ValueError(f"{mutation.name!r} names {test}, which does not exist.")
    except ValueError as error:
        print(f"{OUT_OF_DATE}: {error}")
        return False
    return True


def tried(folder: Path, chosen: Sequence[Mutation]) -> list[str]:
    """Try edits one after the other; print and return the result of each."""
    copy = Copy(folder)
    if copy.test(sorted({test for mutation in chosen for test in mutation.tests})) != PASSED:
        sys.exit("mutations: the tests fail without any edit. Run them, and fix them first.")
    verdicts: dict[int | None, str] = {PASSED: "survived", FAILED: "caught"}
    found = []
    for mutation in chosen:
        start = time.monotonic()
        found.append(verdicts.get(copy.mutated(mutation), "no test ran"))
        print(f"{found[-1]:<9} {time.monotonic() - start:4.0f} s  {mutation.file}: {mutation.name}", flush=True)
    return found


def main(words: Sequence[str]) -> None:
    """Divide the edits among the cores, each with its own copy, and report how many were caught."""
    listed = mutations(words)
    chosen = [one for one in listed if fits(one)]
    n_copies = min(os.cpu_count() or 1, 1 + len(chosen) // WORTH_A_COPY)
    with tempfile.TemporaryDirectory(prefix="mutations-") as folder, ThreadPoolExecutor(n_copies) as pool:
        jobs = [pool.submit(tried, Path(folder, str(k)), chosen[k::n_copies]) for k in range(n_copies)]
        found = [verdict for job in jobs for verdict in job.result()]
    caught = found.count("caught")
    print(f"{caught} of {len(found)} edits were caught; {len(listed) - len(chosen)} are out of date.")
    sys.exit(0 if caught == len(listed) else 1)


if __name__ == "__main__":
    main(sys.argv[1:])
