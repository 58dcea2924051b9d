"""What the plan makes of shards, beside a plain computation of the same; in one process."""

from copy import deepcopy
from importlib import import_module
from typing import Any

import numpy as np
import pytest

from bayesvote import BayesianEnsembleClassifier, EstimatorBank, GammaRate, JointGaussian, TreeBank, load, losses, save
from bayesvote.apps.distributed import Failure, Job, Loop, fit, shard_members, weigh
from bayesvote.io.model_file import dumps
from distributing.rows import classifier, shards

linear: Any = import_module("sklearn.linear_model")


def weights(model: BayesianEnsembleClassifier, y: Any) -> Any:
    return np.array([(model.class_weight or {}).get(label, 1.0) for label in y])


def plainly(parts: Any, model: BayesianEnsembleClassifier, seed: int) -> tuple[list[Any], Any]:
    """Members of every shard, and their losses of the truth on all rows, NaN where they were trained."""
    banks, columns = [], []
    for place, (X, y) in enumerate(parts):
        rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(place,)))
        fresh = classifier().start(4, model.classes_, rng).model_.bank
        fresh.scores_then_learn(X, np.searchsorted(model.classes_, y), weights(model, y))
        banks.append(fresh)
    for place, bank in enumerate(banks):
        truth = []
        for other, (X, y) in enumerate(parts):
            G = losses.of_labels("ramp", bank.scores(X))
            g = model.model_.weighter.of_truth(G, np.searchsorted(model.classes_, y))
            truth.append(np.full_like(g, np.nan) if other == place else g)
        columns.append(np.concatenate(truth))
    return banks, np.concatenate(columns, axis=1)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_members_and_gamma_weights_are_those_of_a_plain_loop(n_classes: int) -> None:
    parts = shards(5, n_classes=n_classes)
    model = fit(parts, classifier(weighter="gamma_rate"))
    banks, g = plainly(parts, model, seed=5)
    assert model.model_.total_members == 5 * 6
    assert not model.model_.bank.learns
    X = np.concatenate([X for X, _ in parts])
    np.testing.assert_array_equal(model.model_.bank.scores(X), np.concatenate([b.scores(X) for b in banks], axis=1))
    expected = GammaRate().update(GammaRate().init(30), g)
    np.testing.assert_allclose(model.model_.weights(), GammaRate().mean(expected), rtol=1e-12)
    np.testing.assert_array_equal(model.effective_samples_, np.count_nonzero(~np.isnan(g), axis=0))


def test_rows_weigh_what_their_class_does() -> None:
    parts = [(X[: 300 + 100 * k], y[: 300 + 100 * k]) for k, (X, y) in enumerate(shards(4, 600))]
    parts[1] = (parts[1][0], np.where(parts[1][0][:, 3] > 0, "no", parts[1][1]))  # weighs less than it has rows
    for weighter in (GammaRate(), JointGaussian(precision=500.0)):
        model = fit(parts, classifier(class_weight={"yes": 2.0}, weighter=weighter))
        banks, g = plainly(parts, model, seed=5)
        X, w = np.concatenate([X for X, _ in parts]), np.concatenate([weights(model, y) for _, y in parts])
        np.testing.assert_array_equal(model.model_.bank.scores(X), np.concatenate([b.scores(X) for b in banks], axis=1))
        owner = np.repeat(np.arange(4), [len(y) for _, y in parts])
        asked = (owner[:, None] != np.repeat(np.arange(4), 6)).astype(float)
        if isinstance(weighter, GammaRate):
            expected = weighter.mean(weighter.update(weighter.init(24), g, w))
        else:
            margins, both = np.nan_to_num(1 - 2 * g), (asked.T * w) @ asked
            gram, cross = (margins.T * w) @ margins * w.sum() / both, w @ margins * w.sum() / (w @ asked)
            values, vectors = np.linalg.eigh(gram)  # no margins have products with a negative direction
            possible = (vectors * np.maximum(values, 0)) @ vectors.T
            scale = np.sqrt(np.diag(gram) / np.diag(possible))
            gram = scale[:, None] * possible * scale
            expected = np.linalg.solve(gram + 500 * np.eye(24), cross + 500 / 24)
        np.testing.assert_allclose(model.model_.weights(), expected, rtol=1e-8)
    one, other = (fit(parts, classifier(class_weight={"yes": 2.0})) for _ in range(2))
    weigh(parts[:2], one)
    for X, y in parts[:2]:
        other.partial_fit(X, y)
    np.testing.assert_allclose(one.model_.weights(), other.model_.weights(), rtol=1e-6)


