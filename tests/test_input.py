"""Errors of input with their fields, and rows that are checked once."""

import pickle
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from bayesvote.core.checks import (
    Argument,
    InputError,
    InputTypeError,
    InvalidInputError,
    UnknownLabelError,
    encoded,
    one_of,
)
from bayesvote.core.rows import Rows, as_rows
from bayesvote.datasets import stream


def test_fields_and_the_sentence() -> None:
    error = InputError("SGD", "step", "must be above 0", "-1", "Use", Argument("step", "0.1"))
    assert str(error) == "SGD: step must be above 0, got -1. Use step='0.1'."
    assert (error.who, error.subject, error.must, error.got, error.do) == (
        "SGD",
        "step",
        "must be above 0",
        "-1",
        "Use",
    )
    assert error.sentence("--step", lambda argument: f"--{argument.name} {argument.value}") == (
        "--step must be above 0, got -1. Use --step 0.1."
    )
    assert str(InputError("", "X", "must be there")) == "X must be there."


@pytest.mark.parametrize("kind", [InputError, InputTypeError])
def test_errors_are_still_those_of_python_and_can_be_pickled(kind: type[InvalidInputError]) -> None:
    error = kind("fit", "X", "must hold numbers", "text", "Encode it.")
    assert isinstance(error, ValueError if kind is InputError else TypeError)
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), again.must) == (kind, str(error), error.must)


def test_a_wrong_name_gets_a_suggestion() -> None:
    with pytest.raises(InputError) as caught:
        one_of("stream", "format", "cvs", ("csv", "libsvm"))
    assert (caught.value.subject, caught.value.got, caught.value.do) == ("format", "'cvs'", "Did you mean 'csv'?")


def test_an_unknown_label_knows_its_row() -> None:
    classes = np.array(["a", "b"])
    assert encoded("fit", np.array(["b", "a"]), classes).tolist() == [1, 0]
    with pytest.raises(UnknownLabelError, match=r"must hold the classes \['a', 'b'\] only, got 'c'") as caught:
        encoded("fit", np.array(["a", "b", "c", "d"]), classes)
    assert caught.value.row == 2


def test_a_bad_line_names_its_remedy(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("a,y\n1,no\nx,yes\n")
    with pytest.raises(InputError) as caught:
        list(stream(path))
    error = caught.value
    assert error.subject == f"{path}, line 3: column 'a'"
    assert (error.must, error.got, error.using) == ("must be a finite number", "'x'", Argument("bad_lines", "skip"))
    assert str(error).endswith("Fix the line, or skip lines like it with bad_lines='skip'.")


def same(found: Rows, expected: Rows) -> bool:
    arrays = zip(found[2:6], expected[2:6], strict=True)
    return found[:2] == expected[:2] and all(
        (a is None and b is None) or (a is not None and b is not None and np.array_equal(a, b, equal_nan=True))
        for a, b in arrays
    )


@given(sparse=st.booleans(), order=st.lists(st.integers(0, 5), max_size=9), cut=st.integers(0, 6))
def test_rows_are_taken_and_joined_as_if_checked_anew(sparse: bool, order: list[int], cut: int) -> None:
    X = np.random.default_rng(0).integers(-1, 2, (6, 3)).astype(float)
    X[2, 1] = np.nan
    given_ = csr_array(X) if sparse else X
    rows, places = as_rows("test", given_), np.array(order, dtype=np.intp)
    assert same(rows.take(places), as_rows("test", given_[places]))
    assert same(as_rows("test", given_[:cut]).followed_by(as_rows("test", given_[cut:])), rows)
    mixed = as_rows("test", csr_array(X[:cut])).followed_by(as_rows("test", X[cut:]))
    assert np.array_equal(mixed.todense(), X, equal_nan=True)
