"""Saved models come back bit for bit."""

import os
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from bayesvote import (
    Ensemble,
    EstimatorBank,
    FernBank,
    Frozen,
    GammaRate,
    JointGaussian,
    NumericalPosterior,
    OGBoost,
    OSBoost,
    OzaBoost,
    PerceptronBank,
    SeparableSGD,
    Union,
    mixed,
    pretrain,
)
from bayesvote.estimators import (
    BayesianEnsembleClassifier,
    OGBoostClassifier,
    OSBoostClassifier,
    OzaBoostClassifier,
)
from bayesvote.io.model_file import ModelFileError, dumps, loads, save
from model_files.samples import BANKS, WEIGHTERS, D, described, equal, own_loss, rate_loss, rate_prior, rows

bayes: Any = import_module("sklearn.naive_bayes")


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


def test_the_separable_sgd_of_a_users_loss_is_asked_for_again() -> None:
    weighter = SeparableSGD(rate_loss, step=np.eye(2) * 30)
    model = Ensemble(PerceptronBank(2), weighter).start(D, rng=0)
    model.decide_then_learn(*rows(50))
    again = loads(dumps(model), objects={"weighter": weighter})
    assert np.array_equal(again.decide(rows(20)[0]), model.decide(rows(20)[0]))
    with pytest.raises(ModelFileError, match="must have the delay"):
        loads(dumps(model), objects={"weighter": SeparableSGD(rate_loss, step=np.eye(2) * 30, delay=1.0)})


def equal_with(a: Any, b: Any, objects: dict[str, Any]) -> bool:
    X = np.nan_to_num(rows(20)[0])
    return dumps(a) == dumps(b) and np.array_equal(a.decide(X), b.decide(X)) and a.loss is objects["loss"]


def test_what_cannot_be_saved_is_refused(tmp_path: Path) -> None:
    class Mine(PerceptronBank):
        pass

    with pytest.raises(TypeError, match="must be an Ensemble, a booster or a classifier"):
        save(PerceptronBank(2), tmp_path / "m")
    with pytest.raises(TypeError, match="bank must be of this library, got Mine"):
        save(Ensemble(Mine(2)), tmp_path / "m")
    with pytest.raises(ValueError, match="finite numbers or strings"):
        save(Ensemble(PerceptronBank(2, max_features=np.inf)), tmp_path / "m")
    model = OzaBoost(n_members=2).start(D, rng=0)
    assert model.state is not None
    model.state.weights[0, 1, 1] = np.inf
    with pytest.raises(ValueError, match="must be valid, but in OzaBoost: weights must be finite"):
        save(model, tmp_path / "m")
    assert os.listdir(tmp_path) == []


def test_members_of_a_script_may_have_moved_into_a_module() -> None:
    X, y = np.nan_to_num(rows(50)[0]), rows(50)[1]

    def as_of(module: str) -> list[Any]:
        kind = type("Mine", (bayes.GaussianNB,), {"__module__": module})
        return [(kind().fit(X, y), range(D)), kind().fit(X, y)]

    data = dumps(BayesianEnsembleClassifier(as_of("__main__")).fit(X, y))
    assert loads(data, objects={"members": as_of("mine.members")}).predict(X).shape == (50,)
    data = dumps(BayesianEnsembleClassifier(as_of("mine.members")).fit(X, y))
    assert loads(data, objects={"members": as_of("mine.others")}).predict(X).shape == (50,)
    with pytest.raises(ModelFileError, match=r"must contain \['mine.Mine', 'mine.Mine'\]"):
        loads(data, objects={"members": as_of("yours")})


@pytest.mark.parametrize("dtype", ["datetime64[2D]", "float16"])
def test_labels_that_a_file_cannot_hold_are_refused_when_they_are_saved(dtype: str) -> None:
    X, y = rows(50)
    model = OzaBoostClassifier(n_members=2).fit(X, np.array([2, 4]).astype(dtype)[y])
    with pytest.raises(TypeError, match=r"save: .* must contain numbers"):
        dumps(model)


LABELS: list[NDArray[Any]] = [
    np.array(["no", "perhaps", "yes"]),
    np.array([1, 2, 7]),
    np.array(["no", "perhaps", "yes"], dtype=object),
    np.array([False, True]),
    np.array(["2020-02-29", "2021-01-01"], dtype="datetime64[D]"),
    np.array(["2020-02-29T12:00:00", "2021-01-01"], dtype="datetime64[ns]"),
    np.array([-3, 5], dtype="timedelta64[ms]"),
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
@pytest.mark.parametrize("classes", LABELS, ids=["strings", "integers", "objects", "truth", "days", "times", "spans"])
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

    estimator.name_features(["one", "name"])
    with pytest.raises(ModelFileError, match=f"feature names that are not {D}"):
        loads(dumps(estimator), objects={"weighter": weighter})


def test_fitted_members_are_asked_for_once() -> None:
    X, y = np.nan_to_num(rows(50)[0]), rows(50)[1]
    members = [bayes.GaussianNB().fit(X, y), bayes.BernoulliNB().fit(X, y)]
    estimator = BayesianEnsembleClassifier(members).fit(X, y)
    data = dumps(estimator)
    again = loads(data, objects={"members": members})
    assert np.array_equal(again.predict_proba(X), estimator.predict_proba(X))
    assert dumps(again.partial_fit(X, y)) == dumps(estimator.partial_fit(X, y))
    with pytest.raises(ModelFileError, match="'members' must contain 2 classifiers, got 1"):
        loads(data, objects={"members": members[:1]})
    told = (
        r"must contain \['sklearn.GaussianNB', 'sklearn.BernoulliNB'\], in this order, got \['sklearn.BernoulliNB', 's"
    )
    with pytest.raises(ModelFileError, match=told):
        loads(data, objects={"members": members[::-1]})
    with pytest.raises(ModelFileError, match="the object passed as 'members' must be a list, got int"):
        loads(data, objects={"members": 3})
    wrong: Any = members
    with pytest.raises(TypeError, match=r"objects must be a dictionary of places .* {'members': \[\.\.\.\]}, got list"):
        loads(data, objects=wrong)

    def older(node: Any) -> None:
        for part in (node["parameters"]["members"], *bank_of(node)):
            del part["same"]["__types__"]

    def bank_of(node: Any) -> list[Any]:
        frozen = node["learned"]["parts"]["model_"]["parameters"]["bank"]
        return [frozen["parameters"]["bank"]["parameters"]["estimators"]]

    assert np.array_equal(
        loads(described(data, older), objects={"members": members}).predict(X),
        loads(data, objects={"members": members}).predict(X),
    )
    model = Ensemble(EstimatorBank(members)).start(D)
    assert dumps(loads(dumps(model), objects={"bank.estimators": members})) == dumps(model)

    def wide(node: Any) -> None:
        node["parameters"]["bank"]["learned"]["facts"]["shape"] = [10**10, 2]

    with pytest.raises(ModelFileError, match="n_features must be at most"):
        loads(described(dumps(model), wide), objects={"bank.estimators": members})
