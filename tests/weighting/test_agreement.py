"""How probably the decision survives: beside many draws, and beside probabilities that are known otherwise."""

from typing import Any

import numpy as np
import pytest
from scipy.special import betainc, ndtr
from scipy.stats import multivariate_normal

from bayesvote import BayesianEnsembleClassifier, GammaRate, JointGaussian, JointLogistic, losses
from bayesvote.core.checks import Array, Labels
from bayesvote.core.gaussian import symmetric
from bayesvote.model import decided
from bayesvote.weighting import Posterior
from bayesvote.weighting.agreement import ByDraws

WEIGHTERS = [GammaRate(), JointGaussian(), JointGaussian(persistence=0.99), JointLogistic((1.0, 10.0), (1.0, 0.99))]
DRAWS = 20_000
FIVE_ERRORS = 5 * 0.5 / np.sqrt(DRAWS)


def learned(
    weighter: Posterior[Any], n_classes: int, n_members: int = 7, n_rows: int = 20, absent: float = 0.1
) -> tuple[Any, Array, Labels]:
    """A state, losses of new rows with members that abstain now and then, and the decisions about them."""
    rng = np.random.default_rng(n_classes)
    shape = (n_rows + 40, n_members) if n_classes == 2 else (n_rows + 40, n_members, n_classes)
    scores = rng.normal(scale=0.7, size=shape)
    scores[rng.random(shape[:2]) < absent] = np.nan
    G = losses.of_labels(weighter.usual_loss, scores)
    y = rng.integers(0, n_classes, n_rows)
    _, state = weighter.losses_then_update(weighter.init(n_members), G[:n_rows], y)
    return state, G[n_rows:], decided(weighter.losses(state, G[n_rows:]))


@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize("weighter", WEIGHTERS, ids=str)
def test_it_is_what_every_draw_by_itself_says(weighter: Posterior[Any], n_classes: int) -> None:
    state, G, decision = learned(weighter, n_classes)
    by_draws = ByDraws(weighter.sample(state, DRAWS, 1), weighter.losses_at)(G, decision)
    found = weighter.agreement(state, DRAWS)(G, decision)
    assert np.ptp(by_draws) > 0.2
    # For more than two labels both are drawn.
    assert np.abs(found - by_draws).max() < FIVE_ERRORS * (1 if n_classes == 2 else np.sqrt(2))


@pytest.mark.parametrize("weighter", WEIGHTERS[1:], ids=str)
def test_gaussian_posteriors_know_it_for_two_labels(weighter: Any) -> None:
    state, G, decision = learned(weighter, 2, n_members=10)
    x = np.nan_to_num(weighter.margins(G))
    lead = x[np.arange(len(x)), decision] - x[np.arange(len(x)), 1 - decision]
    shares, means, covariances = weighter.gaussians(state)
    whole = symmetric(covariances)
    parts = [
        ndtr(lead @ mean / np.sqrt(np.einsum("ni,ij,nj->n", lead, one, lead)))
        for mean, one in zip(means, whole, strict=True)
    ]
    np.testing.assert_allclose(weighter.agreement(state, 1)(G, decision), shares @ np.array(parts), rtol=1e-12)


def test_gaussian_posteriors_agree_with_an_orthant_probability_for_three_labels() -> None:
    weighter = JointGaussian(5.0)
    state, G, decision = learned(weighter, 3)
    found = weighter.agreement(state, DRAWS)(G, decision)
    covariance = symmetric(state.covariances)[0]
    for row in range(20):
        x = np.nan_to_num(weighter.margins(G[row]))
        D = x[decision[row]] - np.delete(x, decision[row], axis=0)
        exact = multivariate_normal(cov=D @ covariance @ D.T).cdf(D @ state.means[0])
        assert found[row] == pytest.approx(exact, abs=FIVE_ERRORS)


