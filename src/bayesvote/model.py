"""What ensembles and boosters have in common: they decide about rows, learn them, and give probabilities."""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesvote.core.checks import Array, Labels
from bayesvote.core.loss_scale import LossScale
from bayesvote.core.rollback import After, Chunk, Forecast, reports_progress
from bayesvote.core.rows import Rows, RowsLike, check_width
from bayesvote.core.state import S, Stateful, require, within

LEAST = 1e-9  # no label is impossible, so that logarithms are finite


def decided(label_losses: Array) -> Labels:
    """Labels of least loss: the one prediction rule, (12) among them; a tie goes to the last label, as in (12).

    >>> decided(np.array([[0.2, 0.1], [0.3, 0.3], [0.1, 0.4]]))
    array([1, 1, 0])
    """
    return np.asarray(label_losses.shape[1] - 1 - label_losses[:, ::-1].argmin(axis=1))


class Model(Stateful[S]):
    """An ensemble or a booster.

    The doors, ``start``, ``decide``, ``decide_then_learn`` and ``widen``, check their input; a refused call leaves the
    model as it was, and one that fails leaves it as after the number of rows that its error tells. ``losses`` and
    ``advance`` are doors, too, for callers that have checked their rows. A kind fills in the rest, what is abstract
    here and in :class:`Stateful`.
    """

    complete = True
    _internal = "advance losses shares"

    @property
    @abstractmethod
    def loss_scale(self) -> LossScale:
        """What the losses of the labels measure, which says how probabilities follow from them."""

    @property
    @abstractmethod
    def total_members(self) -> int:
        """How many members vote."""

    @property
    def learns(self) -> bool:
        """Whether members learn, or weights only."""
        return True

    @abstractmethod
    def _losses(self, rows: Rows) -> Array:
        """Losses (n, K) of every label for checked rows."""

    @abstractmethod
    def step(self, rows: Rows, y: Labels, w: Array) -> Array:
        """Losses (n, K) of every label, checked row t before row t is learned."""

    @abstractmethod
    def about(self) -> dict[str, Any]:
        """What there is to say of the model, for people: its members, and how many rows it has learned."""

    @final
    def decide(self, X: RowsLike) -> Array:
        """Losses (n, K) of every label; the decision is the least, see :func:`decided`. Nothing is learned."""
        return self.losses(self.checked(X))

    @final
    @reports_progress
    def decide_then_learn(self, X: RowsLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Array:
        """Losses (n, K) of every label, row t before row t is learned; equal to doing so row by row."""
        return self.advance(*self.checked_labelled(X, y, sample_weight))

    @final
    def losses(self, rows: Rows) -> Array:
        """Do what decide does, for rows that are checked."""
        with self.lock.read:
            check_width(self.who, rows, self.n_features)
            return self._losses(rows)

    @final
    @reports_progress
    def advance(
        self,
        rows: Rows,
        y: Labels,
        w: Array,
        after: After | None = None,
        *,
        forecast: Forecast | None = None,
        horizon: int = 0,
    ) -> Array:
        """Do what decide_then_learn does, for rows, labels and weights that are checked.

        ``after`` is called with every chunk that was learned and its losses, before other threads see the model.
        ``forecast`` is what the rows' predictions were made of, for labels that come late; lines of rows of weight 0
        are written. With ``horizon`` weights are learned for predictions that many rows after the last label. See
        docs/horizon.md.
        """
        if not rows.n:
            return self.losses(rows)
        return self._rollback.learn(self, Chunk(rows, y, w, forecast, horizon), after)

    @final
    def forecast(self, rows: Rows) -> tuple[Forecast, Array]:
        """Return what the answers to checked rows are made of, for ``advance``, and their losses (n, K)."""
        with self.lock.read:
            check_width(self.who, rows, self.n_features)
            return self._predicted(rows)

    @final
    def empty_forecast(self, n: int) -> Forecast:
        """Return room for the forecasts of n rows."""
        return Forecast(np.empty((n, self.n_classes)), *(np.empty((n, *shape)) for shape in self.forecast_shapes()))

    @final
    def unpacked(self, packed: Array) -> Forecast:
        """Return the forecasts that ``Forecast.packed`` returned as one array; one of another model is refused."""
        arrays, at = list[Array](), 0
        for blank in self.empty_forecast(0):
            width = int(np.prod(blank.shape[1:]))
            # A copy, as kernels take whole arrays only, and learning may write to them.
            arrays.append(packed[:, at : at + width].reshape(len(packed), *blank.shape[1:]).copy())
            at += width
        require(packed.ndim == 2 and packed.shape[1] == at, f"a forecast must hold {at} numbers")
        forecast = Forecast(*arrays)
        self.check_forecast(forecast)
        return forecast

    def check_forecast(self, forecast: Forecast) -> None:
        """Refuse numbers of a forecast that no prediction leads to."""
        require(not np.any(np.isinf(forecast.scores)), "scores must be finite or missing")
        for name, array in forecast._asdict().items():
            require(name == "scores" or bool(np.all(np.isfinite(array))), f"{name} must be finite")
        if forecast.decisions.shape[1]:
            labels = forecast.decisions[:, :2]
            require(within(labels, 0, self.n_classes - 1), "decisions must be labels")

    def forecast_shapes(self) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
        """Return the shapes of a row's scores, log-likelihoods and decision; by default only the losses are needed."""
        return (0,), (0,), (0,)

    def _predicted(self, rows: Rows) -> tuple[Forecast, Array]:
        losses = self._losses(rows)
        return self.empty_forecast(rows.n)._replace(losses=losses), losses

    def learn_chunk(self, chunk: Chunk) -> Array:
        """Learn a chunk; return its losses, those of late labels as they were when the rows were predicted."""
        losses = super().learn_chunk(chunk)
        if chunk.forecast is not None:
            chunk.forecast.losses[chunk.w == 0] = losses[chunk.w == 0]
        return losses

    @property
    def judged(self) -> NDArray[np.bool_] | None:
        """Rows of the last chunk with losses like those of predictions at the horizon of use; None for all."""
        return None

    def probabilities(self, losses: Array) -> Array:
        """Probabilities (n, K) of the labels from their losses; the largest is that of the decision."""
        return agreeing(self.shares(losses), losses)

    def shares(self, losses: Array) -> Array:
        """The same up to the last bit, by which a tie or rounding can have it otherwise."""
        return _PROBABILITIES[self.loss_scale](losses, self.total_members)


def from_losses(losses: Array, n_members: int = 1) -> Array:  # noqa: ARG001
    """Probability of each label inverse to its loss; for two labels, the share of the other's loss in the sum.

    Losses below 0, which a label that is more than certain may have, count as 0.

    >>> from_losses(np.array([[1.0, 3.0], [0.0, 0.0]]))
    array([[0.75, 0.25],
           [0.5 , 0.5 ]])
    """
    return shares(1 / np.maximum(losses, LEAST))


def from_log_losses(losses: Array, n_members: int) -> Array:
    """Softmax of minus the losses per member, for losses that are log-likelihoods: the members' geometric mean.

    >>> from_log_losses(np.log([[4.0, 1.0]]), n_members=1)
    array([[0.2, 0.8]])
    """
    scaled = losses / n_members
    return shares(np.exp(scaled.min(axis=1, keepdims=True) - scaled))


def from_log_probabilities(losses: Array, n_members: int = 1) -> Array:  # noqa: ARG001
    """Softmax of minus the losses, which are log-probabilities of the whole ensemble.

    >>> from_log_probabilities(-np.log([[0.2, 0.8]]))
    array([[0.2, 0.8]])
    """
    return from_log_losses(losses, 1)


def from_log_odds(losses: Array, n_members: int = 1) -> Array:  # noqa: ARG001
    """Logistic function of the votes, minus the losses, of labels that were each learned against the rest.

    >>> from_log_odds(np.log([[0.25, 4.0]]))
    array([[0.8, 0.2]])
    """
    from scipy.special import expit

    return shares(expit(-losses))


def from_margins(losses: Array, n_members: int = 1) -> Array:  # noqa: ARG001
    """Probabilities in proportion to (1 + F)/2, F = minus the loss being the mean vote in [-1, 1].

    >>> from_margins(np.array([[-0.5, 0.5]]))
    array([[0.75, 0.25]])
    """
    return shares((1 - losses) / 2)


_PROBABILITIES: dict[LossScale, Callable[[Array, int], Array]] = {
    LossScale.SHARE: from_losses,
    LossScale.LOG_LIKELIHOOD: from_log_losses,
    LossScale.LOG_PROBABILITY: from_log_probabilities,
    LossScale.LOG_ODDS: from_log_odds,
    LossScale.MARGIN: from_margins,
}


def shares(values: Array) -> Array:
    """Rows scaled to sum to one; no value below ``LEAST``."""
    values = np.maximum(values, LEAST)
    return np.asarray(values / values.sum(axis=1, keepdims=True))


def agreeing(values: Array, losses: Array) -> Array:
    """Values of the labels, the largest being the decision's: where rounding or a tie has it otherwise, by a last bit.

    >>> agreeing(np.array([[0.5, 0.5]]), np.array([[1.0, 1.0]])).argmax(axis=1)
    array([1])
    """
    rows, decision = np.arange(len(losses)), decided(losses)
    others = values.copy()
    others[rows, decision] = -np.inf
    values[rows, decision] = np.maximum(values[rows, decision], np.nextafter(others.max(axis=1), np.inf))
    return values
