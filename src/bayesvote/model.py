"""Base class of ensembles and boosters: decisions, learning and probabilities."""

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

# Smallest share of a label, so that logarithms are finite. The largest share is then wrong by 1e-9 per class at most.
LEAST = 1e-9


def decided(label_losses: Array) -> Labels:
    """Return the labels of least loss, by rule (12) or its counterparts; a tie goes to the last label, as in (12).

    >>> decided(np.array([[0.2, 0.1], [0.3, 0.3], [0.1, 0.4]]))
    array([1, 1, 0])
    """
    return np.asarray(label_losses.shape[1] - 1 - label_losses[:, ::-1].argmin(axis=1))


class Model(Stateful[S]):
    """An ensemble or a booster.

    The public methods ``start``, ``decide``, ``decide_then_learn`` and ``widen`` check their input. A call that is
    rejected leaves the model as it was. A call that fails leaves it as after the number of rows that the error states.
    ``losses`` and ``advance`` take rows that are checked. A subclass implements the abstract methods of this class and
    of :class:`Stateful`.
    """

    complete = True
    _internal = "advance losses shares"

    @property
    @abstractmethod
    def loss_scale(self) -> LossScale:
        """Meaning of the losses of the labels, from which probabilities are computed."""

    @property
    @abstractmethod
    def total_members(self) -> int:
        """Number of members."""

    @property
    def learns(self) -> bool:
        """True if the members learn, False if only the weights do."""
        return True

    @abstractmethod
    def _losses(self, rows: Rows) -> Array:
        """Return the losses (n, K) of every label for checked rows."""

    @abstractmethod
    def step(self, rows: Rows, y: Labels, w: Array) -> Array:
        """Return the losses (n, K) of every label, checked row t before row t is learned."""

    @abstractmethod
    def about(self) -> dict[str, Any]:
        """Return a description for people: the members, and the number of rows learned."""

    @final
    def decide(self, X: RowsLike) -> Array:
        """Return the losses (n, K) of every label; the least is the decision, see :func:`decided`."""
        return self.losses(self.checked(X))

    @final
    @reports_progress
    def decide_then_learn(self, X: RowsLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Array:
        """Return the losses (n, K) of every label, row t before row t is learned, as row by row."""
        return self.advance(*self.checked_labelled(X, y, sample_weight))

    @final
    def losses(self, rows: Rows) -> Array:
        """Do what ``decide`` does, for checked rows."""
        with self.lock.read:
            check_width(self.who, rows, self.n_features)
            return self._losses(rows)

    @final
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
        """Do what ``decide_then_learn`` does, for checked rows, labels and weights.

        ``after`` is called with every chunk that was learned and its losses, before other threads see the model.
        ``forecast`` holds the intermediate results of the rows' predictions, for late labels; those of rows of weight 0
        are written. With ``horizon`` the weights are learned for predictions that many rows after the last label. See
        docs/horizon.md.
        """
        if not rows.n:
            return self.losses(rows)
        return self._rollback.learn(self, Chunk(rows, y, w, forecast, horizon), after)

    @final
    def forecast(self, rows: Rows) -> tuple[Forecast, Array]:
        """Return the intermediate results of predictions of checked rows, for ``advance``, and the losses (n, K)."""
        with self.lock.read:
            check_width(self.who, rows, self.n_features)
            return self._predicted(rows)

    @final
    def empty_forecast(self, n: int) -> Forecast:
        """Return uninitialised forecasts of n rows."""
        return Forecast(np.empty((n, self.n_classes)), *(np.empty((n, *shape)) for shape in self.forecast_shapes()))

    @final
    def unpacked(self, packed: Array) -> Forecast:
        """Return the forecasts that ``Forecast.packed`` made one array of; a wrong width is an error."""
        arrays, at = list[Array](), 0
        for blank in self.empty_forecast(0):
            width = int(np.prod(blank.shape[1:]))
            # Copy, because kernels need contiguous arrays, and learning may write to them.
            arrays.append(packed[:, at : at + width].reshape(len(packed), *blank.shape[1:]).copy())
            at += width
        require(packed.ndim == 2 and packed.shape[1] == at, f"a forecast must hold {at} numbers")
        forecast = Forecast(*arrays)
        self.check_forecast(forecast)
        return forecast

    def check_forecast(self, forecast: Forecast) -> None:
        """Raise an error for a forecast that no prediction leads to."""
        require(not np.any(np.isinf(forecast.scores)), "scores must be finite or missing")
        for name, array in forecast._asdict().items():
            require(name == "scores" or bool(np.all(np.isfinite(array))), f"{name} must be finite")
        if forecast.decisions.shape[1]:
            labels = forecast.decisions[:, :2]
            require(within(labels, 0, self.n_classes - 1), "decisions must be labels")

    def forecast_shapes(self) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
        """Return the shapes of a row's scores, log-likelihoods and decision; by default only losses are used."""
        return (0,), (0,), (0,)

    def _predicted(self, rows: Rows) -> tuple[Forecast, Array]:
        losses = self._losses(rows)
        return self.empty_forecast(rows.n)._replace(losses=losses), losses

    def learn_chunk(self, chunk: Chunk) -> Array:
        """Learn a chunk; return its losses."""
        losses = super().learn_chunk(chunk)
        if chunk.forecast is not None:
            chunk.forecast.losses[chunk.w == 0] = losses[chunk.w == 0]
        return losses

    @property
    def judged(self) -> NDArray[np.bool_] | None:
        """Mask of the rows of the last chunk that were predicted at the horizon of use; None for all rows."""
        return None

    def probabilities(self, losses: Array) -> Array:
        """Return the probabilities (n, K) of the labels from their losses; the decision has the largest."""
        return agreeing(self.shares(losses), losses)

    def shares(self, losses: Array) -> Array:
        """Return the probabilities without the correction of ties, after which the decision has the largest."""
        scale = self.loss_scale
        if scale is LossScale.LOG_LIKELIHOOD:
            return from_log_losses(losses, self.total_members)
        return _PROBABILITIES[scale](losses)


def from_losses(losses: Array) -> Array:
    """Return probabilities proportional to 1/loss; for two labels, the other label's share of the losses.

    Losses below 0 count as 0: a weighted margin above 1 leads to one.

    >>> from_losses(np.array([[1.0, 3.0], [0.0, 0.0]]))
    array([[0.75, 0.25],
           [0.5 , 0.5 ]])
    """
    return shares(1 / np.maximum(losses, LEAST))


def from_log_losses(losses: Array, n_members: int) -> Array:
    """Return the softmax of minus the losses per member: the geometric mean of the members' likelihoods.

    >>> from_log_losses(np.log([[4.0, 1.0]]), n_members=1)
    array([[0.2, 0.8]])
    """
    scaled = losses / n_members
    return shares(np.exp(scaled.min(axis=1, keepdims=True) - scaled))


def from_log_probabilities(losses: Array) -> Array:
    """Return the softmax of minus the losses, which are log-probabilities of the whole ensemble.

    >>> from_log_probabilities(-np.log([[0.2, 0.8]]))
    array([[0.2, 0.8]])
    """
    return from_log_losses(losses, 1)


def from_log_odds(losses: Array) -> Array:
    """Return the logistic function of minus the losses, scaled to sum to 1; for labels learned one against the rest.

    >>> from_log_odds(np.log([[0.25, 4.0]]))
    array([[0.8, 0.2]])
    """
    from scipy.special import expit

    return shares(expit(-losses))


def from_margins(losses: Array) -> Array:
    """Return probabilities in proportion to (1 + F)/2, where F = -loss is the mean vote in [-1, 1].

    >>> from_margins(np.array([[-0.5, 0.5]]))
    array([[0.75, 0.25]])
    """
    return shares((1 - losses) / 2)


_PROBABILITIES: dict[LossScale, Callable[[Array], Array]] = {
    LossScale.SHARE: from_losses,
    LossScale.LOG_PROBABILITY: from_log_probabilities,
    LossScale.LOG_ODDS: from_log_odds,
    LossScale.MARGIN: from_margins,
}


def shares(values: Array) -> Array:
    """Return the rows scaled to sum to 1, after raising values below ``LEAST`` to it."""
    values = np.maximum(values, LEAST)
    return np.asarray(values / values.sum(axis=1, keepdims=True))


def agreeing(values: Array, losses: Array) -> Array:
    """Return the values after raising that of the decision, if need be, to the next number above the others.

    >>> agreeing(np.array([[0.5, 0.5]]), np.array([[1.0, 1.0]])).argmax(axis=1)
    array([1])
    """
    rows, decision = np.arange(len(losses)), decided(losses)
    others = values.copy()
    others[rows, decision] = -np.inf
    values[rows, decision] = np.maximum(values[rows, decision], np.nextafter(others.max(axis=1), np.inf))
    return values
