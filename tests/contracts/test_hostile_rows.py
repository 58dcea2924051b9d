"""Sparse matrices whose arrays do not fit together, at every door: refused, and the model stays as it was.

And arrays that another thread may change while they are used: what finds a place in memory is copied before it is
checked.
"""

import copy
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayesvote import BayesianEnsembleClassifier, Ensemble, OzaBoost, OzaBoostClassifier
from bayesvote.core.checks import InvalidInputError, encoded, labels, weights
from bayesvote.core.rows import as_rows
from contracts.test_banks import SAMPLES, D

sparse: Any = import_module("scipy.sparse")
KINDS = ("csr", "csc", "coo", "bsr", "dia", "dok", "lil")


def sound(form: str, seed: int = 0, kind: str = "array") -> Any:
    rng = np.random.default_rng(seed)
    X = np.where(rng.random((8, D)) < 0.4, rng.normal(size=(8, D)), 0.0)
    return getattr(sparse, f"{form}_{kind}")(X)


def spoil(X: Any, name: str, value: Any) -> Any:
    """Put something else into a matrix behind its back."""
    X.__dict__[name] = value
    return X


def changed(array: Any, at: int, value: int) -> Any:
    out = np.array(array)
    out[at] = value
    return out


def spoilt_coo(row: Any, col: Any) -> Any:
    X = sound("coo")
    X.coords = (row(X.row), col(X.col))
    return X


def hidden(array: Any, at: int, value: int) -> Any:
    """A masked array, whose own minimum and maximum leave out what is masked."""
    out = np.ma.array(changed(array, at, value))
    out[at] = np.ma.masked
    return out


def forged(form: str, **arrays: Any) -> Any:
    """A csr matrix that says it is of another form."""
    X = spoil(sound("csr"), "_format", form)
    X.__dict__.update(arrays)
    return X


def of_lists(at: Callable[[Any], Any] = list, value: Callable[[Any], Any] = list) -> Any:
    X = sound("lil")
    X.rows[0], X.data[0] = at(X.rows[0]), value(X.data[0])
    return X


def of_keys(key: Any, value: Any) -> Any:
    X = sound("dok")
    X._dict[key] = value
    return X


