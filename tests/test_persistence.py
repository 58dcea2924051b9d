"""Saved models: they come back bit for bit, or the file is refused; nothing in between."""

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from copy import deepcopy
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from bayesvote import (
    SAG,
    SGD,
    AveragedSGD,
    Ensemble,
    EstimatorBank,
    FernBank,
    Frozen,
    GammaRate,
    GammaShape,
    GammaShapeRate,
    JointGaussian,
    NaiveBayesBank,
    NumericalPosterior,
    OGBoost,
    OSBoost,
    OzaBoost,
    PerceptronBank,
    Union,
    Voting,
    losses,
    mixed,
    pretrain,
)
from bayesvote._checks import Array, Labels
from bayesvote.estimators import (
    BayesianEnsembleClassifier,
    OGBoostClassifier,
    OSBoostClassifier,
    OzaBoostClassifier,
)
from bayesvote.persistence import ModelFileError, _file, dumps, load, loads, save

D = 6
bayes: Any = import_module("sklearn.naive_bayes")


def rows(n: int, n_classes: int = 2, seed: int = 0) -> tuple[Array, Labels]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, D))
    X[:, 0] = rng.integers(2, size=n)
    X[rng.random((n, D)) < 0.01] = np.nan
    return X, rng.integers(n_classes, size=n)


def equal(a: Any, b: Any) -> bool:
    return dumps(a) == dumps(b) and np.array_equal(a.decide(rows(20)[0]), b.decide(rows(20)[0]), equal_nan=True)


def own_loss(margin: Array) -> Array:
    return losses.logistic(2.0 * margin)


def rate_loss(weight: Array, g: Array) -> Array:
    return np.asarray(0.1 * weight * g - np.log(weight))


def rate_prior(weight: Array) -> Array:
    return weight


BANKS: dict[str, Callable[[], Any]] = {
    "perceptron": lambda: PerceptronBank(5),
    "averaged": lambda: PerceptronBank(5, max_features=None, averaged=True),
    "naive_bayes": lambda: NaiveBayesBank(5, max_features=4),
    "kinds": lambda: NaiveBayesBank(5, kinds=["bernoulli", "gaussian", "auto", "auto", "auto", "gaussian"]),
    "ferns": lambda: FernBank(5, depth=3, warmup=64),
    "mixed": lambda: mixed(9),
    "nested": lambda: Union([Union([PerceptronBank(2)]), Frozen(FernBank(2, depth=2)), NaiveBayesBank(2)]),
}
WEIGHTERS = [
    GammaRate(forgetting=0.99),
    GammaShape(cap=1000),
    GammaShapeRate(),
    JointGaussian(theta=np.float64(0.5)),
    JointGaussian(precision=[1, 20.0]),
    JointGaussian(precision=3.0, forgetting=0.9),
    Voting(),
    SGD(),
    AveragedSGD(step=2.0),
    SAG(horizon=500),
]


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("n_rows", [0, 3, 40, 100])
@pytest.mark.parametrize("name", BANKS)
def test_banks_come_back(name: str, n_rows: int, n_classes: int) -> None:
    model = Ensemble(BANKS[name]()).start(D, n_classes, rng=1)
    model.decide_then_learn(*rows(n_rows, n_classes))
    again = loads(dumps(model))
    assert equal(again, model)
    later = rows(90, n_classes, seed=1)
    assert np.array_equal(model.decide_then_learn(*later), again.decide_then_learn(*later), equal_nan=True)
    assert equal(again, model)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("weighter", WEIGHTERS, ids=lambda weighter: type(weighter).__name__)
def test_weighters_come_back(weighter: Any, n_classes: int) -> None:
    loss = "ramp" if weighter.needs_bounded else "logistic"
    model = Ensemble(PerceptronBank(4), weighter, loss).start(D, n_classes, rng=1)
    model.decide_then_learn(*rows(70, n_classes))
    again = loads(dumps(model))
    assert again.weighter == weighter
    assert again.loss == loss
    later = rows(90, n_classes, seed=1)
    assert np.array_equal(model.decide_then_learn(*later), again.decide_then_learn(*later))
    assert equal(again, model)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("member", ["perceptron", "naive_bayes"])
