"""Whether the tests notice wrong code: each edit of `mutations.toml` is made in a copy of the sources and tested there.

An edit is caught when one of its tests fails, and survives when all of them pass. Nothing in the checkout is changed.
The copy and what is compiled in it stay in a temporary folder until the end, so that only what an edit concerns is
compiled anew.

Run ``python tools/mutations.py`` for all edits, ``python tools/mutations.py ensemble tally`` for those whose file or
name has one of these words in it. Ends with an error if an edit survives or does not fit the sources.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
PARTS = ("src", "tests", "benchmarks", "pyproject.toml")
PACKAGE = Path("src", "bayesvote")
LONGEST = 900  # seconds for an edit, which may make a loop endless
PASSED, FAILED = 0, 1  # exit codes of pytest; others mean that no test was run


class Mutation(NamedTuple):
    """A wrong edit: of the file below the package, what becomes what, and the tests that must notice."""

    name: str
    file: str
    old: str
    new: str
    tests: list[str]


class Copy:
    """The sources in a folder of their own, with a cache of compiled kernels that fits them."""

    def __init__(self, folder: Path) -> None:
        self.root, self.cache = folder / "copy", folder / "compiled"
        self.root.mkdir()
        for part in PARTS:
            if (ROOT / part).is_dir():
                shutil.copytree(ROOT / part, self.root / part, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy2(ROOT / part, self.root / part)

    def test(self, tests: Sequence[str], cache: Path, longest: float | None = None) -> int:
        """Run tests in the copy until one fails; return pytest's exit code, FAILED if it crashed or took too long."""
        environment = os.environ | {
            "PYTHONPATH": str(self.root / "src"),  # before an installed package
            "PYTHONDONTWRITEBYTECODE": "1",
            "NUMBA_CACHE_DIR": str(cache),
        }
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "--no-header", "-rN", *tests]
        try:
            done = subprocess.run(
                command, cwd=self.root, env=environment, timeout=longest, capture_output=True, text=True, check=False
            )
        except subprocess.TimeoutExpired:
            return FAILED
        if done.returncode > FAILED or (done.returncode != PASSED and longest is None):
            print(done.stdout[-3000:], done.stderr[-3000:], sep="\n")
        return FAILED if done.returncode < 0 else done.returncode

    def mutated(self, mutation: Mutation) -> int:
        """Test an edit and take it back."""
        path = self.root / PACKAGE / mutation.file
        before, stamp = path.read_text(encoding="utf-8"), path.stat()
        path.write_text(before.replace(mutation.old, mutation.new), encoding="utf-8")
        try:
            with tempfile.TemporaryDirectory(dir=self.root.parent) as folder:
                return self.test(mutation.tests, self._cache_for(mutation, Path(folder)), LONGEST)
        finally:
            path.write_text(before, encoding="utf-8")
            os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))

    def _cache_for(self, mutation: Mutation, folder: Path) -> Path:
        """A copy of the cache without what an edited kernel is compiled into: all kernels of its package.

        Numba compiles a kernel anew when its own file has changed, not when that of a kernel it calls has.
        """
        *packages, file = Path(mutation.file).parts
        if "kernels" not in file and file != "_vectors.py":
            return self.cache
        cache = folder / "compiled"
        if packages and self.cache.is_dir():  # a file above all packages is compiled into all of them
            shutil.copytree(self.cache, cache, ignore=shutil.ignore_patterns(f"{packages[-1]}_*"))
        return cache


def mutations(words: Sequence[str]) -> list[Mutation]:
    """Edits of the list, all or those with one of the words in their file or name; each must fit the sources."""
    with open(Path(__file__).with_suffix(".toml"), "rb") as file:
        listed = [Mutation(**entry) for entry in tomllib.load(file)["mutation"]]
    for mutation in listed:
        count = (ROOT / PACKAGE / mutation.file).read_text(encoding="utf-8").count(mutation.old)
        if count != 1:
            sys.exit(f"mutations: {mutation.name!r} must change one place of {mutation.file}, found {count} such.")
        for test in mutation.tests:
            if not (ROOT / test.partition("::")[0]).exists():
                sys.exit(f"mutations: {mutation.name!r} must name tests that exist, got {test}.")
    return [one for one in listed if not words or any(word in f"{one.file} {one.name}" for word in words)]


def main(words: Sequence[str]) -> None:
    """Try the edits one after the other and tell which survive."""
    chosen = mutations(words)
    with tempfile.TemporaryDirectory(prefix="mutations-") as folder:
        copy = Copy(Path(folder))
        tests = sorted({test for mutation in chosen for test in mutation.tests})
        if copy.test(tests, copy.cache) != PASSED:
            sys.exit("mutations: all tests must pass before anything is edited. Run them and see.")
        verdicts = {PASSED: "survived", FAILED: "caught"}
        found = []
        for mutation in chosen:
            start = time.monotonic()
            found.append(verdicts.get(copy.mutated(mutation), "no test was run"))
            print(f"{found[-1]:<9} {time.monotonic() - start:4.0f} s  {mutation.file}: {mutation.name}", flush=True)
    caught = found.count("caught")
    print(f"{caught} of {len(found)} were caught")
    sys.exit(0 if caught == len(found) else 1)


if __name__ == "__main__":
    main(sys.argv[1:])
