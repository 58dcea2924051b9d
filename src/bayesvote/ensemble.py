"""Algorithm 1, written once: a bank of members, a loss and a weighter make decisions."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from bayesvote import _checks, losses
from bayesvote._checks import Array, Labels
from bayesvote._input import RowsLike, ahead, check_labelled, check_rows
from bayesvote.losses import Loss
from bayesvote.members import Bank, EstimatorBank, Frozen, Union
from bayesvote.weighting import Additive, GammaRate, JointGaussian, Posterior, Weighter
from bayesvote.weighting.base import Rng

CHUNK = 2048  # rows handed on at a time: enough to be worth a thread's while, few enough for the cache


def decided(label_losses: Array) -> Labels:
    """Labels of least loss: the one prediction rule, (12) among them; a tie goes to the last label, as in (12).

    >>> decided(np.array([[0.2, 0.1], [0.3, 0.3], [0.1, 0.4]]))
    array([1, 1, 0])
    """
    return np.asarray(label_losses.shape[1] - 1 - label_losses[:, ::-1].argmin(axis=1))


def _same(a: Any, b: Any) -> bool:
    """Whether two states hold the same arrays; other objects, of foreign members, are not looked at."""
    if isinstance(a, np.ndarray):
        return np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(map(_same, a, b))
    return True


@dataclass
class Ensemble:
    """A model: members, their loss, and the weights by which they vote.

    Parameters
    ----------
    bank : Bank
        The members.
    weighter : Weighter
        Turns their losses into weights.
    loss : str or callable
        The loss g of a member, a name of :mod:`bayesvote.losses` or a function of the margin.

    Examples
    --------
    >>> from bayesvote.members.perceptron import PerceptronBank
    >>> model = Ensemble(PerceptronBank(n_members=5)).start(n_features=2, rng=0)
    >>> X, y = np.array([[1.0, 0.2], [-1.0, 0.1]] * 20), np.array([1, 0] * 20)
    >>> before = decided(model.decide_then_learn(X, y))
    >>> decided(model.decide(X[:4]))
    array([1, 0, 1, 0])
    """

    bank: Bank
    weighter: Weighter[Any] = field(default_factory=GammaRate)
    loss: str | Loss = "ramp"
    state: Any = field(default=None, init=False)
    n_features: int = field(default=0, init=False)
    n_classes: int = field(default=0, init=False)

    def start(self, n_features: int, n_classes: int = 2, rng: np.random.Generator | int | None = None) -> Self:
        """Forget everything and make ready for rows of n_features and labels 0 to n_classes - 1."""
        loss = losses.get(self.loss)
        probe = loss(np.array([-1e3, -1.0, 0.0, 1.0, 1e3]))
        if not np.all((probe >= 0) & np.isfinite(probe)) or (self.weighter.needs_log and not np.all(probe > 0)):
            floor = "above 0, as its logarithm is taken" if self.weighter.needs_log else "at least 0"
            raise ValueError(
                f"Ensemble: loss must be finite and {floor}, got {self.loss!r} with {type(self.weighter).__name__}. "
                "Use loss='logistic'."
            )
        if self.weighter.needs_bounded and np.any(probe > 1):
            raise ValueError(
                f"Ensemble: loss must be at most 1, as {type(self.weighter).__name__} takes 1 - 2g for a margin, "
                f"got {self.loss!r}. Use loss='ramp' or 'zero_one'."
            )
        self.bank.start(n_features, n_classes, rng)
        self.state = self.weighter.init(self.bank.n_members)
        self.n_features, self.n_classes = n_features, n_classes
        return self

    def decide(self, X: RowsLike) -> Array:
        """Ensemble loss (n, K) of every label; the decision is the least, see :func:`decided`."""
        weights = self.weights()
        return np.concatenate([self.weighter.losses_at(weights, G) for G in self._label_losses(X)])

    def decide_then_learn(self, X: RowsLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Array:
        """Ensemble losses (n, K), row t before row t is learned."""
        who = "Ensemble.decide_then_learn"
        self._started(who)
        rows, labels, w = check_labelled(who, X, y, sample_weight, self.n_features, self.n_classes)
        self.weighter.check_room(self.state, int(np.count_nonzero(w)))
        if isinstance(self.bank, EstimatorBank | Union):
            self.bank.check_weights(w)
        if 0 < rows.n <= CHUNK:
            scores = self.bank.scores_then_learn(rows, labels, w)
            out, self.state = self.weighter.advance_scores(self.state, self.loss, scores, labels, w)
            return out
        out = np.empty((rows.n, self.n_classes))
        parts = [slice(start, min(start + CHUNK, rows.n)) for start in range(0, rows.n, CHUNK)]

        def scored(part: slice) -> Array:
            return self.bank.scores_then_learn(rows.part(part.start, part.stop), labels[part], w[part])

        # Members do not know the weights: while one chunk is weighed, the next is scored and learned.
        current = scored(parts[0]) if parts else np.empty(0)
        for k, part in enumerate(parts):
            job = ahead(partial(scored, parts[k + 1])) if k + 1 < len(parts) else None
            out[part], self.state = self.weighter.advance_scores(self.state, self.loss, current, labels[part], w[part])
            current = job.result() if job else current
        return out

    def weights(self) -> Array:
        """Weights of the members."""
        self._started("Ensemble.weights")
        return self.weighter.mean(self.state)

    def certainty(self, X: RowsLike, size: int = 1000, rng: Rng = 0) -> Array:
        """Probability (n,) that the decision survives the weights' uncertainty, by ``size`` posterior draws."""
        posterior = self._posterior("Ensemble.certainty")
        draws, weights = posterior.sample(self.state, size, rng), self.weights()
        out = []
        for G in self._label_losses(X):
            decision = decided(posterior.losses_at(weights, G))
            agreed = np.zeros(len(G))
            for draw in draws:
                agreed += decided(posterior.losses_at(draw, G)) == decision
            out.append(agreed / size)
        return np.concatenate(out)

    def contributions(self, X: RowsLike) -> Array:
        """What each member adds (n, m) to the lead of the decision over the next best label; 0 where it abstains.

        A row's contributions sum to the difference of the two labels' losses.
        """
        weights, out = self.weights(), []
        for G in self._label_losses(X):
            by_label = self.weighter.losses_at(weights, G)
            decision, row = decided(by_label), np.arange(len(G))
            by_label[row, decision] = np.inf
            terms = self.weighter.terms(weights, G)
            out.append(np.nan_to_num(terms[row, decided(by_label)] - terms[row, decision]))
        return np.concatenate(out)

    def merge(self, other: "Ensemble") -> Self:
        """Add what another ensemble of the same frozen members has learned; exact."""
        self._frozen("Ensemble.merge")
        other._frozen("Ensemble.merge")
        if self.weighter != other.weighter or self.loss != other.loss:
            raise ValueError("Ensemble.merge: both ensembles must have the same weighter and loss.")
        if not _same(getattr(self.bank, "state", None), getattr(other.bank, "state", None)):
            raise ValueError("Ensemble.merge: both ensembles must have the same members, frozen in the same state.")
        self.state = self.weighter.merge(self.state, other.state)
        return self

    def unlearn(self, X: RowsLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Take back rows that were learned by frozen members' weights."""
        self._frozen("Ensemble.unlearn")
        if not isinstance(self.weighter, Additive | JointGaussian):
            raise TypeError(
                f"Ensemble.unlearn: the weighter's state must be a sum, got {type(self.weighter).__name__}. "
                "Use GammaRate, GammaShape, GammaShapeRate, JointGaussian or NumericalPosterior."
            )
        G = np.concatenate(list(self._label_losses(X)))
        labels = _checks.labels("Ensemble.unlearn", y, len(G), self.n_classes)
        self.state = self.weighter.unlearn(self.state, self.weighter.of_truth(G, labels), sample_weight)
        return self

    def _label_losses(self, X: RowsLike) -> Iterator[Array]:
        """G of a chunk of rows at a time."""
        rows = check_rows("Ensemble", X, self.n_features)
        for start in range(0, max(rows.n, 1), CHUNK):
            yield losses.of_labels(self.loss, self.bank.scores(rows.part(start, min(start + CHUNK, rows.n))))

    def _started(self, who: str) -> None:
        if self.state is None:
            raise ValueError(f"{who}: the ensemble must be started first. Call start(n_features, n_classes).")

    def _posterior(self, who: str) -> Posterior[Any]:
        self._started(who)
        if not isinstance(self.weighter, Posterior):
            raise TypeError(
                f"{who}: the weighter must have a posterior, got {type(self.weighter).__name__}. "
                "Use GammaRate, GammaShape, GammaShapeRate, JointGaussian or NumericalPosterior."
            )
        return self.weighter

    def _frozen(self, who: str) -> None:
        self._started(who)
        if not isinstance(self.bank, Frozen):
            raise TypeError(
                f"{who}: the members must be frozen, or they are no longer those whose losses were learned, "
                f"got {type(self.bank).__name__}. Use Frozen(bank)."
            )
