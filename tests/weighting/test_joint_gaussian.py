"""The joint posterior against dense linear algebra and the multivariate normal density."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.special import ndtr, softmax
from scipy.stats import multivariate_normal

from bayesvote.core.checks import Array
from bayesvote.weighting import JointGaussian, JointState
from bayesvote.weighting.joint_gaussian import REFRESH


def stream(n: int, m: int, seed: int = 0) -> Array:
    """Losses of correlated members: a common part and one of their own."""
    rng = np.random.default_rng(seed)
    return np.clip(0.3 + 0.3 * rng.standard_normal((n, 1)) + 0.2 * rng.standard_normal((n, m)), 0, 1)


def brute_force(g: Array, precision: float, theta: float, w: Array) -> tuple[Array, Array, float]:
    """Mean, covariance and log-evidence of "every margin is 1", from the joint normal of all rows at once."""
    x, (n, m) = 1 - 2 * g, g.shape
    prior = np.full(m, 1 / m)
    noise = np.diag(1 / (theta * w))
    joint = x @ x.T / precision + noise
    gain = np.linalg.solve(joint, x).T / precision
    mean = prior + gain @ (np.ones(n) - x @ prior)
    covariance = np.eye(m) / precision - gain @ x / precision
    evidence = multivariate_normal(x @ prior, joint).logpdf(np.ones(n))
    return mean, covariance, float(evidence - multivariate_normal(np.zeros(n), noise).logpdf(np.zeros(n)))


@pytest.mark.parametrize("n", [1, 50, REFRESH + 30])
def test_posterior_and_evidence_are_those_of_the_joint_normal(n: int) -> None:
    g, w = stream(n, 6), np.random.default_rng(1).uniform(0.5, 2.0, n)
    weighter = JointGaussian((5.0, 80.0), theta=0.7)
    state = weighter.update(weighter.init(6), g, w)
    parts = [brute_force(g, precision, 0.7, w) for precision in (5.0, 80.0)]
    mixture = softmax([evidence for _, _, evidence in parts])
    for k, (mean, covariance, evidence) in enumerate(parts):
        assert state.means[k] == pytest.approx(mean, rel=1e-9)
        assert np.tril(state.covariances[k]) == pytest.approx(np.tril(covariance), rel=1e-8, abs=1e-12)
        assert state.evidence[k] == pytest.approx(evidence, rel=1e-9)
    means = np.array([mean for mean, _, _ in parts])
    assert weighter.mean(state) == pytest.approx(mixture @ means, rel=1e-9)
    spread = np.array([np.diag(covariance) for _, covariance, _ in parts])
    variance = mixture @ (spread + means**2) - (mixture @ means) ** 2
    assert weighter.variance(state) == pytest.approx(variance, rel=1e-7)
    for end, probability in zip(weighter.interval(state), (0.025, 0.975), strict=True):
        assert mixture @ ndtr((end - means) / np.sqrt(spread)) == pytest.approx(np.full(6, probability), rel=1e-10)


def test_draws_follow_the_mixture() -> None:
    weighter = JointGaussian((5.0, 500.0))
    state = weighter.update(weighter.init(4), stream(20, 4))
    draws = weighter.sample(state, 200_000, rng=0)
    error = np.sqrt(weighter.variance(state) / 200_000)
    assert np.all(np.abs(draws.mean(axis=0) - weighter.mean(state)) < 5 * error)
    assert draws.var(axis=0) == pytest.approx(weighter.variance(state), rel=0.02)


def test_it_sees_that_members_are_correlated() -> None:
    """Nine copies of one member and one that is independent, all of equal loss: the copies share one vote."""
    rng = np.random.default_rng(2)
    copies, other = (rng.random(4000) < 0.3).astype(float), (rng.random(4000) < 0.3).astype(float)
    weighter = JointGaussian(1.0)
    weights = weighter.mean(weighter.update(weighter.init(10), np.column_stack([copies] * 9 + [other])))
    assert weights[9] == pytest.approx(weights[:9].sum(), rel=0.1)


def test_evidence_finds_the_precision() -> None:
    """Members that differ call for a weak prior; members that are all good, for one strong around the uniform vote."""
    rng = np.random.default_rng(3)
    weighter = JointGaussian((1.0, 1e4))
    differ = np.where(rng.random((2000, 10)) < np.linspace(0.05, 0.5, 10), 1.0, 0.0)
    alike = 0.05 * rng.random((2000, 10))
    weak = weighter.update(weighter.init(10), differ).evidence
    strong = weighter.update(weighter.init(10), alike).evidence
    assert weak[0] > weak[1]
    assert strong[1] > strong[0]


def test_several_classes_take_the_label_of_largest_weighted_margin() -> None:
    weighter = JointGaussian()
    G = np.random.default_rng(4).random((30, 3, 5))
    state = weighter.update(weighter.init(5), G[:, 0])
    margins = ((1 - 2 * G) * weighter.mean(state)).sum(axis=2)
    assert np.array_equal(weighter.losses(state, G).argmin(axis=1), margins.argmax(axis=1))


def test_several_classes_learn_the_lead_over_the_others() -> None:
    """Half of it. With two classes that is the true label's own margin if the two losses sum to 1, and only then."""
    weighter, rng = JointGaussian(), np.random.default_rng(5)
    G, y = rng.random((40, 3, 4)), rng.integers(0, 3, 40)
    margin = 1 - 2 * G
    own = margin[np.arange(40), y]
    lead = own - (margin.sum(axis=1) - own) / 2
    assert 1 - 2 * weighter.of_truth(G, y) == pytest.approx(lead / 2)

    two, y = G[:, :2], rng.integers(0, 2, 40)  # losses that do not sum to 1
    own, other = two[np.arange(40), y], two[np.arange(40), 1 - y]
    assert np.array_equal(weighter.of_truth(two, y), own)
    half_lead = ((1 - 2 * own) - (1 - 2 * other)) / 2
    assert not np.allclose(1 - 2 * own, half_lead)
    summing = np.stack((own, 1 - own), axis=1)
    assert ((1 - 2 * summing[:, 0]) - (1 - 2 * summing[:, 1])) / 2 == pytest.approx(1 - 2 * own)


