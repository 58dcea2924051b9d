"""Random feature subsets, one per member."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesvote.core.checks import InputError, fraction, integer


def random_subsets(
    n_features: int,
    n_members: int,
    max_features: float | int | None = None,
    rng: np.random.Generator | int | None = None,
) -> NDArray[np.bool_]:
    """Draw the features that each member sees, without replacement.

    Parameters
    ----------
    n_features, n_members
        Number of features, and number of members to draw for.
    max_features
        Features per member: a count, a fraction of all (rounded, at least one), or None for all.
    rng
        A generator or a seed.

    Returns
    -------
    array of shape (n_members, n_features)
        True where the member sees the feature; every row has the same number of them.

    Examples
    --------
    >>> random_subsets(6, 2, max_features=0.5, rng=0).sum(axis=1)
    array([3, 3])
    """
    who = "random_subsets"
    integer(who, "n_features", n_features)
    integer(who, "n_members", n_members)
    if max_features is None:
        size = n_features
    elif isinstance(max_features, (int, np.integer)):
        integer(who, "max_features", max_features)
        size = int(max_features)
        if size > n_features:
            must = f"must be at most n_features = {n_features}"
            raise InputError(who, "max_features", must, str(size), "Pass a smaller number, or a fraction.")
    else:
        fraction(who, "max_features", max_features)
        size = max(1, round(max_features * n_features))
    # The first `size` features of a random permutation for every member; one by one, as an array of all permutations
    # may not fit into memory.
    mask = np.zeros((n_members, n_features), dtype=np.bool_)
    generator = np.random.default_rng(rng)
    for of_member in mask:
        of_member[generator.random(n_features).argsort()[:size]] = True
    return mask


def with_more(
    features: NDArray[np.uint32], d: int, n_features: int, rng: np.random.Generator
) -> tuple[NDArray[np.uint32], NDArray[np.bool_]]:
    """Return the features of wider members, (m, k), with the same share of new ones; and a mask of these, (m, new)."""
    m, k = features.shape
    more = random_subsets(n_features - d, m, k / d, rng)
    new = np.nonzero(more)[1].reshape(m, -1).astype(np.uint32) + np.uint32(d)
    return np.concatenate([features, new], axis=1), more


def resized(features: NDArray[np.uint32], arrays: Mapping[str, NDArray[Any]]) -> NDArray[np.uint32]:
    """Return blank features, as many per member as in a file: widening rounds, so their number depends on its steps.

    Files of version 1 call them "own".
    """
    given = arrays.get("features", arrays.get("own"))
    fits = given is not None and given.ndim == 2 and given.shape[1] >= 1
    return np.zeros((len(features), given.shape[1]), dtype=np.uint32) if given is not None and fits else features


def agree(features: NDArray[Any], mask: NDArray[Any], per: int) -> bool:
    """Return True if the features of every member, (m, k), are those of the mask (d, per m)."""
    of_member = mask[:, ::per].T == 1
    if np.any(np.count_nonzero(of_member, axis=1) != features.shape[1]):
        return False
    return np.array_equal(np.nonzero(of_member)[1].reshape(features.shape), features) and np.array_equal(
        np.repeat(of_member, per, axis=0).T, mask
    )
