"""A stream whose neighbouring rows are alike: what the last labels tell is of no use some hundred rows later."""

import numpy as np

from bayesvote._checks import Array, Labels


def alike(n: int, seed: int = 0) -> tuple[Array, Labels]:
    """Labels follow a state that lasts some 120 rows; a feature of its own says a little about each label."""
    rng = np.random.default_rng(seed)
    state = (np.cumsum(rng.random(n) < 1 / 120) % 4 == 3).astype(float)
    chance = 0.1 + 0.75 * state
    y = (rng.random(n) < chance).astype(np.intp)
    clock = np.arange(n) / 500 + 0.05 * rng.standard_normal(n)
    hint = y + 1.8 * rng.standard_normal(n)
    return np.column_stack((clock, hint, rng.standard_normal((n, 3)))), y
