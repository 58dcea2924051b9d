"""The squared loss of the ensemble's margin, shared by the posteriors with and without drift."""

from abc import abstractmethod
from collections.abc import Sequence
from functools import cached_property

import numpy as np

from bayesvote.core import checks as _checks
from bayesvote.core.checks import Array, InputError, Labels
from bayesvote.core.state import MOST_TOTAL, S
from bayesvote.losses import LossScale
from bayesvote.weighting.gaussian import MarginPosterior

# A double has 16 digits. Once theta times the sum of the sample weights is 1e13 times the least precision, two or three
# of them are left to that prior.
_MOST_GROWTH = 1e13
_MOST_RATIO = 1e9  # of theta to the least precision: leaves room for 10,000 rows of weight 1 below _MOST_GROWTH


class SquaredMarginPosterior(MarginPosterior[S]):
    """Gaussian posteriors of the squared margin loss, one per prior precision, averaged by their evidence."""

    needs_bounded = True
    loss_scale = LossScale.SHARE

    precision: float | Sequence[float]
    theta: float

    @property
    @abstractmethod
    def _precisions(self) -> Array:
        """Prior precision of every posterior."""

    def _check_theta(self) -> None:
        _checks.positive(self.who, "theta", self.theta)
        least = float(self._precisions.min())
        if self.theta > _MOST_RATIO * least:
            must = (
                f"must be at most {_MOST_RATIO:g} times the least precision, "
                "or a prior is lost in the rounding of one row"
            )
            raise InputError(self.who, "theta", must, f"{self.theta} and {least}", "Use a larger precision.")

    @cached_property
    def _most_samples(self) -> float:
        """Largest sum of sample weights that leaves a digit or two to the prior with the least precision."""
        return min(float(_MOST_GROWTH * self._precisions.min() / self.theta), MOST_TOTAL)

    def _check_added_samples(self, before: float, w: Array) -> None:
        """Reject further sample weights w that would make their sum too large."""
        if before + len(w) * _checks.MOST_WEIGHT > self._most_samples:  # otherwise the sum is certain to fit
            self._check_samples(self.who, before + float(w.sum()))

    def _check_samples(self, who: str, samples: float) -> None:
        if samples > self._most_samples:
            least = self._precisions.min()
            must = f"must sum to at most {self._most_samples:g} with the least precision {least:g}"
            do = "Use smaller weights, or a larger precision."
            raise InputError(who, "sample weights", must, f"{samples:g}", do)

    def least_bytes(self, n_members: int) -> int:
        """Return the size of the covariances."""
        return 8 * len(self._precisions) * n_members**2

    def of_truth(self, G: Array, y: Labels) -> Array:
        """Return the losses of the true label; with more than two classes, of its lead over the others."""
        own = super().of_truth(G, y)
        if G.shape[1] == 2:
            return own
        lead = (G.sum(axis=1) - own) / (G.shape[1] - 1) - own
        return np.asarray(np.maximum(0.5 - lead / 2, 0.0))  # an unbounded loss could lead by more than 1

    def terms(self, weights: Array, G: Array) -> Array:
        """Return each member's part of the ensemble loss, minus half its weighted margin."""
        return -0.5 * weights * self.margins(G)

    def margins(self, G: Array) -> Array:
        """Return the margins 1 - 2g."""
        return 1 - 2 * G

    def losses_at(self, weights: Array, G: Array) -> Array:
        """Return (1 - weighted margin)/2: smallest for the label with the largest weighted margin."""
        from bayesvote.weighting._joint_kernels import margin_losses

        out = np.empty(G.shape[:2])
        margin_losses(weights, G, out)
        return out