def test_weights_may_be_negative() -> None:
    """A member that is mostly wrong votes for the other label, which no weight of the paper's can do."""
    weighter = JointGaussian()
    weights = weighter.mean(weighter.update(weighter.init(2), np.tile([0.2, 0.9], (50, 1))))
    assert weights[0] > 0 > weights[1]


def test_forgetting_equals_weights_that_fade() -> None:
    """At a refresh the posterior is that of rows weighted by powers of the factor, the prior whole."""
    g, factor = stream(40, 3), 0.95
    fading = JointGaussian((5.0, 50.0), forgetting=factor)
    assert fading._refresh_every == 2
    state = fading.update(fading.init(3), g)
    weighted = JointGaussian((5.0, 50.0))
    expected = weighted.update(weighted.init(3), g, factor ** np.arange(39, -1, -1))
    assert state.means == pytest.approx(expected.means, rel=1e-10)
    assert state.evidence == pytest.approx(expected.evidence, rel=1e-10)


@pytest.mark.parametrize("since", [0, 1, 30, 99])
def test_between_refreshes_the_prior_fades_with_the_rows(since: int) -> None:
    """After k rows it has the factor's k-th power of its precision; the evidence fades, and grows by every row."""
    factor = 0.999
    fading = JointGaussian((5.0, 50.0), forgetting=factor)
    assert fading._refresh_every == 100
    g = stream(200 + since, 4)
    state, at_refresh = fading.update(fading.init(4), g), fading.update(fading.init(4), g[:200])
    faded = JointGaussian((5.0 * factor**since, 50.0 * factor**since))
    expected = faded.update(faded.init(4), g, factor ** np.arange(199.0 + since, -1, -1))
    assert state.means == pytest.approx(expected.means, rel=1e-10)
    assert np.tril(state.covariances) == pytest.approx(np.tril(expected.covariances), rel=1e-9, abs=1e-15)

    # Evidence: that at the refresh, then every row's predictive density at the posterior before it, all fading.
    x = 1 - 2 * g
    for k, precision in enumerate((5.0, 50.0)):
        evidence = at_refresh.evidence[k]
        for t in range(200, 200 + since):
            past, ages = x[:t], factor ** np.arange(t - 1.0, -1, -1)
            prior = precision * factor ** (t - 200)
            covariance = np.linalg.inv(prior * np.eye(4) + past.T @ (ages[:, None] * past))
            mean = covariance @ (prior / 4 + past.T @ ages)
            variance = 1 + x[t] @ covariance @ x[t] / factor
            evidence = factor * evidence - 0.5 * (np.log(variance) + (1 - x[t] @ mean) ** 2 / variance)
        assert state.evidence[k] == pytest.approx(evidence, rel=1e-9)