def test_the_defaults_of_a_stream_become_those_of_shards() -> None:
    parts = shards(3)
    model = fit(parts, BayesianEnsembleClassifier(n_members=24, random_state=3))
    assert (model.weighter, model.model_.bank.learns) == ("joint_gaussian", False)
    assert model.model_.bank.member_names()[:8] == shard_members(4, 8).member_names()
    named = BayesianEnsembleClassifier(shard_members(4, 8), n_members=24, weighter="joint_gaussian", random_state=3)
    assert dumps(model.model_) == dumps(fit(parts, named).model_)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_joint_weights_are_those_of_moments_over_rows_that_members_did_not_see(n_classes: int) -> None:
    parts = [(X[: 100 + 40 * k], y[: 100 + 40 * k]) for k, (X, y) in enumerate(shards(4, n_classes=n_classes))]
    model = fit(parts, classifier(weighter=JointGaussian(precision=50.0)))
    _, g = plainly(parts, model, seed=5)
    owner = np.repeat(np.arange(4), [len(y) for _, y in parts])
    asked = (owner[:, None] != np.repeat(np.arange(4), 6)).astype(float)
    margins, n = np.nan_to_num(1 - 2 * g), len(g)
    gram, cross = n * (margins.T @ margins) / (asked.T @ asked), n * margins.sum(axis=0) / asked.sum(axis=0)
    expected = np.linalg.solve(gram + 50 * np.eye(24), cross + 50 / 24)
    np.testing.assert_allclose(model.model_.weights(), expected, rtol=1e-8)


def test_weights_are_those_of_fresh_rows_which_they_would_not_be_without_abstaining() -> None:
    rng = np.random.default_rng(3)
    rows = []
    for _ in range(16):  # half of the shards to train on, half that nobody sees; a third of the labels are wrong
        X = rng.normal(size=(500, 4))
        rows.append((X, np.where((X[:, 0] > 0) ^ (rng.random(500) < 1 / 3), "yes", "no")))
    model = fit(rows[:8], classifier(members=TreeBank(4, recent=(), refined=[10.0]), n_members=40))
    ensemble, weights = model.model_, []
    for some in (rows[:8], rows[8:]):
        state = ensemble.weighter.init(40)
        for X, y in some:
            G = losses.of_labels("ramp", ensemble.bank.scores(X))
            state = ensemble.weighter.update(state, ensemble.weighter.of_truth(G, np.searchsorted(model.classes_, y)))
        weights.append(ensemble.weighter.mean(state))
    seen, unseen = weights
    assert np.linalg.norm(ensemble.weights() - unseen) < 0.5 * np.linalg.norm(seen - unseen)
    assert abs(ensemble.weights().sum() - unseen.sum()) < 0.1 < 0.3 < abs(seen.sum() - unseen.sum())


