"""Algorithm 1: a bank of members, a loss and a weighter make decisions."""

from collections.abc import Callable, Iterable, Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesvote import losses
from bayesvote.core import checks as _checks
from bayesvote.core.checks import Argument, Array, InputError, InputTypeError, Labels
from bayesvote.core.horizon import WAITING, Gap
from bayesvote.core.lock import RWLock
from bayesvote.core.rollback import CHUNK, Chunk, Forecast
from bayesvote.core.rows import Rows, RowsLike, check_width, started
from bayesvote.core.state import Learned, Rng, Shape, like, read_locked, restored_shape
from bayesvote.core.threads import in_background, n_threads
from bayesvote.losses import Loss, LossScale
from bayesvote.members import Bank
from bayesvote.members.attribution import Explanation, per_score, shares_of
from bayesvote.members.base import check_bank
from bayesvote.model import Model, decided
from bayesvote.weighting import GammaRate, Posterior, Weighter
from bayesvote.weighting.threshold import WIDTH, Threshold

_THRESHOLD = "threshold_"  # prefix of the names of its arrays in files


@dataclass
class Ensemble(Model[Any]):
    """A model that combines members by learned weights.

    Parameters
    ----------
    bank : Bank
        The members.
    weighter : Weighter
        The rule that turns the members' losses into weights.
    loss : str or callable
        Loss g of a member: a name in :mod:`bayesvote.losses`, or a function of the margin.

    Examples
    --------
    >>> from bayesvote.members.perceptron import PerceptronBank
    >>> model = Ensemble(PerceptronBank(n_members=5)).start(n_features=2, rng=0)
    >>> X, y = np.array([[1.0, 0.2], [-1.0, 0.1]] * 20), np.array([1, 0] * 20)
    >>> before = decided(model.decide_then_learn(X, y))
    >>> decided(model.decide(X[:4]))
    array([1, 0, 1, 0])
    """

    bank: Bank[Any]
    weighter: Weighter[Any] = field(default_factory=GammaRate)
    loss: str | Loss = "ramp"
    _gap: Gap | None = field(default=None, init=False, repr=False, compare=False)
    _threshold: Threshold | None = field(default=None, init=False, repr=False, compare=False)
    _judged: NDArray[np.bool_] | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Check the parameters."""
        check_bank("Ensemble", self.bank)
        if not isinstance(self.weighter, Weighter):
            must = "must be a Weighter, such as GammaRate()"
            raise InputTypeError("Ensemble", "weighter", must, repr(self.weighter))
        losses.get(self.loss)

    @property
    def state(self) -> Any:
        """State of the weighter; None before the start."""
        return self._state

    @property
    def shape(self) -> Shape | None:
        """Numbers of features and classes of the members; None before the start."""
        return None if self.state is None else self.bank.shape

    @property
    def learns(self) -> bool:
        """True if the members learn."""
        return self.bank.learns

    @property
    def total_members(self) -> int:
        """Number of members."""
        return self.bank.n_members

    @property
    def loss_scale(self) -> LossScale:
        """Meaning of the losses, by the weighter."""
        return self.weighter.loss_scale

    def init(self, n_features: int, n_classes: int, rng: np.random.Generator) -> Any:
        """Start the members; return the weighter's state before any sample."""
        self._check_loss()
        state = self.weighter.init(self.bank.n_members)
        self.bank.start(n_features, n_classes, rng)
        self._gap = self._threshold = self._judged = None
        return state

    @property
    def lock(self) -> RWLock:
        """Lock of the members, which may also be used without the ensemble."""
        return self.bank.lock

    def snapshot(self) -> Any:
        """Copy what learning changes: the members, the weighter's state, and the waiting rows."""
        return self.bank.snapshot(), deepcopy((self._state, self._threshold)), self._gap

    def returning(self, snapshot: Any) -> Callable[[], None]:
        """Prepare to restore a snapshot; return the function that does."""
        of_bank, (state, threshold), gap = snapshot
        restore_bank = self.bank.returning(of_bank)

        def restore() -> None:
            restore_bank()
            self._state, self._threshold, self._gap, self._judged = state, threshold, gap, None

        return restore

    def _losses(self, rows: Rows) -> Array:
        """Return the ensemble loss (n, K) of every label."""
        rule = self.weighter.rule(started("Ensemble.losses", self._state))
        return self._answered(_joined([rule(G) for G in self._label_losses(rows)]))

    def _answered(self, found: Array) -> Array:
        """Return the losses after the threshold, if one has been learned."""
        if self._threshold is not None:
            self._threshold.answer(found)
        return found

    def check_weights(self, w: Array) -> None:
        """Raise an error for sample weights that the members or the weighter cannot learn."""
        self.bank.check_weights(w)
        self.weighter.check_room(self._state, w)

    def step(self, rows: Rows, y: Labels, w: Array) -> Array:
        """Return ensemble losses (n, K), row t before row t is learned."""
        scores = self.bank.advance(rows, y, w)
        out, self._state = self.weighter.advance_scores(self._state, self.loss, scores, y, w)
        return out

    def learn_chunk(self, chunk: Chunk) -> Array:
        """Return ensemble losses (n, K), row t before row t is learned."""
        if chunk.horizon and self.bank.learns:
            return self._learn_in_periods(chunk)
        self._judged = None
        if self._gap is not None and np.any(chunk.w):
            self._finish_gap()
        if chunk.forecast is None:
            return super().learn_chunk(chunk)
        return self._learn_late(chunk, chunk.forecast)

    def _learn_late(self, chunk: Chunk, forecast: Forecast) -> Array:
        """Learn rows with late labels, and predict rows of weight 0, whose forecasts are written."""
        rows, y, w = chunk.rows, chunk.y, chunk.w
        asked = w == 0
        if np.all(asked) and self.weighter.compares_horizons:  # otherwise advance_late would copy the posteriors
            found, out = self._predicted(rows)
            for array, values in zip(forecast, found, strict=True):
                array[:] = values
            return out
        scores = self.bank.advance(rows, y, w)
        forecast.scores[asked] = scores[asked]
        G, now = (losses.of_labels(self.loss, each) for each in (forecast.scores, scores))
        out, self._state = self.weighter.advance_late(self._state, G, y, w, forecast.log_likelihoods, now)
        forecast.losses[asked] = out[asked]
        if forecast.decisions.shape[1]:
            self._late_threshold().learn(out, y, w, forecast.decisions)
        return out

    def _late_threshold(self) -> Threshold:
        """Return the threshold that is learned from late labels, started if need be."""
        if self._threshold is None:
            self._threshold = Threshold.start(self.n_classes)
        return self._threshold

    def _learn_in_periods(self, chunk: Chunk) -> Array:
        """Learn rows at once; in the gap at the end of a period, hold them back until it ends."""
        n = chunk.rows.n
        if not chunk.w.any():  # predict only
            self._judged = np.zeros(n, dtype=bool)
            return self._losses(chunk.rows)
        if self._gap is not None and self._gap.horizon != chunk.horizon:
            self._finish_gap()
        gap = self._gap or Gap.start(chunk.horizon)
        found, judged, at = list[Array](), np.zeros(n, dtype=bool), 0
        while at < n:
            is_held, n_part = gap.next_part(n - at)
            stop = at + n_part
            part = chunk if n_part == n else chunk.part(at, stop)
            if is_held:
                judged[at:stop] = part.w != 0
                forecast, answered = self._predicted(part.rows)
                found.append(answered)
                self._gap = gap = gap.with_waiting(part._replace(forecast=forecast))
                if gap.seen == gap.period.n_rows:
                    self._learn_waiting(gap)
                    self._gap = gap = gap.finished()
            else:
                G = losses.of_labels(self.loss, self.bank.advance(part.rows, part.y, part.w))
                out, self._state = self.weighter.advance_near(self._state, G, part.y, part.w)
                found.append(out)
                self._gap = gap = gap.passed(len(part.w.nonzero()[0]))
            at = stop
        self._judged = judged
        return _joined(found)

    def _learn_waiting(self, gap: Gap) -> None:
        """Learn the rows of a gap: the members from the rows, the weights from the forecasts."""
        waiting = gap.waiting
        if waiting is None:
            return
        rows, y, w, forecast, _ = waiting
        assert forecast is not None
        scores = self.bank.advance(rows.widened(self.bank.n_features), y, w)
        G, now = (losses.of_labels(self.loss, each) for each in (forecast.scores, scores))
        first = gap.first_judged
        _, self._state = self.weighter.advance_near(self._state, now[:first], y[:first], w[:first])
        late = np.ascontiguousarray(forecast.log_likelihoods[first:])
        out, self._state = self.weighter.advance_late(self._state, G[first:], y[first:], w[first:], late, now[first:])
        if forecast.decisions.shape[1]:
            decisions = np.ascontiguousarray(forecast.decisions[first:])
            self._late_threshold().learn(out, y[first:], w[first:], decisions)

    def _finish_gap(self) -> None:
        """Learn the waiting rows, because the next rows are learned in another way."""
        if self._gap is not None:
            self._learn_waiting(self._gap)
            self._gap = None
        self._judged = None

    @property
    def judged(self) -> NDArray[np.bool_] | None:
        """Mask of the rows of the last chunk that were predicted at the horizon of use; None for all rows."""
        return self._judged

    def check_forecast(self, forecast: Forecast) -> None:
        """Raise an error for a forecast that no prediction leads to."""
        super().check_forecast(forecast)
        self.weighter.check_log_likelihoods(forecast.log_likelihoods)

    def forecast_shapes(self) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
        """Return the shapes of a row's scores, log-likelihoods and decision."""
        m, k = self.bank.n_members, self.n_classes
        has_threshold = self.loss_scale is LossScale.LOG_PROBABILITY
        late = self.weighter.n_log_likelihoods(k)
        return (m,) if k == 2 else (m, k), (late,), (WIDTH if has_threshold else 0,)

    def _predicted(self, rows: Rows) -> tuple[Forecast, Array]:
        """Return the forecast of rows, and their losses after the threshold."""
        found = []
        for start in range(0, max(rows.n, 1), CHUNK):
            scores = self.bank.score(rows.part(start, min(start + CHUNK, rows.n)))
            of_labels, late = self.weighter.forecast(self._state, losses.of_labels(self.loss, scores))
            found.append(Forecast(of_labels, scores, late, np.empty((len(scores), 0))))
        forecast = found[0] if len(found) == 1 else Forecast(*map(np.concatenate, zip(*found, strict=True)))
        if self.loss_scale is not LossScale.LOG_PROBABILITY:
            return forecast, forecast.losses
        answered = forecast.losses.copy()
        threshold = self._threshold or Threshold.start(self.n_classes)
        return forecast._replace(decisions=threshold.answer(answered)), answered

    def pipeline(self, chunks: Iterable[Chunk]) -> Iterator[Array]:
        """Yield the ensemble losses (n, K) of every chunk, row t before row t is learned.

        Members do not depend on the weights. So another thread scores and learns the next chunk with the members while
        this one learns the weights from the current chunk. Members of other libraries run in this thread, where Ctrl-C
        reaches them.
        """
        source = iter(chunks)
        chunk, self._judged = next(source, None), None
        while chunk is not None and (chunk.horizon or chunk.forecast is not None or self._gap is not None):
            yield self.learn_chunk(chunk)
            chunk = next(source, None)
        scores = None if chunk is None else self.bank.advance(*chunk[:3])
        while chunk is not None and scores is not None:
            following, job = next(source, None), None
            if following is not None and n_threads() > 1 and not self.bank.runs_user_code:
                job = in_background(partial(self.bank.advance, *following[:3]))
            out, self._state = self.weighter.advance_scores(self._state, self.loss, scores, chunk.y, chunk.w)
            yield out
            if following is not None:
                scores = job.result() if job else self.bank.advance(*following[:3])
            chunk = following

    @read_locked
    def weights(self) -> Array:
        """Return the weights of the members."""
        return self.weighter.mean(started("Ensemble.weights", self.state))

    @read_locked
    def certainty(self, X: RowsLike, size: int = 1000, rng: Rng = 0) -> Array:
        """Return the posterior probability (n,) of weights that make the same decision.

        It is estimated from ``size`` draws, unless the weighter computes it: see ``Posterior.agreement``.
        """
        return self._certainty(self._label_losses(self.checked(X)), size, rng)

    @read_locked
    def certainty_of(self, forecast: Forecast, size: int = 1000, rng: Rng = 0) -> Array:
        """Return what ``certainty`` returns for the rows of a forecast, without scoring them again."""
        return self._certainty([losses.of_labels(self.loss, forecast.scores)], size, rng)

    def _certainty(self, label_losses: Iterable[Array], size: int, rng: Rng) -> Array:
        posterior = self._posterior("Ensemble.certainty")
        _checks.integer("Ensemble.certainty", "size", size)
        agreement, rule = posterior.agreement(self.state, size, rng), posterior.rule(self.state)
        out = []
        for G in label_losses:
            found = agreement(G, decided(self._answered(rule(G))))
            # If no member votes, or none prefers a label, all labels are equally likely.
            found[((G[:, :1] == G) | np.isnan(G)).all(axis=(1, 2))] = 1 / G.shape[1]
            out.append(found)
        return np.concatenate(out)

    @read_locked
    def contributions(self, X: RowsLike) -> Array:
        """Return each member's part (n, m) of the lead of the decision over the next best label; 0 where it abstains.

        A row's contributions sum to the difference of the two labels' losses at the mean weights.
        """
        return np.concatenate([self._leads(G)[2] for G in self._label_losses(self.checked(X))])

    @read_locked
    def contributions_of(self, forecast: Forecast) -> Array:
        """Return what ``contributions`` returns for the rows of a forecast, without scoring them again."""
        return self._leads(losses.of_labels(self.loss, forecast.scores))[2]

    @read_locked
    def explain(self, X: RowsLike) -> Explanation:
        """Attribute the lead of the decision over the next best label to the features.

        Each member's contribution is a multiple of the lead in its own score. It is divided among the features like
        that score. The remainder belongs to members that cannot attribute their scores.
        """
        rows = self.checked(X)
        scores = self.bank.score(rows)
        decision, runner_up, added = self._leads(losses.of_labels(self.loss, scores))
        found = self.bank.attributions(rows, per_score(added, scores, decision, runner_up), shares_of(added))
        return Explanation(decision, runner_up, added.sum(axis=1), *found)

    def _leads(self, G: Array) -> tuple[Labels, Labels, Array]:
        """Return the decision, the next best label, and each member's part (n, m) of the lead between them."""
        by_label, row = self._answered(self.weighter.rule(self.state)(G)), np.arange(len(G))
        decision = decided(by_label)
        by_label[row, decision] = np.inf
        runner_up, terms = decided(by_label), self.weighter.terms(self.weights(), G)
        return decision, runner_up, np.nan_to_num(terms[row, runner_up] - terms[row, decision])

    def merge(self, other: "Ensemble") -> Self:
        """Add the rows that another ensemble of the same frozen members has learned; the result is exact."""
        self._require_frozen("Ensemble.merge")
        if not isinstance(other, Ensemble):
            raise InputTypeError("Ensemble.merge", "other", "must be an Ensemble", repr(other))
        other._require_frozen("Ensemble.merge")
        if self.weighter != other.weighter or self.loss != other.loss:
            raise InputError("Ensemble.merge", "both ensembles", "must have the same weighter and loss")
        with other.lock.read:
            if not _same(self.bank.state, other.bank.state):
                must, got = "must have the same members, frozen in the same state", "members that differ"
                do = "Train and freeze the members once, and give each ensemble a copy of them."
                raise InputError("Ensemble.merge", "both ensembles", must, got, do)
            other_state = deepcopy(other.state)
        with self.lock.write:
            self._state = self.weighter.merge(self.state, other_state)
        return self

    def unlearn(self, X: RowsLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Remove rows that the weights of frozen members have learned."""
        self._require_frozen("Ensemble.unlearn")
        rows, labels, w = self.checked_labelled(X, y, sample_weight)
        with self.lock.write:
            check_width(self.who, rows, self.n_features)
            G = np.concatenate(list(self._label_losses(rows)))
            self._state = self.weighter.unlearn(self.state, self.weighter.of_truth(G, labels), w)
        return self

    def wider(self, n_features: int, rng: np.random.Generator) -> Any:
        """Widen the members; the weights stay the same."""
        self.bank.widen(n_features, rng)
        return self.state

    @read_locked
    def about(self) -> dict[str, Any]:
        """Return members, weighter, loss, and the rows learned if the posterior counts them."""
        loss = self.loss if isinstance(self.loss, str) else getattr(self.loss, "__name__", "a function")
        learned = self.weighter.learned_weight(self.state) if isinstance(self.weighter, Posterior) else None
        waiting = self._gap.waiting if self._gap is not None and self.weighter.compares_horizons else None
        rows = None if learned is None else round(learned + (0.0 if waiting is None else waiting.w.sum()))
        return {"members": self.bank.n_members, "weighter": str(self.weighter), "loss": loss, "rows_learned": rows}

    def least_bytes(self, n_features: int, n_classes: int) -> int:  # noqa: ARG002
        """Return the least size of the weighter's state; the members' states are not included."""
        return self.weighter.least_bytes(self.bank.n_members)

    def validate(self, state: Any) -> None:
        """Check the weighter's state."""
        self.weighter.validate(state)

    @read_locked
    def learned(self) -> Learned | None:
        """Return the checked state of the weighter."""
        if self.state is None:
            return None
        facts: dict[str, Any] = {"shape": list(map(int, started(self.who, self.shape)))}
        facts["version"] = self.weighter.version
        arrays = dict(self.weighter.arrays(self.state))
        if self._gap is not None:
            facts["gap"] = self._gap.facts()
            arrays |= dict(self._gap.arrays())
        if self._threshold is not None:
            arrays |= {_THRESHOLD + name: array for name, array in self._threshold._asdict().items()}
        return Learned(facts, arrays)

    def restore(self, learned: Learned, room: int) -> None:
        """Restore the weighter's state and the waiting rows; the members have their states already."""
        shape = restored_shape(learned)
        if self.bank.shape != shape:
            raise ValueError(f"members for {self.bank.shape} features and classes instead of {shape}")
        self._check_loss()
        waiting, of_threshold, arrays = (dict[str, Any]() for _ in range(3))
        for name, array in learned.arrays.items():
            own = waiting if name.startswith(WAITING) else of_threshold if name.startswith(_THRESHOLD) else arrays
            own[name] = array
        threshold = Threshold.start(shape.n_classes) if of_threshold else None
        if threshold is not None:
            found = {name.removeprefix(_THRESHOLD): array for name, array in of_threshold.items()}
            threshold = like(threshold, found)
            threshold.check()
        state = self.weighter.restore_state(self.bank.n_members, learned.facts["version"], arrays, room)
        self._state, self._threshold, self._gap = state, threshold, None
        if "gap" in learned.facts:
            self._gap = Gap.restored(learned.facts["gap"], waiting, shape.n_features, self.empty_forecast(0))
            if self._gap.waiting is not None and self._gap.waiting.forecast is not None:
                self.check_forecast(self._gap.waiting.forecast)
        elif waiting:
            raise ValueError("waiting rows without a gap")

    def _check_loss(self) -> None:
        loss = losses.get(self.loss)
        probe = loss(np.array([-1e3, -1.0, 0.0, 1.0, 1e3]))
        if not np.all((probe >= 0) & np.isfinite(probe)) or (self.weighter.needs_log and not np.all(probe > 0)):
            floor = "above 0, as its logarithm is taken" if self.weighter.needs_log else "at least 0"
            raise InputError(
                "Ensemble",
                "loss",
                f"must be finite and {floor}",
                f"{self.loss!r} with {self.weighter.who}",
                "Use",
                Argument("loss", "logistic"),
            )
        if self.weighter.needs_bounded and np.any(probe > 1):
            must = f"must be at most 1, as {self.weighter.who} takes 1 - 2g for a margin"
            raise InputError("Ensemble", "loss", must, repr(self.loss), "Use", Argument("loss", "ramp"))

    def _label_losses(self, rows: Rows) -> Iterator[Array]:
        """Yield G for a chunk of rows at a time."""
        for start in range(0, max(rows.n, 1), CHUNK):
            yield losses.of_labels(self.loss, self.bank.score(rows.part(start, min(start + CHUNK, rows.n))))

    def _posterior(self, who: str) -> Posterior[Any]:
        started(who, self.state)
        if not isinstance(self.weighter, Posterior):
            raise InputTypeError(
                who,
                "the weighter",
                "must have a posterior",
                self.weighter.who,
                "Use GammaRate, GammaShape, GammaShapeRate, JointGaussian, JointLogistic, LaplacePosterior or "
                "NumericalPosterior.",
            )
        return self.weighter

    def _require_frozen(self, who: str) -> None:
        started(who, self.state)
        if self.bank.learns:
            raise InputTypeError(
                who,
                "the members",
                "must be frozen, because members that learn do not repeat the losses that were learned",
                self.bank.who,
                "Freeze trained members with Frozen(bank).",
            )


def _joined(chunks: list[Array]) -> Array:
    """Concatenate the chunks' rows; a single chunk is not copied."""
    return chunks[0] if len(chunks) == 1 else np.concatenate(chunks)


def _same(a: Any, b: Any) -> bool:
    """Return True if two states hold the same arrays and equal members of other libraries."""
    if isinstance(a, np.ndarray):
        return isinstance(b, np.ndarray) and np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
    if isinstance(a, tuple):
        return type(a) is type(b) and len(a) == len(b) and all(map(_same, a, b))
    return bool(a == b)
