"""Whether the tests notice wrong code: each edit of `mutations.toml` is made in a copy of the sources and tested there.

An edit is caught when one of its tests fails, and survives when all of them pass. Nothing in the checkout is changed.
The copy, one for each core, has an environment and a build of its own in a temporary folder, and only what an edit
concerns is compiled anew.

Run ``python tools/mutations.py`` for all edits, ``python tools/mutations.py ensemble tally`` for those whose file or
name has one of these words in it. Ends with an error if an edit survives or does not fit the sources.
"""

import os
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
IGNORED = shutil.ignore_patterns(".*", "__pycache__", "build", "dist", "reproduced")
WORTH_A_COPY = 20  # edits: below, building the kernels once more takes longer than it saves
LONGEST = 300  # seconds for an edit's tests, as it may make a loop endless
PASSED, FAILED = 0, 1  # exit codes of pytest; others mean that no test was run


class Mutation(NamedTuple):
    """A wrong edit: of the file below the package, what becomes what, and the tests that must notice."""

    name: str
    file: str
    old: str
    new: str
    tests: list[str]

    @property
    def compiled(self) -> bool:
        """Whether kernels are made of the file."""
        return self.file.endswith((".pyx", ".pxd", ".h"))


class Copy:
    """The sources in a folder of their own, with their kernels, and an environment that imports them."""

    def __init__(self, folder: Path) -> None:
        self.root, self.build, self.spare = folder / "copy", folder / "build", folder / "spare"
        self.python = folder / "venv" / Path(sys.executable).relative_to(sys.prefix)
        shutil.copytree(ROOT, self.root, ignore=IGNORED)
        self._make_environment(folder / "venv")
        if not self._meson("setup", "-Doptimization=1", str(self.build), str(self.root)) or not self.compile():
            sys.exit("mutations: the kernels must compile before anything is edited. Fix what is printed above.")
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
        """Test an edit and take it back; None if it does not compile."""
        path = self.root / PACKAGE / mutation.file
        before, stamp = path.read_text(encoding="utf-8"), path.stat()
        if mutation.compiled:
            shutil.copytree(self.build, self.spare)  # taken back with the file's time, or it would be compiled anew
        path.write_text(before.replace(mutation.old, mutation.new), encoding="utf-8")
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
        """Everything that is installed here, but for the package, which comes from the copy."""
        venv.create(folder, symlinks=os.name == "posix")
        paths = sysconfig.get_paths(vars={"base": str(folder), "platbase": str(folder)})
        # Only paths: the hooks of this environment, which would import the checkout, are not taken over.
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


def tried(folder: Path, chosen: Sequence[Mutation]) -> list[str]:
    """Try edits one after the other; tell and return what became of each."""
    copy = Copy(folder)
    if copy.test(sorted({test for mutation in chosen for test in mutation.tests})) != PASSED:
        sys.exit("mutations: all tests must pass before anything is edited. Run them and see.")
    verdicts: dict[int | None, str] = {PASSED: "survived", FAILED: "caught"}
    found = []
    for mutation in chosen:
        start = time.monotonic()
        found.append(verdicts.get(copy.mutated(mutation), "no test was run"))
        print(f"{found[-1]:<9} {time.monotonic() - start:4.0f} s  {mutation.file}: {mutation.name}", flush=True)
    return found


def main(words: Sequence[str]) -> None:
    """Divide the edits among the cores, each with a copy of its own, and tell how many were caught."""
    chosen = mutations(words)
    n_copies = min(os.cpu_count() or 1, 1 + len(chosen) // WORTH_A_COPY)
    with tempfile.TemporaryDirectory(prefix="mutations-") as folder, ThreadPoolExecutor(n_copies) as pool:
        jobs = [pool.submit(tried, Path(folder, str(k)), chosen[k::n_copies]) for k in range(n_copies)]
        found = [verdict for job in jobs for verdict in job.result()]
    caught = found.count("caught")
    print(f"{caught} of {len(found)} were caught")
    sys.exit(0 if caught == len(found) else 1)


if __name__ == "__main__":
    main(sys.argv[1:])
