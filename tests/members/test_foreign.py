"""Foreign estimators against plain row-by-row loops; what does not fit is refused."""

import copy
import pickle
import threading
from importlib import import_module
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from bayesvote.core.checks import Array
from bayesvote.ensemble import Ensemble
from bayesvote.members.external import EstimatorBank
from bayesvote.members.union import Union
from bayesvote.weighting import GammaRate

linear: Any = import_module("sklearn.linear_model")
bayes: Any = import_module("sklearn.naive_bayes")
trees: Any = import_module("sklearn.tree")
svm: Any = import_module("sklearn.svm")
neighbors: Any = import_module("sklearn.neighbors")
ensembles: Any = import_module("sklearn.ensemble")


def stream(seed: int = 0, n: int = 60, n_classes: int = 2) -> tuple[Array, Any]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    return X, np.digitize(X[:, 0] + 0.3 * X[:, 1], [0.0, 0.7][: n_classes - 1])


class LabelOnly:
    """Knows nothing but a label: the sign of its first column against the mean so far."""

    def __init__(self) -> None:
        self.sum = 0.0

    def predict(self, X: Array) -> Any:
        return self.classes_[(X[:, 0] > self.sum).astype(int)]

    def partial_fit(self, X: Array, y: Any, classes: Any) -> None:
        self.classes_ = np.unique(classes)
        self.sum += 0.1 * float(X.mean()) * float(np.sum(y == self.classes_[0]))


def log_odds(p: Array) -> Array:
    p = np.maximum(p, 1e-9)
    return np.asarray(np.log(p[:, 1]) - np.log(p[:, 0]))


def test_fitted_estimators_are_blended_as_they_are() -> None:
    X, y = stream()
    names = np.array(["no", "yes"])[y]
    lr = linear.LogisticRegression().fit(X, names)
    tree = trees.DecisionTreeClassifier(max_depth=3, random_state=0).fit(X[:, [2, 0]], names)
    votes = LabelOnly()
    votes.partial_fit(X, names, ["no", "yes"])
    before = copy.deepcopy(tree.tree_.value)
    bank = EstimatorBank([lr, (tree, [2, 0]), votes]).start(4)
    got = bank.scores_then_learn(X, y)
    np.testing.assert_array_equal(got[:, 0], lr.decision_function(X))
    np.testing.assert_allclose(got[:, 1], log_odds(tree.predict_proba(X[:, [2, 0]])), rtol=1e-12)
    np.testing.assert_array_equal(got[:, 2], np.where(votes.predict(X) == "yes", 1.0, -1.0))
    np.testing.assert_array_equal(bank.scores(sp.csr_array(X)), got)
    np.testing.assert_array_equal(tree.tree_.value, before)


def test_online_estimators_equal_a_plain_loop() -> None:
    X, y = stream(1)
    given = [linear.SGDClassifier(random_state=3), (bayes.GaussianNB(), [1, 3]), LabelOnly()]
    bank = EstimatorBank(given, online=True).start(4, rng=0)
    got = np.concatenate([bank.scores_then_learn(X[:25], y[:25]), bank.scores_then_learn(X[25:], y[25:])])
    sgd, nb, votes = linear.SGDClassifier(random_state=3), bayes.GaussianNB(), LabelOnly()
    expected = np.full((60, 3), np.nan)
    with np.errstate(all="ignore"):
        for t in range(60):
            x = X[t : t + 1]
            if t:
                expected[t] = [
                    sgd.decision_function(x)[0],
                    log_odds(nb.predict_proba(x[:, [1, 3]]))[0],
                    1.0 if votes.predict(x)[0] == 1 else -1.0,
                ]
            sgd.partial_fit(x, y[t : t + 1], classes=[0, 1])
            nb.partial_fit(x[:, [1, 3]], y[t : t + 1], classes=[0, 1])
            votes.partial_fit(x, y[t : t + 1], classes=[0, 1])
    np.testing.assert_allclose(got, expected, rtol=1e-12)
    assert not hasattr(given[0], "classes_"), "what was given must not learn"


