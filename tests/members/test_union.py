"""A union is its parts side by side."""

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from bayesvote.core.checks import Array
from bayesvote.members.external import EstimatorBank
from bayesvote.members.ferns import FernBank
from bayesvote.members.mixtures import mixed
from bayesvote.members.naive_bayes import NaiveBayesBank
from bayesvote.members.perceptron import PerceptronBank
from bayesvote.members.trees import TreeBank
from bayesvote.members.union import Union


def stream(seed: int, n: int = 120, n_classes: int = 2) -> tuple[Array, Any, Array]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 6))
    y = np.digitize(X[:, 0] * X[:, 1], [0.0, 0.5][: n_classes - 1])
    X[rng.random(X.shape) < 0.02] = np.nan
    return X, y, rng.choice([0.0, 1.0, 2.0], n)


def parts() -> list[Any]:
    return [PerceptronBank(3), FernBank(5, depth=3, warmup=40), PerceptronBank(4, averaged=True)]


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("form", [np.array, sp.csr_array])
def test_equals_its_parts(n_classes: int, form: Callable[[Array], Any]) -> None:
    X, y, w = stream(0, n_classes=n_classes)
    union = Union(parts()).start(6, n_classes, rng=7)
    children = np.random.default_rng(7).spawn(3)
    banks = [bank.start(6, n_classes, child) for bank, child in zip(parts(), children, strict=True)]
    assert union.n_members == 12
    expected = np.concatenate([bank.scores_then_learn(form(X), y, w) for bank in banks], axis=1)
    np.testing.assert_array_equal(union.scores_then_learn(form(X), y, w), expected)
    expected = np.concatenate([bank.scores(form(X)) for bank in banks], axis=1)
    np.testing.assert_array_equal(union.scores(form(X)), expected)
    for got, bank in zip(union.state or (), banks, strict=True):
        for a, b in zip(got, bank.state, strict=True):
            np.testing.assert_array_equal(a, b)


@settings(deadline=None, max_examples=20)
@given(seed=st.integers(0, 100), cut=st.integers(0, 120))
def test_chunks_equal_the_whole_bit_for_bit(seed: int, cut: int) -> None:
    X, y, w = stream(seed)
    a = mixed(9).start(6, rng=seed)
    b = copy.deepcopy(a)
    whole = a.scores_then_learn(X, y, w)
    halves = [b.scores_then_learn(X[s], y[s], w[s]) for s in (slice(0, cut), slice(cut, None))]
    np.testing.assert_array_equal(whole, np.concatenate(halves))
    np.testing.assert_array_equal(a.scores(X), b.scores(X))


def test_banks_of_one_kind_differ() -> None:
    union = Union([FernBank(5), FernBank(5)]).start(30, rng=0)
    first, second = union.state or ()
    assert not np.array_equal(first.places, second.places)


@pytest.mark.parametrize("n", [3, 4, 5, 100, 102])
def test_mixed_is_a_third_of_each(n: int) -> None:
    bank = mixed(n)
    assert bank.n_members == n
    sizes = [part.n_members for part in bank.banks]
    assert max(sizes) - min(sizes) <= 1
    assert bank.banks == [
        PerceptronBank(sizes[0], max_features=0.5, averaged=True),
        NaiveBayesBank(sizes[1], max_features=0.3),
        FernBank(sizes[2], depth=8),
    ]


def test_mixed_needs_three() -> None:
    with pytest.raises(ValueError, match="mixed: n_members must be an integer of at least 3"):
        mixed(2)


def test_refused_input_changes_no_bank() -> None:
    X, y, w = stream(1)
    foreign = EstimatorBank([NoWeights()], online=True)
    union = Union([PerceptronBank(3), Union([FernBank(5), foreign])]).start(6, rng=0)
    union.scores_then_learn(X, y)
    before = copy.deepcopy(union)
    bad: list[tuple[Any, Any, Any]] = [
        (X, y, w),
        (X[:, :5], y, None),
        (X, y + 1, None),
        (X[:-1], y, None),
        (np.where(np.isnan(X), np.inf, X), y, None),
    ]
    for rows, labels, weight in bad:
        with pytest.raises(ValueError, match=r"Union|EstimatorBank"):
            union.scores_then_learn(rows, labels, weight)
    np.testing.assert_array_equal(union.scores(X), before.scores(X))


class NoWeights:
    """Learns, but takes no sample weights."""

    def predict(self, X: Array) -> Any:
        return (X[:, 0] > self.mean).astype(int)

    def partial_fit(self, X: Array, y: Any) -> None:
        self.mean = float(X[0, 0]) + float(y[0])
        self.classes_ = np.array([0, 1])


def test_unfit_banks_are_refused() -> None:
    bank = PerceptronBank(3)
    with pytest.raises(ValueError, match="at least one bank"):
        Union([])
    with pytest.raises(ValueError, match="one twice"):
        Union([bank, bank])
    with pytest.raises(ValueError, match="must be started"):
        Union([bank]).scores([[1.0]])


def test_banks_of_different_shapes_are_not_started_and_every_state_is_checked() -> None:
    union = Union([PerceptronBank(3), NaiveBayesBank(3)]).start(6, rng=0)
    state = union.state
    assert state is not None
    union.validate(state)
    with pytest.raises(ValueError, match="total must be at least 0"):
        union.validate((state[0], state[1]._replace(total=np.array([0.0, -1.0]))))
    union.banks[1].start(7, rng=0)
    assert union.shape is None
    assert union.state is None
    with pytest.raises(ValueError, match="must be started"):
        union.scores(np.zeros((1, 6)))


@pytest.mark.parametrize("act", ["widen", "revert"])
def test_where_one_bank_finds_no_memory_none_has_its_new_state(monkeypatch: pytest.MonkeyPatch, act: str) -> None:
    X, y, _ = stream(3)
    union = Union([PerceptronBank(3), TreeBank(2), FernBank(4, depth=2)]).start(6, rng=0)
    union.scores_then_learn(X, y)
    early = union.snapshot()
    union.scores_then_learn(X, y)
    now, ready = union.scores(X), TreeBank.ready

    def failing(*_: Any) -> Any:
        raise MemoryError

    monkeypatch.setattr(TreeBank, "ready", failing)
    with pytest.raises(MemoryError):
        union.widen(9, rng=0) if act == "widen" else union.revert(early)
    monkeypatch.setattr(TreeBank, "ready", ready)
    assert union.shape == (6, 2)
    assert union.scores(X).tobytes() == now.tobytes()
    union.widen(9, rng=0)
    assert union.shape == (9, 2)
