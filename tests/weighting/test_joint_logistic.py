"""The logistic loss of the ensemble's margin, against a plain filter, a grid, and the general scheme."""

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import expit, log_softmax, logsumexp, softmax

import posterior
from bayesvote import BayesianEnsembleClassifier, Ensemble, NaiveBayesBank
from bayesvote.core.checks import Array, Labels
from bayesvote.weighting import JointLogistic, LaplacePosterior
from horizons.sites import Sites

PAIRS = ((2.0, 1.0), (30.0, 0.9))


def rows(n: int, k: int, m: int, seed: int = 0) -> tuple[Array, Labels, Array]:
    """Losses of all labels for members of different skill, labels and sample weights."""
    rng = np.random.default_rng(seed)
    y = rng.integers(k, size=n)
    right = np.arange(k)[:, None] == y[:, None, None]
    G = np.clip(0.5 - np.linspace(0.0, 0.4, m) * np.where(right, 1, -1) + 0.3 * rng.standard_normal((n, k, m)), 0, 1)
    return (np.stack((G[:, 0], 1 - G[:, 0]), axis=1) if k == 2 else G), y, rng.choice([0.0, 0.5, 1.0, 2.0], n)


def plain(
    G: Array, y: Labels, w: Array, discount: float, scale: float
) -> tuple[Array, list[Array], list[Array], Array]:
    """Losses, means, covariances and evidence, a row after the other, as in docs/theory.md."""
    m = G.shape[2]
    means = [np.full(m, scale / m) for _ in PAIRS]
    covariances = [np.eye(m) / p for p, _ in PAIRS]
    sites = [Sites(np.full(m, scale / m), precision) for precision, _ in PAIRS]
    evidence, out = np.zeros(len(PAIRS)), []

    def lead(z: Array, X: Array, label: int) -> tuple[float, Array]:
        others = np.arange(len(z)) != label
        return float(z[label] - logsumexp(z[others])), (X[label] - softmax(z[others]) @ X[others]) / 2

    for losses, label, weight in zip(G, y, w, strict=True):
        X, chances = np.nan_to_num(1 - 2 * losses), []
        for mean, covariance in zip(means, covariances, strict=True):
            z = X @ mean / 2
            _, d = lead(z, X, len(z) - 1 - int(z[::-1].argmax()))
            chances.append(softmax(z / np.sqrt(1 + np.pi / 8 * d @ covariance @ d)))
        out.append(-np.log(softmax(evidence) @ np.array(chances)))
        if weight == 0:
            continue
        for k, (precision, rho) in enumerate(PAIRS):
            mean, covariance = means[k], covariances[k]
            odds, d = lead(X @ mean / 2, X, label)
            reach = weight * float(d @ covariance @ d)
            if reach > 0:  # log-odds at the mode
                odds = brentq(lambda z, odds, reach: z - odds - reach * expit(-z), odds, odds + reach, (odds, reach))
            inverse = np.linalg.inv(covariance) + weight * expit(odds) * expit(-odds) * np.outer(d, d)
            if rho == 1:
                sites[k].learn(d, lead(X @ mean / 2, X, label)[0] - d @ mean, weight)
                means[k], covariances[k] = sites[k].posterior()
            else:
                mean = mean + weight * expit(-odds) * covariance @ d
                means[k] = scale / m + rho * (mean - scale / m)
                covariances[k] = rho**2 * np.linalg.inv(inverse) + (1 - rho**2) / precision * np.eye(m)
            evidence[k] = discount * evidence[k] + weight * np.log(chances[k][label])
    return np.array(out), means, covariances, evidence


def test_the_mode_is_found_where_newton_runs_in_circles() -> None:
    # The members agree on the wrong label, with weights of which nothing is known: the loss is straight there.
    G = np.array([[[0.0, 0.0], [1.0, 1.0]]])
    weighter = JointLogistic(0.01, scale=8.0)
    _, state = weighter.losses_then_update(weighter.init(2), G, [1])
    odds, reach = -8.0, 200.0
    at_mode = brentq(lambda z: z - odds - reach * expit(-z), odds, odds + reach)
    np.testing.assert_allclose(-state.means[0].sum(), at_mode, rtol=1e-9)


@pytest.mark.parametrize("k", [2, 3, 5])
@pytest.mark.parametrize("m", [3, 9])
def test_it_is_the_filter_written_out(k: int, m: int) -> None:
    G, y, w = rows(150, k, m)
    G = np.where(np.random.default_rng(1).random((150, 1, m)) < 0.1, np.nan, G)
    precision, persistence = zip(*PAIRS, strict=True)
    weighter = JointLogistic(precision, persistence, discount=0.98, scale=3.0)
    losses, state = weighter.losses_then_update(weighter.init(m), G, y, w)
    out, means, covariances, evidence = plain(G, y, w, 0.98, 3.0)
    assert losses == pytest.approx(out, rel=1e-7)
    assert state.means == pytest.approx(np.array(means), rel=1e-7)
    assert np.tril(state.covariances) == pytest.approx(np.tril(covariances), rel=1e-7, abs=1e-10)
    assert state.evidence == pytest.approx(evidence, rel=1e-7)
    weighter.validate(state)


