"""What only the Bayesian ensemble has: its weights' uncertainty, abstention, merging and unlearning."""

import re
import sys
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer

from bayesvote.core.checks import Array
from bayesvote.estimators import BayesianEnsembleClassifier
from bayesvote.io.model_file import dumps, loads
from bayesvote.members import Frozen, PerceptronBank, named, pretrain
from bayesvote.weighting import GammaRate, JointGaussian, NumericalPosterior, Voting

linear: Any = import_module("sklearn.linear_model")
bayes: Any = import_module("sklearn.naive_bayes")
trees: Any = import_module("sklearn.tree")


def data() -> tuple[Array, NDArray[np.str_]]:
    X, y = load_breast_cancer(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    return X, np.array(["malignant", "benign"])[y]


def frozen(X: Array, y: NDArray[np.str_]) -> Frozen:
    return pretrain(PerceptronBank(20).start(X.shape[1], rng=0), X[:100], (y[:100] == "malignant").astype(int))


@pytest.mark.parametrize(
    ("weighter", "columns"),
    [
        ("joint_gaussian", ["kind", "mean", "sd", "lower", "upper", "probability_best"]),
        ("gamma_rate", ["kind", "mean", "sd", "lower", "upper", "probability_best"]),
        (
            "gamma_shape_rate",
            [
                "kind",
                "mean_1",
                "mean_2",
                "sd_1",
                "sd_2",
                "lower_1",
                "lower_2",
                "upper_1",
                "upper_2",
                "probability_best",
            ],
        ),
        ("voting", ["kind", "mean"]),
    ],
)
def test_weights_are_a_table(weighter: str, columns: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pandas")
    X, y = data()
    loss = "ramp" if weighter == "joint_gaussian" else "logistic"
    model = BayesianEnsembleClassifier("mixed", 6, weighter=weighter, loss=loss, random_state=0).fit(X, y)
    table = model.weights_
    assert list(table.columns) == columns
    assert table["kind"].tolist() == ["Perceptron"] * 2 + ["NaiveBayes"] * 2 + ["Fern"] * 2
    if weighter != "voting":
        assert table["probability_best"].sum() == pytest.approx(1)
        for end in [""] if "mean" in columns else ["_1", "_2"]:
            assert (table["lower" + end] < table["mean" + end]).all()
            assert (table["mean" + end] < table["upper" + end]).all()
    monkeypatch.setitem(sys.modules, "pandas", None)
    plain = model.weights_
    assert list(plain.dtype.names) == columns
    for name in columns:
        assert plain[name].tolist() == table[name].tolist()


def test_nothing_is_known_before_fit() -> None:
    model = BayesianEnsembleClassifier()
    assert not hasattr(model, "weights_")
    assert not hasattr(model, "effective_samples_")
    missing = import_module("sklearn.exceptions").NotFittedError
    for act in (model.decision_certainty, model.contributions, lambda X: model.unlearn(X, ["a"])):
        with pytest.raises(missing):
            act([[0.0]])


def test_effective_samples() -> None:
    X, y = data()
    model = BayesianEnsembleClassifier("perceptron", 3, weighter="gamma_rate", forgetting=0.9, random_state=0)
    np.testing.assert_allclose(model.fit(X, y).effective_samples_, (1 - 0.9 ** len(X)) / 0.1)
    with pytest.raises(AttributeError, match="only posteriors"):
        _ = BayesianEnsembleClassifier(n_members=3, weighter="voting").fit(X, y).effective_samples_


def test_abstention_masks_uncertain_rows() -> None:
    X, y = data()
    model = BayesianEnsembleClassifier(random_state=0).fit(X[:40], y[:40])
    certainty, labels = model.decision_certainty(X), model.predict(X)
    assert certainty.min() < 0.9 < certainty.max()
    masked: Any = model.predict(X, abstain_below=0.9)
    np.testing.assert_array_equal(masked.mask, certainty < 0.9)
    np.testing.assert_array_equal(masked.data, labels)
    assert (masked == y).mean() > np.mean(labels == y)
    middle: Any = model.predict(X, abstain_below=np.sort(certainty)[50])  # as certain as asked for is enough
    assert np.count_nonzero(middle.mask) == np.count_nonzero(certainty < np.sort(certainty)[50]) <= 50
    with pytest.raises(ValueError, match="abstain_below must be a probability"):
        model.predict(X, abstain_below=90)


def test_contributions_add_up_to_the_lead() -> None:
    X, y = data()
    model = BayesianEnsembleClassifier(weighter="joint_gaussian", random_state=0).fit(X, y)
    np.testing.assert_allclose(model.contributions(X).sum(axis=1), np.abs(model.decision_function(X)), atol=1e-12)


@pytest.mark.parametrize("weighter", ["gamma_rate", "joint_gaussian"])
def test_merge_and_unlearn_are_exact(weighter: str) -> None:
    X, y = data()
    whole = BayesianEnsembleClassifier(frozen(X, y), weighter=weighter)
    first, second = clone(whole).fit(X[100:300], y[100:300]), clone(whole).fit(X[300:], y[300:])
    alone = np.array(first.weights_["mean"])
    whole.fit(X[100:], y[100:])
    first.merge(second)
    np.testing.assert_allclose(first.weights_["mean"], whole.weights_["mean"], rtol=1e-9)
    first.unlearn(X[300:], y[300:])
    np.testing.assert_allclose(first.weights_["mean"], alone, rtol=1e-9)
    with pytest.raises(ValueError, match="must have the same classes_"):
        first.merge(clone(whole).fit(X[100:], y[100:] == "benign"))
    with pytest.raises(TypeError, match="members must be frozen"):
        BayesianEnsembleClassifier(n_members=3).fit(X, y).unlearn(X, y)


def test_fitted_classifiers_are_members_as_they_are() -> None:
    X, y = data()
    logistic = linear.LogisticRegression().fit(X[:100], y[:100])
    tree = trees.DecisionTreeClassifier(random_state=0).fit(X[:100, :5], y[:100])
    coefficients = logistic.coef_.copy()
    model = BayesianEnsembleClassifier([logistic, (tree, range(5))], weighter="gamma_rate")
    for one in (model, clone(model)):
        one.fit(X[100:], y[100:])
        assert one.weights_["kind"].tolist() == ["LogisticRegression", "DecisionTreeClassifier"]
        assert one.score(X[100:], y[100:]) > 0.93
        assert isinstance(one.model_.bank, Frozen)
    np.testing.assert_array_equal(logistic.coef_, coefficients)


@pytest.mark.parametrize("columns", [None, {"a": "number"}])
def test_members_that_were_fitted_on_a_table_get_its_columns_in_their_order(columns: Any) -> None:
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    X, y = data()
    table = pandas.DataFrame(X[:, :3], columns=["a", "b", "c"])
    member = linear.LogisticRegression().fit(table[:100], y[:100])
    model = BayesianEnsembleClassifier([member], weighter="gamma_rate", columns=columns)
    with pytest.raises(ValueError, match=r"column 0 of estimator 0 .* must be 'a', as when it was fitted, got 'c'"):
        model.fit(table[["c", "b", "a"]][100:], y[100:])
    assert not hasattr(model, "classes_")
    with pytest.raises(ValueError, match=r"must be 'a', as when it was fitted, got 'c'"):
        model.partial_fit(table[["c", "b", "a"]][100:], y[100:], classes=np.unique(y))
    assert not hasattr(model, "classes_")
    paired = BayesianEnsembleClassifier([(member, [2, 1, 0])], weighter="gamma_rate", columns=columns)
    paired.fit(table[["c", "b", "a"]][100:], y[100:])
    model.fit(table[100:], y[100:])
    np.testing.assert_array_equal(paired.predict(table[["c", "b", "a"]]), model.predict(table))
    if columns is None:
        BayesianEnsembleClassifier([member], weighter="gamma_rate").fit(X[100:, :3], y[100:])  # which tells no names


def test_a_frozen_estimator_stays_fitted_in_a_grid() -> None:
    X, y = data()
    frozen_estimator = import_module("sklearn.frozen").FrozenEstimator
    search = import_module("sklearn.model_selection").GridSearchCV
    one, other = (frozen_estimator(bayes.GaussianNB().fit(X[:n], y[:n])) for n in (20, 100))
    grid = {"members": [[one], [one, other]]}
    assert search(BayesianEnsembleClassifier(), grid, cv=2).fit(X[100:], y[100:]).best_score_ > 0.9


def test_river_classifiers_learn_online() -> None:
    naive_bayes: Any = pytest.importorskip("river.naive_bayes")
    X, y = data()
    model = BayesianEnsembleClassifier([naive_bayes.GaussianNB()], weighter="gamma_rate")
    assert clone(model).fit(X[:200], y[:200]).score(X[200:], y[200:]) > 0.9


def test_unfitted_classifiers_learn_online() -> None:
    X, y = data()
    fitted = linear.LogisticRegression().fit(X[:100], y[:100])
    members = [bayes.GaussianNB(), fitted, linear.SGDClassifier(random_state=0)]
    model = clone(BayesianEnsembleClassifier(members, weighter="gamma_rate")).fit(X[:150], y[:150])
    assert model.score(X[150:], y[150:]) > 0.9
    assert model.weights_["kind"].tolist() == ["GaussianNB", "LogisticRegression", "SGDClassifier"]
    assert not hasattr(members[0], "classes_")
    with pytest.raises(TypeError, match="that learns online by partial_fit"):
        BayesianEnsembleClassifier([trees.DecisionTreeClassifier()]).fit(X, y)


@pytest.mark.parametrize("members", ["mixed", "perceptron", "averaged_perceptron", "naive_bayes", "fern", "tree"])
@pytest.mark.parametrize(
    "weighter",
    ["averaged_sgd", "gamma_rate", "gamma_shape", "gamma_shape_rate", "joint_gaussian", "sgd", "voting"],
)
def test_names(members: str, weighter: str) -> None:
    X, y = data()
    loss = "logistic" if "shape" in weighter else "ramp"
    model = BayesianEnsembleClassifier(members, 9, weighter=weighter, loss=loss, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.85
    chances = model.predict_proba(X)
    np.testing.assert_array_equal(model.classes_[chances.argmax(axis=1)], model.predict(X))


def test_the_docstring_names_all_members() -> None:
    described = re.search(r"members : .*?with parameters", BayesianEnsembleClassifier.__doc__ or "", re.DOTALL)
    assert described is not None
    assert set(re.findall(r'"(\w+)"', described[0])) == set(named())


def test_trees_by_name() -> None:
    X, y = data()
    model = BayesianEnsembleClassifier("tree(max_nodes=64)", 20, random_state=0).fit(X[:300], y[:300])
    assert model.weights_["kind"].tolist().count("Tree") == 14
    assert model.score(X[300:], y[300:]) > 0.93
    again = loads(dumps(model))
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    with pytest.raises(ValueError, match="n_members must be an integer of at least 1"):
        BayesianEnsembleClassifier("tree", 0).fit(X, y)


def test_max_features() -> None:
    X, y = data()
    model: Any = BayesianEnsembleClassifier("mixed", 6, max_features=2, random_state=0).fit(X, y)
    perceptrons, naive_bayes, _ = model.model_.bank.banks
    assert perceptrons.bank.state.features.shape == naive_bayes.state.features.shape == (2, 2)
    model = BayesianEnsembleClassifier(max_features=2, random_state=0).fit(X, y)  # of the committees' members, too
    behind_scales, alone, committee, _ = model.model_.bank.banks
    passive = behind_scales.bank.banks[1]
    assert [bank.state.features.shape for bank in (passive, committee.bank)] == [(3, 2), (38, 2)]
    assert alone.state.features.shape == (1, 2)


def test_a_loss_of_the_users_own() -> None:
    X, y = data()
    weighter = NumericalPosterior(lambda weight, g: 0.1 * weight * g - np.log(weight), lambda weight: weight)
    chances = BayesianEnsembleClassifier("perceptron", 3, weighter=weighter, random_state=0).fit(X, y).predict_proba(X)
    np.testing.assert_allclose(chances.sum(axis=1), 1)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"members": "perceptrons"}, "Did you mean 'perceptron'"),
        ({"members": 3}, "members must be a name, a bank or a list"),
        ({"weighter": "gama_rate"}, "Did you mean 'gamma_rate'"),
        ({"weighter": GammaRate}, "weighter must be a name or a weighter"),
        ({"loss": "rampe"}, "Did you mean 'ramp'"),
        ({"weighter": "gamma_shape", "loss": "ramp"}, "Use loss='logistic'"),
        ({"weighter": Voting(), "forgetting": 0.9}, "Pass it to the weighter itself"),
        ({"weighter": JointGaussian(), "forgetting": 0.9}, "Pass it to the weighter itself"),
        ({"weighter": "sgd", "forgetting": 0.9}, "forgetting must be 1 unless"),
        ({"forgetting": 0.9}, "follow changes without it"),
        ({"forgetting": 1.5}, "forgetting must be in"),
        ({"members": "fern", "max_features": 0.5}, "choose their features themselves"),
        ({"members": "tree", "max_features": 0.5}, "choose their features themselves"),
        ({"members": PerceptronBank(), "max_features": 0.5}, "unless members is a name"),
        ({"max_features": 31}, "must be at most n_features = 30, got 31"),
        ({"loss": "rampp"}, r"BayesianEnsembleClassifier: loss must be one of"),
        ({"max_features": 0}, "BayesianEnsembleClassifier: max_features must be an integer of at least 1, got 0"),
        (
            {"members": "perceptron", "max_features": 1.5},
            r"BayesianEnsembleClassifier: max_features must be in \(0, 1\]",
        ),
        ({"n_members": 0}, "BayesianEnsembleClassifier: n_members must be an integer"),
        ({"scale": "no"}, "BayesianEnsembleClassifier: scale must be True or False, got 'no'"),
        ({"shuffle": 1}, "BayesianEnsembleClassifier: shuffle must be True or False, got 1"),
        ({"members": PerceptronBank(3, max_features=0)}, "random_subsets: max_features"),  # not the classifier's own
        ({"members": []}, "members must hold at least one classifier"),
        ({"members": [linear.LogisticRegression()]}, r"members\[0\] must be a classifier that is .*\)\. Fit it first"),
        ({"members": [(1, [0])]}, r"members\[0\] must be a classifier that is fitted, .* got 1\."),
        ({"random_state": "x"}, r"random_state must be an integer of at least 0, .* got 'x'"),
        ({"random_state": -1}, r"random_state must be an integer of at least 0, .* got -1"),
    ],
)
def test_wrong_parameters_are_told(options: dict[str, Any], told: str) -> None:
    X, y = data()
    model = BayesianEnsembleClassifier(**options)
    with pytest.raises((ValueError, TypeError), match=told):
        model.fit(X, y)
    assert not hasattr(model, "classes_")