BROKEN: dict[str, Callable[[], Any]] = {
    "a masked column": lambda: spoil(sound("csr"), "indices", hidden(sound("csr").indices, 3, 500_000_000)),
    "a masked pointer": lambda: spoil(sound("csr"), "indptr", hidden(sound("csr").indptr, 3, 500_000_000)),
    "a masked value": lambda: spoil(sound("csr"), "data", hidden(sound("csr").data, 3, 1)),
    "csc with a masked row": lambda: spoil(sound("csc"), "indices", hidden(sound("csc").indices, 3, 500_000_000)),
    "bsr with a masked block": lambda: spoil(sound("bsr"), "indices", hidden(sound("bsr").indices, 3, 500_000_000)),
    "coo with a masked row": lambda: spoilt_coo(lambda r: hidden(r, 1, 500_000_000), lambda c: c),
    "csr as coo": lambda: forged("coo", indices=changed(sound("csr").indices, 3, 500_000_000)),
    "csr as csc": lambda: forged("csc"),
    "csr of no form": lambda: forged("none"),
    "bsr with blocks of nothing": lambda: spoil(sound("bsr"), "data", np.ones((8, 0, D))),
    "a very wide shape": lambda: spoil(sound("csr"), "_shape", (8, 2**70)),
    "a shape of floats": lambda: spoil(sound("csr"), "_shape", (8.0, float(D))),
    "a negative shape": lambda: spoil(sound("csr"), "_shape", (8, -D)),
    "one dimension": lambda: sparse.coo_array(np.ones(D)),
    "lil with arrays": lambda: of_lists(np.array, np.array),
    "lil with a masked column": lambda: of_lists(lambda row: hidden(row, 0, 10**9)),
    "lil with text": lambda: of_lists(value=lambda row: ["a"] * len(row)),
    "lil with nothing": lambda: of_lists(value=lambda row: [None] * len(row)),
    "lil with half a column": lambda: of_lists(lambda row: [0.5] * len(row)),
    "lil with few values": lambda: of_lists(value=lambda row: row[1:]),
    "dok with text": lambda: of_keys((0, 0), "a"),
    "dok with half a row": lambda: of_keys((0.5, 0), 1.0),
    "dok with half a column": lambda: of_keys((0, 0.5), 1.0),
    "dok with a single place": lambda: of_keys(0, 1.0),
    "dok with a column beyond": lambda: of_keys((0, 10**9), 1.0),
    "short pointers": lambda: spoil(sound("csr"), "indptr", sound("csr").indptr[:3].copy()),
    "no pointers": lambda: spoil(sound("csr"), "indptr", np.zeros(0, dtype=np.int32)),
    "long pointers": lambda: spoil(sound("csr"), "indptr", np.append(sound("csr").indptr, 10**6)),
    "pointers beyond": lambda: spoil(sound("csr"), "indptr", changed(sound("csr").indptr, 4, 10**8)),
    "last pointer beyond": lambda: spoil(sound("csr"), "indptr", changed(sound("csr").indptr, -1, 10**8)),
    "negative pointers": lambda: spoil(sound("csr"), "indptr", changed(sound("csr").indptr, 2, -5)),
    "first pointer": lambda: spoil(sound("csr"), "indptr", changed(sound("csr").indptr, 0, 1)),
    "descending pointers": lambda: spoil(sound("csr"), "indptr", sound("csr").indptr[::-1].copy()),
    "float pointers": lambda: spoil(sound("csr"), "indptr", sound("csr").indptr * 1.0),
    "pointers of objects": lambda: spoil(sound("csr"), "indptr", sound("csr").indptr.astype(object)),
    "pointers in two rows": lambda: spoil(sound("csr"), "indptr", np.stack([sound("csr").indptr] * 2)),
    "pointers that are a list": lambda: spoil(sound("csr"), "indptr", sound("csr").indptr.tolist()),
    "a column beyond": lambda: spoil(sound("csr"), "indices", changed(sound("csr").indices, 3, D)),
    "a column far beyond": lambda: spoil(sound("csr"), "indices", changed(sound("csr").indices, 3, 2**31 - 1)),
    "a column of 64 bits": lambda: spoil(
        sound("csr"), "indices", changed(sound("csr").indices.astype(np.int64), 3, 2**32)
    ),
    "a negative column": lambda: spoil(sound("csr"), "indices", changed(sound("csr").indices, 3, -1)),
    "float columns": lambda: spoil(sound("csr"), "indices", sound("csr").indices * 1.0),
    "short columns": lambda: spoil(sound("csr"), "indices", sound("csr").indices[:2].copy()),
    "short values": lambda: spoil(sound("csr"), "data", sound("csr").data[:2].copy()),
    "no values": lambda: spoil(sound("csr"), "data", None),
    "complex values": lambda: spoil(sound("csr"), "data", sound("csr").data * 1j),
    "a longer shape": lambda: spoil(sound("csr"), "_shape", (10**6, D)),
    "csc with short pointers": lambda: spoil(sound("csc"), "indptr", sound("csc").indptr[:3].copy()),
    "csc with a row beyond": lambda: spoil(sound("csc"), "indices", changed(sound("csc").indices, 3, 10**7)),
    "csc with a negative row": lambda: spoil(sound("csc"), "indices", changed(sound("csc").indices, 3, -9)),
    "bsr with a block beyond": lambda: spoil(sound("bsr"), "indices", changed(sound("bsr").indices, 3, 10**7)),
    "bsr with short pointers": lambda: spoil(sound("bsr"), "indptr", sound("bsr").indptr[:2].copy()),
    "coo with a column beyond": lambda: spoilt_coo(lambda r: r, lambda c: changed(c, 0, 10**8)),
    "coo with a row beyond": lambda: spoilt_coo(lambda r: changed(r, 0, 10**8), lambda c: c),
    "coo with a negative row": lambda: spoilt_coo(lambda r: changed(r, 0, -(10**8)), lambda c: c),
    "coo with few rows": lambda: spoilt_coo(lambda r: r[:2], lambda c: c),
    "dia with few diagonals": lambda: spoil(sound("dia"), "data", sound("dia").data[:1].copy()),
    "lil with a column beyond": lambda: spoil(
        sound("lil"), "rows", np.array([[99] * len(row) for row in sound("lil").rows] + [None], dtype=object)[:-1]
    ),
}


