"""Sparse matrices whose arrays do not fit together, at every door: refused, and the model stays as it was."""

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
from bayesvote._input import as_rows
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


BROKEN: dict[str, Callable[[], Any]] = {
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
    "dia far off": lambda: spoil(sound("dia"), "offsets", changed(sound("dia").offsets, 0, -(10**6))),
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
            with pytest.raises((ValueError, TypeError)):
                getattr(model, method)(BROKEN[flaw]())
    for method in LEARNING:
        if hasattr(model, method):
            with pytest.raises((ValueError, TypeError)):
                getattr(model, method)(BROKEN[flaw](), y)
    np.testing.assert_array_equal(ask(dense), before)


@pytest.mark.parametrize("kind", ["array", "matrix"])
@pytest.mark.parametrize("form", KINDS)
def test_sound_matrices_of_every_form_are_taken(form: str, kind: str) -> None:
    X = sound(form, kind=kind)
    rows = as_rows("test", X)
    np.testing.assert_array_equal(rows.todense(), X.toarray())


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