def test_wrong_rows_labels_and_weights_are_told() -> None:
    X, y = data()
    model: Any = BayesianEnsembleClassifier("perceptron", 3)
    bank: Any = PerceptronBank(3).start(1)
    with pytest.raises(TypeError, match="sample_weight must hold one number per row, got others: could not convert"):
        model.fit(X, y, sample_weight=["a"] * len(y))
    with pytest.raises(TypeError, match=r"got a list of dictionaries\. .* bayesvote.tables.columns_of\(X\)"):
        model.fit([{"a": 1}, {"a": 2}], [0, 1])
    with pytest.raises(TypeError, match=r"got a list of dictionaries\. .* bayesvote.tables.columns_of\(X\)"):
        bank.scores([{"a": 1}])
    with pytest.raises(ValueError, match="y: must hold labels of one kind, got '1' and 1"):
        model.fit(X[:2], [1, "1"])
    missing = np.array(["2020-01-01", "NaT"], dtype="datetime64[D]")
    with pytest.raises(ValueError, match="y: must hold a label for every row, got a missing one in row 1"):
        model.fit(X[:2], missing)
    assert not hasattr(model, "classes_")


def test_what_cannot_be_merged_is_told() -> None:
    X, y = data()
    frozen: Any = BayesianEnsembleClassifier(Frozen(PerceptronBank(3).start(X.shape[1], rng=0))).fit(X, y)
    for model, kind in ((frozen, "a BayesianEnsembleClassifier"), (frozen.model_, "an Ensemble")):
        with pytest.raises(TypeError, match=f"merge: other must be {kind}, got 3"):
            model.merge(3)
    for method, arguments in (("merge", (frozen,)), ("unlearn", (X, y))):
        with pytest.raises(TypeError, match="Use one whose states are, weighter='gamma_rate' or 'joint_gaussian'"):
            getattr(frozen, method)(*arguments)


def test_drift_is_believed_after_a_change_and_not_long_after_it() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 2))
    y = ((X[:, 0] > 0) ^ (np.arange(1500) >= 1000)).astype(int)
    model, seen = BayesianEnsembleClassifier(horizon=0, random_state=0), []
    for part in (slice(0, 1000), slice(1000, 1060)):
        seen.append(model.partial_fit(X[part], y[part], classes=[0, 1]).drift_)
    assert 0 <= seen[0] < 0.7 < seen[1] <= 1
    assert BayesianEnsembleClassifier(weighter="joint_logistic", n_members=20).fit(X, y).drift_ == 0
    with pytest.raises(AttributeError, match="only joint posteriors"):
        _ = BayesianEnsembleClassifier("perceptron", 3, weighter="gamma_rate").fit(X, y).drift_