@pytest.mark.parametrize("n_rows", [0, 50])
@pytest.mark.parametrize(
    "booster", [OzaBoost, OGBoost, OSBoost, partial(OSBoost, gamma=0.2, variant="convex")], ids=range(4)
)
def test_boosters_come_back(booster: Any, n_rows: int, member: str, n_classes: int) -> None:
    model = booster(member, 4).start(D, n_classes, rng=1)
    model.decide_then_learn(*rows(n_rows, n_classes))
    again = loads(dumps(model))
    assert again == model
    later = rows(60, n_classes, seed=1)
    assert np.array_equal(model.decide_then_learn(*later), again.decide_then_learn(*later))
    assert equal(again, model)


def test_models_that_were_not_started_come_back() -> None:
    for model in (Ensemble(mixed(6), JointGaussian()), OGBoost(pool=2), Ensemble(Frozen(PerceptronBank(2)))):
        again = loads(dumps(model))
        assert again == model
        assert equal(again.start(D, 3, rng=5), model.start(D, 3, rng=5))
    frozen = pretrain(PerceptronBank(3).start(D, rng=0), *rows(30))
    again = loads(dumps(Ensemble(frozen))).start(D)
    assert equal(again, Ensemble(frozen).start(D))


def test_frozen_ensembles_merge_after_loading() -> None:
    model = Ensemble(pretrain(PerceptronBank(3).start(D, rng=0), *rows(30)), JointGaussian()).start(D)
    model.decide_then_learn(*rows(50))
    assert np.allclose(loads(dumps(model)).merge(model).unlearn(*rows(50)).weights(), model.weights())


def test_objects_of_the_user_are_asked_for_again() -> None:
    X, y = rows(50)
    X = np.nan_to_num(X)
    foreign = EstimatorBank([bayes.GaussianNB(), bayes.GaussianNB()], online=True)
    weighter = NumericalPosterior(rate_loss, rate_prior)
    model = Ensemble(Union([PerceptronBank(2), foreign]), weighter, own_loss).start(D, rng=0)
    model.decide_then_learn(X, y)
    data = dumps(model)
    objects: dict[str, Any] = {"bank.banks[1]": foreign, "weighter": weighter, "loss": own_loss}
    assert equal_with(loads(data, objects=objects), model, objects)

    with pytest.raises(ModelFileError, match=r"'bank.banks\[1\]': EstimatorBank, 'loss': function, 'weighter': Num"):
        loads(data)
    with pytest.raises(ModelFileError, match="exactly"):
        loads(data, objects={**objects, "bank": foreign})
    with pytest.raises(ModelFileError, match="must be of type EstimatorBank, got PerceptronBank"):
        loads(data, objects={**objects, "bank.banks[1]": PerceptronBank(2)})
    with pytest.raises(ModelFileError, match=r"must have the shape \(6, 2\), got None"):
        loads(
            data,
            objects={**objects, "bank.banks[1]": EstimatorBank([bayes.GaussianNB(), bayes.GaussianNB()], online=True)},
        )
    with pytest.raises(ModelFileError, match=r"must have the forgetting 1\.0, got 0\.9"):
        loads(data, objects={**objects, "weighter": NumericalPosterior(rate_loss, rate_prior, forgetting=0.9)})
    with pytest.raises(ModelFileError, match="exactly"):
        loads(dumps(OzaBoost()), objects={"loss": own_loss})


def equal_with(a: Any, b: Any, objects: dict[str, Any]) -> bool:
    X = np.nan_to_num(rows(20)[0])
    return dumps(a) == dumps(b) and np.array_equal(a.decide(X), b.decide(X)) and a.loss is objects["loss"]