def started(name: str) -> Any:
    return SAMPLES[name](2).start(D, 2, rng=0)


DOORS: dict[str, Callable[[], Any]] = {
    **{name: partial(started, name) for name in SAMPLES},
    "Ensemble": lambda: Ensemble(SAMPLES["fern"](2)).start(D, 2, rng=0),
    "OzaBoost": lambda: OzaBoost(n_members=3).start(D, 2, rng=0),
    "classifier": lambda: BayesianEnsembleClassifier(n_members=6).partial_fit(np.eye(D), [0, 1] * 3, classes=[0, 1]),
    "booster": lambda: OzaBoostClassifier(n_members=3).partial_fit(np.eye(D), [0, 1] * 3, classes=[0, 1]),
}
METHODS = ("scores", "decide", "predict", "predict_proba", "contributions", "certainty")
LEARNING = ("scores_then_learn", "decide_then_learn", "partial_fit", "fit", "predict_proba_then_learn")


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("flaw", BROKEN)
def test_a_broken_matrix_is_refused(door: str, flaw: str) -> None:
    model = DOORS[door]()
    dense = sound("csr", seed=1).toarray()
    ask = model.predict_proba if hasattr(model, "predict_proba") else getattr(model, "decide", None) or model.scores
    before = ask(dense)
    y = np.arange(8) % 2
    for method in METHODS:
        if hasattr(model, method):
            with pytest.raises(InvalidInputError):
                getattr(model, method)(BROKEN[flaw]())
    for method in LEARNING:
        if hasattr(model, method):
            with pytest.raises(InvalidInputError):
                getattr(model, method)(BROKEN[flaw](), y)
    np.testing.assert_array_equal(ask(dense), before)


@pytest.mark.parametrize("kind", ["array", "matrix"])
@pytest.mark.parametrize("form", KINDS)
def test_sound_matrices_of_every_form_are_taken(form: str, kind: str) -> None:
    X = sound(form, kind=kind)
    rows = as_rows("test", X)
    np.testing.assert_array_equal(rows.todense(), X.toarray())


@pytest.mark.parametrize("form", KINDS)
def test_an_empty_matrix_is_taken(form: str) -> None:
    assert as_rows("test", getattr(sparse, f"{form}_array")((3, D))).todense().tolist() == [[0.0] * D] * 3


def test_unused_room_behind_the_values_is_not_looked_at() -> None:
    X = sound("csr")
    X.indices, X.data = np.append(X.indices, 10**9).astype(np.int32), np.append(X.data, np.inf)
    np.testing.assert_array_equal(as_rows("test", X).todense(), sound("csr").toarray())


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_indices_are_copied_before_they_are_checked(dtype: Any) -> None:
    X = sound("csr")
    X.indices, X.indptr = X.indices.astype(dtype), X.indptr.astype(dtype)
    rows = as_rows("test", X)
    assert not np.shares_memory(rows.columns, X.indices)
    assert not np.shares_memory(rows.starts, X.indptr)


