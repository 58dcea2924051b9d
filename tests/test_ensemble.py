"""Algorithm 1 as a whole: bank, loss and weighter."""

from typing import Any, Self

import numpy as np
import pytest

from bayesvote import losses
from bayesvote.core.checks import Array, Labels
from bayesvote.ensemble import Ensemble
from bayesvote.members import EstimatorBank, Frozen, PerceptronBank
from bayesvote.model import decided
from bayesvote.weighting import SAG, SGD, GammaRate, GammaShape, GammaShapeRate, JointGaussian, Voting, Weighter


def blobs(n: int, k: int = 2, seed: int = 0) -> tuple[Array, Labels]:
    rng = np.random.default_rng(seed)
    y = rng.integers(0, k, n)
    return rng.standard_normal((k, 6))[y] + rng.standard_normal((n, 6)), y


def ensemble(weighter: Weighter[Any], loss: str = "ramp", k: int = 2) -> Ensemble:
    return Ensemble(PerceptronBank(n_members=7), weighter, loss).start(6, k, rng=1)


def frozen(weighter: Weighter[Any], loss: str = "ramp") -> Ensemble:
    X, y = blobs(60, seed=5)
    bank = PerceptronBank(n_members=7, averaged=True).start(6, rng=1)
    bank.scores_then_learn(X, y)
    return Ensemble(Frozen(bank), weighter, loss).start(6)


def test_a_tie_goes_to_the_last_label() -> None:
    assert decided(np.array([[1.0, 1.0], [1.0, 2.0], [2.0, 1.0]])).tolist() == [1, 0, 1]
    assert decided(np.array([[1.0, 0.0, 0.0]])).tolist() == [2]


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("weighter", [GammaRate(), JointGaussian(), SGD(), Voting()])
def test_it_is_algorithm_1(weighter: Weighter[Any], k: int) -> None:
    """Row by row with the parts in hand: losses, decision, update of the posterior, update of the members."""
    X, y = blobs(300, k)
    out = ensemble(weighter, k=k).decide_then_learn(X, y)
    bank = PerceptronBank(n_members=7).start(6, k, rng=1)
    state = weighter.init(7)
    for t in range(300):
        G = losses.of_labels("ramp", bank.scores(X[t : t + 1]))
        assert out[t] == pytest.approx(weighter.losses(state, G)[0], rel=1e-12)
        state = weighter.update(state, weighter.of_truth(G, y[t : t + 1]))
        bank.scores_then_learn(X[t : t + 1], y[t : t + 1])


def test_decide_does_not_learn() -> None:
    X, y = blobs(100)
    model = ensemble(GammaRate())
    model.decide_then_learn(X, y)
    first = model.decide(X)
    assert np.array_equal(model.decide(X), first)
    assert model.decide(X[:0]).shape == (0, 2)


def test_chunks_and_the_empty_chunk_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = blobs(700)
    monkeypatch.setattr("bayesvote.ensemble.CHUNK", 64)  # several to a call: the next is scored while one is weighed
    whole, parts = ensemble(GammaRate()), ensemble(GammaRate())
    expected = whole.decide_then_learn(X, y)
    out = [parts.decide_then_learn(X[a:b], y[a:b]) for a, b in ((0, 1), (1, 1), (1, 300), (300, 700))]
    assert np.array_equal(np.concatenate(out), expected)


def test_it_learns() -> None:
    X, y = blobs(2000)
    for weighter in (GammaRate(), JointGaussian()):
        predicted = decided(ensemble(weighter).decide_then_learn(X, y))
        assert np.mean(predicted[500:] != y[500:]) < 0.12