def logistic_loss(weights: Array, g: Array) -> Array:
    return np.asarray(np.logaddexp(0.0, -(weights * (1 - 2 * g)).sum(axis=-1)))


def test_it_is_the_general_scheme_for_the_logistic_loss() -> None:
    G, _, w = rows(60, 2, 4)  # before any row is learned again
    fast = JointLogistic(20.0, scale=2.0)
    general = LaplacePosterior(logistic_loss, lambda weights: 10 * ((weights - 0.5) ** 2).sum(axis=-1), steps=20)
    one, other = fast.update(fast.init(4), G[:, 0], w), general.update(general.init(4), G[:, 0], w)
    assert fast.mean(one) == pytest.approx(general.mean(other), rel=1e-5)
    assert fast.variance(one) == pytest.approx(general.variance(other), rel=1e-5)
    assert fast.effective_samples(one) == pytest.approx(general.effective_samples(other))


# Members' margins are uniform in [-1, 1], and labels are drawn by the true weights; the prior is N(2, 1/precision).
@pytest.mark.parametrize(
    ("truth", "precision", "n", "lag", "narrow", "off"),
    [
        ((2.5, 1.0), 1.0, 20, 0.4, 0.9, 0.02),  # weights that the prior expects
        ((2.5, 1.0), 1.0, 2000, 0.15, 0.95, 0.005),
        ((7.0, -3.0), 1.0, 300, 0.4, 0.85, 0.02),  # weights five prior standard deviations away
        ((7.0, -3.0), 1.0, 1000, 0.3, 0.9, 0.02),
        ((7.0, -3.0), 1.0, 3000, 0.3, 0.9, 0.02),
        ((10.0, -5.0), (1.0, 10.0, 100.0, 1000.0), 2000, 0.8, 0.85, 0.02),  # the default, eight and seven away
    ],
)
def test_it_is_near_the_exact_posterior(
    truth: tuple[float, float], precision: float | tuple[float, ...], n: int, lag: float, narrow: float, off: float
) -> None:
    """Of two members, by a grid over their weights. docs/theory.md has the figures.

    Early rows are learned where the weights are still far from what they will be. Each is learned again later.
    """
    found = posterior.measured(posterior.Case(truth, precision, n), 0)
    assert found[0] < lag
    assert narrow < found[1] < 1.05
    assert found[2] < off


def test_rows_are_learned_again() -> None:
    """Against dense algebra, over more rows than a filter keeps."""
    G, y, w = rows(900, 2, 2)
    weighter, sites = JointLogistic(2.0, scale=2.0), Sites(np.ones(2), 2.0)
    state = weighter.losses_then_update(weighter.init(2), G, y, w)[1]
    for d, weight in zip(1 - 2 * G[np.arange(900), y], w, strict=True):
        if weight > 0:
            sites.learn(d, 0.0, weight)
    mean, covariance = sites.posterior()
    assert state.means[0] == pytest.approx(mean, rel=1e-9)
    assert np.tril(state.covariances[0]) == pytest.approx(np.tril(covariance), rel=1e-8)
    assert not np.allclose(mean, weighter.init(2).means)


@pytest.mark.parametrize("k", [2, 4])
def test_probabilities_are_calibrated(k: int) -> None:
    """Labels drawn from the model itself, with weights from the prior: what is called likely comes true as often."""
    rng, hits, chances = np.random.default_rng(4), [], []
    weighter = JointLogistic(1.0, scale=4.0)
    for _ in range(20):
        weights = 0.5 + rng.standard_normal(8)
        G = rng.random((300, k, 8))
        p = softmax((1 - 2 * G) @ weights / 2, axis=1)
        y = (p.cumsum(axis=1) > rng.random((300, 1))).argmax(axis=1)
        losses, _ = weighter.losses_then_update(weighter.init(8), G, y)
        chances.append(np.exp(-losses).ravel())
        hits.append((np.arange(k) == y[:, None]).ravel())
    found, true = np.concatenate(chances), np.concatenate(hits)
    for low in np.arange(0.0, 1.0, 0.1):
        inside = (found >= low) & (found < low + 0.1)
        if inside.sum() > 100:
            error = np.sqrt(0.25 / inside.sum())
            assert abs(true[inside].mean() - found[inside].mean()) < 3 * error + 0.02


