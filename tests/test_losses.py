"""Losses of the margin, for two classes and for several."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayesvote import losses

MARGINS = st.floats(-1e6, 1e6)


@pytest.mark.parametrize("name", losses.LOSSES)
@given(a=MARGINS, b=MARGINS)
def test_losses_fall_with_the_margin_and_are_never_negative(name: str, a: float, b: float) -> None:
    low, high = losses.get(name)(np.sort([a, b]))
    assert low >= high >= 0


@given(z=MARGINS)
def test_a_member_cannot_win_on_both_sides(z: float) -> None:
    """Ramp and zero-one losses of the two labels sum to one."""
    assert losses.ramp(z) + losses.ramp(-z) == pytest.approx(1)
    assert losses.zero_one(z) + losses.zero_one(-z) == 1


@given(z=st.floats(-1e3, 690))
def test_log_of_the_logistic_loss_is_right_at_every_margin(z: float) -> None:
    """log(log(1 + exp(-z))) is about -z for large margins: no digits are lost on the way through g."""
    expected = -z + np.log1p(-np.exp(-z) / 2) if z > 30 else np.log(np.logaddexp(0, -z))
    assert np.log(losses.logistic(z)) == pytest.approx(expected, rel=1e-14, abs=1e-14)


def test_logistic_loss_is_floored() -> None:
    assert np.isfinite(np.log(losses.logistic(1e9)))


def test_two_classes_are_several() -> None:
    scores = np.random.default_rng(0).standard_normal((20, 5))
    pair = np.stack((-scores / 2, scores / 2), axis=2)
    for name in losses.LOSSES:
        assert losses.of_labels(name, pair) == pytest.approx(losses.of_labels(name, scores))


def test_margin_is_the_lead_over_the_best_other_label() -> None:
    scores = np.random.default_rng(1).integers(-3, 3, (50, 4, 3)).astype(float)  # with ties
    out = losses.margins(scores)
    for t in range(50):
        for i in range(4):
            for k in range(3):
                assert out[t, k, i] == scores[t, i, k] - max(scores[t, i, j] for j in range(3) if j != k)


def test_abstention_passes_through() -> None:
    for name in losses.LOSSES:
        assert np.isnan(losses.of_labels(name, np.array([[np.nan]]))).all()
        assert np.isnan(losses.of_labels(name, np.full((1, 1, 3), np.nan))).all()


def test_unknown_names_get_a_suggestion() -> None:
    with pytest.raises(ValueError, match=r"must be one of .*, got 'ram'\. Did you mean 'ramp'\?"):
        losses.get("ram")


@pytest.mark.parametrize("name", losses.LOSSES)
def test_kernels_are_the_functions(name: str) -> None:
    """Two classes go through a kernel; it gives what the function gives."""
    scores = np.concatenate((np.random.default_rng(2).normal(0, 2, 50), [0.0, -0.0, 1.0, -1.0, 800.0, -800.0, np.nan]))
    kernel = losses.of_labels(name, scores[None])
    expected = losses.get(name)(losses.margins(scores[None]))
    assert kernel == pytest.approx(expected, rel=1e-15, abs=0.0, nan_ok=True)  # the floor is far below any usual abs