@pytest.mark.parametrize(
    ("weighter", "loss"),
    [(GammaRate(), "ramp"), (GammaShape(), "logistic"), (GammaShapeRate(), "logistic"), (JointGaussian(), "ramp")],
)
def test_certainty_and_contributions(weighter: Weighter[Any], loss: str) -> None:
    X, y = blobs(80)
    model = frozen(weighter, loss)
    model.decide_then_learn(X[:5], y[:5])
    by_label = model.decide(X)
    parts = model.contributions(X)
    assert parts.sum(axis=1) == pytest.approx(by_label.max(axis=1) - by_label.min(axis=1), rel=1e-9, abs=1e-12)
    certainty = model.certainty(X, size=400)
    lead = parts.sum(axis=1)
    assert np.all((certainty > 0.3) & (certainty <= 1))
    order = np.argsort(lead)
    assert certainty[order[-20:]].mean() >= certainty[order[:20]].mean()


def test_certainty_is_the_normal_probability_for_a_gaussian_posterior() -> None:
    """P(sum of weights times margins keeps its sign), known in closed form."""
    from scipy.special import ndtr

    X, y = blobs(80)
    model = frozen(JointGaussian(5.0))
    model.decide_then_learn(X, y)
    x = 1 - 2 * losses.ramp(model.bank.scores(X))
    lower = np.tril(model.state.covariances[0])
    covariance = lower + np.tril(lower, -1).T
    exact = ndtr(np.abs(x @ model.state.means[0]) / np.sqrt(np.einsum("ni,ij,nj->n", x, covariance, x)))
    np.testing.assert_allclose(model.certainty(X), exact, rtol=1e-12)


def test_merge_and_unlearn_are_exact_over_frozen_members() -> None:
    X, y = blobs(200)
    for weighter in (GammaRate(), JointGaussian()):
        whole, a, b = frozen(weighter), frozen(weighter), frozen(weighter)
        whole.decide_then_learn(X, y)
        a.decide_then_learn(X[:70], y[:70])
        b.decide_then_learn(X[70:], y[70:])
        half = a.weights()
        a.merge(b)
        assert a.weights() == pytest.approx(whole.weights(), rel=1e-12)
        a.unlearn(X[70:], y[70:])
        assert a.weights() == pytest.approx(half, rel=1e-12)
        w = np.random.default_rng(0).gamma(1.0, size=130)
        b.decide_then_learn(X[70:], y[70:], w)
        b.unlearn(X[70:], y[70:], w)
        a.decide_then_learn(X[70:], y[70:])
        a.unlearn(X[:70], y[:70])
        assert b.weights() == pytest.approx(a.weights(), rel=1e-12)


def test_refusals_change_nothing() -> None:
    X, y = blobs(600)
    model = ensemble(SAG(horizon=900))
    model.decide_then_learn(X, y)
    before = model.decide(X)
    infinite = X.copy()
    infinite[-1, 0] = np.inf
    for bad_X, bad_y, weight, message in (
        (infinite, y, None, "X must hold finite numbers"),
        (X[:, :3], y, None, "X must have 6 features"),
        (X, y + 1, None, "y must hold class indices"),
        (X, np.where(np.arange(600) == 599, np.nan, y), None, "y must hold class indices"),
        (X, y, np.where(np.arange(600) == 599, -1.0, 1.0), "sample_weight must be finite"),
        (X, y, None, "must not be longer than horizon=900"),
    ):
        with pytest.raises(ValueError, match=message):
            model.decide_then_learn(bad_X, bad_y, weight)
        assert np.array_equal(model.decide(X), before)


class LastLabel:
    """Predicts the label it saw last; takes no weights."""

    label = 0

    def partial_fit(self, X: Array, y: Labels, classes: Labels | None = None) -> Self:  # noqa: ARG002
        self.label = y[-1]
        return self

    def predict(self, X: Array) -> Labels:
        return np.full(len(X), self.label)


def test_weights_that_a_member_cannot_take_are_refused_before_any_row_is_learned() -> None:
    X, _ = blobs(2100)
    model = Ensemble(EstimatorBank([LastLabel()], online=True)).start(6)
    model.decide_then_learn(X[:3], np.array([0, 0, 0]))
    weight = np.where(np.arange(2100) == 2099, 0.5, 1.0)
    with pytest.raises(ValueError, match=r"sample_weight must be 0 or 1 for estimator 0 \(LastLabel\)"):
        model.decide_then_learn(X, np.ones(2100, dtype=int), weight)
    assert np.all(decided(model.decide(X[:5])) == 0)


