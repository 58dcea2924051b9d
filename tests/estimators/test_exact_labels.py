"""Labels are told apart exactly, also integers that a float would round."""

from importlib import import_module
from typing import Any

import numpy as np
import pytest

from bayesvote import BayesianEnsembleClassifier, OzaBoostClassifier, prequential
from bayesvote.core.checks import encoded, label_array
from bayesvote.io.model_file import ModelFileError, dumps, loads
from bayesvote.io.model_file.decode import decode
from bayesvote.io.model_file.encode import encode

X = np.random.default_rng(0).normal(size=(60, 3))
CODES = (X[:, 0] > 0).astype(int)
PAIRS: list[list[Any]] = [
    [2**53, 2**53 + 1],
    [-(2**63), -(2**63) + 1],
    [2**63, 2**63 + 1],
    [5, 2**64 - 1],
    [-1, 2**63 + 1],
    [2**64, 2**64 + 1],
    [10**400, 10**400 + 1],
    [float(2**53), 2**53 + 1],
    [1, 2],
]


def classifier() -> BayesianEnsembleClassifier:
    return BayesianEnsembleClassifier(n_members=5, random_state=0)


def labels(pair: list[Any]) -> list[Any]:
    return [pair[code] for code in CODES]


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("made", [list, tuple, lambda y: np.array(y, dtype=object)])
def test_integers_of_any_size_are_learned_in_chunks_and_saved(pair: list[Any], made: Any) -> None:
    y = made(labels(pair))
    model = classifier().fit(X, y)
    assert model.classes_.tolist() == pair
    assert model.predict(X).tolist() == labels(pair)
    assert model.score(X, y) == 1.0
    assert loads(dumps(model)).classes_.tolist() == pair
    whole = classifier().partial_fit(X, y, classes=pair)
    parts = classifier()
    for first in range(0, 60, 7):  # a chunk may hold labels of one type, or of the other
        parts.partial_fit(X[first : first + 7], y[first : first + 7], classes=pair if first == 0 else None)
    assert dumps(parts) == dumps(whole)
    assert prequential(classifier(), X, y, classes=pair).error < 0.5


def test_integers_of_libraries_are_exact() -> None:
    pandas, polars, pyarrow = (pytest.importorskip(name) for name in ("pandas", "polars", "pyarrow"))
    signed, unsigned = labels([2**53, 2**53 + 1]), labels([2**63, 2**63 + 1])
    for y in (
        np.array(signed),
        np.array(unsigned, dtype=np.uint64),
        [np.uint64(value) for value in unsigned],
        pandas.Series(signed),
        pandas.Series(signed, dtype="Int64"),
        pandas.Series(unsigned, dtype="UInt64"),
        pandas.Series(pandas.Categorical(signed)),
        polars.Series(unsigned, dtype=polars.UInt64),
        pyarrow.array(signed),
    ):
        model = classifier().fit(X, y)
        expected = unsigned if model.classes_[0] == 2**63 else signed
        assert model.predict(X).tolist() == expected
    frame = import_module("pandas").DataFrame({"a": ["x", "y"] * 30, "b": X[:, 0]})
    assert classifier().fit(frame, pandas.Series(signed, dtype="Int64")).predict(frame).tolist() == signed


def test_boosters_learn_them_too() -> None:
    y = labels([5, 2**63 + 1])
    assert OzaBoostClassifier(n_members=5, random_state=0).fit(X, y).classes_.tolist() == [5, 2**63 + 1]


def test_places_are_found_whatever_the_types_are() -> None:
    classes = np.array([2**60, 2**60 + 1])
    assert encoded("test", np.array([2**60 + 1], dtype=np.uint64), classes).tolist() == [1]
    assert encoded("test", np.array([2.0**60]), classes).tolist() == [0]
    assert encoded("test", np.array([1.0, 2.0]), np.array([1, 2])).tolist() == [0, 1]
    for y, known in (([2**53 + 1], [0.0, 2.0**53]), ([2.0**53], [0, 2**53 + 1])):
        with pytest.raises(ValueError, match="y must hold the classes"):
            encoded("test", np.array(y), np.array(known))
    with pytest.raises(ValueError, match="y must hold the classes"):
        encoded("test", np.array([2**63 + 1], dtype=np.uint64), np.array([-1, 2**62]))


def test_continuous_targets_and_truth_values_are_as_before() -> None:
    with pytest.raises(ValueError, match="continuous"):
        classifier().fit(X, [0.5, *labels([2**53, 2**53 + 1])[1:]])
    given = [True, False]
    assert label_array(given) is given
    assert label_array([2**63, True])[1] == 1


def test_an_integer_of_too_many_digits_is_not_saved() -> None:
    model = classifier().fit(X, labels([0, 10**5000]))
    with pytest.raises(ValueError, match="classes_ must contain integers of fewer digits"):
        dumps(model)


@pytest.mark.parametrize(
    "item", [{"integer": "5"}, {"integer": "+9223372036854775808"}, {"integers": "1"}, {"integer": 3}, {}]
)
def test_forged_integers_are_refused(item: Any) -> None:
    description, arrays = encode(classifier().fit(X, labels([-1, 2**64])))
    facts = description["learned"]["facts"]["classes_"]
    assert facts["array"] == [-1, {"integer": str(2**64)}]
    facts["array"][1] = item
    with pytest.raises(ModelFileError):
        decode(description, arrays, objects={}, room=2**20)
