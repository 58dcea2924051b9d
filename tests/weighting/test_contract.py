"""What every weighter promises, checked on every weighter."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import gammaln

from bayesvote.core.checks import Array
from bayesvote.losses import of_labels, ramp
from bayesvote.model import decided
from bayesvote.weighting import (
    SAG,
    SGD,
    Additive,
    AveragedSGD,
    GammaRate,
    GammaShape,
    GammaShapeRate,
    GaussianPosterior,
    JointGaussian,
    JointLogistic,
    LaplacePosterior,
    NumericalPosterior,
    Posterior,
    SeparableSGD,
    Voting,
    Weighter,
)
from bayesvote.weighting import WEIGHTERS as KINDS


def rate_loss(weight: Array, g: Array) -> Array:
    return np.asarray(0.1 * weight * g - np.log(weight))


def identity(weight: Array) -> Array:
    return weight


def margin_loss(weights: Array, g: Array) -> Array:
    return np.asarray(0.5 * (1 - (weights * (1 - 2 * g)).sum(axis=-1)) ** 2)


def margin_slope(weights: Array, g: Array) -> Array:
    return -(1 - 2 * g) * (1 - weights @ (1 - 2 * g))


def margin_curvature(weights: Array, g: Array) -> Array:  # noqa: ARG001
    return np.outer(1 - 2 * g, 1 - 2 * g)


def margin_prior(weights: Array) -> Array:
    return np.asarray(5 * ((weights - 1 / 3) ** 2).sum(axis=-1))


ADDITIVE: list[Additive] = [
    GammaRate(),
    GammaRate(forgetting=0.9),
    GammaShape(),
    GammaShapeRate(forgetting=0.99),
    NumericalPosterior(rate_loss, identity),
]
POSTERIORS: list[Posterior[Any]] = [
    *ADDITIVE,
    JointGaussian(),
    JointGaussian(50.0, forgetting=0.95),
    JointGaussian((10.0, 100.0, 100.0), persistence=(1.0, 0.99, 0.8), discount=0.9),
    JointLogistic(),
    JointLogistic((10.0, 100.0, 100.0), persistence=(1.0, 0.99, 0.8), discount=0.9),
    JointLogistic((10.0, 100.0), persistence=(1.0, 0.99), discount=0.9, burst=8),
    LaplacePosterior(margin_loss, margin_prior, margin_slope, margin_curvature),
]
WEIGHTERS: list[Weighter[Any]] = [
    *POSTERIORS,
    Voting(),
    SGD(step=30.0),
    AveragedSGD(step=30.0),
    SAG(step=10.0, horizon=2000),
    SeparableSGD(rate_loss, step=30.0),
]


def test_every_kind_goes_through_these_tests() -> None:
    assert {type(weighter) for weighter in WEIGHTERS} == set(KINDS.values())


# Those whose states are sums.
REMEMBERING = [w for w in POSTERIORS if w.counts_rows and not isinstance(w, JointLogistic | LaplacePosterior)]


def name(weighter: object) -> str:
    return f"{type(weighter).__name__}-{getattr(weighter, 'forgetting', '')}-{getattr(weighter, 'persistence', '')}"


def losses(rng: np.random.Generator, n: int, k: int, m: int, abstain: float = 0.1) -> Array:
    G = np.minimum(rng.gamma(1.0, 0.3, (n, k, m)) + 1e-3, 1.0)  # JointGaussian takes no more
    return np.where(rng.random((n, 1, m)) < abstain, np.nan, G)


def same(a: Any, b: Any) -> bool:
    return all(np.array_equal(x, y, equal_nan=True) for x, y in zip(a, b, strict=True))


@pytest.mark.parametrize("weighter", WEIGHTERS, ids=name)
@given(
    seed=st.integers(0, 2**32),
    cuts=st.lists(st.integers(0, 40), max_size=5),
    k=st.integers(2, 4),
    weighted=st.booleans(),
)
def test_chunks_of_any_size_equal_row_by_row(
    weighter: Weighter[Any], seed: int, cuts: list[int], k: int, weighted: bool
) -> None:
    rng = np.random.default_rng(seed)
    n = 4 if isinstance(weighter, NumericalPosterior) else 40
    G, y = losses(rng, n, k, 3), rng.integers(0, k, n)
    w = rng.choice([0.0, 0.5, 1.0, 3.0], n) if weighted else np.ones(n)
    whole, after = weighter.losses_then_update(weighter.init(3), G, y, w)
    state, parts = weighter.init(3), []
    edges = sorted({0, n, *(min(c, n) for c in cuts)})
    for a, b in pairwise(edges):
        out, state = weighter.losses_then_update(state, G[a:b], y[a:b], w[a:b])
        parts.append(out)
    assert np.array_equal(np.concatenate(parts), whole)
    assert same(state, after)
    if k > 2 and weighter.learns_all_labels:
        return
    # and row by row with the two halves of the contract
    state = weighter.init(3)
    for t in range(n):
        assert np.allclose(weighter.losses(state, G[t : t + 1])[0], whole[t], rtol=1e-12, atol=1e-12)
        state = weighter.update(state, weighter.of_truth(G[t : t + 1], y[t : t + 1]), w[t : t + 1])
    assert np.allclose(weighter.mean(state), weighter.mean(after), rtol=1e-12)


@pytest.mark.parametrize("weighter", WEIGHTERS, ids=name)
def test_an_abstaining_member_neither_votes_nor_learns(weighter: Weighter[Any]) -> None:
    rng = np.random.default_rng(0)
    G, y = losses(rng, 6, 2, 3, abstain=0.0), np.array([0, 1, 1, 0, 1, 0])
    silent = G.copy()
    silent[:, :, 1] = np.nan
    state = weighter.init(3)
    out, after = weighter.losses_then_update(state, silent, y)
    assert np.isfinite(out).all()
    if isinstance(weighter, GaussianPosterior):
        half = G.copy()
        half[:, :, 1] = 0.5  # a margin of zero
        assert np.allclose(out, weighter.losses_then_update(state, half, y)[0], rtol=1e-13)
    else:
        without, alone = weighter.losses_then_update(weighter.init(2), G[:, :, [0, 2]], y)
        assert np.allclose(out, without, rtol=1e-12)
        assert np.allclose(weighter.mean(after)[[0, 2]], weighter.mean(alone), rtol=1e-12)
        assert np.allclose(weighter.mean(after)[1], weighter.mean(state)[1], rtol=1e-12)


@pytest.mark.parametrize("weighter", WEIGHTERS, ids=name)
def test_rows_of_weight_zero_are_absent(weighter: Weighter[Any]) -> None:
    rng = np.random.default_rng(1)
    g = losses(rng, 8, 2, 3)[:, 0]
    w = np.array([1.0, 0, 2, 0, 1, 1, 0, 1])
    with_zeros, without = weighter.update(weighter.init(3), g, w), weighter.update(weighter.init(3), g[w > 0], w[w > 0])
    assert np.array_equal(weighter.mean(with_zeros), weighter.mean(without))


@pytest.mark.parametrize("weighter", REMEMBERING, ids=name)
def test_a_weight_of_two_is_the_row_twice(weighter: Posterior[Any]) -> None:
    g = losses(np.random.default_rng(2), 5, 2, 3)[:, 0]
    once = weighter.update(weighter.init(3), g, np.full(5, 2.0))
    twice = weighter.update(weighter.init(3), np.repeat(g, 2, axis=0))
    assert np.allclose(weighter.mean(once), weighter.mean(twice), rtol=1e-11)
    assert np.allclose(weighter.variance(once), weighter.variance(twice), rtol=1e-9)


def sums(weighter: Posterior[Any], state: Any) -> Array:
    return np.asarray(weighter._sums(state).sum(axis=0) if isinstance(weighter, JointGaussian) else state.value)


@pytest.mark.parametrize("weighter", REMEMBERING, ids=name)
@given(seed=st.integers(0, 2**32), cut=st.integers(0, 30))
def test_merging_any_split_equals_the_whole(weighter: Posterior[Any], seed: int, cut: int) -> None:
    rng = np.random.default_rng(seed)
    n = 6 if isinstance(weighter, NumericalPosterior) else 30
    g, w = losses(rng, n, 2, 3)[:, 0], rng.random(n)
    whole = weighter.update(weighter.init(3), g, w)
    a, b = (weighter.update(weighter.init(3), g[part], w[part]) for part in (slice(cut), slice(cut, None)))
    merged = weighter.merge(a, b)
    scale = np.abs(sums(weighter, whole)).max()
    assert np.allclose(sums(weighter, merged), sums(weighter, whole), rtol=1e-12, atol=1e-12 * scale)
    assert np.allclose(weighter.mean(merged), weighter.mean(whole), rtol=1e-10)


@pytest.mark.parametrize("weighter", [GammaRate(), JointGaussian(1e4)], ids=name)
def test_merging_keeps_what_rounding_took_from_either_side(weighter: Posterior[Any]) -> None:
    """2**53 + 1 is no double: the one is kept apart, on both sides, and two of them count."""
    few = weighter.update(weighter.init(1), [0.25])
    many = weighter.update(weighter.init(1), np.full((512, 1), 0.25), np.full(512, 2.0**29))
    for _ in range(15):
        many = weighter.merge(many, many)
    many = weighter.update(many, [0.25])
    for merged in (weighter.merge(few, many), weighter.merge(many, few)):
        assert weighter.effective_samples(merged)[0] == 2.0**53 + 2


@pytest.mark.parametrize("weighter", REMEMBERING, ids=name)
def test_merging_stops_where_a_state_could_no_longer_be_saved(weighter: Any) -> None:
    state = weighter.update(weighter.init(3), losses(np.random.default_rng(0), 40, 2, 3)[:, 0])
    refused = ""
    while not refused:
        weighter.validate(state)
        try:
            state = weighter.merge(state, state)
        except ValueError as error:
            refused = str(error)
    assert "merge: both states must add up to" in refused or "merge: sample weights must sum to at most" in refused
    if not isinstance(weighter, NumericalPosterior):  # which says that it cannot integrate so narrow a density
        assert np.all(np.isfinite(weighter.mean(state)))


@pytest.mark.parametrize("weighter", REMEMBERING, ids=name)
@given(seed=st.integers(0, 2**32))
def test_order_does_not_matter_and_unlearning_restores(weighter: Any, seed: int) -> None:
    rng = np.random.default_rng(seed)
    g = losses(rng, 6, 2, 3)[:, 0]
    before = weighter.update(weighter.init(3), g[:4])
    shuffled = weighter.update(weighter.init(3), rng.permutation(g[:4]))
    scale = np.abs(sums(weighter, before)).max()
    assert np.allclose(sums(weighter, shuffled), sums(weighter, before), rtol=1e-13, atol=1e-13 * scale)
    restored = weighter.unlearn(weighter.update(before, g[4:]), g[4:])
    assert np.allclose(sums(weighter, restored), sums(weighter, before), rtol=1e-13, atol=1e-13 * scale)
    with pytest.raises(ValueError, match="only rows that were learned"):
        weighter.unlearn(weighter.init(3), g[:1] * 0 + 0.5)


@pytest.mark.parametrize(
    ("weighter", "learned", "never_learned"),
    [
        (GammaRate(theta=1.0), 0.0, 1.0),
        (GammaShapeRate(), 0.1, 0.9),
        (GammaShapeRate(), 0.5, 0.01),  # of the sums only that of the logarithms is impossible
        (JointGaussian(), 0.5, 0.0),
        (JointGaussian(), [0.0, 1.0], [0.0, 0.0]),  # every sum is possible by itself
    ],
)
def test_unlearning_what_was_never_learned_is_refused(weighter: Any, learned: Any, never_learned: Any) -> None:
    """By the sums it would leave, where no stream leads to them."""
    state = weighter.update(weighter.init(2), np.broadcast_to(learned, (10, 2)))
    with pytest.raises(ValueError, match="unlearn: only rows that were learned can be unlearned"):
        weighter.unlearn(state, np.broadcast_to(never_learned, (5, 2)))


@pytest.mark.parametrize("weighter", REMEMBERING, ids=name)
@pytest.mark.parametrize("scale", [1.0, 1e9])
def test_all_that_was_learned_can_be_unlearned(weighter: Any, scale: float) -> None:
    """Whatever rounding leaves is not mistaken for rows that were never learned."""
    rng = np.random.default_rng(3)
    n = 20 if isinstance(weighter, NumericalPosterior) else 1500
    g, w = losses(rng, n, 2, 3)[:, 0], scale * rng.random(n)
    order = rng.permutation(n)
    left = weighter.unlearn(weighter.update(weighter.init(3), g, w), g[order], w[order])
    if scale == 1:
        assert weighter.mean(left) == pytest.approx(weighter.mean(weighter.init(3)), rel=1e-8)


@pytest.mark.parametrize("weighter", [GammaRate(forgetting=0.9), JointGaussian(forgetting=0.9)], ids=name)
def test_forgetting_fades_the_past(weighter: Any) -> None:
    state = weighter.update(weighter.init(2), np.full((400, 2), 0.3))
    assert weighter.effective_samples(state) == pytest.approx(1 / (1 - 0.9))
    recent = weighter.update(state, np.tile([0.1, 0.9], (100, 1)))
    fresh = weighter.update(weighter.init(2), np.tile([0.1, 0.9], (500, 1)))
    assert weighter.mean(recent) == pytest.approx(weighter.mean(fresh), rel=1e-3)
    with pytest.raises(TypeError, match=r"unlearn: forgetting must be 1, got 0\.9"):
        weighter.unlearn(state, [0.3, 0.3])
    with pytest.raises(TypeError, match=r"merge: forgetting must be 1, got 0\.9"):
        weighter.merge(state, state)


@pytest.mark.parametrize("weighter", [SGD(), AveragedSGD(), SAG(horizon=9), SeparableSGD(rate_loss)], ids=name)
def test_order_dependent_states_refuse_to_merge(weighter: Weighter[Any]) -> None:
    with pytest.raises(TypeError, match=r"merge: states must be sums .* Use one whose states are"):
        weighter.merge(weighter.init(2), weighter.init(2))


@pytest.mark.parametrize("weighter", WEIGHTERS, ids=name)
@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ([[0.1, -0.2, 0.3]], r"losses must be finite, at least 0 and at most 1e\+200, got -0.2"),
        ([[0.1, np.inf, 0.3]], r"losses must be finite, at least 0 and at most 1e\+200, got inf"),
        ([[0.1, 1e300, 0.3]], r"losses must be finite, at least 0 and at most 1e\+200, got 1e\+300"),
        ([[0.1, 0.2]], r"g must have shape \(1, 3\), got \(1, 2\)"),
    ],
)
def test_bad_losses_are_refused_and_nothing_is_lost(weighter: Weighter[Any], bad: Any, message: str) -> None:
    state = weighter.update(weighter.init(3), [0.1, 0.2, 0.3])
    copy = type(state)(*(field.copy() for field in state))
    with pytest.raises(ValueError, match=rf"^{type(weighter).__name__}\.update: {message}"):
        weighter.update(state, bad)
    with pytest.raises(ValueError, match="sample_weight must be finite and at least 0"):
        weighter.update(state, [[0.1, 0.2, 0.3]], [np.nan])
    with pytest.raises(ValueError, match=r"sample_weight must be at most 1e\+09, got 10000000000.0"):
        weighter.update(state, [[0.1, 0.2, 0.3]], [1e10])
    with pytest.raises(ValueError, match="sample_weight must have one value per row"):
        weighter.update(state, [[0.1, 0.2, 0.3]], [1.0, 1.0])
    with pytest.raises(ValueError, match="y must hold class indices 0 to 1, got 2"):
        weighter.losses_then_update(state, np.full((1, 2, 3), 0.2), [2])
    with pytest.raises(ValueError, match="y must hold class indices"):
        weighter.losses_then_update(state, np.full((1, 2, 3), 0.2), [np.nan])
    with pytest.raises(ValueError, match="G must have shape"):
        weighter.losses(state, np.full((1, 3), 0.2))
    assert same(state, copy)


@pytest.mark.parametrize("weighter", [GammaShape(), GammaShapeRate()], ids=name)
def test_zero_under_a_logarithm_is_refused(weighter: Weighter[Any]) -> None:
    with pytest.raises(ValueError, match=r"losses must be above 0.*Use loss='logistic'"):
        weighter.update(weighter.init(2), [0.0, 0.5])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: GammaRate(theta=0.0), "GammaRate: theta must be a finite number above 0, got 0.0"),
        (lambda: GammaRate(alpha=-1.0), "GammaRate: alpha must be"),
        (lambda: GammaRate(beta=1e-320), "beta must be from 1e-100 to 1e\\+100, got 1e-320"),
        (lambda: JointLogistic(precision=1e308), "precision must be from 1e-100 to 1e\\+100, got 1e\\+308"),
        (lambda: GammaRate(forgetting=1.5), r"forgetting must be in \(0, 1\], got 1.5"),
        (lambda: GammaShape(theta=float("nan")), "GammaShape: theta must be"),
        (lambda: JointGaussian((1.0, 1e-3), theta=2e6), "theta must be at most 1e\\+09 times the least precision"),
        (lambda: GammaShape(cap=0.0), "GammaShape: cap must be"),
        (lambda: GammaShapeRate(r=1.0, s=1.0), "r must be above s"),
        (lambda: JointGaussian(precision=()), "precision must hold at least one number"),
        (lambda: JointGaussian(precision=(10.0, -1.0)), "precision must be a finite number above 0, got -1.0"),
        (lambda: SGD(step=float("inf")), "SGD: step must be"),
        (lambda: SAG(), "SAG: horizon must be an integer of at least 1, got 0"),
        (lambda: SeparableSGD(rate_loss, step=0.0), "SeparableSGD: step must be a finite number above 0, got 0.0"),
        (lambda: SeparableSGD(rate_loss, step=[[1.0, 2.0]]), r"a square matrix of finite numbers, got \(1, 2\)"),
        (lambda: SeparableSGD(rate_loss, step=np.eye(2)).init(3), r"step must have the shape \(3, 3\), got \(2, 2\)"),
        (lambda: SeparableSGD(rate_loss, step=np.empty((0, 0))), r"a square matrix of finite numbers, got \(0, 0\)"),
        (lambda: SeparableSGD(rate_loss, step=[["a"]]), r"a square matrix of finite numbers, got \[\['a'\]\]"),
        (lambda: SeparableSGD(rate_loss, step=[[1.0], [1.0, 2.0]]), "a square matrix of finite numbers, got"),
        (lambda: SeparableSGD(rate_loss, step=-np.eye(2)), "symmetric part of step must be positive definite"),
        (lambda: SeparableSGD(rate_loss, step=[[1.0, 3.0], [0.0, 1.0]]), "step must be positive definite"),
        (lambda: SeparableSGD(rate_loss, n_parameters=3), "SeparableSGD: n_parameters must be 1 or 2, got 3"),
        (lambda: SeparableSGD(rate_loss, n_parameters=True), "SeparableSGD: n_parameters must be 1 or 2, got True"),
        (lambda: SeparableSGD(rate_loss, n_parameters=2.0), "n_parameters must be 1 or 2, got 2.0"),  # type: ignore[arg-type]
        (lambda: SeparableSGD(rate_loss, start="1"), "start must hold n_parameters=1 numbers, got '1'"),  # type: ignore[arg-type]
        (lambda: SeparableSGD(rate_loss, start=[[1.0]]), "start must hold n_parameters=1 numbers"),  # type: ignore[list-item]
        (lambda: SeparableSGD(rate_loss, start=(1.0, 2.0)), "start must hold n_parameters=1 numbers"),
        (lambda: SeparableSGD(rate_loss, start=0.0), "SeparableSGD: start must be a finite number above 0"),
        (lambda: SeparableSGD(rate_loss, delay=-1.0), "SeparableSGD: delay must be a finite number at least 0"),
        (lambda: NumericalPosterior(rate_loss, identity, n_parameters=3), "n_parameters must be 1 or 2"),
        (lambda: NumericalPosterior(rate_loss, identity, n_parameters=True), "n_parameters must be 1 or 2, got True"),
        (lambda: NumericalPosterior(rate_loss, identity, support=(2.0, 1.0)), "support must be increasing"),
        (lambda: NumericalPosterior(rate_loss, np.exp), "prior must be finite on the support"),
        (lambda: GammaRate().init(0), "n_members must be an integer of at least 1"),
        (lambda: GammaRate().interval(GammaRate().init(1), 1.0), "level must be above 0 and at most 1 - 1e-9"),
        (lambda: GammaShape().interval(GammaShape().init(1), 1 - 1e-16), "level must be above 0 and at most 1 - 1e-9"),
        (lambda: JointGaussian().update(JointGaussian().init(1), [1.5]), r"losses must be at most 1, .* got 1\.5"),
        (lambda: GammaRate().sample(GammaRate().init(1), 0), "size must be an integer of at least 1"),
        (lambda: GammaRate().merge(GammaRate().init(1), GammaRate().init(2)), "about the same members, got 1 and 2"),
        (lambda: Voting().merge(Voting().init(1), Voting().init(2)), "about the same members, got 1 and 2"),
    ],
)
def test_bad_settings_get_the_error_sentence(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message), np.errstate(over="ignore"):
        make()


def test_sag_refuses_to_pass_its_horizon() -> None:
    weighter = SAG(horizon=3)
    state = weighter.update(weighter.init(2), np.full((3, 2), 0.2))
    with pytest.raises(ValueError, match="must not be longer than horizon=3 rows, got 4"):
        weighter.update(state, [0.2, 0.2])


def test_sums_stay_exact_over_a_long_stream() -> None:
    """0.1 has no exact double: a million times, a naive sum is off by 1e-11 relative; ours is the rounded exact sum."""
    weighter = GammaRate()
    state = weighter.update(weighter.init(1), np.full((1_000_000, 1), 0.1))
    exact = float(np.longdouble(0.1) * 1_000_000)
    assert state.value[1, 0] == pytest.approx(exact, rel=1e-15)
    assert np.cumsum(np.full(1_000_000, 0.1))[-1] != pytest.approx(exact, rel=1e-13)


@given(alpha=st.floats(1e-3, 1e3), seed=st.integers(0, 1000))
def test_alpha_cancels_in_the_decision_of_members_that_never_abstain(alpha: float, seed: int) -> None:
    G, y = losses(np.random.default_rng(seed), 20, 2, 5, abstain=0.0), np.arange(20) % 2
    ours, other = (w.losses_then_update(w.init(5), G, y)[0] for w in (GammaRate(), GammaRate(alpha=alpha)))
    assert np.array_equal(ours.argmin(axis=1), other.argmin(axis=1))


@given(factor=st.sampled_from([0.01, 0.5, 8.0, 300.0]), abstain=st.sampled_from([0.0, 0.2]), seed=st.integers(0, 1000))
def test_decisions_depend_on_beta_over_theta_alone(factor: float, abstain: float, seed: int) -> None:
    """So that a larger beta does what a smaller theta does: Figures 2 and 3 mirror each other."""
    G, y = losses(np.random.default_rng(seed), 20, 2, 5, abstain), np.arange(20) % 2
    ours, other = GammaRate(beta=2.0, theta=0.3), GammaRate(beta=2.0 * factor, theta=0.3 * factor)
    a, b = (w.losses_then_update(w.init(5), G, y)[0] for w in (ours, other))
    assert a == pytest.approx(b, rel=1e-12)
    mirrored, mirror = GammaRate(beta=2.0 * factor, theta=0.3), GammaRate(beta=2.0, theta=0.3 / factor)
    a, b = (w.losses_then_update(w.init(5), G, y)[0] for w in (mirrored, mirror))
    assert a == pytest.approx(b, rel=1e-12)


def test_shape_families_decide_by_their_rules() -> None:
    """The left sides of the rules given for (19) and (22), written out for two labels: 1 if at most 0."""
    rng = np.random.default_rng(5)
    G, g = losses(rng, 50, 2, 4, abstain=0.0), losses(rng, 30, 2, 4, abstain=0.0)[:, 0]
    log_ratio, difference = np.log(G[:, 1] / G[:, 0]), G[:, 1] - G[:, 0]
    shape = GammaShape(theta=2.0)
    state = shape.update(shape.init(4), g)
    by_label = shape.losses(state, G)
    left = ((1 - shape.mean(state)) * log_ratio).sum(axis=1) + 2.0 * difference.sum(axis=1)
    assert by_label[:, 1] - by_label[:, 0] == pytest.approx(left, rel=1e-10)
    assert np.array_equal(decided(by_label) == 1, left <= 0)
    pair = GammaShapeRate()
    state = pair.update(pair.init(4), g)
    by_label, (alpha, beta) = pair.losses(state, G), pair.mean(state).T
    left = ((1 - alpha) * log_ratio + beta * difference).sum(axis=1)
    assert by_label[:, 1] - by_label[:, 0] == pytest.approx(left, rel=1e-10)
    assert np.array_equal(decided(by_label) == 1, left <= 0)


def shape_loss(weight: Array, g: Array) -> Array:
    return np.asarray((1 - weight) * np.log(g) + 0.1 * g + gammaln(weight) - np.log(0.1) * weight)


def pair_loss(alpha: Array, beta: Array, g: Array) -> Array:
    return np.asarray(beta * g + (1 - alpha) * np.log(g) + gammaln(alpha) - alpha * np.log(beta))


@pytest.mark.parametrize(
    ("numerical", "closed"),
    [
        (NumericalPosterior(rate_loss, identity), GammaRate()),
        (NumericalPosterior(shape_loss, lambda w: gammaln(w) - np.log(0.1) * w), GammaShape()),
        (
            NumericalPosterior(
                pair_loss,
                lambda a, b: b + 1.5 * gammaln(a) - a * np.log(b),
                n_parameters=2,
                support=(1e-2, 1e2),
            ),
            GammaShapeRate(),
        ),
    ],
    ids=["(8)", "(19)", "(22)"],
)
def test_algorithm_1_finds_the_closed_posteriors(numerical: NumericalPosterior, closed: Additive) -> None:
    """The general scheme, told only the loss and the prior, over 10,000 steps."""
    g = np.random.default_rng(6).gamma(2.0, 0.2, (10_000, 2))
    g[::7, 1] = np.nan
    a, b = numerical.update(numerical.init(2), g), closed.update(closed.init(2), g)
    assert numerical.mean(a) == pytest.approx(closed.mean(b), rel=1e-8)
    assert numerical.variance(a) == pytest.approx(closed.variance(b), rel=1e-8)
    for ours, theirs in zip(numerical.interval(a), closed.interval(b), strict=True):
        assert ours == pytest.approx(theirs, rel=1e-8)
    draws = numerical.sample(a, 50_000, rng=0)
    sd = np.sqrt(closed.variance(b))
    assert np.all(np.abs(draws.mean(axis=0) - closed.mean(b)) < 5 * sd / np.sqrt(50_000))
    assert draws.std(axis=0) == pytest.approx(sd, rel=0.03)


def test_algorithm_1_says_when_the_posterior_does_not_fit() -> None:
    narrow = NumericalPosterior(rate_loss, identity, support=(1e-3, 5.0))
    state = narrow.update(narrow.init(1), np.full((100, 1), 0.2))
    with pytest.raises(ValueError, match=r"must fit into the support .* Widen the support"):
        narrow.mean(state)
    broken = NumericalPosterior(lambda weight, g: np.where(weight > 10, np.inf, weight) * g, identity)
    with pytest.raises(ValueError, match="loss must be finite on the support"):
        broken.update(broken.init(1), [0.5])


@pytest.mark.parametrize("weighter", [GammaRate(), GammaRate(forgetting=0.9), SGD(), JointGaussian()], ids=name)
@pytest.mark.parametrize("loss", ["ramp", "logistic", "hinge", "zero_one", ramp])
@pytest.mark.parametrize("abstain", [0.0, 0.1])
def test_from_scores_is_from_their_losses_bit_for_bit(weighter: Weighter[Any], loss: Any, abstain: float) -> None:
    rng = np.random.default_rng(3)
    scores, y = rng.normal(size=(50, 5)), rng.integers(0, 2, 50)
    scores[30:][rng.random((20, 5)) < abstain] = np.nan  # a common count at first, and then not
    w = rng.choice([0.0, 0.5, 1.0], 50)
    out, after = weighter.advance(weighter.init(5), of_labels(loss, scores), y, w)
    state, parts = weighter.init(5), []
    for a, b in ((0, 20), (20, 40), (40, 50)):
        part, state = weighter.advance_scores(state, loss, scores[a:b], y[a:b], w[a:b])
        parts.append(part)
    assert np.array_equal(np.concatenate(parts), out)
    assert same(state, after)
