"""Members that see only the features that were ever other than 0."""

import copy
import threading
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array, random_array

from bayesvote import (
    BayesianEnsembleClassifier,
    Compact,
    FernBank,
    Frozen,
    LinearBank,
    LogisticBank,
    NaiveBayesBank,
    PerceptronBank,
    Scaled,
    TreeBank,
    Union,
)
from bayesvote.core.checks import Array, Labels
from bayesvote.core.rows import Rows
from bayesvote.io.model_file import dumps, loads
from bayesvote.members import Bank

WIDE = 2**20
NAMES = [
    "adaptive",
    "fast",
    "mixed",
    "averaged_perceptron",
    "fern",
    "linear",
    "logistic",
    "naive_bayes",
    "perceptron",
    "tree",
]


def text(n: int, width: int, held: int = 20, seed: int = 0) -> tuple[Any, Labels]:
    """Rows of a few ones, in columns of which few are frequent; the label is told by some of these."""
    rng = np.random.default_rng(seed)
    columns = rng.permutation(width)[rng.zipf(1.5, size=(n, held)) % width].astype(np.int32)
    X = csr_array((np.ones(n * held), columns.ravel(), np.arange(0, n * held + 1, held, dtype=np.int32)), (n, width))
    X.sum_duplicates()
    return X, np.asarray(X @ rng.normal(size=width) + rng.normal(size=n) > 0, dtype=np.intp)


def rows(n: int, width: int, seed: int = 0) -> tuple[Array, Labels, Array]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, width)) * (rng.random((n, width)) < rng.random(width) ** 4)
    X[rng.random((n, width)) < 0.002] = np.nan
    return X, rng.integers(2, size=n), rng.choice([0.0, 0.5, 1.0], size=n)


def arrays(state: Any) -> list[Any]:
    return [array for part in state for array in arrays(part)] if isinstance(state, tuple) else [state]


def bank(first: int = 4, **options: Any) -> Compact:
    trees = TreeBank(3, recent=[(16, 2, 8)], refined=[1.0], rows_kept=32, max_nodes=25)
    ferns = FernBank(3, depth=2, warmup=32)
    scaled = Scaled(Union([LogisticBank(2), LinearBank(3)]))
    bayes = NaiveBayesBank(3)
    return Compact(Union([scaled, bayes, PerceptronBank(3, averaged=True), trees, ferns]), first, **options)


