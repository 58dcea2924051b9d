"""Install the wheel of dist into an empty environment without a compiler and run the README's first example there.

With --here, only run the example, by the Python that runs this.
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
    """Run the README's first example, as its reader would, and fail if it prints anything else."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    example = text[text.index("## A first example") :].split("```")[1].removeprefix("python\n")
    start = time.perf_counter()
    test = doctest.DocTestParser().get_doctest(example, {}, "README.md", None, None)
    if doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test).failed:
        raise SystemExit("try_wheel: the README's first example must print what it says.")
    import bayesvote

    loaded = sorted({"numba", "llvmlite", "cython"} & {name.lower() for name in sys.modules})
    if loaded:
        raise SystemExit(f"try_wheel: nothing may be compiled on first use, got {loaded}.")
    print(f"{bayesvote.__file__}: the first example took {time.perf_counter() - start:.1f} s, with its imports.")


def in_empty_environment() -> None:
    """Install the wheel as a user would, with nothing else at hand."""
    (wheel,) = (ROOT / "dist").glob("*.whl")
    if wheel.stat().st_size > LARGEST:
        raise SystemExit(f"try_wheel: a wheel must be below {LARGEST:,} bytes, got {wheel.stat().st_size:,}.")
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
    parser.add_argument("--here", action="store_true", help="run the example by this Python, without installing")
    run_example() if parser.parse_args().here else in_empty_environment()