@pytest.mark.parametrize("factor", [0.9, 0.95, 0.99, 0.999, 0.9998, 0.9999, 0.99999])
def test_the_prior_fades_by_a_tenth_at_most(factor: float) -> None:
    left = factor ** (JointGaussian(forgetting=factor)._refresh_every - 1)
    assert left > 0.9
    assert (left == 1) == (factor == 0.9)  # refreshed at every row


def good_and_bad(n: int, m: int) -> Array:
    """Losses of correlated members of which the first are better."""
    rng = np.random.default_rng(0)
    return np.clip(0.5 * rng.random((n, 1)) + 0.5 * rng.random((n, m)) * np.linspace(0.4, 1, m), 0, 1)


@pytest.mark.parametrize("factor", [0.99, 0.999, 0.9999])
@pytest.mark.parametrize("m", [5, 20])
@pytest.mark.parametrize("losses", [stream, good_and_bad])
def test_what_the_fading_prior_does_to_the_weights(factor: float, m: int, losses: Callable[[int, int], Array]) -> None:
    """Just before a refresh, where it is worst, they are off by up to a quarter of their standard deviations."""
    fading, whole = JointGaussian(forgetting=factor), JointGaussian()
    n = 4 * fading._refresh_every - 1
    g = losses(n, m)
    exact = whole.update(whole.init(m), g, factor ** np.arange(n - 1.0, -1, -1))
    off = np.abs(fading.mean(fading.update(fading.init(m), g)) - whole.mean(exact)) / np.sqrt(whole.variance(exact))
    assert 0.001 < off.max() < 0.25


def direct(weighter: JointGaussian, g: Array, w: Array | None = None) -> Array:
    """Weights of all rows at once, without rank-one updates and without leaving any posterior out."""
    x, m = 1 - 2 * g, g.shape[1]
    w = np.ones(len(g)) if w is None else w
    means, evidence = [], []
    for precision in np.atleast_1d(np.asarray(weighter.precision, dtype=np.float64)):
        inverse = precision * np.eye(m) + weighter.theta * x.T @ (w[:, None] * x)
        shift = weighter.theta * x.T @ (w * (1 - x.mean(axis=1)))
        deviation = np.linalg.solve(inverse, shift)
        means.append(1 / m + deviation)
        misfit = weighter.theta * np.sum(w * (1 - x.mean(axis=1)) ** 2)
        log_det = np.linalg.slogdet(inverse)[1]
        evidence.append(0.5 * (shift @ deviation - log_det + m * np.log(precision) - misfit))
    return np.asarray(softmax(evidence) @ np.array(means))


