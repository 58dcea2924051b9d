"""Online means and spreads of features, and standardisation of rows by them."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesvote.core.checks import Array
from bayesvote.core.rows import LARGEST, Rows
from bayesvote.core.state import MOST_ROWS, all_finite, padded, require, within

Centred = NDArray[np.int32]
NO_WEIGHTS = np.zeros(0)  # for rows that are not learned


class Scales(NamedTuple):
    """Statistics of the features, from which means and spreads follow."""

    rows: Array  # (1,): number of rows learned
    missing: Array  # (d,): number of rows in which the feature was NaN
    nonzero: Array  # (d,): number of rows in which it was a number other than 0
    mean: Array  # (d,): mean of these numbers
    squares: Array  # (d,): sum of their squared deviations from the mean

    def standardised(self, rows: Rows, w: Array) -> Rows:
        """Standardise each row by the rows before it and itself; learn rows of weight above 0."""
        return self.standardised_knowing(rows, w, None)[0]

    def standardised_knowing(self, rows: Rows, w: Array, centred: Centred | None) -> tuple[Rows, Centred | None]:
        """Standardise rows; also return the features that sparse rows may be centred by, for the next call.

        Without ``centred``, all features are searched for them. A missing value becomes 0, the centre.
        """
        from bayesvote.core._scale_kernels import centred_features, standardise, standardise_sparse

        if rows.dense is None:
            known = centred_features(self) if centred is None else centred
            values, columns, starts, known = standardise_sparse(rows, w, self, known)
            if rows.has_nan:
                values[np.isnan(values)] = 0.0
            return rows._replace(values=values, columns=columns, starts=starts, has_nan=False), known
        out = np.empty((rows.n, rows.width))
        standardise(rows, w, self, out)
        if rows.has_nan:
            out[np.isnan(out)] = 0.0
        return rows._replace(dense=out, values=out.reshape(-1), has_nan=False), None

    def wider(self, n_features: int) -> "Scales":
        """Return scales of more features, as if these had been 0 in every row so far."""
        return Scales(self.rows, *(padded(array, 0, n_features) for array in self[1:]))

    def check(self) -> None:
        """Reject counts that do not fit the rows, and spreads without numbers."""
        all_finite(self)
        require(self.rows[0] >= 0, "rows must be at least 0")
        # From MOST_ROWS on, adding 1 is lost in rounding, and a feature's count would exceed the rows.
        require(self.rows[0] < MOST_ROWS, f"rows must be below {MOST_ROWS}")
        # 1e-9 allows for the rounding of the running mean.
        require(within(self.mean, -LARGEST * (1 + 1e-9), LARGEST * (1 + 1e-9)), "mean must be of values")
        whole = all(np.array_equal(array, np.floor(array)) for array in (self.rows, self.missing, self.nonzero))
        require(whole, "rows, missing and nonzero must be whole numbers")
        require(bool(np.all((self.missing >= 0) & (self.nonzero >= 0))), "missing and nonzero must be at least 0")
        require(bool(np.all(self.missing + self.nonzero <= self.rows)), "a feature must not have more than all rows")
        require(not np.any(self.squares < 0), "squares must be at least 0")
        require(not np.any(self.squares[self.nonzero < 2]), "squares must be 0 for fewer than two numbers")
        require(not np.any(self.mean[self.nonzero == 0]), "mean must be 0 without numbers")


def no_scales(n_features: int) -> Scales:
    """Return scales before any row."""
    return Scales(np.zeros(1), *(np.zeros(n_features) for _ in range(4)))