def test_fitted_estimators_go_on_learning_from_a_copy() -> None:
    X, y = stream(2)
    given = bayes.GaussianNB().fit(X[:30], y[:30])
    plain = copy.deepcopy(given)
    bank = EstimatorBank([given], online=True).start(4)
    got = bank.scores_then_learn(X[30:], y[30:])
    for t in range(30, 60):
        assert got[t - 30, 0] == pytest.approx(log_odds(plain.predict_proba(X[t : t + 1]))[0], rel=1e-12)
        plain.partial_fit(X[t : t + 1], y[t : t + 1])
    assert given.class_count_.sum() == 30
    np.testing.assert_array_equal(bank.start(4).scores_then_learn(X[30:], y[30:]), got)


@pytest.mark.parametrize("shape", ["ovr", "ovo"])
def test_three_classes(shape: str) -> None:
    X, y = stream(3, 90, 3)
    names = np.array(["b", "a", "c"])[y]
    lr = linear.LogisticRegression().fit(X, names)
    near = neighbors.KNeighborsClassifier(3).fit(X, names)
    votes = svm.SVC(decision_function_shape=shape).fit(X, names)
    got = EstimatorBank([lr, near, votes], classes=["b", "a", "c"]).start(4, 3).scores(X)
    assert got.shape == (90, 3, 3)
    order = [1, 0, 2]  # the estimators sort their labels
    np.testing.assert_array_equal(got[:, 0], lr.decision_function(X)[:, order])
    np.testing.assert_allclose(got[:, 1], np.log(np.maximum(near.predict_proba(X), 1e-9))[:, order])
    if shape == "ovr":
        np.testing.assert_array_equal(got[:, 2], votes.decision_function(X)[:, order])
    else:
        expected = [[float(name == label) for label in "bac"] for name in votes.predict(X)]
        np.testing.assert_array_equal(got[:, 2], expected)


def test_classes_in_the_order_of_the_indices() -> None:
    X, y = stream(4)
    lr = linear.LogisticRegression().fit(X, np.array(["yes", "no"])[y])
    straight = EstimatorBank([lr]).start(4).scores(X)
    turned = EstimatorBank([lr], classes=["yes", "no"]).start(4).scores(X)
    np.testing.assert_array_equal(straight, -turned)
    assert np.mean((turned[:, 0] > 0) == y) > 0.9


def test_three_classes_online() -> None:
    X, y = stream(5, 60, 3)
    bank = EstimatorBank([bayes.GaussianNB(), linear.SGDClassifier()], online=True).start(4, 3, rng=0)
    again = EstimatorBank([bayes.GaussianNB(), linear.SGDClassifier()], online=True).start(4, 3, rng=0)
    scores = bank.scores_then_learn(X, y)
    assert scores.shape == (60, 2, 3)
    assert np.isnan(scores[0]).all()
    assert np.isfinite(scores[1:, 1]).all()
    assert np.isfinite(scores[-1]).all()
    np.testing.assert_array_equal(scores, again.scores_then_learn(X, y))


@pytest.mark.parametrize("online", [False, True])
def test_missing_values_silence_only_the_estimators_that_see_them(online: bool) -> None:
    X, y = stream(6)
    nb = [bayes.GaussianNB().fit(X[:, c], y) for c in ([0, 1], [2, 3])]
    holes = X.copy()
    holes[::3, 1] = np.nan
    bank = EstimatorBank([(nb[0], [0, 1]), (nb[1], [2, 3])], online=online).start(4)
    scores = bank.scores_then_learn(holes, y)
    np.testing.assert_array_equal(np.isnan(scores), np.isnan(holes[:, [1, 3]]))
    whole = EstimatorBank([(nb[1], [2, 3])], online=online).start(4)
    np.testing.assert_array_equal(whole.scores_then_learn(X, y)[:, 0], scores[:, 1])
    assert np.isnan(bank.scores(np.full((2, 4), np.nan))).all()


