"""A spoilt file is refused or loads as a sound model; nothing in between."""

import json
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import numpy as np
import pytest

from bayesvote import (
    Ensemble,
    FernBank,
    Frozen,
    GammaRate,
    GammaShape,
    JointGaussian,
    JointLogistic,
    LinearBank,
    NaiveBayesBank,
    NeighbourBank,
    OGBoost,
    OSBoost,
    OzaBoost,
    PerceptronBank,
    TreeBank,
    Union,
)
from bayesvote.estimators import (
    BayesianEnsembleClassifier,
)
from bayesvote.io.model_file import ModelFileError, dumps, loads
from bayesvote.io.model_file import file as _file
from model_files.samples import D, described, edited, places, rows

STRANGE = [None, True, -1, 0, 1, 2, 3, 7, 2**31, 2**63, 10**30, 0.5, -0.0, 1e-320, 1e308, "", "ramp", "auto", "F64",
           "GammaRate", "Union", [], [1], [2, 3], {}, {"tuple": [1.0]}, {"array": [1], "dtype": "I64"}, "\udc00",
           {"reference": "loss", "kind": "x", "same": {}}]  # fmt: skip


def mutated(data: bytes, rng: np.random.Generator) -> tuple[bytes, bool]:
    """Return a file that is spoilt in one of many ways, and whether its checksum was made right again."""
    way = rng.integers(10)
    size = int.from_bytes(data[:8], "little")

    def tampered(node: Any) -> None:
        for _ in range(rng.integers(1, 3)):
            spots = places(node)
            if spots:
                container, key = spots[rng.integers(len(spots))]
                what = rng.integers(4)
                if what == 0:
                    del container[key]
                elif what == 1 and isinstance(container[key], int):
                    container[key] += int(rng.integers(-2, 3))
                else:
                    container[key] = deepcopy(STRANGE[rng.integers(len(STRANGE))])

    if way <= 1:  # other bytes
        out = bytearray(data)
        for at in rng.integers(len(data) if way else 8 + size, size=rng.integers(1, 5)):
            out[at] = rng.integers(256)
        return bytes(out), False
    if way == 2:
        return data[: rng.integers(len(data))], False
    at = rng.integers(len(data))
    if way == 3:
        return data[:at] + rng.bytes(int(rng.integers(1, 20))) + data[at:], False
    if way == 4:
        return data[:at] + data[at + rng.integers(1, 20) :], False
    if way <= 7:
        return described(data, tampered), True
    if way == 8:
        return edited(data, lambda header: tampered({k: v for k, v in header.items() if k != "__metadata__"})), True
    out = bytearray(data)
    for at in rng.integers(8 + size, len(data), size=rng.integers(1, 5)):
        out[at] = rng.integers(256)
    return edited(bytes(out), lambda _: None), True


EXTREMES = [-1, 0, 1, 2**31 - 1, 2**31, 2**53 - 2**41, 2**53 - 1, 2**53, 2**53 + 1, 2**62 - 1, 2**62, 2**63 - 1]


def with_integers(data: bytes) -> Iterator[tuple[str, bytes]]:
    """Give the file with each of its integers, in arrays and in the description, changed to others and to extremes."""
    _, description, arrays = _file.unpack(data)
    for name, array in arrays.items():
        if array.dtype.kind in "iu":
            for at, true in np.ndenumerate(array):
                for value in [int(true) - 1, int(true) + 1, *EXTREMES]:
                    spoilt = array.copy()
                    spoilt[at] = np.array(value % 2**64, dtype=np.uint64).astype(array.dtype)  # as the bits have it
                    if spoilt[at] != true:
                        yield f"{name}{list(at)} = {spoilt[at]}", _file.pack(description, {**arrays, name: spoilt})
    for number, (node, key) in enumerate(places(description)):
        if type(node[key]) is int:
            for value in [node[key] - 1, node[key] + 1, *EXTREMES]:
                spoilt_description = deepcopy(description)
                container, same = places(spoilt_description)[number]
                container[same] = value
                yield f"{key} = {value}", _file.pack(spoilt_description, arrays)


def test_ten_thousand_spoilt_files() -> None:
    """Each is refused with the one error, or is a model that works and is saved as it came."""
    bank = Union([PerceptronBank(2), NaiveBayesBank(2), FernBank(2, depth=2, warmup=8)])
    models: list[Any] = [Ensemble(bank, JointGaussian(precision=(1.0, 2.0))), Ensemble(PerceptronBank(3)), OSBoost()]
    models += [OGBoost("naive_bayes", 3), Ensemble(Frozen(FernBank(3, depth=2, warmup=8)), GammaShape(), "logistic")]
    models[2].n_members = 3
    models += [Ensemble(LinearBank(3), JointLogistic((1.0, 2.0), (1.0, 0.9)))]
    models += [Ensemble(LinearBank(3), JointGaussian((1.0, 2.0), persistence=(1.0, 0.9)))]
    X, y = rows(12)
    for model in models:
        model.start(D, rng=0).decide_then_learn(X, y)
    models.append(BayesianEnsembleClassifier("perceptron", 3, weighter=GammaRate(), calibrated=True).fit(X, y))
    assert spoil([dumps(model) for model in models], 10_000) > 500  # so the test has seen both


def test_spoilt_files_of_trees() -> None:
    """Their states are many arrays with places in each other; at 300 rows a tree is being grown."""
    files = []
    for n_rows in (12, 300):
        bank = TreeBank(2, [(200, 1, 4)], [1.0], rows_kept=200, max_nodes=99)
        model = Ensemble(bank, JointGaussian(precision=1.0)).start(D, rng=0)
        model.decide_then_learn(*rows(n_rows))
        files.append(dumps(model))
    assert bank.state is not None
    assert np.any(bank.state.growth_begun > 0)
    assert spoil(files, 2000) > 100


