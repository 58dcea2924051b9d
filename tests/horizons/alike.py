"""A stream whose neighbouring rows are alike, so that the last labels do not help some hundred rows later."""

import numpy as np

from bayesvote.core.checks import Array, Labels


def alike(n: int, seed: int = 0) -> tuple[Array, Labels]:
    """Return rows whose labels follow a hidden state that lasts some 60 rows; one feature helps a little."""
    rng = np.random.default_rng(seed)
    state = np.cumsum(rng.random(n) < 1 / 60) % 4 == 3
    y = (rng.random(n) < np.where(state, 0.9, 0.1)).astype(np.intp)
    hint = y + 1.5 * rng.standard_normal(n)
    return np.column_stack((hint, rng.standard_normal((n, 4)))), y