@pytest.mark.parametrize("m", [30, 43])
def test_posteriors_at_rest_wake_when_they_count(m: int) -> None:
    """Members that are all good, until only one is: the posteriors free to trust it rest, then wake."""
    rng = np.random.default_rng(2)
    alike = np.clip(0.2 * rng.standard_normal((1100, m)), 0, 1)
    apart = np.clip(0.5 + 0.3 * rng.standard_normal((900, m)), 0, 1)
    apart[:, 0] = 0.0
    g = np.concatenate((alike, apart))
    weighter = JointGaussian((1.0, 1e3, 1e5, 1e7))
    state, rested, woken = weighter.init(m), False, False
    for t in range(0, len(g), 50):
        assert isinstance(state, JointState)
        before = state.behind > 0
        state = weighter.update(state, g[t : t + 50])
        assert isinstance(state, JointState)
        rested = rested or bool(np.any(state.behind))
        if t // REFRESH == (t + 50) // REFRESH:  # where all are worked out anew, none is behind
            woken = woken or bool(np.any(before & (state.behind == 0)))
        assert weighter.mean(state) == pytest.approx(direct(weighter, g[: t + 50]), abs=1e-10)
    assert rested
    assert woken
    for size in (1, 700, len(g)):
        other = weighter.init(m)
        for t in range(0, len(g), size):
            other = weighter.update(other, g[t : t + size])
        for one, two in zip(state, other, strict=True):
            np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("scale", [10.0, 1e3, 1e6, 1e9])
def test_great_weights_put_not_all_posteriors_to_rest(scale: float) -> None:
    """One row may take more evidence from those awake than those at rest had less."""
    rng = np.random.default_rng(0)
    weighter = JointGaussian()
    for n in (5, 60, 700):
        g, w = stream(n, 8, seed=n), scale * rng.uniform(0.5, 1.0, n)
        state = weighter.update(weighter.init(8), g, w)
        weighter.validate(state)
        assert weighter.mean(state) == pytest.approx(direct(weighter, g, w), abs=1e-7)


def test_an_interval_is_found_where_the_deviation_is_lost_beside_the_weight() -> None:
    weighter = JointGaussian(10.0)
    state = weighter.update(weighter.init(1), np.full((100, 1), 0.4), np.full(100, 1e9))
    means = state.means + 1e4  # the bracket around a quantile has to be wider than their rounding
    low, high = weighter.interval(state._replace(means=means))
    assert np.all(np.isfinite([low, high]))
    assert np.all(low <= high)


def test_sums_are_completed_by_the_means_over_rows_that_are_known() -> None:
    rng = np.random.default_rng(0)
    margins = rng.uniform(-1, 1, (4000, 1)) * 0.6 + rng.uniform(-0.4, 0.4, (4000, 3))
    owner = np.repeat([0, 1, 2], [1000, 2000, 1000])  # member i was not asked about the rows of owner i
    g = np.where(owner[:, None] == np.arange(3), np.nan, (1 - margins) / 2)
    weighter = JointGaussian(precision=1.0)
    n_rows = np.array([1000, 2000, 1000])
    heard = 1 - (n_rows + n_rows[:, None] * (1 - np.eye(3))) / 4000
    state = weighter.from_sums(weighter.completed(weighter.summed(weighter.sums(3), g, np.ones(4000)), heard))
    known = margins * (owner[:, None] != np.arange(3))
    both = (owner[:, None] != np.arange(3)).astype(float)
    gram, cross = 4000 * (known.T @ known) / (both.T @ both), 4000 * known.sum(axis=0) / both.sum(axis=0)
    expected = np.linalg.solve(gram + np.eye(3), cross + 1 / 3)
    np.testing.assert_allclose(weighter.mean(state), expected, rtol=1e-9)
    weighter.validate(state)
    assert weighter.effective_samples(state)[0] == pytest.approx(4000)


def test_sums_that_no_margins_have_are_completed_in_part() -> None:
    weighter = JointGaussian(precision=1e-3)
    g = np.array(
        [[0.0, 0.0, np.nan], [0.0, np.nan, 0.0], [np.nan, 0.0, 1.0]] * 50
    )  # 1 agrees with 2 and 3, 2 not with 3
    heard = (1 + np.eye(3)) / 3
    sums = weighter.summed(weighter.sums(3), g, np.ones(150))
    state = weighter.from_sums(weighter.completed(sums, heard))
    assert np.isfinite(weighter.mean(state)).all()
    weighter.validate(state)
    whole = np.array([[1.0, 1, 1], [1, 1, -1], [1, -1, 1]])
    assert np.linalg.eigvalsh(whole)[0] < 0  # what the products would have been