@pytest.mark.parametrize("rows", [0, 1, 8, 200, 100_000])
def test_two_gamma_weights_have_a_ratio_that_is_known(rows: int) -> None:
    """P(a Gamma_1 / rate_1 > b Gamma_2 / rate_2) is a probability of the Beta distribution."""
    weighter = GammaRate()
    share = np.array([0.4, 0.5])
    state = weighter.update(weighter.init(2), share[None], [float(rows)]) if rows else weighter.init(2)
    shape, rate = weighter._shape_rate(state)
    first, second = 0.3, 0.3 * np.array([0.05, 0.5, 0.9, 0.99, 1.01, 1.5])
    # The first label's losses are larger by the first member, the second label's by the second.
    G = np.zeros((6, 2, 2))
    G[:, 0, 0], G[:, 1, 1] = first, second
    a, b = first / rate[0], second / rate[1]
    exact = betainc(shape[0], shape[1], b / (a + b))  # Gamma_1/(Gamma_1 + Gamma_2) below b/(a + b): label 0
    for decision, probability in ((0, exact), (1, 1 - exact)):
        found = weighter.agreement(state, DRAWS)(G, np.full(6, decision))
        allowed = 1e-6 if rows > 1 else FIVE_ERRORS  # with few rows the integral takes too long, and draws do
        np.testing.assert_allclose(found, probability, atol=allowed)


@pytest.mark.parametrize("n_members", [20, 100])
def test_many_gamma_weights_need_no_draws(n_members: int, monkeypatch: pytest.MonkeyPatch) -> None:
    weighter = GammaRate()
    state, G, decision = learned(weighter, 2, n_members)
    by_draws = ByDraws(weighter.sample(state, DRAWS, 1), weighter.losses_at)(G, decision)
    monkeypatch.setattr(GammaRate, "_sample", None)
    assert np.abs(weighter.agreement(state, 1)(G, decision) - by_draws).max() < FIVE_ERRORS


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("weighter", WEIGHTERS, ids=str)
def test_a_row_has_the_same_figure_alone_and_among_others(weighter: Posterior[Any], n_classes: int) -> None:
    state, G, decision = learned(weighter, n_classes, n_members=13)
    agreement = weighter.agreement(state, 300)
    together = agreement(G, decision)
    again = weighter.agreement(state, 300)
    alone = [again(G[i : i + 1], decision[i : i + 1])[0] for i in range(len(G))]
    np.testing.assert_array_equal(together, alone)


@pytest.mark.parametrize("weighter", WEIGHTERS, ids=str)
def test_labels_that_no_weights_tell_apart_are_tied_and_the_last_one_wins(weighter: Posterior[Any]) -> None:
    state, G, _ = learned(weighter, 3, absent=0.0)
    G[:, 1] = G[:, 2]
    decision = decided(weighter.losses(state, G))
    assert set(decision.tolist()) == {0, 2}
    by_draws = ByDraws(weighter.sample(state, DRAWS, 1), weighter.losses_at)(G, decision)
    found = weighter.agreement(state, DRAWS)(G, decision)
    assert np.abs(found - by_draws).max() < FIVE_ERRORS * np.sqrt(2)
    two = np.repeat(G[:, :1], 2, axis=1)
    assert weighter.agreement(state, 10)(two, np.ones(len(two), dtype=np.intp)).tolist() == [1.0] * len(two)


def test_the_default_classifier_is_as_certain_as_draws_of_all_weights_say() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 5))
    y = (X[:, 0] + 0.5 * rng.normal(size=400) > 0).astype(int)
    shell = BayesianEnsembleClassifier(random_state=0).fit(X[:300], y[:300])
    model: Any = shell.model_
    G = losses.of_labels(model.loss, model.bank.scores(X[300:]))
    draws = model.weighter.sample(model.state, DRAWS, 1)
    by_draws = ByDraws(draws, model.weighter.losses_at)(G, decided(model.decide(X[300:])))
    assert np.abs(shell.decision_certainty(X[300:]) - by_draws).max() < FIVE_ERRORS
