"""The baselines against plain loops."""

import numpy as np
import pytest

from bayesvote.weighting import SAG, SGD, AveragedSGD, Voting


def rows() -> list[list[float]]:
    return [[float(v) for v in row] for row in np.random.default_rng(0).random((50, 3))]


def test_sgd_is_equation_14() -> None:
    weights = [1.0, 1.0, 1.0]
    for t, g in enumerate(rows(), start=1):
        weights = [max(w - 20.0 / t * (0.1 * x - 1 / w), 1e-6) for w, x in zip(weights, g, strict=True)]
    weighter = SGD(step=20.0)
    assert weighter.mean(weighter.update(weighter.init(3), rows())) == pytest.approx(weights, rel=1e-12)


def test_sgd_is_kept_above_zero() -> None:
    weighter = SGD(step=1e4, theta=10.0)
    assert np.all(weighter.mean(weighter.update(weighter.init(2), [1.0, 1.0])) == 1e-6)


def test_averaged_sgd_averages_longer_steps() -> None:
    weights, history = [1.0, 1.0, 1.0], []
    for t, g in enumerate(rows(), start=1):
        weights = [max(w - 20.0 / t**0.75 * (0.1 * x - 1 / w), 1e-6) for w, x in zip(weights, g, strict=True)]
        history.append(weights)
    weighter = AveragedSGD(step=20.0)
    assert weighter.mean(weighter.init(3)) == pytest.approx([1.0, 1.0, 1.0])
    after = weighter.mean(weighter.update(weighter.init(3), rows()))
    assert after == pytest.approx(np.mean(history, axis=0), rel=1e-12)


def test_sag_steps_along_the_mean_of_the_gradients_so_far() -> None:
    weights, table = [1.0, 1.0, 1.0], []
    for g in rows():
        table.append([0.1 * x - 1 / w for w, x in zip(weights, g, strict=True)])
        mean = np.sum(table, axis=0) / 50
        weights = [max(w - 5.0 * d, 1e-6) for w, d in zip(weights, mean, strict=True)]
    weighter = SAG(step=5.0, horizon=50)
    assert weighter.mean(weighter.update(weighter.init(3), rows())) == pytest.approx(weights, rel=1e-11)


def test_sample_weights_scale_the_gradient() -> None:
    weighter = SGD(step=1.0)
    once = weighter.mean(weighter.update(weighter.init(1), [0.5], 1.0))[0] - 1
    half = weighter.mean(weighter.update(weighter.init(1), [0.5], 0.5))[0] - 1
    assert half == pytest.approx(once / 2)


def test_voting_learns_nothing() -> None:
    weighter = Voting()
    state = weighter.init(3)
    assert np.array_equal(weighter.mean(weighter.update(state, rows())), weighter.mean(state))
    assert weighter.merge(state, state) is state


def test_rows_that_are_not_learned_use_up_no_horizon() -> None:
    weighter = SAG(horizon=2)
    g = np.array([[0.1, 0.9], [0.3, 0.7], [0.2, 0.8]])
    state = weighter.update(weighter.init(2), g, [1.0, 0.0, 1.0])
    assert np.array_equal(weighter.mean(state), weighter.mean(weighter.update(weighter.init(2), g[[0, 2]])))
    with pytest.raises(ValueError, match="must not be longer than horizon=2 rows, got 3"):
        weighter.update(state, g[:1])
