"""Inputs without rows: the same answer from every method, whatever kind of table they come in."""

from importlib import import_module
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from bayesvote import BayesianEnsembleClassifier, OGBoostClassifier, OSBoostClassifier, OzaBoostClassifier
from bayesvote.io.model_file import dumps

pd: Any = import_module("pandas")
pl: Any = import_module("polars")

NUMBERS = {"a": [1.0, 2.0, 1.5], "b": [1.0, 3.0, 0.0]}
TEXTS = {"a": ["x", "y", "x"], "b": [1.0, 3.0, 0.0]}
TABLES: dict[str, Any] = {
    "array": np.array([*NUMBERS.values()]).T,
    "sparse": sp.csr_array(np.array([*NUMBERS.values()]).T),
    "pandas": pd.DataFrame(NUMBERS),
    "polars": pl.DataFrame(NUMBERS),
    "pandas with text": pd.DataFrame(TEXTS),
    "polars with text": pl.DataFrame(TEXTS),
    "objects with text": np.array([*TEXTS.values()], dtype=object).T,
    "dictionary": TEXTS,
}
KINDS = [BayesianEnsembleClassifier, OzaBoostClassifier, OGBoostClassifier, OSBoostClassifier]
LABELS = ["n", "o", "n"]


def emptied(table: Any) -> Any:
    return {name: [] for name in table} if isinstance(table, dict) else table[:0]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", TABLES)
def test_the_first_rows_must_be_there(kind: Any, name: str) -> None:
    none, model = emptied(TABLES[name]), kind(n_members=10)
    for call, classes in (
        (model.fit, {}),
        (model.partial_fit, {"classes": ["n", "o"]}),
        (model.predict_proba_then_learn, {"classes": ["n", "o"]}),
    ):
        with pytest.raises(ValueError, match=r"Found array with 0 sample\(s\) \(shape=\(0, 2\)\) while a minimum of 1"):
            call(none, [], **classes)
    assert not hasattr(model, "classes_")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", TABLES)
def test_a_fitted_model_takes_no_rows_and_changes_nothing(kind: Any, name: str) -> None:
    model = kind(n_members=10, random_state=0).fit(TABLES[name], LABELS)
    before, none = dumps(model), emptied(TABLES[name])
    assert model.partial_fit(none, []) is model
    assert model.predict(none).shape == (0,)
    assert model.predict(none).dtype == model.classes_.dtype
    assert model.decision_function(none).shape == (0,)
    for method in (model.predict_proba, model.predict_log_proba):
        assert method(none).shape == (0, 2)
    assert model.predict_proba_then_learn(none, [], sample_weight=[]).shape == (0, 2)
    if kind is BayesianEnsembleClassifier:
        assert model.predict(none, abstain_below=0.9).shape == (0,)
        assert model.decision_certainty(none).shape == (0,)
        assert model.contributions(none).shape == (0, 10)
        for method in (model.explain, model.importances):
            with pytest.raises(ValueError, match="X must have at least one row, got none"):
                method(none)
    assert dumps(model) == before
    with pytest.raises(ValueError, match="minimum of 1 is required"):
        model.fit(none, [])
    assert dumps(model) == before


def test_frozen_members_unlearn_no_rows() -> None:
    from bayesvote import Frozen
    from bayesvote.members import PerceptronBank

    X = TABLES["array"]
    model = BayesianEnsembleClassifier(Frozen(PerceptronBank(3).start(2, rng=0)), weighter="gamma_rate")
    before = model.fit(X, LABELS).weights_["mean"].tolist()
    assert model.unlearn(X[:0], []).weights_["mean"].tolist() == before


def test_river_takes_frames_without_rows() -> None:
    pytest.importorskip("river", reason="river is not installed")
    from bayesvote.integrations.river import BayesianEnsembleClassifier as Online

    for name in ("pandas", "pandas with text"):
        frame, model = TABLES[name], Online(n_members=10, seed=0)
        for _ in range(2):
            model.learn_many(frame[:0], pd.Series([]))
            assert len(model.predict_many(frame[:0])) == len(model.predict_proba_many(frame[:0])) == 0
            model.learn_many(frame, pd.Series(LABELS))
