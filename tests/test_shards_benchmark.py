"""The benchmark of shards: weights of members that abstain on the shard that trained them."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

shards = pytest.importorskip("shards", reason="needs Dask")
results = pytest.importorskip("results")


def made_rows(n_rows: int | None = None) -> tuple[Any, Any, Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows or 2000, 5))
    y = (X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=len(X)) > 0).astype(np.intp)
    tenth = len(y) // 10
    return X[tenth:], y[tenth:], X[:tenth], y[:tenth]


def test_weights_of_abstaining_members_are_compared_with_those_of_unseen_rows(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(shards, "covtype", made_rows)
    monkeypatch.setattr(sys, "argv", ["shards.py", "abstain", "--rows", "2000"])
    monkeypatch.setenv("BAYESVOTE_RESULTS", str(tmp_path))
    shards.main()
    weights = results.read("shards_abstain", tmp_path).figures["weights"]
    assert set(weights) == {"unseen rows", "abstaining (as `fit` does)", "not abstaining"}
    assert weights["unseen rows"]["correlation with unseen rows"] == pytest.approx(1)
    assert {"Tree", "Refined", "Perceptron", "NaiveBayes"} <= set(weights["not abstaining"])
