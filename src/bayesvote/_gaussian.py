"""Covariances as the kernels keep them, of which the lower triangles count; and what a file may bring of them."""

import numpy as np

from bayesvote._checks import Array
from bayesvote._parts import require


def symmetric(lower: Array) -> Array:
    """Whole matrices from their lower triangles."""
    return np.tril(lower) + np.swapaxes(np.tril(lower, -1), -1, -2)


def check_definite(covariances: Array, rounding: float = 0.0) -> Array:
    """Refuse matrices (k, m, m) that are not positive definite; return their eigenvalues, ascending.

    With ``rounding``, the least may be below 0 by that part of the largest.
    """
    eigenvalues = np.linalg.eigvalsh(symmetric(covariances))
    definite = (eigenvalues[:, 0] > -rounding * eigenvalues[:, -1]) & (eigenvalues[:, -1] > 0)
    require(bool(np.all(definite)), "covariances must be positive definite")
    return np.asarray(eigenvalues)


def check_covariances(covariances: Array, precisions: Array, most: Array | None = None, rounding: float = 0.0) -> None:
    """Refuse matrices (k, m, m) that are no covariances, or wider than priors of these precisions (k,).

    With ``most`` (k,), those that are narrower than so high a precision, by more than rounding. ``rounding`` is that of
    ``check_definite``.
    """
    squares = np.arange(covariances.shape[-1] // 4 * 4).reshape(-1, 4)
    blocks = covariances[:, squares[:, :, None], squares[:, None, :]]
    require(np.array_equal(blocks, np.swapaxes(blocks, -1, -2)), "covariances must be symmetric")
    eigenvalues = check_definite(covariances, rounding)
    require(
        not np.any(eigenvalues[:, -1] * precisions > 1 + 1e-6), "covariances must not be wider than those of the prior"
    )
    if most is not None:
        require(
            not np.any(eigenvalues[:, 0] * most < 0.1), "covariances must not be narrower than the samples make them"
        )