@pytest.mark.parametrize(("precision", "weight"), [(1e-6, 1e4), (1e-3, 1e7), (10.0, 1e9)])
def test_the_heaviest_samples_leave_a_state_that_is_sound(precision: float, weight: float) -> None:
    """Members that agree for long: the prior is all there is in the directions that no row tells of."""
    rng = np.random.default_rng(0)
    g = np.repeat(rng.integers(2, size=(700, 2)).astype(np.float64), 3, axis=1)
    weighter = JointGaussian(precision)
    state = weighter.init(6)
    for rows in (g[:300], g[300:]):
        state = weighter.update(state, rows, weight)
        weighter.validate(state)
        assert np.all(np.isfinite(weighter.mean(state)))


@pytest.mark.parametrize("persistence", [1.0, 0.9])
def test_samples_that_would_drown_the_prior_are_refused(persistence: float) -> None:
    weighter = JointGaussian(1e-6, persistence=persistence)
    state = weighter.update(weighter.init(2), [[0.0, 1.0]], 9e6)
    with pytest.raises(
        ValueError, match=r"weights must sum to at most 1e\+07 with the least precision 1e-06, got 1.1e\+07"
    ):
        weighter.update(state, [[0.0, 1.0], [0.0, 0.0]], 1e6)


def test_the_covariance_of_a_narrow_prior_must_follow_from_the_sums_by_its_own_size() -> None:
    weighter = JointGaussian((1.0, 1e8))
    state: Any = weighter.update(weighter.init(3), np.random.default_rng(0).random((20, 3)))
    weighter.validate(state)
    covariances = state.covariances.copy()
    covariances[1, 1, 1] += 1.5e-6
    with pytest.raises(ValueError, match="covariances must follow from the sums"):
        weighter.validate(state._replace(covariances=covariances))


def test_evidence_at_rest_may_be_as_far_off_as_rounding_makes_it() -> None:
    """The wide prior loses its digits beside samples of weight 1e9, and rests with evidence that is too small."""
    n_at_rest = 0
    for seed in range(200):
        g = np.random.default_rng(seed).random((9, 3)).round(2)
        if seed % 2:
            g[:, 2] = g[:, 1]
        weighter = JointGaussian((1e-3, 1.0, 1e8))
        state: Any = weighter.update(weighter.init(3), g, 1e9)
        weighter.validate(state)
        n_at_rest += int(state.behind[0] > 0)
    assert n_at_rest > 10


def test_a_state_that_rests_on_all_it_may_refuses_further_samples() -> None:
    weighter = JointGaussian()
    state: Any = weighter.update(weighter.init(2), np.full((100, 2), 0.25), 1e9)
    for _ in range(9):
        state = weighter.merge(state, state)
    before = [array.copy() for array in state]
    with pytest.raises(
        ValueError, match=r"JointGaussian.merge: sample weights must sum to at most 1e\+14 .* got 1.024e"
    ):
        weighter.merge(state, state)
    with pytest.raises(ValueError, match=r"sample weights must sum to at most 1e\+14 .* got 1.002e"):
        weighter.update(state, np.full((49_000, 2), 0.25), 1e9)
    for array, kept in zip(state, before, strict=True):
        np.testing.assert_array_equal(array, kept)
    sums = weighter.summed(weighter.sums(2), np.full((101_000, 2), 0.25), np.full(101_000, 1e9))
    with pytest.raises(ValueError, match=r"from_sums: sample weights must sum to at most 1e\+14"):
        weighter.from_sums(sums)
    with pytest.raises(ValueError, match=r"added: sample weights must sum to at most 1e\+14"):
        weighter.added(sums, sums)