def test_the_model_predicts_saves_and_goes_on_learning(tmp_path: Any) -> None:
    parts = shards(6, 500)
    model = fit(parts, classifier())
    X, y = shards(1, 2000, seed=9)[0]
    assert np.mean(model.predict(X) == y) > 0.9
    assert model.members is not model.model_.bank
    save(model, tmp_path / "model.safetensors")
    again = load(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    before = model.model_.bank.scores(X)
    for one in (model, again):
        one.partial_fit(X[:300], y[:300])
    np.testing.assert_array_equal(again.model_.weights(), model.model_.weights())
    np.testing.assert_array_equal(model.model_.bank.scores(X), before)
    assert model.model_.about()["rows_learned"] == 3300


@pytest.mark.parametrize("weighter", ["joint_gaussian", "gamma_rate"])
@pytest.mark.parametrize("n_shards", [3, 8])
def test_probabilities_are_calibrated_as_by_rows_that_no_member_saw(weighter: str, n_shards: int) -> None:
    def noisy(n_shards: int, n_rows: int, seed: int) -> Any:
        rng = np.random.default_rng(seed)
        for X, y in shards(n_shards, n_rows, seed=seed):
            yield X, np.where(rng.random(n_rows) < 0.1, "no", y)

    def log_loss(model: BayesianEnsembleClassifier) -> float:
        chances = model.predict_proba(X)[np.arange(len(y)), np.searchsorted(model.classes_, y)]
        return float(-np.log(chances).mean())

    parts = [*noisy(n_shards, 800, 1)]
    ((X, y),) = noisy(1, 4000, 2)
    model = fit(parts, classifier(weighter=weighter))
    plain = fit(parts, classifier(weighter=weighter, calibrated=False))
    np.testing.assert_array_equal(model.predict(X), plain.predict(X))
    fresh = deepcopy(model)
    fresh.fitted_ = fresh.fitted_.replace(calibration=type(model.calibration_).start())
    for more, labels in noisy(1, 4000, 3):
        losses = fresh.model_.decide(more)
        codes = np.searchsorted(model.classes_, labels)
        fresh.calibration_.learn(fresh.model_.shares(losses), losses, codes, np.ones(len(codes)), 1.0)
    assert log_loss(model) < log_loss(plain) - 0.01
    assert log_loss(model) == pytest.approx(log_loss(fresh), abs=0.006)


def test_further_shards_are_merged_as_if_learned_online() -> None:
    parts, more = shards(6), shards(3, 150, seed=4)
    one, other = (fit(parts, classifier()) for _ in range(2))
    assert weigh(more, one) is one
    for X, y in more:
        other.partial_fit(X, y)
    np.testing.assert_allclose(one.model_.weights(), other.model_.weights(), rtol=1e-6)
    one.merge(fit(parts, classifier()))
    assert one.effective_samples_[0] == pytest.approx(2 * 6 * 240 + 450)


def test_nothing_depends_on_chunks_on_the_order_of_answers_or_on_answers_that_come_twice() -> None:
    class Confused(Loop):
        """Answers backwards, and half of the items twice."""

        def map(self, work: Any, items: Any, shared: Any = (), deadline: float | None = None) -> Any:
            answers = list(super().map(work, items, shared, deadline))
            yield from reversed(answers)
            yield from ((place, Failure("Late", "too late")) for place, _ in answers[::2])

    parts = shards(7)
    expected = dumps(fit(parts, classifier()))
    assert dumps(fit(parts, classifier(), engine=Confused())) == expected
    assert dumps(fit(parts, classifier(random_state=6))) != expected


def test_the_error_is_counted_by_members_that_did_not_see_the_rows() -> None:
    rng = np.random.default_rng(0)
    parts = [(rng.normal(size=(200, 3)), rng.integers(2, size=200)) for _ in range(5)]  # nothing can be learned
    job = Job()
    model = job.fit(parts, classifier(weighter="voting"))
    assert 0.4 < job.error(model) < 0.6
    assert np.mean([np.mean(model.predict(X) != y) for X, y in parts]) < 0.35
    seen: list[Any] = []
    job = Job(on_progress=seen.append)
    model = job.fit(shards(5), classifier())
    assert job.error(model) < 0.2
    assert [(at.stage, at.done) for at in seen if at.done == at.total] == [
        (stage, 5) for stage in ("survey", "train", "weigh", "check")
    ]


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"weighter": "sgd"}, "depend on the order"),
        ({"forgetting": 0.99}, "forgetting must be 1"),
        ({"weighter": JointGaussian(persistence=0.9)}, "depend on the order"),
        ({"members": EstimatorBank([linear.SGDClassifier()], online=True)}, "must be of this library"),
        ({"members": "nothing"}, "members must be one of"),
        (
            {"class_weight": "balanced"},
            r"class_weight must be None or a dict, got 'balanced'.*depend on the rows before",
        ),
        ({"class_weight": {"maybe": 2.0}}, "class_weight must have labels in"),
    ],
)
def test_what_depends_on_the_order_of_rows_is_refused_before_anything_is_trained(changes: Any, match: str) -> None:
    stages: list[str] = []
    with pytest.raises((TypeError, ValueError), match=match):
        fit(shards(3), classifier(**changes), on_progress=lambda at: stages.append(at.stage))
    assert set(stages) <= {"survey"}


def test_members_that_go_on_learning_are_not_weighed() -> None:
    X, y = shards(1)[0]
    model = BayesianEnsembleClassifier("naive_bayes", n_members=5, weighter="joint_gaussian").fit(X, y)
    before = dumps(model)
    with pytest.raises(TypeError, match=r"must be frozen.*distributed\.fit"):
        weigh(shards(3), model)
    assert dumps(model) == before


def test_members_of_other_libraries_that_are_fitted_can_be_weighed() -> None:
    from sklearn.naive_bayes import GaussianNB

    parts = [(np.nan_to_num(X), y) for X, y in shards(3)]
    fitted = [GaussianNB().fit(X, y) for X, y in parts]
    one = BayesianEnsembleClassifier(fitted, weighter="joint_gaussian").fit(*parts[0])
    other = BayesianEnsembleClassifier(fitted, weighter="joint_gaussian").fit(*parts[0])
    weigh(parts[1:], one)
    for X, y in parts[1:]:
        other.partial_fit(X, y)
    np.testing.assert_allclose(one.model_.weights(), other.model_.weights(), rtol=1e-6)
    with pytest.raises(TypeError, match="must be of this library and not frozen"):
        fit(parts, BayesianEnsembleClassifier(fitted))