@pytest.mark.parametrize("name", NAMES)
def test_work_and_states_of_a_million_columns_follow_what_rows_hold(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> Any:
        raise AssertionError

    X, y = text(200, WIDE)
    model = BayesianEnsembleClassifier(members=name, random_state=0)
    monkeypatch.setattr(Rows, "todense", refuse)
    model.partial_fit(X, y, classes=[0, 1])
    model.partial_fit(X[:1], y[:1])
    model.predict_proba(X)
    found = arrays(model.model_.bank.state)
    wide = [array for array in found if max(array.shape) > 2**16]
    assert [(array.shape, array.dtype) for array in wide if array.shape[0] == WIDE] == [((WIDE,), np.dtype(np.int32))]
    assert sum(array.nbytes for array in found) < 4 * WIDE + 2**25


@pytest.mark.parametrize("cuts", [[1, 2, 50], [64, 65, 100], list(range(1, 120))], ids=["few", "edges", "rows"])
@pytest.mark.parametrize("max_features", [8, 64])
def test_chunks_and_dense_rows_change_no_bit(cuts: list[int], max_features: int) -> None:
    X, y, w = rows(120, 80)
    whole, parts, sparse = (bank(max_features=max_features).start(80, rng=1) for _ in range(3))
    expected, got = whole.scores_then_learn(X, y, w), []
    np.testing.assert_array_equal(sparse.scores_then_learn(csr_array(X), y, w), expected)
    for a, b in pairwise([0, *cuts, 120]):
        first = parts.scores(X[a : a + 1])
        got.append(parts.scores_then_learn(X[a:b], y[a:b], w[a:b]))
        np.testing.assert_array_equal(got[-1][:1], first)
    np.testing.assert_array_equal(np.concatenate(got), expected)
    assert dumps_of(whole) == dumps_of(parts) == dumps_of(sparse)
    assert whole.bank.n_features == max_features


def dumps_of(one: Bank[Any]) -> list[bytes]:
    return [np.asarray(array).tobytes() for array in arrays(one.state)]


def test_columns_are_numbered_by_the_first_value() -> None:
    X = np.zeros((4, 9))
    X[0, [8, 3]], X[1, 5], X[2, [5, 0]], X[3, 3] = 1.0, np.nan, 1.0, 2.0
    one = Compact(PerceptronBank(1, max_features=None), first=9).start(9)
    one.scores_then_learn(X, [1, 0, 1, 0], [1.0, 0.0, 1.0, 1.0])
    assert one.state is not None
    seen, inner = one.state
    assert seen.column_of.tolist() == [2, -1, -1, 0, -1, 3, -1, -1, 1]
    same = PerceptronBank(1, max_features=None).start(9)
    same.scores_then_learn(X[[0, 2, 3]][:, [3, 8, 0, 5, 1, 2, 4, 6, 7]], [1, 1, 0])
    for mine, other in zip(inner, same.state or (), strict=True):
        np.testing.assert_array_equal(mine, other)


def test_a_missing_value_is_left_out_by_the_members_that_use_its_feature() -> None:
    X, y, _ = rows(50, 40)
    one = Compact(NaiveBayesBank(20, max_features=0.2), first=40).start(40, rng=0)
    one.scores_then_learn(np.nan_to_num(X), y)
    assert one.state is not None
    seen, inner = one.state
    for j in np.flatnonzero(seen.column_of >= 0):
        row = np.where(np.arange(40) == j, np.nan, 0.0)[None]
        differ = one.scores(row)[0] != one.scores(np.zeros((1, 40)))[0]
        np.testing.assert_array_equal(differ, inner.mask[seen.column_of[j]] == 1)


def test_there_are_twice_as_many_columns_when_half_are_used_and_what_does_not_fit_is_left_out() -> None:
    one = Compact(PerceptronBank(1, max_features=None), first=2, max_features=8).start(100)
    X = np.zeros((4, 100))
    X[0, :5], X[1, :5], X[2, 50:60] = 1.0, 1.0, 1.0
    capacities = []
    for row in X:
        one.scores_then_learn(row[None], [1])
        capacities.append(one.bank.n_features)
    assert capacities == [8, 8, 8, 8]
    assert one.state is not None
    assert np.flatnonzero(one.state[0].column_of >= 0).tolist() == [0, 1, 2, 3, 4, 50, 51, 52]


def test_scoring_and_rows_of_weight_zero_leave_no_trace() -> None:
    X, y, w = rows(80, 60)
    one = bank().start(60, rng=0)
    one.scores_then_learn(X[:40], y[:40], w[:40])
    before = dumps_of(one)
    expected = one.scores(X[40:])
    np.testing.assert_array_equal(one.scores_then_learn(X[40:], y[40:], np.zeros(40)), expected)
    np.testing.assert_array_equal(Frozen(copy.deepcopy(one)).scores_then_learn(X[40:], y[40:]), expected)
    assert dumps_of(one) == before


@pytest.mark.parametrize("name", ["adaptive", "fast", "mixed"])
def test_a_saved_classifier_of_wide_rows_continues_bit_for_bit(name: str) -> None:
    X, y = text(600, 5000)
    model = BayesianEnsembleClassifier(members=name, random_state=0)
    model.partial_fit(X[:200], y[:200], classes=[0, 1])
    again = loads(dumps(model))
    for t in (200, 201, 350):
        part = slice(t, 600 if t == 350 else t + 1)
        for each in (model, again):
            each.partial_fit(X[part], y[part])
    assert dumps(model) == dumps(again)


def test_sparse_and_dense_rows_of_a_classifier_give_the_same_bits() -> None:
    X, y = text(300, 1500)
    models = [BayesianEnsembleClassifier(random_state=0) for _ in range(2)]
    for model, given in zip(models, (X, X.toarray()), strict=True):
        model.partial_fit(given, y, classes=[0, 1])
    np.testing.assert_array_equal(models[0].predict_proba(X), models[1].predict_proba(X.toarray()))
    assert dumps(models[0]) == dumps(models[1])


def test_explanations_of_wide_rows_add_up_and_name_the_columns() -> None:
    X, y = text(300, 5000)
    model = BayesianEnsembleClassifier(random_state=0).partial_fit(X, y, classes=[0, 1])
    found = model.model_.explain(X[:5])
    total = found.parts.sum(axis=1) + found.start + found.remainder
    np.testing.assert_allclose(total, found.lead, atol=1e-9)
    held = X[:5].toarray() != 0
    assert np.abs(found.parts[held]).sum() > 0
    importances = model.feature_importances_
    assert importances.shape == (5000,)
    assert set(np.flatnonzero(importances)) <= set(X.indices.tolist())


@pytest.mark.parametrize(
    ("field", "at", "value", "word"),
    [
        ("column_of", 0, 99, "column_of must be from -1"),
        ("column_of", 0, 0, "every column once"),
        ("used", 0, 9, "used must be from 0 to"),
        ("capacity", 0, 0, "capacity must be from 1"),
    ],
)
def test_columns_that_no_rows_lead_to_are_rejected(field: str, at: int, value: int, word: str) -> None:
    one = Compact(PerceptronBank(1), first=8).start(20)
    one.scores_then_learn(np.eye(20)[5:8], [0, 1, 0])
    assert one.state is not None
    seen = copy.deepcopy(one.state[0])
    getattr(seen, field)[at] = value
    with pytest.raises(ValueError, match=word):
        one.validate((seen, one.state[1]))


@pytest.mark.parametrize("options", [{"first": 0}, {"first": 10, "max_features": 5}])
def test_numbers_of_columns_must_make_sense(options: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="must be"):
        Compact(PerceptronBank(1), **options)


def test_members_that_were_started_by_themselves_are_noticed() -> None:
    one = Compact(PerceptronBank(2), first=4).start(20, rng=0)
    both = Union([one, PerceptronBank(2)]).start(20, rng=0)
    row = np.ones((1, 20))
    both.scores_then_learn(row, [1])
    one.bank.start(1)
    banks: list[Bank[Any]] = [one, both]
    for bank in banks:
        assert bank.shape is None
        with pytest.raises(ValueError, match="must be started"):
            bank.scores(row)
        with pytest.raises(ValueError, match="must be started"):
            bank.scores_then_learn(row, [1])
    both.start(20, rng=0)
    assert one.shape == both.shape == (20, 2)
    both.scores_then_learn(row, [1])


def test_members_are_widened_while_a_long_call_is_learned_in_the_background() -> None:
    rng = np.random.default_rng(0)
    X, y = random_array((1000, 4096), density=0.005, format="csr", rng=rng), rng.integers(0, 2, 1000)
    fitted = list[bool]()
    model = BayesianEnsembleClassifier(random_state=0)
    thread = threading.Thread(target=lambda: fitted.append(model.fit(X, y) is model), daemon=True)
    thread.start()
    thread.join(120)
    assert fitted == [True]