def test_sample_weights_reach_the_estimators() -> None:
    X, y = stream(7)
    w = np.random.default_rng(0).choice([0.0, 0.5, 2.0], 60)
    bank = EstimatorBank([bayes.GaussianNB()], online=True).start(4)
    bank.scores_then_learn(X, y, w)
    plain = bayes.GaussianNB().partial_fit(X, y, [0, 1], w)
    np.testing.assert_allclose(bank.scores(X)[:, 0], log_odds(plain.predict_proba(X)), rtol=1e-7)


def test_weights_that_cannot_be_passed_on_are_refused() -> None:
    X, y = stream(8)
    bank = EstimatorBank([bayes.GaussianNB(), LabelOnly()], online=True).start(4)
    bank.scores_then_learn(X[:30], y[:30], np.arange(30) % 2)
    before = bank.scores(X)
    with pytest.raises(ValueError, match=r"sample_weight must be 0 or 1 for estimator 1 \(LabelOnly\)"):
        bank.scores_then_learn(X[30:], y[30:], np.full(30, 2.0))
    np.testing.assert_array_equal(bank.scores(X), before)


@pytest.mark.parametrize(
    ("X", "y"), [(np.zeros((2, 3)), [0, 1]), (np.full((2, 4), np.inf), [0, 1]), (np.zeros((2, 4)), [0, 2])]
)
def test_bad_input_is_refused_and_changes_nothing(X: Any, y: Any) -> None:
    good, labels = stream(9)
    bank = EstimatorBank([bayes.GaussianNB()], online=True).start(4)
    bank.scores_then_learn(good, labels)
    before = bank.scores(good)
    with pytest.raises(ValueError, match="EstimatorBank"):
        bank.scores_then_learn(X, y)
    np.testing.assert_array_equal(bank.scores(good), before)


def test_estimators_that_do_not_fit_are_refused() -> None:
    X, y = stream(10)
    lr = linear.LogisticRegression
    fitted = lr().fit(X, y)
    refused: list[tuple[EstimatorBank, int, str]] = [
        (EstimatorBank([lr()]), 2, r"estimator 0 \(LogisticRegression\) must be fitted"),
        (EstimatorBank([fitted], online=True), 2, "must have partial_fit"),
        (EstimatorBank([fitted, lr().fit(X[:, :2], y)]), 2, "estimator 1 .* must be fitted on as many features"),
        (EstimatorBank([(fitted, [0, 1, 2, 4])]), 2, "must be numbers from 0 to 3"),
        (EstimatorBank([fitted]), 3, "classes must be 3 different labels"),
        (EstimatorBank([fitted], classes=[1, 1]), 2, "classes must be 2 different labels"),
        (EstimatorBank([fitted], classes=[-1, 1]), 2, r"must know the classes \[-1, 1\], got one fitted on"),
        (EstimatorBank([fitted, lr().fit(X, stream(3, 60, 3)[1])]), 3, "estimator 0 .* must know the classes"),
    ]
    for bank, n_classes, sentence in refused:
        with pytest.raises((ValueError, TypeError), match=sentence):
            bank.start(4, n_classes)
    with pytest.raises(ValueError, match="at least one"):
        EstimatorBank([])
    with pytest.raises(ValueError, match="must be started"):
        EstimatorBank([fitted]).scores(X)


def test_estimators_fitted_with_names_do_not_warn() -> None:
    X, y = stream(11)
    lr = linear.LogisticRegression().fit(X, y)
    lr.feature_names_in_ = np.array(["a", "b", "c", "d"], dtype=object)
    np.testing.assert_array_equal(EstimatorBank([lr]).start(4).scores(X)[:, 0], X @ lr.coef_[0] + lr.intercept_)


class Answering(LabelOnly):
    """Answers what it was told to, by the method it was told."""

    classes_ = np.array([0, 1])

    def __init__(self, method: str, found: Any) -> None:
        setattr(self, method, lambda _: found)