def spoil(files: list[bytes], turns: int) -> int:
    """Spoil files in turn, load them, and use what loads; return how many did."""
    rng = np.random.default_rng(0)
    X, y = rows(12)
    loaded = 0
    for turn in range(turns):
        original = files[turn % len(files)]
        data, mended = mutated(original, rng)
        try:
            model = loads(data)
        except ModelFileError as error:
            assert str(error).startswith("load: ")  # noqa: PT017
            continue
        assert mended or data == original
        loaded += data != original
        (given, brought), (saved, kept) = contents(data), contents(dumps(model))
        assert within(given, saved), json.dumps([given, saved])
        assert brought == kept
        with np.errstate(all="ignore"):
            if hasattr(model, "model_"):
                model.predict(X)
            elif getattr(model, "state", None) is not None:
                model.decide_then_learn(X, y)
    return loaded


def contents(data: bytes) -> Any:
    """What a file holds, without what is only its form."""
    _, model, arrays = _file.unpack(data)
    return model, {name: (array.dtype.str, array.shape, array.tobytes()) for name, array in arrays.items()}


def within(given: Any, saved: Any) -> bool:
    """Whether all that was given is saved; a parameter that was left away has its default."""
    if isinstance(given, dict) and isinstance(saved, dict):
        return all(key in saved and within(value, saved[key]) for key, value in given.items())
    if isinstance(given, list) and isinstance(saved, dict):  # a sequence is kept as a tuple
        saved = saved.get("tuple")
    if isinstance(given, list) and isinstance(saved, list):
        return len(given) == len(saved) and all(map(within, given, saved))
    return bool(given == saved)


@pytest.mark.parametrize(("name", "wrong"), [("forgetting", ""), ("calibrated", "maybe"), ("columns", "")])
def test_parameters_that_a_fitted_classifier_still_uses_are_checked(name: str, wrong: Any) -> None:
    X, y = rows(50)
    model = BayesianEnsembleClassifier("perceptron", 3, random_state=0).fit(X, y)
    setattr(model, name, wrong)
    with pytest.raises(ModelFileError, match=f"{name}.*must be"):
        loads(dumps(model))


@pytest.mark.parametrize("wrong", ["sometimes", 3, {"no such label": 2.0}, {0: -1.0}])
def test_class_weights_of_a_file_are_checked(wrong: Any) -> None:
    X, y = rows(50)
    model = BayesianEnsembleClassifier("perceptron", 3, random_state=0).fit(X, y)
    model.class_weight = wrong
    data = dumps(model)
    with pytest.raises(ModelFileError):
        loads(data)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_no_integer_of_a_file_ruins_a_model(n_classes: int) -> None:
    """Each is changed to its neighbours and to extremes; ``tools/fuzz.py --target integers`` does so for every kind."""
    models: list[Any] = [
        kind(member, 3) for kind in (OzaBoost, OGBoost, OSBoost) for member in ("perceptron", "naive_bayes")
    ]
    models += [OzaBoost("perceptron", 3, scale=True), OSBoost("perceptron", 3, variant="convex")]
    models += [Ensemble(NeighbourBank((8, 30))), Ensemble(PerceptronBank(2), JointGaussian())]
    X, y = rows(12, n_classes)
    X = np.nan_to_num(X)
    for model in models:
        model.start(D, n_classes, rng=0).decide_then_learn(X, y)
        loaded = 0
        for what, data in with_integers(dumps(model)):
            try:
                found: Any = loads(data)
            except ModelFileError:
                continue
            loaded += 1
            given = np.resize(X, (12, found.n_features))
            assert np.all(np.isfinite(found.decide(given))), what
            found.decide_then_learn(given, y % found.n_classes)
            assert np.all(np.isfinite(found.decide(given))), what
            dumps(found)
        assert loaded > 0


@pytest.mark.parametrize(
    ("model", "name", "at"),
    [
        (OzaBoost("perceptron", 3), "state.clock", (0, 1)),
        (OSBoost("naive_bayes", 3), "state.clock", (0, 1)),
        (Ensemble(NeighbourBank((8, 30))), "bank.state.seen", 0),
        (Ensemble(TreeBank(2, [(16, 1, 4)], [1.0], rows_kept=32, max_nodes=31)), "bank.state.seen", 0),
    ],
)
def test_a_file_as_old_as_rows_can_be_counted_is_refused_and_one_with_room_goes_on(
    model: Any, name: str, at: Any
) -> None:
    model.start(D, 2, rng=0)
    for _ in range(70):
        model.decide_then_learn(*rows(12))
    _, description, arrays = _file.unpack(dumps(model))
    arrays = {key: array.copy() for key, array in arrays.items()}
    words = r"rows learned must be at most|must count at most|seen must be from 0"
    for age in (2**53 - 2**40 + 1, 2**53, 2**53 + 1, 2**62 - 1, 2**63 - 1):
        arrays[name][at] = age
        with pytest.raises(ModelFileError, match=words):
            loads(_file.pack(description, arrays))
    arrays[name][at] = 2**53 - 2**40 - 12
    found = loads(_file.pack(description, arrays))
    found.decide_then_learn(*rows(12))
    again = loads(dumps(found))  # what is saved can be loaded
    again.decide_then_learn(*rows(12))
    with pytest.raises(ValueError, match=r"save: .* rows learned must be at most 9006099743113216"):
        dumps(again)
