"""Prequential evaluation against a plain loop."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from bayesvote import Ensemble, GammaRate, OSBoost, PerceptronBank, decided, prequential
from bayesvote._checks import Array, Labels
from bayesvote.evaluate import Model


def stream(n: int = 120) -> tuple[Array, Labels]:
    X = np.random.default_rng(0).standard_normal((n, 4))
    return X, (X[:, 0] > X[:, 1]).astype(np.intp)


def models() -> list[Model]:
    return [Ensemble(PerceptronBank(5), GammaRate()).start(4, rng=1), OSBoost(n_members=5).start(4, rng=1)]


@pytest.mark.parametrize("k", [0, 1])
@pytest.mark.parametrize("chunk_size", [1, 7, 1000])
def test_every_row_is_predicted_by_what_came_before(k: int, chunk_size: int) -> None:
    X, y = stream()
    result, model = prequential(models()[k], X, y, chunk_size), models()[k]
    expected = [int(decided(model.decide_then_learn(X[t : t + 1], y[t : t + 1]))[0]) for t in range(len(y))]
    assert result.predictions.tolist() == expected
    mistakes = [p != label for p, label in zip(expected, y, strict=True)]
    assert result.error == np.mean(mistakes)
    assert result.curve == pytest.approx([np.mean(mistakes[: t + 1]) for t in range(len(y))])
    assert result.seconds > 0


def test_sparse_rows_and_the_empty_stream() -> None:
    X, y = stream()
    assert prequential(models()[0], csr_array(X), y).error == prequential(models()[0], X, y).error
    empty = prequential(models()[0], X[:0], y[:0])
    assert empty.error == 0
    assert len(empty.curve) == 0


def test_refusals_come_before_the_first_row_is_learned() -> None:
    X, y = stream()
    model = models()[0]
    with pytest.raises(ValueError, match=r"y must have one label per row, shape \(120,\), got \(119,\)"):
        prequential(model, X, y[1:])
    with pytest.raises(ValueError, match="chunk_size must be an integer of at least 1, got 0"):
        prequential(model, X, y, chunk_size=0)
    X[-1, 0] = np.inf
    with pytest.raises(ValueError, match="X must hold finite numbers"):
        prequential(model, X, y, chunk_size=10)
    X[-1, 0] = 0.0
    assert prequential(model, X, y).error == prequential(models()[0], X, y).error