@pytest.mark.parametrize(
    ("method", "found", "told"),
    [
        ("decision_function", np.zeros(3), r"shape \(10,\) for 10 rows of 2 classes, got shape \(3,\)"),
        ("decision_function", np.zeros((10, 3)), r"shape \(10, 2\) for 10 rows of 2 classes, got shape \(10, 3\)"),
        ("predict_proba", np.zeros((10, 1)), r"shape \(10, 2\) for 10 rows of 2 classes, got shape \(10, 1\)"),
        ("predict_proba", np.array([["a", "b"]] * 10), "numbers, got <U1 values"),
        ("predict", np.zeros((10, 2)), r"shape \(10,\) for 10 rows of 2 classes, got shape \(10, 2\)"),
    ],
)
def test_answers_of_another_shape_are_told(method: str, found: Any, told: str) -> None:
    with pytest.raises((ValueError, TypeError), match=rf"{method} of estimator 0 \(Answering\) must give .*{told}"):
        EstimatorBank([Answering(method, found)]).start(4).scores(stream(n=10)[0])


class HandingOn(LabelOnly):
    """A wrapper that takes whatever its inner classifier takes."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def partial_fit(self, *args: Any, **kwargs: Any) -> None:
        self.inner.partial_fit(*args, **kwargs)
        self.classes_ = self.inner.classes_

    def predict(self, X: Array) -> Any:
        return self.inner.predict(X)


def test_a_wrapper_is_told_the_classes() -> None:
    X, y = stream(12)
    given = linear.SGDClassifier(random_state=0)
    bank = EstimatorBank([HandingOn(given), given], online=True).start(4)
    scores = bank.scores_then_learn(X, y)
    np.testing.assert_array_equal(scores[1:, 0], np.where(scores[1:, 1] > 0, 1.0, -1.0))


@pytest.mark.parametrize("online", [False, True])
def test_features_in_another_order_than_a_member_was_fitted_on_are_refused(online: bool) -> None:
    X, y = stream(14)
    named, unnamed = bayes.GaussianNB().fit(X[:, :3], y), bayes.GaussianNB().fit(X, y)
    named.feature_names_in_ = np.array(["b", "a", "c"], dtype=object)
    bank = Union([EstimatorBank([unnamed, (named, [1, 0, 3])], online=online)]).start(4)
    bank.check_names(["a", "b", "x", "c"])
    told = r"column 3 of estimator 1 \(GaussianNB\) must be 'c', as when it was fitted, got 'x'\. .* feature_names_in_"
    with pytest.raises(ValueError, match=told):
        bank.check_names(["a", "b", "c", "x"])


class LastLabel:
    """River's form, without probabilities: the last label seen."""

    last: Any = None

    def learn_one(self, x: dict[int, float], y: Any) -> None:
        assert list(x) == [3, 1]
        self.last = y

    def predict_one(self, x: dict[int, float]) -> Any:
        assert list(x) == [3, 1]
        return self.last

    def predict_proba_one(self, x: dict[int, float]) -> dict[Any, float]:
        raise NotImplementedError


@pytest.mark.parametrize("n_classes", [2, 3])
def test_one_by_one_labels(n_classes: int) -> None:
    X, y = stream(13, 30, n_classes)
    given = LastLabel()
    bank = EstimatorBank([(given, [3, 1])], online=True, classes=["u", "v", "w"][:n_classes]).start(4, n_classes)
    got = bank.scores_then_learn(X, y)[:, 0]
    assert np.isnan(got[0]).all()
    votes = np.eye(n_classes)[y[:-1]]
    np.testing.assert_array_equal(got[1:], votes[:, 1] - votes[:, 0] if n_classes == 2 else votes)
    assert given.last is None


