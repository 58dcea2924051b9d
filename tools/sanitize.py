#!/usr/bin/env python3
"""Build the kernels with AddressSanitizer and UndefinedBehaviorSanitizer, and run their tests.

``python -m tools sanitize [pytest arguments]`` builds and installs in build/sanitized; the ordinary build stays. Leaks
are not reported, because the interpreter itself does not free all memory at exit.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
BUILD = ROOT / "build" / "sanitized"
TESTS = ["tests/members", "tests/weighting", "tests/boosting", "tests/contracts/test_banks.py", "tests/test_kernels.py"]

REPORTED = re.compile("runtime error:|ERROR: AddressSanitizer")


def library(name: str) -> str:
    """Return the path of one of the compiler's libraries."""
    found = subprocess.run(["gcc", f"-print-file-name={name}"], check=True, capture_output=True, text=True)
    return found.stdout.strip()


def main() -> None:
    """Build, then run the tests."""
    target = BUILD / "installed"
    options = ["--buildtype=debugoptimized", "-Db_sanitize=address,undefined", "-Db_lundef=false"]
    environment = os.environ | {"CC": "gcc"}
    if not (BUILD / "build.ninja").exists():
        setup = [
            "meson",
            "setup",
            str(BUILD),
            *options,
            f"-Dpython.purelibdir={target}",
            f"-Dpython.platlibdir={target}",
        ]
        subprocess.run(setup, cwd=ROOT, env=environment, check=True)
    subprocess.run(["meson", "compile", "-C", str(BUILD)], check=True)
    subprocess.run(["meson", "install", "-C", str(BUILD), "--quiet"], check=True)
    environment |= {
        "LD_PRELOAD": f"{library('libasan.so')} {library('libubsan.so')}",
        "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=1:allocator_may_return_null=1",
        "UBSAN_OPTIONS": "print_stacktrace=1",
        "PYTHONPATH": f"{target}{os.pathsep}{ROOT / 'tests'}",
        "PYTHONMALLOC": "malloc",
    }
    tests = sys.argv[1:] or TESTS
    # -S disables the editable install, whose finder would take precedence over the path.
    folders = [path for path in sys.path if path.endswith("site-packages")]
    environment["PYTHONPATH"] += os.pathsep + os.pathsep.join(folders)
    check = "import bayesvote, sys; sys.exit(0 if 'sanitized' in bayesvote.__file__ else bayesvote.__file__)"
    subprocess.run([sys.executable, "-S", "-c", check], env=environment, check=True, cwd=ROOT)
    # The sanitizers write to file descriptor 2, which pytest must not capture.
    command = [sys.executable, "-S", "-m", "pytest", "-n0", "-p", "no:cacheprovider", "--capture=sys", *tests]
    report = BUILD / "report.txt"
    with report.open("w") as errors:
        done = subprocess.run(command, env=environment, cwd=ROOT, stderr=errors).returncode
    found = [line for line in report.read_text(errors="replace").splitlines() if REPORTED.search(line)]
    print(*found, f"{len(found)} sanitizer reports, in {report.relative_to(ROOT)}", sep="\n")
    sys.exit(1 if found else done)


if __name__ == "__main__":
    main()
