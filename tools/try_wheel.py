"""Install the wheel of dist into an empty environment and run the README's first example.

The environment has no compiler. With --here, only run the example, with the running Python.
"""

import argparse
import doctest
import os
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

ROOT = Path(__file__).parent.parent
LARGEST = 5_000_000  # bytes of a wheel


def run_example() -> None:
    """Run the README's first example; fail if its output differs from the page."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    example = text[text.index("## A first example") :].split("```")[1].removeprefix("python\n")
    start = time.perf_counter()
    test = doctest.DocTestParser().get_doctest(example, {}, "README.md", None, None)
    if doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test).failed:
        raise SystemExit("The output of the README's first example differs from the page.")
    import bayesvote

    loaded = sorted({"numba", "llvmlite", "cython"} & {name.lower() for name in sys.modules})
    if loaded:
        raise SystemExit(f"The example imported {loaded}, but nothing may be compiled on first use.")
    print(f"{bayesvote.__file__}: the first example took {time.perf_counter() - start:.1f} s, including imports.")


def in_empty_environment() -> None:
    """Install the wheel in an environment that has no other packages."""
    (wheel,) = (ROOT / "dist").glob("*.whl")
    if wheel.stat().st_size > LARGEST:
        raise SystemExit(f"The wheel has {wheel.stat().st_size:,} bytes. The limit is {LARGEST:,} bytes.")
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        bin_ = Path(folder) / ("Scripts" if os.name == "nt" else "bin")
        python = str(bin_ / "python")
        alone = {"PATH": str(bin_), "HOME": folder}
        settings = {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "SSL_", "SYSTEM"))}
        subprocess.run(
            [python, "-m", "pip", "install", "--quiet", "--only-binary", ":all:", str(wheel)],
            env=settings | alone,
            cwd=folder,
            check=True,
        )
        subprocess.run([python, str(Path(__file__).resolve()), "--here"], env=alone, cwd=folder, check=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--here", action="store_true", help="run the example with this Python, and install nothing")
    run_example() if parser.parse_args().here else in_empty_environment()