def test_what_cannot_be_saved_is_refused(tmp_path: Path) -> None:
    class Mine(PerceptronBank):
        pass

    with pytest.raises(TypeError, match="must be an Ensemble, a booster or an estimator"):
        save(PerceptronBank(2), tmp_path / "m")
    with pytest.raises(TypeError, match="bank must be of this library, got Mine"):
        save(Ensemble(Mine(2)), tmp_path / "m")
    with pytest.raises(ValueError, match="finite numbers or strings"):
        save(Ensemble(PerceptronBank(2, max_features=np.inf)), tmp_path / "m")
    model = OzaBoost(n_members=2).start(D, rng=0)
    assert model.state is not None
    model.state.weights[0, 1, 1] = np.inf
    with pytest.raises(ValueError, match="must be sound, got one where OzaBoost: weights must be finite"):
        save(model, tmp_path / "m")
    assert os.listdir(tmp_path) == []


LABELS: list[NDArray[Any]] = [
    np.array(["no", "perhaps", "yes"]),
    np.array([1, 2, 7]),
    np.array(["no", "perhaps", "yes"], dtype=object),
    np.array([False, True]),
]
ESTIMATORS: dict[str, Callable[[], Any]] = {
    "default": lambda: BayesianEnsembleClassifier(n_members=9, random_state=0),
    "calibrated": lambda: BayesianEnsembleClassifier(
        FernBank(3, depth=2), weighter=GammaRate(alpha=2.0), calibrated=True, random_state=np.random.RandomState(0)
    ),
    "oza": lambda: OzaBoostClassifier(n_members=3, calibrated=True),
    "og": lambda: OGBoostClassifier(n_members=3, pool=2, random_state=np.int64(3)),
    "os": lambda: OSBoostClassifier("naive_bayes", 3, gamma=0.2),
}


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize("classes", LABELS, ids=["strings", "integers", "objects", "truth"])
def test_estimators_come_back(classes: NDArray[Any], name: str) -> None:
    estimator = ESTIMATORS[name]()
    assert loads(dumps(estimator)).get_params().keys() == estimator.get_params().keys()
    X, y = rows(60, len(classes))
    estimator.partial_fit(X, classes[y], classes=classes)
    again = loads(dumps(estimator))
    assert type(again) is type(estimator)
    assert again.classes_.dtype == classes.dtype
    for a, b in zip(again.get_params().values(), estimator.get_params().values(), strict=True):
        assert a == b or isinstance(b, np.random.RandomState)
    for _ in range(2):
        assert np.array_equal(again.predict_proba(X), estimator.predict_proba(X))
        assert np.array_equal(again.predict(X), estimator.predict(X))
        assert dumps(again.model_) == dumps(estimator.model_)
        estimator.partial_fit(X, classes[y])
        again.partial_fit(X, classes[y])


def test_estimators_keep_names_and_share_objects() -> None:
    table = pytest.importorskip("pandas", reason="pandas is not installed").DataFrame(
        rows(40)[0], columns=list("abcdef")
    )
    y = rows(40)[1]
    weighter = NumericalPosterior(rate_loss, rate_prior)
    pretrained = pretrain(PerceptronBank(2).start(D, rng=0), *rows(20))
    estimator = BayesianEnsembleClassifier(pretrained, weighter=weighter).fit(table, y)
    again = loads(dumps(estimator), objects={"weighter": weighter})
    assert again.feature_names_in_.tolist() == list("abcdef")
    assert again.weighter is again.model_.weighter is weighter
    assert np.array_equal(again.predict_proba(table), estimator.predict_proba(table))
    assert equal(Ensemble(again.members).start(D), Ensemble(pretrained).start(D))

    estimator.n_features_in_ = D + 1
    with pytest.raises(ModelFileError, match="n_features_in_ that do not fit"):
        loads(dumps(estimator), objects={"weighter": weighter})


