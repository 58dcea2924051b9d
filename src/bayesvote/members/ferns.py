"""Random ferns that grow online: each asks a few yes/no questions and counts classes per pattern of answers."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesvote.core.checks import Array, InputError, Labels, integer, positive
from bayesvote.core.rows import Rows
from bayesvote.core.state import MOST_TOTAL, Arrays, Shape, all_finite, require, within
from bayesvote.core.threads import parallel_for
from bayesvote.members.attribution import Attribution, added_up, nothing
from bayesvote.members.base import NO_LABELS, NO_WEIGHTS, Bank

Ints = NDArray[np.int32]

# Rows before the first questions are chosen. Few, so that scores start early; first questions are poor, but they are
# chosen again whenever the rows have doubled.
_FIRST_DRAW = 4
_CANDIDATES = 8  # per question; with more, questions get better but ferns become alike, and choosing costs more
_DEEPEST = 16  # the 2**depth counts of a fern and class then take 512 KiB
_WORTH_SHARING = 50_000  # scores; with fewer, starting a thread costs more time than it saves


class FernState(NamedTuple):
    """The random draws of a fern bank, and what it has learned."""

    columns: Ints  # features that the candidates ask about, ascending
    candidates: Ints  # (m, depth, candidates): positions in ``columns``
    places: Array  # (m, depth, candidates): position of each candidate's cut among the feature's values, in [0, 1)
    seen: Labels  # (1,): number of rows kept so far
    rows: Array  # (warmup, len(columns)): the rows kept
    labels: Labels
    weights: Array
    slot_of: Ints  # (d,): slot of each feature that a question asks about, -1 for the others
    slots: Ints  # (m, depth): slot of the feature that each question asks about
    thresholds: Array  # (m, depth): a question is "is the feature at most this?"
    counts: Array  # (m, 2 ** depth, K)


@dataclass
class FernBank(Bank[FernState]):
    """Random ferns (Ozuysal et al. 2010) that grow online.

    A fern asks ``depth`` questions "is feature j at most t?" and keeps weighted class counts for each pattern of
    answers. With counts n_k under a row's pattern and smoothing s, the score is half the log-odds,
    ``log((n_1 + s) / (n_0 + s)) / 2``. With more than two classes it is half the log-probability of each. The
    hyperbolic tangent of half the log-odds is the difference of the class probabilities, so the ramp loss clips the
    scores of which the fern is certain.

    Each question is the one of eight random candidates with the largest information gain given the questions before
    it. The questions are chosen after rows 4, 8, 16, ... and ``warmup``, from all rows seen so far. Those rows are
    then counted again under the new questions. So no row is lost, short streams get scores early, and long streams
    get good questions. Before row 4 all members abstain. Rows of weight 0 are scored and otherwise ignored.

    Parameters
    ----------
    n_members : int
        Number of ferns.
    depth : int
        Number of questions per fern.
    warmup : int
        Number of rows kept for choosing the questions.
    smoothing : float
        Added to each class count. The default is the Jeffreys prior for two classes.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(500, 2))
    >>> y = (X[:, 0] * X[:, 1] > 0).astype(int)
    >>> scores = FernBank(50, depth=6).start(n_features=2, rng=0).scores_then_learn(X, y)
    >>> votes = np.nanmean(scores[100:], axis=1) > 0
    >>> float(np.mean(votes == y[100:])) > 0.9
    True
    """

    n_members: int = 100
    depth: int = 8
    warmup: int = 512
    smoothing: float = 0.5

    def __post_init__(self) -> None:
        """Check the configuration."""
        who = type(self).__name__
        integer(who, "n_members", self.n_members)
        integer(who, "depth", self.depth)
        if self.depth > _DEEPEST:
            do = "A fern keeps 2**depth counts per class: use more ferns instead."
            raise InputError(who, "depth", f"must be at most {_DEEPEST}", str(self.depth), do)
        integer(who, "warmup", self.warmup, least=_FIRST_DRAW)
        positive(who, "smoothing", self.smoothing)

    def init(self, n_features: int, n_classes: int, rng: np.random.Generator) -> FernState:
        """Draw the candidates for every question."""
        questions = (self.n_members, self.depth)
        asked = rng.integers(n_features, size=(*questions, _CANDIDATES))
        columns, candidates = np.unique(asked, return_inverse=True)
        return FernState(
            columns=columns.astype(np.int32),
            candidates=candidates.reshape(asked.shape).astype(np.int32),
            places=rng.random(asked.shape),
            seen=np.zeros(1, dtype=np.intp),
            rows=np.zeros((self.warmup, len(columns))),
            labels=np.zeros(self.warmup, dtype=np.intp),
            weights=np.zeros(self.warmup),
            slot_of=np.full(n_features, -1, dtype=np.int32),
            slots=np.zeros(questions, dtype=np.int32),
            thresholds=np.zeros(questions),
            counts=np.zeros((self.n_members, 2**self.depth, n_classes)),
        )

    def score(self, rows: Rows) -> Array:
        """Score checked rows."""
        state, out = self.current_state, self.empty_scores(rows.n)
        self._answer(state, rows, NO_LABELS, NO_WEIGHTS, 0, rows.n, out)
        return self.shaped(out)

    def advance(self, rows: Rows, y: Labels, w: Array) -> Array:
        """Score checked row t before learning row t."""
        state, out = self.current_state, self.empty_scores(rows.n)
        top = 0
        while top < rows.n and state.seen[0] < self.warmup:
            missing = self._next_draw(state) - int(state.seen[0])
            kept = top + np.flatnonzero(w[top:])[:missing]
            due = len(kept) == missing
            end = int(kept[-1]) + 1 if due else rows.n
            self._answer(state, rows, y, w, top, end, out)
            self._keep(state, rows, y, w, kept)
            if due:
                self._draw(state)
            top = end
        if top < rows.n:
            self._answer(state, rows, y, w, top, rows.n, out)
        return self.shaped(out)

    def attributions(self, rows: Rows, coefficients: Array, shares: Array) -> Attribution:
        """Attribute scores to the questions, in the order in which they were chosen.

        A question's part is the score by the counts after its answer, minus the score before it. The start is the
        score by all counts of the fern.
        """
        state = self.current_state
        if state.seen[0] < _FIRST_DRAW:
            return nothing(rows)
        m, depth = state.slots.shape
        used = np.flatnonzero(state.slot_of >= 0)
        features = used[np.argsort(state.slot_of[used])][state.slots]  # (m, depth)
        of_class = coefficients.reshape(rows.n, m, -1)
        X, row, member = rows.todense(), np.arange(rows.n)[:, None], np.arange(m)
        parts, cells = np.zeros((rows.n, rows.width)), np.zeros((rows.n, m), dtype=np.intp)
        start = before = (of_class * self._prefix_scores(state, 0)[member, cells]).sum(axis=2)
        for q in range(depth):
            cells += (X[:, features[:, q]] <= state.thresholds[:, q]).astype(np.intp) << q
            after = (of_class * self._prefix_scores(state, q + 1)[member, cells]).sum(axis=2)
            parts += added_up(row, features[:, q], after - before, rows.width, rows.n)
            before = after
        asked = np.zeros((m, rows.width))
        asked[member[:, None], features] = 1.0
        return Attribution(parts, start.sum(axis=1), shares @ asked)

    def _prefix_scores(self, state: FernState, n_questions: int) -> Array:
        """Return scores (m, patterns, 1 or K) by the answers to the first questions only."""
        m, _, n_classes = state.counts.shape
        counts = state.counts.reshape(m, -1, 2**n_questions, n_classes).sum(axis=1) + self.smoothing
        if n_classes == 2:
            return np.asarray(np.log(counts[..., 1:] / counts[..., :1]) / 2)
        return np.asarray(np.log(counts / counts.sum(axis=2, keepdims=True)) / 2)

    def kept_rows(self) -> Array | None:
        """Return the first rows of the stream, with 0 for features that no candidate asks about."""
        state = self.current_state
        kept = np.zeros((int(state.seen[0]), len(state.slot_of)))
        kept[:, state.columns] = state.rows[: len(kept)]
        return kept

    def wider(self, n_features: int, rng: np.random.Generator) -> FernState:  # noqa: ARG002
        """Return the state for wider rows. The questions stay with the features that they were chosen from."""
        old = self.current_state
        unused = np.full(n_features - len(old.slot_of), -1, dtype=np.int32)
        return old._replace(slot_of=np.concatenate([old.slot_of, unused]))

    def least_bytes(self, n_features: int, n_classes: int) -> int:
        """Size of the counts and of the kept rows, which have at most one column per candidate."""
        asked = min(n_features, _CANDIDATES * self.n_members * self.depth)
        return 4 * n_features + 8 * (self.n_members << self.depth) * n_classes + self.warmup * asked

    def template(self, shape: Shape, arrays: Arrays) -> FernState:
        """Return a blank state with the file's number of columns, which depends on the random draw."""
        fresh = super().template(shape, arrays)
        n_columns = arrays["columns"].size
        return fresh._replace(columns=np.zeros(n_columns, dtype=np.int32), rows=np.zeros((self.warmup, n_columns)))

    def validate(self, state: FernState) -> None:
        """Raise an error for indices outside the arrays, which kernels do not check, and for negative counts."""
        all_finite(state, but=("rows",))
        d, n_columns, n_classes = len(state.slot_of), len(state.columns), state.counts.shape[2]
        seen = int(state.seen[0])
        require(0 <= seen <= self.warmup, f"seen must be from 0 to {self.warmup}")
        require(n_columns > 0 and bool(np.all(np.diff(state.columns) > 0)), "columns must ascend")
        require(within(state.columns, 0, d - 1), f"columns must be from 0 to {d - 1}")
        require(within(state.candidates, 0, n_columns - 1), f"candidates must be from 0 to {n_columns - 1}")
        require(within(state.places, 0, np.nextafter(1, 0)), "places must be at least 0 and below 1")
        require(within(state.labels, 0, n_classes - 1), f"labels must be from 0 to {n_classes - 1}")
        require(within(state.weights, 0, MOST_TOTAL), f"weights must be from 0 to {MOST_TOTAL:g}")
        require(within(state.counts, 0, MOST_TOTAL), f"counts must be from 0 to {MOST_TOTAL:g}")
        # The features in use have the slots 0, 1, ..., and each of them occurs in a question.
        used = np.flatnonzero(state.slot_of >= 0)
        asked = np.unique(state.slots)
        none_yet = len(used) == 0 and not np.any(state.slots) and seen < _FIRST_DRAW
        require(none_yet or np.array_equal(np.sort(state.slot_of[used]), asked), "slots must be those of slot_of")
        require(none_yet or np.array_equal(asked, np.arange(len(asked))), "slots must be numbered from 0")
        require(bool(np.all(np.isin(used, state.columns))), "slot_of must be of the columns")

    def _next_draw(self, state: FernState) -> int:
        return min(self.warmup, max(_FIRST_DRAW, 1 << int(state.seen[0]).bit_length()))

    def _answer(self, state: FernState, rows: Rows, y: Labels, w: Array, top: int, end: int, out: Array) -> None:
        """Score rows top to end, and count each row after its scores; without labels nothing is counted."""
        if state.seen[0] < _FIRST_DRAW:
            out[top:end] = np.nan
            return
        from bayesvote.members._fern_kernels import GROUP, answer

        def work(first: int, last: int) -> None:
            answer(rows, y, w, state, float(self.smoothing), top, end, first, last, out)

        parallel_for(work, self.n_members, block=GROUP, worth=(end - top) * self.n_members >= _WORTH_SHARING)

    def _keep(self, state: FernState, rows: Rows, y: Labels, w: Array, kept: NDArray[np.intp]) -> None:
        """Keep rows for choosing the questions."""
        place = slice(int(state.seen[0]), int(state.seen[0]) + len(kept))
        if rows.dense is None:
            state.rows[place] = rows.tocsr()[kept][:, state.columns].toarray()
        else:
            state.rows[place] = rows.dense[np.ix_(kept, state.columns)]
        state.labels[place] = y[kept]
        state.weights[place] = w[kept]
        state.seen[0] += len(kept)

    def _draw(self, state: FernState) -> None:
        """Choose the questions from the kept rows, and count those rows again."""
        from bayesvote.members._fern_kernels import choose, cuts

        n = int(state.seen[0])
        rows, y, w = state.rows[:n], state.labels[:n], state.weights[:n]
        values = np.ascontiguousarray(rows.T)
        found = np.empty_like(values)
        n_found = np.empty(rows.shape[1], dtype=np.intp)
        cuts(np.sort(values, axis=1), found, n_found)
        features = np.empty_like(state.slots)

        def work(first: int, last: int) -> None:
            choose(values, y, w, found, n_found, state, features, first, last)

        parallel_for(work, self.n_members, worth=n * state.slots.size >= _WORTH_SHARING)
        used, slots = np.unique(features, return_inverse=True)
        state.slots[:] = slots.reshape(features.shape)
        state.slot_of[:] = -1
        state.slot_of[state.columns[used]] = np.arange(len(used))
        state.counts[:] = 0.0
        starts = np.arange(0, rows.size + 1, rows.shape[1], dtype=np.int64)
        kept = Rows(n, rows.shape[1], rows, rows.reshape(-1), state.columns, starts, False)
        self._answer(state, kept, y, w, 0, n, self.empty_scores(n))