@pytest.mark.parametrize("n_classes", [2, 3])
def test_river_classifiers_equal_a_plain_loop(n_classes: int) -> None:
    pytest.importorskip("river", reason="river is not installed")
    tree = import_module("river.tree").HoeffdingTreeClassifier
    binary = import_module("river.linear_model")
    X, y = stream(12, 80, n_classes)
    models = [tree(grace_period=10), import_module("river.naive_bayes").GaussianNB()]
    if n_classes == 2:
        models += [binary.LogisticRegression(), binary.PAClassifier()]
    else:
        with pytest.raises(ValueError, match="OneVsRestClassifier"):
            EstimatorBank([binary.LogisticRegression()], online=True).start(4, 3)
    bank = EstimatorBank([(model, [0, 2, 3]) for model in models], online=True).start(4, n_classes)
    got = bank.scores_then_learn(X, y)
    for i, model in enumerate(models):
        for t in range(80):
            x = {j: float(X[t, j]) for j in (0, 2, 3)}
            found = model.predict_proba_one(x)
            p = np.array([found.get(k, 0.0) for k in range(n_classes)])
            logs = np.log(np.maximum(p, 1e-9)) if p.any() else np.full(n_classes, np.nan)
            np.testing.assert_allclose(got[t, i], logs[1] - logs[0] if n_classes == 2 else logs, rtol=1e-12)
            model.learn_one(x, bool(y[t]) if n_classes == 2 else int(y[t]))


def test_only_ensembles_of_equal_estimators_merge() -> None:
    river = pytest.importorskip("river", reason="river is not installed")
    X, y = stream(n=200)

    def learned() -> list[Any]:
        trees_of_river = river.tree.HoeffdingTreeClassifier(grace_period=20)
        for x, label in zip(X[:100].tolist(), y[:100].tolist(), strict=True):
            trees_of_river.learn_one(dict(enumerate(x)), label)
        kinds = [
            linear.LogisticRegression(),
            trees.DecisionTreeClassifier(),
            neighbors.KNeighborsClassifier(algorithm="kd_tree"),
            ensembles.GradientBoostingClassifier(n_estimators=2),  # holds the global random generator
        ]
        return [kind.fit(X[:100], y[:100]) for kind in kinds] + [trees_of_river]

    def ensemble(estimators: list[Any], **parameters: Any) -> Ensemble:
        model = Ensemble(EstimatorBank(estimators, **parameters), GammaRate()).start(4)
        model.decide_then_learn(X[100:], y[100:])
        return model

    given = learned()
    known = ensemble(given).weights()
    for copied in (copy.deepcopy(given), pickle.loads(pickle.dumps(given)), given):
        model = ensemble(given)
        copied[2].predict(X)  # counts calls
        assert model.merge(ensemble(copied)).unlearn(X[100:], y[100:]).weights() == pytest.approx(known, rel=1e-12)

    x, label = dict(enumerate(X[100].tolist())), int(y[100])
    other_parameters, other_river = copy.deepcopy(given), copy.deepcopy(given)
    other_parameters[1].set_params(max_depth=7)
    other_river[4].learn_one(x, label)
    others: list[list[Any]] = [
        [linear.LogisticRegression().fit(X, y), *given[1:]],
        [bayes.GaussianNB().fit(X[:100], y[:100]), *given[1:]],
        other_parameters,
        other_river,
        [(given[0], [0, 1, 2, 3]), (trees.DecisionTreeClassifier().fit(X[:100, :1], y[:100]), [1]), *given[2:]],
        given[:4],
    ]
    model = ensemble(given)
    for different in others:
        with pytest.raises(ValueError, match="must have the same members, frozen in the same state, got members that"):
            model.merge(ensemble(different))
    named = [kind.fit(X[:100], np.array(["a", "b"])[y[:100]]) for kind in copy.deepcopy(given[:2])]
    with pytest.raises(ValueError, match="same members"):
        ensemble(named).merge(ensemble(named, classes=["b", "a"]))
    assert model.weights() == pytest.approx(known)


def test_an_estimator_that_cannot_be_pickled_merges_with_itself_alone() -> None:
    X, y = stream(n=100)

    def ensemble(votes: Any) -> Ensemble:
        model = Ensemble(EstimatorBank([votes]), GammaRate()).start(4)
        model.decide_then_learn(X, y)
        return model

    made = []
    for _ in range(2):
        votes: Any = LabelOnly()
        votes.partial_fit(X, y, [0, 1])
        votes.lock = threading.Lock()
        made.append(votes)
    ensemble(made[0]).merge(ensemble(made[0]))
    with pytest.raises(ValueError, match="same members"):
        ensemble(made[0]).merge(ensemble(made[1]))
