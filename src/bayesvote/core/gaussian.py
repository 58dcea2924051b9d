"""Covariances as the kernels keep them, of which the lower triangles count; and what a file may bring of them."""

import numpy as np

from bayesvote.core.checks import Array
from bayesvote.core.state import require


def symmetric(lower: Array) -> Array:
    """Whole matrices from their lower triangles."""
    return np.tril(lower) + np.swapaxes(np.tril(lower, -1), -1, -2)


def check_definite(covariances: Array) -> Array:
    """Refuse matrices (k, m, m) that are not positive definite; return their eigenvalues, ascending."""
    eigenvalues = np.linalg.eigvalsh(symmetric(covariances))
    require(bool(np.all(eigenvalues[:, 0] > 0)), "covariances must be positive definite")
    return np.asarray(eigenvalues)


def check_covariances(covariances: Array, precisions: Array, most: Array | None = None) -> None:
    """Refuse matrices (k, m, m) that are no covariances, or wider than priors of these precisions (k,).

    With ``most`` (k,), those that are narrower than so high a precision, by more than rounding.
    """
    _check_symmetric(covariances)
    eigenvalues = check_definite(covariances)
    _check_width(eigenvalues, precisions)
    if most is not None:
        require(
            not np.any(eigenvalues[:, 0] * most < 0.1), "covariances must not be narrower than the samples make them"
        )


def check_rounded(covariances: Array, precisions: Array) -> None:
    """Refuse matrices (k, m, m) that are not priors of these precisions (k,) less squares, with variances from 0 on.

    Rows of very different sizes leave such by rounding, which need not be definite. Whoever only takes further squares
    from them, and from no variance more than there is, never has one that is larger than the prior's anywhere.
    """
    _check_symmetric(covariances)
    _check_width(np.asarray(np.linalg.eigvalsh(symmetric(covariances))), precisions)
    variances = np.diagonal(covariances, axis1=1, axis2=2) * precisions[:, None]
    require(not np.any(variances < -1e-6), "variances must be at least 0")


def _check_symmetric(covariances: Array) -> None:
    """Refuse matrices (k, m, m) whose squares of four along the diagonal are not whole."""
    squares = np.arange(covariances.shape[-1] // 4 * 4).reshape(-1, 4)
    blocks = covariances[:, squares[:, :, None], squares[:, None, :]]
    require(np.array_equal(blocks, np.swapaxes(blocks, -1, -2)), "covariances must be symmetric")


def _check_width(eigenvalues: Array, precisions: Array) -> None:
    require(
        not np.any(eigenvalues[:, -1] * precisions > 1 + 1e-6), "covariances must not be wider than those of the prior"
    )