@pytest.mark.parametrize("door", ["classifier", "booster"])
def test_scikit_learn_gets_the_indices_that_were_checked(door: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model, X, given_to = DOORS[door](), sound("csr"), list[Any]()
    base: Any = import_module("bayesvote.estimators._validation")
    before = base.validate_data

    def noted(estimator: Any, matrix: Any, *args: Any, **options: Any) -> Any:
        given_to.append(matrix)
        return before(estimator, matrix, *args, **options)

    monkeypatch.setattr(base, "validate_data", noted)
    model.fit(X, np.arange(8) % 2).predict(X)
    assert len(given_to) == 2
    for matrix in given_to:
        assert not np.shares_memory(matrix.indices, X.indices)
        assert not np.shares_memory(matrix.indptr, X.indptr)


def test_labels_and_weights_are_copied_before_they_are_checked() -> None:
    y, w = np.array([0, 1], dtype=np.intp), np.ones(2)  # trees count the rows that weigh something, and rely on it
    assert not np.shares_memory(labels("test", y, 2, 2), y)
    assert not np.shares_memory(weights("test", w, 2), w)


def test_no_place_of_a_label_is_outside_even_if_the_label_changes_while_it_is_looked_for() -> None:
    class Changing(str):
        __slots__ = ()

        def __lt__(self, other: object) -> bool:
            return False

        def __gt__(self, other: object) -> bool:
            return True

        def __eq__(self, other: object) -> bool:
            return True

        def __ne__(self, other: object) -> bool:
            return False

        __hash__ = None  # type: ignore[assignment]

    y = np.empty(1, dtype=object)
    y[0] = Changing("c")
    assert encoded("test", y, np.array(["a", "b"], dtype=object)).tolist() == [1]


@pytest.mark.parametrize("door", ["perceptron", "Ensemble", "OzaBoost", "classifier", "booster"])
def test_masked_cells_labels_and_weights_are_refused(door: str) -> None:
    model, X, y = DOORS[door](), np.ma.array(np.eye(D)), np.ma.array([0, 1] * 3)
    masked, none, some = X.copy(), y.copy(), np.ma.array(np.ones(D))
    masked[1, 1] = none[2] = some[3] = np.ma.masked
    learn = next(getattr(model, name) for name in LEARNING if hasattr(model, name))
    ask = next(getattr(model, name) for name in METHODS if hasattr(model, name))
    np.testing.assert_array_equal(ask(X), ask(X.data))
    with pytest.raises(InvalidInputError, match=r"X must have no masked values, got 1 of .* array\.filled\(np\.nan\)"):
        ask(masked)
    with pytest.raises(InvalidInputError, match="X must have no masked values"):
        learn(masked, y)
    with pytest.raises(InvalidInputError, match=r"y must have no masked values, got 1 of them\. Leave such rows out"):
        learn(X, none)
    with pytest.raises(InvalidInputError, match="sample_weight must have no masked values"):
        learn(X, y, sample_weight=some)


def test_a_matrix_that_lies_about_its_order_is_put_in_order() -> None:
    X = sparse.csr_array((np.array([1.0, 2.0, 4.0]), np.array([3, 1, 3]), np.array([0, 3])), shape=(1, D))
    X.has_sorted_indices = X.has_canonical_format = True
    given = copy.deepcopy(X)
    rows = as_rows("test", X)
    assert (rows.columns.tolist(), rows.values.tolist()) == ([1, 3], [2.0, 5.0])
    assert (X.indices.tolist(), X.data.tolist()) == (given.indices.tolist(), given.data.tolist())


@settings(max_examples=300)
@given(st.data())
def test_no_arrays_in_a_matrix_reach_foreign_memory(data: st.DataObject) -> None:
    form = data.draw(st.sampled_from(["csr", "csc", "coo"]))
    X = sound(form, kind=data.draw(st.sampled_from(["array", "matrix"])))
    name = data.draw(st.sampled_from(["row", "col"] if form == "coo" else ["indptr", "indices"]))
    dtype: Any = data.draw(st.sampled_from([np.int8, np.int32, np.int64, np.uint64, np.float64]))
    whole = st.integers(-3, 12) | st.sampled_from([2**31 - 1, -(2**31), 2**40])
    limits = (np.iinfo(dtype).min, np.iinfo(dtype).max) if dtype is not np.float64 else (-(2**40), 2**40)
    values = data.draw(st.lists(whole.filter(lambda v: limits[0] <= v <= limits[1]), max_size=20))
    array = np.array(values, dtype=dtype)
    if form == "coo":
        X.coords = (array, X.col) if name == "row" else (X.row, array)
    else:
        X.__dict__[name] = array
    bank = SAMPLES["perceptron"](2).start(D, 2, rng=0)
    try:
        found = bank.scores(X)
    except (ValueError, TypeError):
        return
    assert found.shape == (8, 4)


@pytest.mark.parametrize("offset", [D + 3, -9, 10**9, -(10**9)])
def test_diagonals_outside_hold_nothing(offset: int) -> None:
    whole = sound("dia")
    X = spoil(whole.copy(), "offsets", changed(whole.offsets, 0, offset))
    left = sparse.dia_array((whole.data[1:], whole.offsets[1:]), shape=whole.shape)
    model = DOORS["Ensemble"]()
    assert model.decide(X).tobytes() == model.decide(left.toarray()).tobytes()
