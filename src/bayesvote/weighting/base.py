"""What all weighters share: the contract, and the arithmetic of states that are sums."""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesvote.core import checks as _checks
from bayesvote.core.checks import Array, InputTypeError, Labels
from bayesvote.core.state import Arrays, Part, Rng, S, Versioned, all_finite, require
from bayesvote.losses import MOST_LOSS, Loss, LossScale, of_labels
from bayesvote.weighting.agreement import Agreement, ByDraws

HIGHEST_LEVEL = 1 - 1e-9  # of credible intervals: with higher ones, rounding moves the ends


class Weighter(Versioned[S], Part):
    """Turns the members' losses into weights. Configuration only: the state is passed in and a new one returned.

    Losses ``g`` have the shape (m,) or (n, m), losses of every label ``G`` (n, K, m); NaN marks a member that abstains.
    """

    needs_log: ClassVar[bool] = False  # takes log g, so a loss of zero is refused
    learns_all_labels: ClassVar[bool] = False  # of more than two labels a row teaches more than ``of_truth`` tells
    needs_bounded: ClassVar[bool] = False  # takes 1 - 2g as a margin, so losses above 1 are refused
    usual_loss: ClassVar[str] = "ramp"  # of the members, unless another is asked for
    compares_horizons: ClassVar[bool] = False  # whether ``advance_near`` learns

    @property
    @abstractmethod
    def loss_scale(self) -> LossScale:
        """What the ensemble losses measure, which says how probabilities follow from them."""

    @abstractmethod
    def init(self, n_members: int) -> S:
        """State before any sample."""

    @abstractmethod
    def mean(self, state: S) -> Array:
        """Weights of the members, (m,); two per member, (m, 2), for a two-parameter posterior."""

    @abstractmethod
    def terms(self, weights: Array, G: Array) -> Array:
        """Each member's part (n, K, m) of the ensemble loss of every label; NaN where it abstains."""

    @abstractmethod
    def _update(self, state: S, g: Array, w: Array) -> S:
        """State after the rows of g, of weights w; the one that is given may be changed."""

    @abstractmethod
    def n_members(self, state: S) -> int:
        """How many members the state is about."""

    def merge(self, a: S, b: S) -> S:  # noqa: ARG002
        """Return the state that has seen both streams; only where states are sums."""
        raise self._not_a_sum("merge")

    def unlearn(self, state: S, g: ArrayLike, sample_weight: ArrayLike | None = None) -> S:  # noqa: ARG002
        """Return the state as if the rows g, learned before, had never been seen; only where states are sums."""
        raise self._not_a_sum("unlearn")

    def _not_a_sum(self, method: str) -> InputTypeError:
        """Return the error of methods that need states that are sums."""
        purpose = {"merge": "be merged", "unlearn": "take rows back"}[method]
        must = f"must be sums to {purpose}, and these depend on the order of the samples"
        do = "Use one whose states are, weighter='gamma_rate' or 'joint_gaussian': GammaRate() or JointGaussian()."
        return InputTypeError(f"{self.who}.{method}", "states", must, do=do)

    def sums(self, n_members: int) -> Any:
        """Sums over no rows, to gather in parts what a state follows from; refused where states are not sums.

        ``summed`` adds rows to them, ``added`` another part's sums, and ``from_sums`` makes a state of them. By default
        they are states themselves; a posterior that is costly to work out does so in ``from_sums`` only.
        """
        self.merge(self.init(1), self.init(1))  # refuses
        return self.init(n_members)

    def summed(self, sums: Any, g: Array, w: Array) -> Any:
        """Sums after checked rows g of weights w; those that are given may be changed."""
        return self._update(sums, g, w)

    def added(self, sums: Any, others: Any) -> Any:
        """Sums over the rows of both parts."""
        return self.merge(sums, others)

    def completed(self, sums: Any, heard: Array) -> Any:  # noqa: ARG002
        """Sums as if every member had been asked about every row.

        ``heard`` (m, m) says of what share of the rows two members were both asked, on the diagonal a member. By
        default nothing is to be done, as each member has a count of its own.
        """
        return sums

    def rescale_for_abstentions(self, state: S, losses: Array, silent: NDArray[np.bool_]) -> Array:  # noqa: ARG002
        """Ensemble losses of rows on which these members were not asked, on the scale that they have with them.

        By default as they are: most scales are those of the members that were asked.
        """
        return losses

    def from_sums(self, sums: Any) -> S:
        """State after the rows of the sums."""
        state: S = sums
        return state

    def least_bytes(self, n_members: int) -> int:
        """How many bytes a state has at least, found without making one: by default in proportion to the members."""
        return 8 * n_members * int(self.init(1)[0].size)

    def restore_state(self, n_members: int, version: int, arrays: Arrays, room: int) -> S:
        """State that a file brings, after checking all of it; one of more than ``room`` bytes is refused."""
        if self.least_bytes(n_members) > room:
            raise ValueError(f"{self.who}: a state of {self.least_bytes(n_members)} bytes or more in a file of {room}")
        return self.load_state(self.init(n_members), version, arrays)

    def losses_at(self, weights: Array, G: Array) -> Array:
        """Ensemble loss (n, K) of every label at given weights; members that abstain add nothing."""
        return np.asarray(np.nansum(self.terms(weights, G), axis=-1))

    def update(self, state: S, g: ArrayLike, sample_weight: ArrayLike | None = None) -> S:
        """State after the losses g, (m,) for one sample or (n, m) for n."""
        rows = np.atleast_2d(np.ascontiguousarray(g, dtype=np.float64))
        self._check_losses("update", rows, (len(rows), self.n_members(state)), "g")
        w = _checks.weights(f"{self.who}.update", sample_weight, len(rows))
        self.check_room(state, w)
        return self._update(copied(state), rows, w)

    def losses(self, state: S, G: ArrayLike) -> Array:
        """Ensemble loss (n, K) of every label for every row."""
        return self.rule(state)(self._check_label_losses("losses", state, G))

    def rule(self, state: S) -> Callable[[Array], Array]:
        """Give the ensemble losses (n, K) of checked G (n, K, m), a chunk after the other: by default at the mean."""
        weights = self.mean(state)
        return lambda G: self.losses_at(weights, G)

    def losses_then_update(
        self, state: S, G: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> tuple[Array, S]:
        """Ensemble losses (n, K), row t before it is learned, and the state after the last row."""
        checked = self._check_label_losses("losses_then_update", state, G)
        who = f"{self.who}.losses_then_update"
        labels = _checks.labels(who, y, len(checked), checked.shape[1])
        w = _checks.weights(who, sample_weight, len(checked))
        self.check_room(state, w)
        return self.advance(copied(state), checked, labels, w)

    def of_truth(self, G: Array, y: Labels) -> Array:
        """What ``update`` learns from (n, m), of rows whose label is y."""
        return np.asarray(G[np.arange(len(G)), y])

    def check_room(self, state: S, w: Array) -> None:
        """Refuse rows that the weighter could not take; most take any number."""

    def advance(self, state: S, G: Array, y: Labels, w: Array) -> tuple[Array, S]:
        """Do what losses_then_update does, for a caller that has checked its input and gives the state up.

        The state that is given may be changed: an ensemble would otherwise copy all of it with every row.
        """
        out = np.empty(G.shape[:2])
        for t in range(len(G)):
            row = slice(t, t + 1)
            out[t] = self.rule(state)(G[row])[0]
            state = self._update(state, self.of_truth(G[row], y[row]), w[row])
        return out, state

    def n_log_likelihoods(self, n_classes: int) -> int:  # noqa: ARG002
        """Return how many numbers per row posteriors are compared by once the label is known; 0 if there are none."""
        return 0

    def check_log_likelihoods(self, log_likelihoods: Array) -> None:
        """Refuse numbers that ``forecast`` does not return."""

    def forecast(self, state: S, G: Array) -> tuple[Array, Array]:
        """Return ensemble losses (n, K), and what posteriors are compared by once the labels are known (n, f)."""
        return self.rule(state)(G), np.empty((len(G), 0))

    def advance_late(
        self,
        state: S,
        G: Array,
        y: Labels,
        w: Array,
        log_likelihoods: Array,  # noqa: ARG002
        G_now: Array,  # noqa: ARG002
    ) -> tuple[Array, S]:
        """Do what advance does for labels that come late: G are the losses of the moment of prediction.

        ``log_likelihoods`` (n, n_log_likelihoods) are written for rows of weight 0, which are predicted, and read for
        rows that are learned. ``G_now`` are the losses of the moment at which the labels come. By default nothing
        depends on either.
        """
        return self.advance(state, G, y, w)

    def advance_near(self, state: S, G: Array, y: Labels, w: Array) -> tuple[Array, S]:  # noqa: ARG002
        """Give the losses of rows that members learn at once, while weights are learned from late labels.

        By default such rows teach the weights nothing.
        """
        return self.rule(state)(G), state

    def advance_scores(self, state: S, loss: str | Loss, scores: Array, y: Labels, w: Array) -> tuple[Array, S]:
        """Do what advance does, from the members' scores and their loss."""
        return self.advance(state, of_labels(loss, scores), y, w)

    def _check_label_losses(self, method: str, state: S, G: ArrayLike) -> Array:
        checked = np.ascontiguousarray(G, dtype=np.float64)
        n, k = (checked.shape[0], checked.shape[1]) if checked.ndim == 3 else (1, 2)
        self._check_losses(method, checked, (n, max(k, 2), self.n_members(state)), "G")
        return checked

    def _check_losses(self, method: str, g: Array, shape: tuple[int, ...], name: str) -> None:
        from bayesvote.weighting._sum_kernels import first_bad_loss

        if g.shape != shape:
            raise ValueError(f"{self.who}.{method}: {name} must have shape {shape}, got {g.shape}.")
        at = first_bad_loss(g.reshape(-1), self.needs_log)
        if at < 0:
            if self.needs_bounded and np.any(g > 1):
                raise ValueError(
                    f"{self.who}.{method}: losses must be at most 1, because 1 - 2g is taken as a margin, "
                    f"got {g[g > 1][0]}. Use loss='ramp' or 'zero_one'."
                )
            return
        bad = g.reshape(-1)[at]
        if bad == 0:
            raise ValueError(
                f"{self.who}.{method}: losses must be above 0, because their logarithm is taken, got 0. "
                "Use loss='logistic', which never reaches 0."
            )
        raise ValueError(
            f"{self.who}.{method}: losses must be finite, at least 0 and at most {MOST_LOSS:g}, got {bad}. "
            "Use NaN for a member that abstains."
        )


class LinearRule:
    """Rule (12): the loss of a label is the weighted sum of the members' losses, times a factor."""

    @property
    def _scale(self) -> float:
        return 1.0

    def terms(self, weights: Array, G: Array) -> Array:
        """Members' parts of (8) that depend on the label."""
        return self._scale * weights * G

    def losses_at(self, weights: Array, G: Array) -> Array:
        """Both sides of rule (12)."""
        from bayesvote.weighting._sum_kernels import dots

        out = np.empty(G.shape[:2])
        dots(self._scale * weights, G, out)
        return out


def require_memory(who: str, method: str, forgetting: float) -> None:
    """Refuse what only a state that keeps all of the past can do."""
    if forgetting != 1:
        what = {
            "merge": "States that fade do not know how much of either stream the other one would have faded.",
            "unlearn": "A state that fades does not know how much of a sample is left.",
        }
        raise TypeError(f"{who}.{method}: forgetting must be 1, got {forgetting}. {what[method]}")


def copied(state: S) -> S:
    """State of the same arrays, copied."""
    copy: S = type(state)(*(array.copy() for array in state))
    return copy


class Posterior(Weighter[S]):
    """A weighter that knows how sure it is of its weights."""

    @abstractmethod
    def variance(self, state: S) -> Array:
        """Posterior variance of every weight, shaped like the mean."""

    @abstractmethod
    def _quantile(self, state: S, probability: float) -> Array:
        """Posterior quantile of every weight, shaped like the mean."""

    @abstractmethod
    def _sample(self, state: S, size: int, rng: np.random.Generator) -> Array:
        """Draws (size, m), or (size, m, 2), from the posterior."""

    @abstractmethod
    def effective_samples(self, state: S) -> Array:
        """How many samples the posterior of every member rests on: the weights' sum, faded by forgetting."""

    @property
    def counts_rows(self) -> bool:
        """Whether the effective samples are all that were learned, as nothing fades."""
        return bool(getattr(self, "forgetting", 1.0) == 1)

    def learned_weight(self, state: S) -> float | None:
        """How many samples were learned, if the state still tells."""
        # Members do not count rows they abstained on: take the largest count.
        return float(self.effective_samples(state).max()) if self.counts_rows else None

    def interval(self, state: S, level: float = 0.95) -> tuple[Array, Array]:
        """Equal-tailed credible interval of every weight: lower and upper ends, shaped like the mean."""
        if not 0 < level <= HIGHEST_LEVEL:
            raise ValueError(f"{self.who}.interval: level must be above 0 and at most 1 - 1e-9, got {level!r}.")
        return self._quantile(state, (1 - level) / 2), self._quantile(state, (1 + level) / 2)

    def sample(self, state: S, size: int, rng: Rng = None) -> Array:
        """Draw ``size`` weight vectors from the posterior."""
        _checks.integer(f"{self.who}.sample", "size", size)
        return self._sample(state, size, np.random.default_rng(rng))

    def draws_agreement(self, n_labels: int) -> bool:  # noqa: ARG002
        """Whether ``agreement`` about so many labels takes draws, and its time."""
        return True

    def agreement(self, state: S, size: int, rng: Rng = 0) -> Agreement:
        """Give, of checked losses G and decisions about them, how probably weights of the posterior decide so, too.

        By ``size`` draws; a posterior that knows the probability itself needs none.
        """
        return ByDraws(self.sample(state, size, rng), self.losses_at)

    def probability_best(self, state: S, size: int = 10_000, rng: Rng = 0) -> Array:
        """Probability that each member is the best, by ``size`` posterior draws.

        The best is the one of least loss for the Gamma posteriors, and the one of the largest weight otherwise, which
        for :class:`JointGaussian` is another thing: a poor member that corrects the others can have it. Members that
        cannot be told apart share the probability. The Monte Carlo error is at most 1/(2 sqrt(size)).
        """
        best = self.trust(self.sample(state, size, rng)).argmax(axis=1)
        return np.bincount(best, minlength=self.n_members(state)) / size

    def trust(self, draws: Array) -> Array:
        """Draws of what is largest for the best member: the weights, unless a posterior knows better."""
        return draws


class SumState(NamedTuple):
    """Sums over the samples: a row per statistic, the count first; a column per member.

    ``carry`` is what rounding took from ``total``; their sum is the sum, right to about 1e-16 however many samples.
    """

    total: Array
    carry: Array

    @property
    def value(self) -> Array:
        """The sums, (statistics, m)."""
        return self.total + self.carry

    @property
    def settled(self) -> "SumState":
        """The same sums with a small carry, which subtraction may have left larger than the total (Knuth's two-sum)."""
        part = self.value - self.total
        return SumState(self.value, (self.total - (self.value - part)) + (self.carry - part))


class Additive(Posterior[SumState]):
    """A posterior whose state is a count and sums of statistics, for every member on its own.

    Updating adds, merging adds, unlearning subtracts, forgetting fades before it adds.
    """

    forgetting: float

    @property
    def n_statistics(self) -> int:
        """How many sums a member has, its count among them."""
        return 2

    @abstractmethod
    def _statistics(self, g: Array) -> Array:
        """What is summed besides the count, (statistics - 1, n, m); NaN where a member abstains."""

    def init(self, n_members: int) -> SumState:
        """State before any sample."""
        _checks.integer(f"{self.who}.init", "n_members", n_members)
        return SumState(np.zeros((self.n_statistics, n_members)), np.zeros((self.n_statistics, n_members)))

    def n_members(self, state: SumState) -> int:
        """How many members the state is about."""
        return int(state.total.shape[1])

    def validate(self, state: SumState) -> None:
        """Refuse counts below 0, and carries that no rounding leaves."""
        all_finite(state)
        slack = 1e-6 * (1 + np.abs(state.total).max(axis=1, keepdims=True))
        require(not np.any(state.value[0] < -1e-3 * slack[0]), "counts must be at least 0")
        require(not np.any(np.abs(state.carry) > slack), "carry must be small beside total")

    def effective_samples(self, state: SumState) -> Array:
        """How many samples the posterior of every member rests on."""
        return np.asarray(state.value[0])

    def _update(self, state: SumState, g: Array, w: Array) -> SumState:
        from bayesvote.weighting._sum_kernels import accumulate

        accumulate(state.total, state.carry, self._statistics(g), w, self.forgetting)
        return state

    def merge(self, a: SumState, b: SumState) -> SumState:
        """State that has seen both streams."""
        from bayesvote.weighting._sum_kernels import add

        require_memory(self.who, "merge", self.forgetting)
        if a.total.shape != b.total.shape:
            raise ValueError(
                f"{self.who}.merge: states must be about the same members, "
                f"got {self.n_members(a)} and {self.n_members(b)}."
            )
        total, carry = a.total.copy(), a.carry.copy()
        add(total.reshape(-1), carry.reshape(-1), b.total.reshape(-1), 1.0)
        merged = SumState(total, carry + b.carry)
        try:
            self.validate(merged)
        except ValueError as error:
            raise ValueError(
                f"{self.who}.merge: both states must add up to one that can be saved, but {error}. "
                "Merge states of different rows only."
            ) from None
        return merged

    def unlearn(self, state: SumState, g: ArrayLike, sample_weight: ArrayLike | None = None) -> SumState:
        """State as if the rows g, learned before, had never been seen.

        Rows that were never learned are refused if no stream leads to what would be left; the sums cannot tell more.
        """
        require_memory(self.who, "unlearn", self.forgetting)
        rows = np.atleast_2d(np.ascontiguousarray(g, dtype=np.float64))
        self._check_losses("unlearn", rows, (len(rows), self.n_members(state)), "g")
        w = _checks.weights(f"{self.who}.unlearn", sample_weight, len(rows))
        after = self._update(copied(state), rows, -w).settled
        if np.any(after.value[0] < -1e-9 * np.maximum(1.0, state.value[0])):
            raise ValueError(
                f"{self.who}.unlearn: only rows that were learned can be unlearned, "
                f"got {w.sum():g} to take from {state.value[0].min():g}."
            )
        try:
            self.validate(after)
        except ValueError as error:
            raise ValueError(f"{self.who}.unlearn: only rows that were learned can be unlearned; {error}.") from None
        return after