def test_the_likelihood_of_the_labels_finds_the_precision() -> None:
    rng = np.random.default_rng(3)
    weighter = JointLogistic((0.1, 1e4))
    differ = np.where(rng.random((2000, 10)) < np.linspace(0.05, 0.5, 10), 1.0, 0.0)
    # Labels by the uniform vote itself, of members that are right and wrong at random.
    votes = rng.choice([-1.0, 1.0], (2000, 10))
    alike = (1 - np.where(rng.random((2000, 1)) < expit(0.4 * votes.sum(axis=1, keepdims=True)), votes, -votes)) / 2
    assert np.diff(weighter.update(weighter.init(10), differ).evidence) < 0
    assert np.diff(weighter.update(weighter.init(10), alike).evidence) > 0


def test_losses_at_given_weights_are_log_probabilities_and_their_parts_log_odds() -> None:
    weighter, weights = JointLogistic(), np.array([1.0, -0.5, 2.0])
    G = rows(7, 3, 3)[0]
    G[:, :, 1] = np.nan
    X = np.nan_to_num(1 - 2 * G)
    assert weighter.losses_at(weights, G) == pytest.approx(-log_softmax(X @ weights / 2, axis=1))
    parts, losses = np.nansum(weighter.terms(weights, G), axis=2), weighter.losses_at(weights, G)
    assert parts[:, 1] - parts[:, 0] == pytest.approx(losses[:, 1] - losses[:, 0])


@pytest.mark.parametrize("n_classes", [2, 3])
def test_its_probabilities_are_those_of_the_classifier(n_classes: int) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 4)), np.arange(200) % n_classes
    X[:, 0] += y
    model = Ensemble(NaiveBayesBank(5), JointLogistic(), JointLogistic.usual_loss).start(4, n_classes, rng=0)
    losses = model.decide_then_learn(X, y)
    shell = BayesianEnsembleClassifier("naive_bayes", 5, weighter="joint_logistic", calibrated=False, random_state=0)
    chances = shell.predict_proba_then_learn(X, y, classes=np.arange(n_classes))
    assert chances == pytest.approx(np.exp(-losses), abs=1e-8)
    before = [field.copy() for field in shell.model_.state]
    assert shell.predict_proba(X) == pytest.approx(np.exp(-model.decide(X)), abs=1e-8)
    for a, b in zip(before, shell.model_.state, strict=True):
        np.testing.assert_array_equal(a, b)
    assert shell.decision_certainty(X[:5], 50).shape == (5,)
    assert shell.contributions(X[:5]).shape == (5, 5)
    assert list(shell.weights_)[1:] == ["mean", "sd", "lower", "upper", "probability_best"]


def test_a_surprise_does_not_throw_it() -> None:
    """After a thousand rows that members got right, ten that they get wrong."""
    weighter = JointLogistic()
    state = weighter.update(weighter.init(5), np.zeros((1000, 5)))
    assert weighter.losses(state, [[[0.0] * 5, [1.0] * 5]])[0, 0] < 0.01
    state = weighter.update(state, np.ones((10, 5)))
    weighter.validate(state)
    assert np.isfinite(weighter.losses(state, [[[0.0] * 5, [1.0] * 5]])).all()


def test_a_state_that_no_stream_leads_to_is_refused() -> None:
    weighter = JointLogistic()
    state = weighter.update(weighter.init(3), rows(50, 2, 3)[0][:, 0])
    weighter.validate(state)
    with pytest.raises(ValueError, match="within reach"):
        weighter.validate(state._replace(means=state.means + 100))
    with pytest.raises(ValueError, match="wider"):
        weighter.validate(state._replace(covariances=1e6 * state.covariances))
    steep = state.kept.copy()
    steep[0, 3, 5] = 100.0
    with pytest.raises(ValueError, match="parabolas"):
        weighter.validate(state._replace(kept=steep))
    with pytest.raises(ValueError, match="rows learned must be at most"):  # it could learn, but no longer be saved
        weighter.arrays(state._replace(rows=np.array([2**53 - 1])))


def test_misuse_gets_the_error_sentence() -> None:
    weighter = JointLogistic()
    with pytest.raises(TypeError, match=r"JointLogistic\.merge: states must be sums"):
        weighter.merge(weighter.init(2), weighter.init(2))
    with pytest.raises(TypeError, match=r"JointLogistic\.unlearn: states must be sums"):
        weighter.unlearn(weighter.init(2), [0.1, 0.2])
    with pytest.raises(ValueError, match="JointLogistic: scale must be a finite number above 0"):
        JointLogistic(scale=0.0)
    with pytest.raises(ValueError, match="JointLogistic: persistence must be in"):
        JointLogistic(persistence=2.0)
