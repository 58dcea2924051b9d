"""Members that see standardised rows, with scales learned from the stream."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from bayesvote.core.checks import Array, Labels
from bayesvote.core.rows import Rows
from bayesvote.core.scales import NO_WEIGHTS, Centred, Scales, no_scales
from bayesvote.core.state import Shape
from bayesvote.members.attribution import Attribution
from bayesvote.members.base import Bank
from bayesvote.members.wrappers.base import TransformerBank


@dataclass
class Scaled(TransformerBank[Scales]):
    """A bank whose members see standardised rows: (x - centre) / spread of every feature.

    Centre and spread are the mean and the standard deviation of the learned rows and of the row itself. The row's own
    features do not reveal its label, and including them keeps the first rows at a reasonable scale. Missing values
    are left out of the scales. Members see 0 in their place, which is the centre. All rows count the same, whatever
    their sample weight; rows of weight 0 change nothing.

    A feature that is 0 in most rows is not centred, and its spread is the root mean square of its other values. So
    zeros stay zeros, indicators stay 0 and 1, and sparse rows stay sparse. This holds for features that are 0 in at
    least three quarters of the rows. Features that are 0 in at most a quarter are fully standardised. Between the two,
    the scales change gradually from one rule to the other.

    Parameters
    ----------
    bank
        The members.

    Examples
    --------
    >>> from bayesvote.members.perceptron import PerceptronBank
    >>> bank = Scaled(PerceptronBank(n_members=1, max_features=None)).start(n_features=1)
    >>> bank.scores_then_learn([[1000.0], [1010.0], [1000.0]], [0, 1, 0])
    array([[ 0.        ],
           [-1.        ],
           [-0.70710678]])
    """

    own_bytes = 32  # four arrays of 8-byte numbers

    def __post_init__(self) -> None:
        """Check the bank."""
        super().__post_init__()
        self._centred: Centred | None = None  # cached by sparse rows: the features that they are centred by

    def shape_of_parts(self) -> Shape | None:
        """Return the shape of the wrapped bank, if it fits the scales."""
        shape = self.bank.shape
        fits = shape is not None and self._own is not None and len(self._own.mean) == shape.n_features
        return shape if fits else None

    def inner_shape(self, own: Scales, shape: Shape) -> Shape:  # noqa: ARG002
        """Return the shape itself: standardised rows have the same features."""
        return shape

    def blank_own(self, n_features: int) -> Scales:
        """Return scales of no rows."""
        return no_scales(n_features)

    def validate_own(self, own: Scales) -> None:
        """Raise an error for counts that do not fit the rows, and for spreads without values."""
        own.check()

    def install_own(self, own: Scales) -> None:
        """Replace the scales."""
        self._own, self._centred = own, None

    def init(self, n_features: int, n_classes: int, rng: np.random.Generator) -> tuple[Scales, Any]:
        """Return empty scales, and the initial state of the members."""
        return no_scales(n_features), self.bank.init(n_features, n_classes, rng)

    def standardised(self, rows: Rows) -> Rows:
        """Return checked rows as the members see them."""
        return self._standardised(rows, NO_WEIGHTS)

    def score(self, rows: Rows) -> Array:
        """Score checked rows."""
        return self.bank.score(self._standardised(rows, NO_WEIGHTS))

    def advance(self, rows: Rows, y: Labels, w: Array) -> Array:
        """Score checked row t before learning row t. Scales of members that do not learn stay as they are."""
        return self.bank.advance(self._standardised(rows, w if self.learns else NO_WEIGHTS), y, w)

    def attributions(self, rows: Rows, coefficients: Array, shares: Array) -> Attribution:
        """Attribute scores to features as the members do, which see them standardised."""
        return self.bank.attributions(self.standardised(rows), coefficients, shares)

    def kept_rows(self) -> None:
        """Return None: rows that the members keep are standardised by scales that have changed since."""
        return

    def wider(self, n_features: int, rng: np.random.Generator) -> tuple[Scales, Any]:
        """Return both states with room for more features."""
        return self.own.wider(n_features), self.bank.wider(n_features, rng)

    def _standardised(self, rows: Rows, w: Array) -> Rows:
        # Several threads may run this at once when nothing is learned; each computes the same cache.
        out, self._centred = self.own.standardised_knowing(rows, w, self._centred)
        return out


def scaled(bank: Bank[Any]) -> Bank[Any]:
    """Return the bank with its linear members, and others that ask for it, inside :class:`Scaled`.

    >>> from bayesvote.members.mixtures import mixed
    >>> [type(part).__name__ for part in scaled(mixed(9)).parts]
    ['Scaled', 'NaiveBayesBank', 'FernBank']
    """
    return Scaled(bank) if bank.wants_scaled else bank.rebuilt(scaled)
