"""Covariance matrices of which the lower triangles count, as in the kernels, and checks of those in files."""

import numpy as np

from bayesvote.core.checks import Array
from bayesvote.core.state import require


def symmetric(lower: Array) -> Array:
    """Return the whole matrices from their lower triangles."""
    return np.tril(lower) + np.swapaxes(np.tril(lower, -1), -1, -2)


def check_definite(covariances: Array) -> Array:
    """Reject matrices (k, m, m) that are not positive definite; return their eigenvalues, ascending."""
    eigenvalues = np.linalg.eigvalsh(symmetric(covariances))
    require(bool(np.all(eigenvalues[:, 0] > 0)), "covariances must be positive definite")
    return np.asarray(eigenvalues)


def check_covariances(covariances: Array, precisions: Array, most: Array | None = None) -> None:
    """Reject matrices (k, m, m) that are not covariances, or wider than priors with these precisions (k,).

    With ``most`` (k,), also reject matrices that are narrower than these precisions. Rounding may make the smallest
    eigenvalue wrong, so only a tenth of it is required.
    """
    _check_symmetric(covariances)
    eigenvalues = check_definite(covariances)
    _check_width(eigenvalues, precisions)
    if most is not None:
        require(
            not np.any(eigenvalues[:, 0] * most < 0.1), "covariances must not be narrower than the samples make them"
        )


def check_rounded(covariances: Array, precisions: Array) -> None:
    """Reject matrices (k, m, m) that are wider than priors with these precisions (k,), or have negative variances.

    Rows of very different sizes leave matrices that are not definite, by rounding. A kernel that only subtracts
    squares, and from no variance more than it has, keeps such a matrix within the prior.
    """
    _check_symmetric(covariances)
    _check_width(np.asarray(np.linalg.eigvalsh(symmetric(covariances))), precisions)
    variances = np.diagonal(covariances, axis1=1, axis2=2) * precisions[:, None]
    require(not np.any(variances < -1e-6), "variances must be at least 0")


def _check_symmetric(covariances: Array) -> None:
    """Reject matrices (k, m, m) whose 4 by 4 blocks along the diagonal, which kernels read whole, are not symmetric."""
    squares = np.arange(covariances.shape[-1] // 4 * 4).reshape(-1, 4)
    blocks = covariances[:, squares[:, :, None], squares[:, None, :]]
    require(np.array_equal(blocks, np.swapaxes(blocks, -1, -2)), "covariances must be symmetric")


def _check_width(eigenvalues: Array, precisions: Array) -> None:
    require(
        not np.any(eigenvalues[:, -1] * precisions > 1 + 1e-6), "covariances must not be wider than those of the prior"
    )
