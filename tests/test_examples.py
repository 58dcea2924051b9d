"""The examples run from beginning to end, and print something."""

import runpy
from pathlib import Path

import pytest

from bayesvote import BayesianEnsembleClassifier

ROOT = Path(__file__).parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(path), run_name="__main__")
    assert capsys.readouterr().out


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 3


@pytest.mark.parametrize("path", [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *EXAMPLES], ids=str)
def test_no_example_scales_test_rows_together_with_training_rows(path: Path) -> None:
    assert "import scale" not in path.read_text(encoding="utf-8")
    assert "minmax_scale" not in str(BayesianEnsembleClassifier.__doc__)
