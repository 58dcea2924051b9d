"""Input is checked once, at the first door it comes to."""

from typing import Any

import numpy as np
import pytest

from bayesvote import BayesianEnsembleClassifier, Ensemble, OSBoostClassifier, mixed, prequential
from bayesvote.core import checks as _checks
from bayesvote.core import rows as _input


def counted(monkeypatch: pytest.MonkeyPatch, module: Any, name: str) -> list[str]:
    calls: list[str] = []
    check = getattr(module, name)

    def counting(who: str, *arguments: Any, **more: Any) -> Any:
        calls.append(who)
        return check(who, *arguments, **more)

    monkeypatch.setattr(module, name, counting)
    return calls


def rows() -> tuple[Any, Any]:
    X = np.random.default_rng(0).normal(size=(100, 4))
    return X, (X[:, 0] > 0).astype(int)


@pytest.mark.parametrize("model", [BayesianEnsembleClassifier(n_members=9), OSBoostClassifier(n_members=3)])
def test_partial_fit_checks_once(monkeypatch: pytest.MonkeyPatch, model: Any) -> None:
    X, y = rows()
    scans = counted(monkeypatch, _input, "_has_nan")
    weights = counted(monkeypatch, _checks, "weights")
    labels = counted(monkeypatch, _checks, "encoded")
    model.partial_fit(X, y, classes=[0, 1])
    assert (len(scans), len(weights), len(labels)) == (1, 1, 1)
    model.partial_fit(X, y)
    assert (len(scans), len(weights), len(labels)) == (2, 2, 2)


def test_an_ensemble_checks_once_for_all_its_banks(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = rows()
    model = Ensemble(mixed(9)).start(4, rng=0)
    scans = counted(monkeypatch, _input, "_has_nan")
    labels = counted(monkeypatch, _input, "labels")
    model.decide_then_learn(X, y)
    assert (len(scans), len(labels)) == (1, 1)


def test_evaluation_scans_rows_once(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = rows()
    models: dict[str, Any] = {"a": BayesianEnsembleClassifier(n_members=9), "b": OSBoostClassifier(n_members=3)}
    scans = counted(monkeypatch, _input, "_has_nan")
    prequential(models, X, y)
    assert len(scans) == 1
