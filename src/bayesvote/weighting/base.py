"""Base classes of weighters: the interface, and the arithmetic of states that are sums."""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesvote.core import checks as _checks
from bayesvote.core.checks import Array, InputError, InputTypeError, Labels
from bayesvote.core.state import Arrays, Part, Rng, S, Versioned, all_finite, check_size, require
from bayesvote.losses import MOST_LOSS, Loss, LossScale, of_labels
from bayesvote.weighting.agreement import Agreement, ByDraws

# Of credible intervals. The tail probabilities (1 - level)/2 lose digits beyond it: 1 - 1e-9 has 7 of 16 left.
HIGHEST_LEVEL = 1 - 1e-9


class Weighter(Versioned[S], Part):
    """A rule that turns the members' losses into weights.

    A weighter holds parameters only: methods take a state and return the new one. Losses ``g`` have the shape (m,) or
    (n, m), losses of every label ``G`` have the shape (n, K, m). NaN marks a member that abstains.
    """

    needs_log: ClassVar[bool] = False  # True if it takes log g, so that a loss of 0 is an error
    learns_all_labels: ClassVar[bool] = False  # True if, with more than two labels, it learns more than ``of_truth``
    needs_bounded: ClassVar[bool] = False  # True if it takes 1 - 2g as a margin, so that a loss above 1 is an error
    usual_loss: ClassVar[str] = "ramp"  # default loss of the members
    compares_horizons: ClassVar[bool] = False  # True if ``advance_near`` learns

    @property
    @abstractmethod
    def loss_scale(self) -> LossScale:
        """Meaning of the ensemble losses, from which probabilities are computed."""

    @abstractmethod
    def init(self, n_members: int) -> S:
        """Return the state before any sample."""

    @abstractmethod
    def mean(self, state: S) -> Array:
        """Return the weights of the members, (m,); for a two-parameter posterior (m, 2)."""

    @abstractmethod
    def terms(self, weights: Array, G: Array) -> Array:
        """Return each member's part (n, K, m) of the ensemble loss of every label; NaN where it abstains."""

    @abstractmethod
    def _update(self, state: S, g: Array, w: Array) -> S:
        """Return the state after the rows of g with weights w; may change the given state."""

    @abstractmethod
    def n_members(self, state: S) -> int:
        """Return the number of members of the state."""

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
        """Return the sums over no rows, for shards to add up; an error where states are not sums.

        ``summed`` adds rows, ``added`` adds the sums of another shard, and ``from_sums`` computes a state. By default
        the sums are states. A posterior that is expensive to compute is computed in ``from_sums`` only.
        """
        self.merge(self.init(1), self.init(1))  # raises where states are not sums
        return self.init(n_members)

    def summed(self, sums: Any, g: Array, w: Array) -> Any:
        """Return the sums after checked rows g with weights w; may change the given sums."""
        return self._update(sums, g, w)

    def added(self, sums: Any, others: Any) -> Any:
        """Return the sums over the rows of both shards."""
        return self.merge(sums, others)

    def completed(self, sums: Any, heard: Array) -> Any:  # noqa: ARG002
        """Return the sums as if every member had scored every row.

        ``heard`` (m, m) is the share of the rows that two members both scored; on the diagonal, that one member scored.
        By default the sums stay the same, as each member has its own count.
        """
        return sums

    def rescale_for_abstentions(self, state: S, losses: Array, silent: NDArray[np.bool_]) -> Array:  # noqa: ARG002
        """Return the ensemble losses of rows that the ``silent`` members did not score, on the scale of all members.

        By default the losses stay the same: most depend on the members that scored only.
        """
        return losses

    def from_sums(self, sums: Any) -> S:
        """Return the state after the rows of the sums."""
        state: S = sums
        return state

    def least_bytes(self, n_members: int) -> int:
        """Return the least size of a state in bytes, without allocating one; by default proportional to the members."""
        return 8 * n_members * int(self.init(1)[0].size)

    def restore_state(self, n_members: int, version: int, arrays: Arrays, room: int) -> S:
        """Return the checked state of a file; a state of more than ``room`` bytes is an error."""
        check_size(self.who, self.least_bytes(n_members), room)
        return self.load_state(self.init(n_members), version, arrays)

    def losses_at(self, weights: Array, G: Array) -> Array:
        """Return the ensemble loss (n, K) of every label at given weights; members that abstain add nothing."""
        return np.asarray(np.nansum(self.terms(weights, G), axis=-1))

    def update(self, state: S, g: ArrayLike, sample_weight: ArrayLike | None = None) -> S:
        """Return the state after the losses g, (m,) for one sample or (n, m) for n."""
        rows = np.atleast_2d(np.ascontiguousarray(g, dtype=np.float64))
        self._check_losses("update", rows, (len(rows), self.n_members(state)), "g")
        w = _checks.weights(f"{self.who}.update", sample_weight, len(rows))
        self.check_room(state, w)
        return self._update(copied(state), rows, w)

    def losses(self, state: S, G: ArrayLike) -> Array:
        """Return the ensemble loss (n, K) of every label for every row."""
        return self.rule(state)(self._check_label_losses("losses", state, G))

    def rule(self, state: S) -> Callable[[Array], Array]:
        """Return a function from checked G (n, K, m) to ensemble losses (n, K); by default at the mean weights."""
        weights = self.mean(state)
        return lambda G: self.losses_at(weights, G)

    def losses_then_update(
        self, state: S, G: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> tuple[Array, S]:
        """Return ensemble losses (n, K), row t before it is learned, and the state after the last row."""
        checked = self._check_label_losses("losses_then_update", state, G)
        who = f"{self.who}.losses_then_update"
        labels = _checks.labels(who, y, len(checked), checked.shape[1])
        w = _checks.weights(who, sample_weight, len(checked))
        self.check_room(state, w)
        return self.advance(copied(state), checked, labels, w)

    def of_truth(self, G: Array, y: Labels) -> Array:
        """Return the losses (n, m) that ``update`` takes, of rows with labels y."""
        return np.asarray(G[np.arange(len(G)), y])

    def check_room(self, state: S, w: Array) -> None:
        """Raise an error for rows that the weighter cannot learn; most can learn any number."""

    def advance(self, state: S, G: Array, y: Labels, w: Array) -> tuple[Array, S]:
        """Do what ``losses_then_update`` does for checked input; the given state may be changed.

        An ensemble would otherwise copy the whole state with every row.
        """
        out = np.empty(G.shape[:2])
        for t in range(len(G)):
            row = slice(t, t + 1)
            out[t] = self.rule(state)(G[row])[0]
            state = self._update(state, self.of_truth(G[row], y[row]), w[row])
        return out, state

    def n_log_likelihoods(self, n_classes: int) -> int:  # noqa: ARG002
        """Return the size of a row of ``log_likelihoods``, by which posteriors are compared later; 0 for none."""
        return 0

    def check_log_likelihoods(self, log_likelihoods: Array) -> None:
        """Raise an error for numbers that ``forecast`` cannot return."""

    def forecast(self, state: S, G: Array) -> tuple[Array, Array]:
        """Return ensemble losses (n, K), and the log-likelihoods (n, f) by which posteriors are compared later."""
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
        """Do what ``advance`` does for late labels: G are the losses when the rows were predicted.

        ``log_likelihoods`` (n, n_log_likelihoods) are written for rows of weight 0, which are predicted, and read for
        rows that are learned. ``G_now`` are the losses when the labels arrive. By default neither is used.
        """
        return self.advance(state, G, y, w)

    def advance_near(self, state: S, G: Array, y: Labels, w: Array) -> tuple[Array, S]:  # noqa: ARG002
        """Return the losses of rows that members learn at once, while weights are learned from late labels.

        By default the weights learn nothing from such rows.
        """
        return self.rule(state)(G), state

    def advance_scores(self, state: S, loss: str | Loss, scores: Array, y: Labels, w: Array) -> tuple[Array, S]:
        """Do what ``advance`` does, from the members' scores and their loss."""
        return self.advance(state, of_labels(loss, scores), y, w)

    def _check_label_losses(self, method: str, state: S, G: ArrayLike) -> Array:
        checked = np.ascontiguousarray(G, dtype=np.float64)
        n, k = (checked.shape[0], checked.shape[1]) if checked.ndim == 3 else (1, 2)
        self._check_losses(method, checked, (n, max(k, 2), self.n_members(state)), "G")
        return checked

    def _check_losses(self, method: str, g: Array, shape: tuple[int, ...], name: str) -> None:
        from bayesvote.weighting._sum_kernels import first_bad_loss

        who = f"{self.who}.{method}"
        if g.shape != shape:
            raise InputError(who, name, f"must have shape {shape}", str(g.shape))
        at = first_bad_loss(g.reshape(-1), self.needs_log)
        if at < 0:
            if self.needs_bounded and np.any(g > 1):
                must, do = "must be at most 1, because 1 - 2g is taken as a margin", "Use loss='ramp' or 'zero_one'."
                raise InputError(who, "losses", must, str(g[g > 1][0]), do)
            return
        bad = g.reshape(-1)[at]
        if bad == 0:
            must, do = (
                "must be above 0, because their logarithm is taken",
                "Use loss='logistic', which never reaches 0.",
            )
            raise InputError(who, "losses", must, "0", do)
        must = f"must be finite, at least 0 and at most {MOST_LOSS:g}"
        raise InputError(who, "losses", must, str(bad), "Use NaN for a member that abstains.")


class LinearRule:
    """Rule (12): the loss of a label is the weighted sum of the members' losses, times a factor."""

    @property
    def _scale(self) -> float:
        return 1.0

    def terms(self, weights: Array, G: Array) -> Array:
        """Return each member's part of (8), as far as it depends on the label."""
        return self._scale * weights * G

    def losses_at(self, weights: Array, G: Array) -> Array:
        """Return the sums that rule (12) compares."""
        from bayesvote.weighting._sum_kernels import dots

        out = np.empty(G.shape[:2])
        dots(self._scale * weights, G, out)
        return out


def require_memory(who: str, method: str, forgetting: float) -> None:
    """Raise an error if the state forgets, for a method that needs all of the past."""
    if forgetting != 1:
        reason = {
            "merge": "States that fade do not know how much of either stream the other one would have faded.",
            "unlearn": "A state that fades does not know how much of a sample is left.",
        }
        raise InputTypeError(f"{who}.{method}", "forgetting", "must be 1", str(forgetting), reason[method])


def copied(state: S) -> S:
    """Return a copy of the state and its arrays."""
    copy: S = type(state)(*(array.copy() for array in state))
    return copy


class Posterior(Weighter[S]):
    """A weighter with a posterior distribution over the weights."""

    @abstractmethod
    def variance(self, state: S) -> Array:
        """Return the posterior variance of every weight, with the shape of the mean."""

    @abstractmethod
    def _quantile(self, state: S, probability: float) -> Array:
        """Return the posterior quantile of every weight, with the shape of the mean."""

    @abstractmethod
    def _sample(self, state: S, size: int, rng: np.random.Generator) -> Array:
        """Draw (size, m), or (size, m, 2), weights from the posterior."""

    @abstractmethod
    def effective_samples(self, state: S) -> Array:
        """Return the sum of the sample weights behind each member's posterior, after forgetting."""

    @property
    def counts_rows(self) -> bool:
        """True if nothing fades, so that the effective samples are all samples learned."""
        return bool(getattr(self, "forgetting", 1.0) == 1)

    def learned_weight(self, state: S) -> float | None:
        """Return the sum of all sample weights learned; None if the state does not keep it."""
        # Members do not count rows they abstained on: take the largest count.
        return float(self.effective_samples(state).max()) if self.counts_rows else None

    def interval(self, state: S, level: float = 0.95) -> tuple[Array, Array]:
        """Return lower and upper ends of an equal-tailed credible interval, each with the shape of the mean."""
        if not 0 < level <= HIGHEST_LEVEL:
            raise InputError(f"{self.who}.interval", "level", "must be above 0 and at most 1 - 1e-9", repr(level))
        return self._quantile(state, (1 - level) / 2), self._quantile(state, (1 + level) / 2)

    def sample(self, state: S, size: int, rng: Rng = None) -> Array:
        """Draw ``size`` weight vectors from the posterior."""
        _checks.integer(f"{self.who}.sample", "size", size)
        return self._sample(state, size, np.random.default_rng(rng))

    def draws_agreement(self, n_labels: int) -> bool:  # noqa: ARG002
        """Return True if ``agreement`` uses random draws for this number of labels."""
        return True

    def agreement(self, state: S, size: int, rng: Rng = 0) -> Agreement:
        """Return a function from checked losses G and decisions to the probability of the same decisions.

        That is the posterior probability of weights that make the same decision. It is estimated from ``size`` draws,
        unless the posterior knows it in closed form.
        """
        return ByDraws(self.sample(state, size, rng), self.losses_at)

    def probability_best(self, state: S, size: int = 10_000, rng: Rng = 0) -> Array:
        """Return the probability that each member is the best, estimated from ``size`` posterior draws.

        For the Gamma posteriors the best member has the least loss, otherwise the largest weight. With
        :class:`JointGaussian` that can be a poor member that corrects the others. Members with the same losses share
        the probability. The Monte Carlo standard error is at most 1/(2 sqrt(size)).
        """
        best = self.trust(self.sample(state, size, rng)).argmax(axis=1)
        return np.bincount(best, minlength=self.n_members(state)) / size

    def trust(self, draws: Array) -> Array:
        """Return draws of the quantity that is largest for the best member; by default the weights."""
        return draws


class SumState(NamedTuple):
    """Compensated sums over the samples: a row per statistic, the count first, and a column per member.

    ``carry`` holds the rounding error of ``total``. Their sum has a relative error of about 1e-16 for any number of
    samples.
    """

    total: Array
    carry: Array

    @property
    def value(self) -> Array:
        """Sums, (statistics, m)."""
        return self.total + self.carry

    @property
    def settled(self) -> "SumState":
        """The same sums with a small carry, by Knuth's two-sum; subtraction can leave a carry above the total."""
        part = self.value - self.total
        return SumState(self.value, (self.total - (self.value - part)) + (self.carry - part))


class Additive(Posterior[SumState]):
    """A posterior whose state is a count and sums of statistics, separate for every member.

    Updating and merging add, unlearning subtracts, and forgetting multiplies by a factor before it adds.
    """

    forgetting: float

    @property
    def n_statistics(self) -> int:
        """Number of sums per member, including the count."""
        return 2

    @abstractmethod
    def _statistics(self, g: Array) -> Array:
        """Return the summands besides the count, (statistics - 1, n, m); NaN where a member abstains."""

    def init(self, n_members: int) -> SumState:
        """Return the state before any sample."""
        _checks.integer(f"{self.who}.init", "n_members", n_members)
        return SumState(np.zeros((self.n_statistics, n_members)), np.zeros((self.n_statistics, n_members)))

    def n_members(self, state: SumState) -> int:
        """Return the number of members of the state."""
        return int(state.total.shape[1])

    def validate(self, state: SumState) -> None:
        """Reject counts below 0, and carries that are too large to be rounding errors."""
        all_finite(state)
        # Rounding errors are 1e-16 of the largest total; unlearning may leave a carry from a larger total, so 1e-6.
        slack = 1e-6 * (1 + np.abs(state.total).max(axis=1, keepdims=True))
        require(not np.any(state.value[0] < -1e-3 * slack[0]), "counts must be at least 0")  # up to -1e-9 by rounding
        require(not np.any(np.abs(state.carry) > slack), "carry must be small compared with total")

    def effective_samples(self, state: SumState) -> Array:
        """Return the sum of the sample weights of every member."""
        return np.asarray(state.value[0])

    def _update(self, state: SumState, g: Array, w: Array) -> SumState:
        from bayesvote.weighting._sum_kernels import accumulate

        accumulate(state.total, state.carry, self._statistics(g), w, self.forgetting)
        return state

    def merge(self, a: SumState, b: SumState) -> SumState:
        """Return the state that has seen both streams."""
        from bayesvote.weighting._sum_kernels import add

        require_memory(self.who, "merge", self.forgetting)
        if a.total.shape != b.total.shape:
            must, got = "must be about the same members", f"{self.n_members(a)} and {self.n_members(b)}"
            raise InputError(f"{self.who}.merge", "states", must, got)
        total, carry = a.total.copy(), a.carry.copy()
        add(total.reshape(-1), carry.reshape(-1), b.total.reshape(-1), 1.0)
        merged = SumState(total, carry + b.carry)
        try:
            self.validate(merged)
        except ValueError as error:
            must = f"must add up to one that can be saved, but {error}"
            do = "Merge states of different rows only."
            raise InputError(f"{self.who}.merge", "both states", must, do=do) from None
        return merged

    def unlearn(self, state: SumState, g: ArrayLike, sample_weight: ArrayLike | None = None) -> SumState:
        """Return the state as if the rows g, learned before, had never been seen.

        Rows that were never learned are rejected if no stream leads to the sums without them.
        """
        require_memory(self.who, "unlearn", self.forgetting)
        rows = np.atleast_2d(np.ascontiguousarray(g, dtype=np.float64))
        self._check_losses("unlearn", rows, (len(rows), self.n_members(state)), "g")
        w = _checks.weights(f"{self.who}.unlearn", sample_weight, len(rows))
        after = self._update(copied(state), rows, -w).settled
        who, subject, must = f"{self.who}.unlearn", "only rows that were learned", "can be unlearned"
        if np.any(after.value[0] < -1e-9 * np.maximum(1.0, state.value[0])):  # by more than rounding
            raise InputError(who, subject, must, f"{w.sum():g} to take from {state.value[0].min():g}")
        try:
            self.validate(after)
        except ValueError as error:
            raise InputError(who, subject, f"{must}; {error}") from None
        return after