def test_fitted_members_are_asked_for_once() -> None:
    X, y = np.nan_to_num(rows(50)[0]), rows(50)[1]
    members = [bayes.GaussianNB().fit(X, y), bayes.BernoulliNB().fit(X, y)]
    estimator = BayesianEnsembleClassifier(members).fit(X, y)
    data = dumps(estimator)
    again = loads(data, objects={"members": members})
    assert np.array_equal(again.predict_proba(X), estimator.predict_proba(X))
    assert dumps(again.partial_fit(X, y)) == dumps(estimator.partial_fit(X, y))
    with pytest.raises(ModelFileError, match="'members' must hold 2 classifiers, as when the model was saved, got 1"):
        loads(data, objects={"members": members[:1]})
    model = Ensemble(EstimatorBank(members)).start(D)
    assert dumps(loads(dumps(model), objects={"bank.estimators": members})) == dumps(model)
    with pytest.raises(ModelFileError, match="10000000000 features"):
        loads(
            described(dumps(model), lambda node: node["bank"].update(shape=[10**10, 2])),
            objects={"bank.estimators": members},
        )


def test_the_file_is_a_safetensors_file(tmp_path: Path) -> None:
    safetensors = pytest.importorskip("safetensors.numpy", reason="safetensors is not installed")
    from safetensors import safe_open

    model = Ensemble(PerceptronBank(5), JointGaussian()).start(D, rng=0)
    save(model, tmp_path / "m.safetensors")
    arrays = safetensors.load_file(tmp_path / "m.safetensors")
    assert model.state is not None
    for name, array in model.state._asdict().items():
        assert np.array_equal(arrays[f"state.{name}"], array)
    with safe_open(tmp_path / "m.safetensors", framework="numpy") as file:
        about = file.metadata()
    assert (about["format"], about["version"]) == ("bayesvote", "1")
    assert json.loads(about["model"])["weighter"]["kind"] == "JointGaussian"


def test_saving_replaces_the_file_and_keeps_links(tmp_path: Path) -> None:
    path = tmp_path / "m.safetensors"
    save(OzaBoost(), path)
    (tmp_path / "link").symlink_to(path)
    save(OGBoost(), tmp_path / "link")
    assert load(path) == OGBoost()
    assert sorted(os.listdir(tmp_path)) == ["link", "m.safetensors"]
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "none")
    with pytest.raises(OSError):
        save(OzaBoost(), tmp_path / "none" / "m")
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError):
        save(OzaBoost(), tmp_path / "folder")
    assert sorted(os.listdir(tmp_path)) == ["folder", "link", "m.safetensors"]


def test_bad_files_are_refused_in_words(tmp_path: Path) -> None:
    safetensors = pytest.importorskip("safetensors.numpy", reason="safetensors is not installed")
    data = dumps(Ensemble(PerceptronBank(3)).start(D, rng=0))
    for bad, said in [
        (b"", "without its header"),
        (b"not a model", "without its header"),
        (data[:100], "without its header"),
        (data[:-1], "cut off or altered"),
        (data + b"0", "cut off or altered"),
        (safetensors.save({"x": np.zeros(3)}), "of something else"),
        (safetensors.save({"x": np.zeros(3)}, metadata={"format": "pt"}), "of something else"),
        (edited(data, lambda header: header["__metadata__"].update(version="2", library="9.1")), "bayesvote 9.1. Upd"),
        (edited(data, lambda header: header["__metadata__"].pop("version")), "format version 1"),
        (edited(data, lambda header: header.pop("bank.state.bias")), "belong to no array|bytes"),
    ]:
        with pytest.raises(ModelFileError, match=said):
            loads(bad)
    (tmp_path / "m").write_bytes(data)
    with pytest.raises(ModelFileError, match="at most max_bytes=100 bytes"):
        load(tmp_path / "m", max_bytes=100)
    assert equal(load(tmp_path / "m", max_bytes=len(data)), loads(data))