def test_misuse_gets_the_error_sentence() -> None:
    X, y = blobs(10)
    with pytest.raises(ValueError, match="must be started before use"):
        Ensemble(PerceptronBank()).decide(X)
    with pytest.raises(ValueError, match=r"'ramp' with GammaShape\. Use loss='logistic'"):
        ensemble(GammaShape())
    with pytest.raises(ValueError, match=r"loss must be at most 1, as JointGaussian .* got 'hinge'\. Use loss='ramp'"):
        ensemble(JointGaussian(), "hinge")
    with pytest.raises(ValueError, match="Did you mean 'logistic'"):
        ensemble(GammaRate(), "logistics")
    with pytest.raises(ValueError, match="must be finite and at least 0"):
        Ensemble(PerceptronBank(), loss=lambda margin: -margin).start(6)
    with pytest.raises(TypeError, match="weighter must have a posterior, got Voting"):
        ensemble(Voting()).certainty(X)
    with pytest.raises(TypeError, match="members must be frozen"):
        ensemble(GammaRate()).merge(ensemble(GammaRate()))
    with pytest.raises(TypeError, match="states must be sums to take rows back"):
        frozen(SGD()).unlearn(X, y)
    with pytest.raises(ValueError, match="same weighter and loss"):
        frozen(GammaRate()).merge(frozen(GammaRate(theta=0.2)))
    with pytest.raises(ValueError, match="same weighter and loss"):
        frozen(GammaRate()).merge(frozen(GammaRate(), "hinge"))
    others = Ensemble(Frozen(PerceptronBank(n_members=7, averaged=True).start(6, rng=2)), GammaRate()).start(6)
    with pytest.raises(ValueError, match="same members"):
        frozen(GammaRate()).merge(others)


def test_a_missing_value_silences_only_the_members_that_use_it() -> None:
    X, y = blobs(300)
    model = ensemble(GammaRate())
    model.decide_then_learn(X, y)
    holes = X[:20].copy()
    holes[:, 2] = np.nan
    silent = np.isnan(model.bank.scores(holes))
    assert silent.any()
    assert not silent.all()
    assert np.isfinite(model.decide(holes)).all()
    model.decide_then_learn(holes, y[:20])
    assert np.isfinite(model.weights()).all()
    assert np.isfinite(model.decide(X)).all()


def test_a_loss_of_ones_own_is_not_trusted() -> None:
    X, y = np.random.default_rng(0).normal(size=(20, 3)), np.arange(20) % 2
    wrong: list[tuple[Any, str]] = [
        (lambda z: np.tile(z * 0, (1, 1, 40)) if z.ndim == 3 else z * 0, "one value for"),
        (lambda z: np.where(z > 2, -1.0, 0.5) if z.ndim == 3 else np.full(z.shape, 0.5), "at least 0 and at most"),
        (lambda z: np.where(z > 2, np.inf, 0.5) if z.ndim == 3 else np.full(z.shape, 0.5), "got inf"),
    ]
    for loss, message in wrong:
        model = Ensemble(PerceptronBank(50, max_features=None), GammaRate(), loss).start(3, rng=0)
        with pytest.raises(ValueError, match=message):
            model.decide_then_learn(10 * X, y)


def test_a_row_on_which_nobody_votes_is_not_certain() -> None:
    X, y = np.random.default_rng(0).normal(size=(60, 3)), np.arange(60) % 2
    model = Ensemble(PerceptronBank(5), GammaRate()).start(3, rng=0)
    assert model.certainty(X[:2]).tolist() == [0.5, 0.5]  # nothing is learned yet, and no label preferred
    model.decide_then_learn(X, y)
    assert model.certainty(np.full((1, 3), np.nan)).tolist() == [0.5]
