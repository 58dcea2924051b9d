"""Tab completion shows what is documented, and not what only the library itself calls."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bayesvote import (
    BayesianEnsembleClassifier,
    Ensemble,
    FernBank,
    Frozen,
    GammaRate,
    OSBoostClassifier,
    OzaBoost,
    PerceptronBank,
    TreeBank,
    adaptive,
)

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *(page for page in (ROOT / "docs").glob("*.md") if page.stem != "architecture")]
X = np.random.default_rng(0).normal(size=(60, 3))
Y = (X[:, 0] > 0).astype(int)
OBJECTS: list[Any] = [
    BayesianEnsembleClassifier(random_state=0),
    BayesianEnsembleClassifier("naive_bayes", 5, random_state=0).fit(X, Y),
    OSBoostClassifier(random_state=0),
    Ensemble(PerceptronBank(3), GammaRate()),
    OzaBoost(),
    adaptive(10),
    FernBank(3),
    Frozen(PerceptronBank(3).start(3, rng=0)),
    TreeBank(),
]
LIFE_CYCLE = "complete learned parameters reference restore who"
INTERNAL = {
    BayesianEnsembleClassifier: "advance around calibrates check checked_rows probabilities progress start",
    OSBoostClassifier: "advance around calibrates check checked_rows probabilities progress start",
    Ensemble: "advance age arrays checked init install losses ready snapshot step template upgraded validate version",
    OzaBoost: "advance age arrays init losses most_record ready shares snapshot step validate version wider",
    PerceptronBank: "advance arrays check_names frozen_state init rebuilt returning score shaped step template version",
}


def documented() -> set[str]:
    """Names that the pages use as attributes in code, or call in text."""
    found: set[str] = set()
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for code in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
            found.update(re.findall(r"\.([a-z]\w*)", code))
        for span in re.findall(r"`([^`\n]+)`", text):
            found.update(re.findall(r"(?:\.|^)([a-z]\w*)\(", span))
    return found


@pytest.mark.parametrize("one", OBJECTS, ids=lambda one: type(one).__name__)
def test_what_is_documented_is_shown(one: Any) -> None:
    names = {name for name in documented() if hasattr(one, name)}
    if isinstance(one, BayesianEnsembleClassifier | OSBoostClassifier):
        names -= {"start"}  # of banks and models
        names |= {"fit", "partial_fit", "predict", "predict_log_proba", "predict_proba", "score", "set_params"}
    else:
        names -= {"score", "read_lock"}  # of classifiers
        names -= {"init"}  # of weighters
        names |= {"lock", "n_classes", "n_features", "shape", "start", "state", "widen"}
    assert names <= set(dir(one))
    assert set(vars(one)) <= set(dir(one))


@pytest.mark.parametrize("one", OBJECTS, ids=lambda one: type(one).__name__)
def test_internals_are_not_shown(one: Any) -> None:
    (names,) = [names for kind, names in INTERNAL.items() if isinstance(one, kind)] or [INTERNAL[PerceptronBank]]
    for name in f"{LIFE_CYCLE} {names}".split():
        assert hasattr(type(one), name)  # it is still there
        assert name not in dir(one)


def test_names_that_are_hidden_exist() -> None:
    for one in OBJECTS:
        for kind in type(one).__mro__:
            for name in vars(kind).get("_internal", "").split():
                assert hasattr(kind, name), (kind, name)