def test_a_file_cannot_name_what_is_not_ours() -> None:
    data = dumps(Ensemble(PerceptronBank(3)))

    def renamed(**changes: Any) -> bytes:
        return described(data, lambda model: model["bank"].update(changes))

    for kind in ("os.system", "Ensemble", "GammaRate", "EstimatorBank", "builtins.eval", "", None, ["PerceptronBank"]):
        with pytest.raises(ModelFileError):
            loads(renamed(kind=kind))
    with pytest.raises(ModelFileError, match="n_jobs"):
        loads(renamed(parameters={"n_jobs": 1}))
    with pytest.raises(ModelFileError, match="loss must be one of"):
        loads(described(data, lambda model: model.update(loss="eval")))


def test_a_small_file_cannot_ask_for_much_memory() -> None:
    huge = 2**40
    for model in (
        Ensemble(PerceptronBank(2)).start(D),
        Ensemble(NaiveBayesBank(2)).start(D),
        Ensemble(FernBank(2, depth=2, warmup=8)).start(D),
        OzaBoost("naive_bayes", 2).start(D),
    ):
        data = dumps(model)

        def changed(key: str, value: Any, data: bytes = data) -> bytes:
            def change(node: Any) -> None:
                part = node.get("bank", node)
                if key == "n_members":
                    part["parameters"]["n_members"] = value
                else:
                    part["shape"] = node["shape"] = [value, 2] if key == "n_features" else [D, value]

            return described(data, change)

        for key in ("n_members", "n_features", "n_classes"):
            with pytest.raises(ModelFileError, match="bytes or more in a file"):
                loads(changed(key, huge))
    joint = dumps(Ensemble(PerceptronBank(300, max_features=1), Voting()).start(1))
    with pytest.raises(ModelFileError, match="JointGaussian: a state of"):
        loads(described(joint, lambda node: node.update(weighter={"kind": "JointGaussian", "parameters": {}})))
    labels = {"array": ["a"] * 10_000 + ["b" * 10_000], "dtype": "U"}
    with pytest.raises(ModelFileError, match="very different lengths"):
        loads(described(joint, lambda node: node["bank"]["parameters"].update(max_features=labels)))


@pytest.mark.parametrize(
    ("array", "at", "value"),
    [
        ("bank.banks[0].state.own", 0, 99),
        ("bank.banks[0].state.uses", 0, 2),
        ("bank.banks[0].state.weights", 0, np.nan),
        ("bank.banks[1].state.own", 0, 99),
        ("bank.banks[1].state.shown", -D - 1, 7.0),
        ("bank.banks[2].state.seen", 0, 100),
        ("bank.banks[2].state.seen", 0, -1),
        ("bank.banks[2].state.columns", 0, 3),
        ("bank.banks[2].state.candidates", 0, 6),
        ("bank.banks[2].state.places", 0, 1.0),
        ("bank.banks[2].state.labels", 0, 2),
        ("bank.banks[2].state.slots", 0, 6),
        ("bank.banks[2].state.slot_of", 0, 6),
        ("bank.banks[2].state.counts", 0, -1.0),
        ("state.rows", 0, 512),
        ("state.rows", 0, -1),
        ("state.means", 0, np.inf),
    ],
)
def test_states_that_would_mislead_a_kernel_are_refused(array: str, at: int, value: float) -> None:
    bank = Union([PerceptronBank(3), NaiveBayesBank(3), FernBank(4, depth=3, warmup=16)])
    model = Ensemble(bank, JointGaussian()).start(D, rng=0)
    model.decide_then_learn(*rows(40))
    data = dumps(model)
    model, arrays = _file.unpack(data)
    arrays[array].reshape(-1)[at] = value
    with pytest.raises(ModelFileError):
        loads(_file.pack(model, arrays))


def test_boosters_states_that_would_mislead_a_kernel_are_refused() -> None:
    model = OzaBoost("naive_bayes", 3).start(D, rng=0)
    model.decide_then_learn(*rows(40))
    for name, value in (("order", 6), ("order", -1), ("n_continuous", 7), ("seen", -1.0), ("book", np.nan)):
        description, arrays = _file.unpack(dumps(model))
        arrays[f"state.{name}"].reshape(-1)[0] = value
        with pytest.raises(ModelFileError):
            loads(_file.pack(description, arrays))


