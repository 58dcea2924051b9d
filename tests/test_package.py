"""The public surface."""

import subprocess
import sys

import bayesvote


def test_all_is_sorted_and_true() -> None:
    assert sorted(bayesvote.__all__) == sorted(set(bayesvote.__all__))
    assert all(hasattr(bayesvote, name) for name in bayesvote.__all__)


def test_import_is_light() -> None:
    heavy = {"numba", "pandas", "matplotlib", "river", "safetensors", "sklearn"}
    code = f"import bayesvote, sys; print({heavy} & set(sys.modules))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.strip() == "set()"
