"""What every weighter promises of its state: it is saved whole, and a file's is checked whole."""

import re
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

from bayesvote.losses import LossScale
from bayesvote.weighting import (
    SAG,
    WEIGHTERS,
    GammaRate,
    JointGaussian,
    JointLogistic,
    LaplacePosterior,
    NumericalPosterior,
    SeparableSGD,
    Weighter,
)
from bayesvote.weighting.base import copied
from contracts.toy_weighter import FollowTheBest


def rate_loss(weight: Any, g: Any) -> Any:
    return 0.1 * weight * g - np.log(weight)


def margin_loss(weights: Any, g: Any) -> Any:
    return 0.5 * (1 - (weights * (1 - 2 * g)).sum(axis=-1)) ** 2


def margin_prior(weights: Any) -> Any:
    return 5 * ((weights - 1 / 3) ** 2).sum(axis=-1)


def made(kind: type[Any]) -> Weighter[Any]:
    """Make a weighter of a kind; most need no parameters."""
    special: dict[Any, Weighter[Any]] = {
        SAG: SAG(horizon=2000),
        NumericalPosterior: NumericalPosterior(rate_loss, lambda weight: weight),
        SeparableSGD: SeparableSGD(rate_loss),
        LaplacePosterior: LaplacePosterior(margin_loss, margin_prior),
    }
    weighter: Weighter[Any] = special[kind] if kind in special else kind()
    return weighter


drifting = JointGaussian((10.0, 1000.0, 100.0), persistence=(1.0, 1.0, 0.99), discount=0.99)
comparing_late = JointLogistic((10.0, 100.0), persistence=(1.0, 0.99), discount=0.99, burst=3)
every = pytest.mark.parametrize(
    "weighter", [*map(made, WEIGHTERS.values()), drifting, comparing_late, FollowTheBest()], ids=lambda w: w.who
)


def learned(weighter: Weighter[Any]) -> Any:
    g = np.random.default_rng(0).uniform(0.01, 1.0, (40, 3))
    return weighter.update(weighter.init(3), g)


@every
def test_states_come_back_whole(weighter: Weighter[Any]) -> None:
    state = learned(weighter)
    arrays = weighter.arrays(state)
    again = weighter.restore_state(
        3, weighter.version, {name: array.copy() for name, array in arrays.items()}, room=10**9
    )
    for a, b in zip(again, state, strict=True):
        np.testing.assert_array_equal(a, b)
    assert isinstance(weighter.loss_scale, LossScale)
    total = sum(array.nbytes for array in arrays.values())
    assert 0 < weighter.least_bytes(3) <= total


@every
def test_a_state_of_another_size_type_or_version_is_refused(weighter: Weighter[Any]) -> None:
    arrays = weighter.arrays(learned(weighter))
    name = next(iter(arrays))
    for wrong in (
        {**arrays, name: arrays[name].astype(np.float32)},
        {**arrays, name: np.concatenate([arrays[name], arrays[name]])},
        {**arrays, "more": arrays[name]},
        {key: array for key, array in arrays.items() if key != name},
    ):
        with pytest.raises(ValueError, match=r"instead of|arrays"):
            weighter.restore_state(3, weighter.version, wrong, room=10**9)
    with pytest.raises(ValueError, match="version 99"):
        weighter.restore_state(3, 99, arrays, room=10**9)
    with pytest.raises(ValueError, match="in a file of 7"):
        weighter.restore_state(3, weighter.version, arrays, room=7)


@every
def test_flipped_signs_and_numbers_that_are_none_are_refused(weighter: Weighter[Any]) -> None:
    arrays = weighter.arrays(learned(weighter))
    assert all(array.size for name, array in arrays.items() if name != "past")  # without burst there are none
    for name, array in arrays.items():
        if not array.size:
            continue
        for changed in (-array - 1, np.full_like(array, np.nan) if array.dtype.kind == "f" else array - 10**6):
            with pytest.raises(ValueError, match="must"):
                weighter.restore_state(3, weighter.version, {**arrays, name: changed}, room=10**9)


def test_a_state_that_was_forged_to_invert_decisions_is_refused() -> None:
    weighter = GammaRate()
    state = learned(weighter)
    with pytest.raises(ValueError, match="at least 0"):
        weighter.validate(state._replace(total=np.stack([state.total[0], -state.total[1]])))


@every
def test_the_public_doors_leave_the_state_given_as_it_was(weighter: Weighter[Any]) -> None:
    state = learned(weighter)
    before = copied(state)
    G = np.random.default_rng(1).uniform(0.01, 1.0, (5, 2, 3))
    weighter.update(state, G[:, 0])
    weighter.losses(state, G)
    weighter.losses_then_update(state, G, [0, 1, 0, 1, 0])
    with suppress(TypeError):  # some cannot
        weighter.unlearn(state, G[:, 0])
    with suppress(TypeError):
        weighter.merge(state, state)
    for a, b in zip(state, before, strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_loss_that_fails_halfway_leaves_the_state_as_it_was() -> None:
    def failing(weight: Any, g: Any) -> Any:
        if np.any(g == 0.5):
            raise ArithmeticError
        return rate_loss(weight, g)

    weighter = NumericalPosterior(failing, lambda weight: weight)
    state = weighter.init(2)
    G = np.array([[[0.1, 0.2], [0.9, 0.8]], [[0.5, 0.5], [0.5, 0.5]]])
    with pytest.raises(ArithmeticError):
        weighter.advance(state, G, np.array([0, 0]), np.ones(2))
    assert not np.any(state.total)


def losses(n: int, seed: int) -> Any:
    rng = np.random.default_rng(seed)
    g = rng.uniform(0.01, 1.0, (n, 3))
    g[rng.random((n, 3)) < 0.1] = np.nan
    return g, rng.choice([0.0, 0.5, 1.0, 2.0], size=n)


@every
def test_sums_are_gathered_in_parts_or_refused_as_merging_is(weighter: Weighter[Any]) -> None:
    (g, w), (h, v) = losses(700, 1), losses(300, 2)
    parts = weighter.update(weighter.init(3), g, w), weighter.update(weighter.init(3), h, v)
    refused = ""
    try:
        expected = weighter.merge(*parts)
    except TypeError as error:
        refused = str(error)
    if refused:
        with pytest.raises(TypeError, match=re.escape(refused)):
            weighter.sums(3)
        return
    one, other = weighter.summed(weighter.sums(3), g, w), weighter.sums(3)
    for start in range(0, 300, 7):
        other = weighter.summed(other, h[start : start + 7], v[start : start + 7])
    for a, b in zip(weighter.from_sums(weighter.added(one, other)), expected, strict=True):
        np.testing.assert_array_equal(a, b)


@every
def test_sums_of_members_that_were_always_asked_are_complete(weighter: Weighter[Any]) -> None:
    with suppress(TypeError):
        sums = weighter.summed(weighter.sums(3), *losses(700, 1))
        again = weighter.completed(sums, np.ones((3, 3)))
        for a, b in zip(weighter.from_sums(again), weighter.from_sums(sums), strict=True):
            np.testing.assert_array_equal(a, b)