def edited(data: bytes, change: Callable[[Any], Any]) -> bytes:
    """Change the header and make the checksum right again, independently of the library."""
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + size])
    header["__metadata__"]["sha256"] = "0" * 64
    change(header)
    text = json.dumps(header, separators=(",", ":")).encode()
    blank = len(text).to_bytes(8, "little") + text
    rest = data[8 + size :]
    digest = hashlib.sha256(blank + rest).hexdigest()
    return blank.replace(b"0" * 64, digest.encode(), 1) + rest


def described(data: bytes, change: Callable[[Any], Any]) -> bytes:
    def inner(header: Any) -> None:
        model = json.loads(header["__metadata__"]["model"])
        change(model)
        header["__metadata__"]["model"] = json.dumps(model)

    return edited(data, inner)


def places(node: Any) -> list[tuple[Any, Any]]:
    """All containers in a tree with their keys."""
    keys = list(node) if isinstance(node, dict) else list(range(len(node))) if isinstance(node, list) else []
    return [(node, key) for key in keys] + [place for key in keys for place in places(node[key])]


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


def test_ten_thousand_spoilt_files() -> None:
    """Each is refused with the one error, or is a model that works and is saved as it came."""
    rng = np.random.default_rng(0)
    bank = Union([PerceptronBank(2), NaiveBayesBank(2), FernBank(2, depth=2, warmup=8)])
    models: list[Any] = [Ensemble(bank, JointGaussian(precision=(1.0, 2.0))), Ensemble(PerceptronBank(3)), OSBoost()]
    models += [OGBoost("naive_bayes", 3), Ensemble(Frozen(FernBank(3, depth=2, warmup=8)), GammaShape(), "logistic")]
    models[2].n_members = 3
    X, y = rows(12)
    for model in models:
        model.start(D, rng=0).decide_then_learn(X, y)
    models.append(BayesianEnsembleClassifier("perceptron", 3, weighter=GammaRate(), calibrated=True).fit(X, y))
    files = [dumps(model) for model in models]
    loaded = 0
    for turn in range(10_000):
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
    assert loaded > 500  # so the test has seen both


def contents(data: bytes) -> Any:
    """What a file holds, without what is only its form."""
    model, arrays = _file.unpack(data)
    return model, {name: (array.dtype.str, array.shape, array.tobytes()) for name, array in arrays.items()}


def within(given: Any, saved: Any) -> bool:
    """Whether all that was given is saved; a parameter that was left away has its default."""
    if isinstance(given, dict) and isinstance(saved, dict):
        return all(key in saved and within(value, saved[key]) for key, value in given.items())
    if isinstance(given, list) and isinstance(saved, list):
        return len(given) == len(saved) and all(map(within, given, saved))
    return bool(given == saved)


KILLED = """
import os, random, signal, sys, time
from bayesvote import Ensemble, PerceptronBank
from bayesvote.persistence import dumps, load, save

path = sys.argv[1]
models = [Ensemble(PerceptronBank(m)).start(54, rng=0) for m in (20, 100)]
files = [dumps(model) for model in models]
save(models[0], path)
random.seed(0)
ends = [0, 0]
for _ in range(200):
    child = os.fork()
    if child == 0:
        while True:
            for model in models:
                save(model, path)
    time.sleep(random.uniform(0.0, 0.02))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    ends[files.index(dumps(load(path)))] += 1
print(*ends)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system cannot fork")
def test_two_hundred_kills_while_saving(tmp_path: Path) -> None:
    path = tmp_path / "m.safetensors"
    done = subprocess.run([sys.executable, "-c", KILLED, str(path)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    ends = [int(n) for n in done.stdout.split()]
    assert sum(ends) == 200
    assert min(ends) > 0
    assert len(os.listdir(tmp_path)) > 10  # what was being written when the kill came
