"""Random feature subsets, one per member."""

import numpy as np
from numpy.typing import NDArray

from bayesvote._checks import fraction, whole


def random_subsets(
    n_features: int,
    n_members: int,
    max_features: float | int | None = None,
    rng: np.random.Generator | int | None = None,
) -> NDArray[np.bool_]:
    """Draw which features each member sees, without replacement.

    Parameters
    ----------
    n_features, n_members
        Features there are, and members to draw for.
    max_features
        How many each member sees: a count, a fraction of all (rounded, at least one), or None for all.
    rng
        A generator or a seed.

    Returns
    -------
    array of shape (n_members, n_features)
        True where the member sees the feature; equally many in every row.

    Examples
    --------
    >>> random_subsets(6, 2, max_features=0.5, rng=0).sum(axis=1)
    array([3, 3])
    """
    who = "random_subsets"
    whole(who, "n_features", n_features)
    whole(who, "n_members", n_members)
    if max_features is None:
        size = n_features
    elif isinstance(max_features, (int, np.integer)):
        whole(who, "max_features", max_features)
        size = int(max_features)
        if size > n_features:
            raise ValueError(
                f"{who}: max_features must be at most the {n_features} features there are, got {size}. "
                "Give a fraction or None for all."
            )
    else:
        fraction(who, "max_features", max_features)
        size = max(1, round(max_features * n_features))
    # The first `size` places of a random order of the features, for every member.
    order = np.random.default_rng(rng).random((n_members, n_features)).argsort(axis=1)
    mask = np.zeros((n_members, n_features), dtype=np.bool_)
    np.put_along_axis(mask, order[:, :size], True, axis=1)
    return mask
