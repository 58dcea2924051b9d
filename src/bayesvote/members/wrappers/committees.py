"""Committees: members that share one weight, so that fewer weights have to be learned."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np

from bayesvote.core.checks import Array, InputError, Labels, integer
from bayesvote.core.rows import Rows
from bayesvote.members.attribution import Attribution
from bayesvote.members.base import Bank, check_bank
from bayesvote.members.wrappers.base import WrapperBank

_LARGEST_RATIO = 2.0  # see ``Committees.attributions``


@dataclass
class Committees(WrapperBank[Any]):
    """A bank whose members vote in committees. The score of a committee averages its members' probabilities.

    Members' scores are taken as half the log-odds of class 1, as trees give them; with more than two classes, as half
    the log-probabilities. The committee's score has the same form. Members that abstain are left out of the mean. A
    committee abstains if all of its members do. Members learn as they would without committees.

    Each weight costs rows until it is learned. Members that differ only by chance, such as random trees, do not need
    weights of their own.

    Parameters
    ----------
    bank
        The members.
    sizes
        Number of members in each committee, in order. The sizes must sum to all members.

    Examples
    --------
    >>> from bayesvote.members.perceptron import PerceptronBank
    >>> bank = Committees(PerceptronBank(n_members=5), sizes=[3, 2]).start(n_features=2, rng=0)
    >>> bank.n_members, bank.member_names()
    (2, ['3 x Perceptron', '2 x Perceptron'])
    """

    sizes: Sequence[int]

    def __post_init__(self) -> None:
        """Check the bank and the sizes."""
        check_bank("Committees", self.bank)
        for size in self.sizes:
            integer("Committees", "sizes", size)
        if sum(self.sizes) != self.bank.n_members:
            must = f"must sum to the {self.bank.n_members} members of the bank"
            got = f"{list(self.sizes)}, which sum to {sum(self.sizes)}"
            raise InputError("Committees", "sizes", must, got)
        self._ends = np.cumsum(self.sizes)
        super().__post_init__()

    @property
    def n_members(self) -> int:
        """Number of committees."""
        return len(self.sizes)

    def rebuilt(self, change: Callable[[Bank[Any]], Bank[Any]]) -> "Committees":
        """Return committees of the changed bank."""
        return Committees(change(self.bank), self.sizes)

    def score(self, rows: Rows) -> Array:
        """Score checked rows."""
        return self._averaged(self.bank.score(rows))

    def advance(self, rows: Rows, y: Labels, w: Array) -> Array:
        """Score checked row t before learning row t."""
        return self._averaged(self.bank.advance(rows, y, w))

    def attributions(self, rows: Rows, coefficients: Array, shares: Array) -> Attribution:
        """Attribute the members' scores, each member counting equally in its committee.

        A committee's score is close to the mean of its members' scores, but not equal to it. Where the members agree,
        the ratio of the two is from 0 to 2, and the attributions are multiplied by it. Elsewhere a ratio would enlarge
        or flip the members' attributions, so the difference goes to the start instead.
        """
        scores = self.bank.score(rows)
        own, votes = np.nan_to_num(self._averaged(scores)), ~np.isnan(scores)
        first = np.cumsum([0, *self.sizes[:-1]])
        counts = np.maximum(np.add.reduceat(votes, first, axis=1, dtype=np.float64), 1)
        means = np.add.reduceat(np.where(votes, scores, 0.0), first, axis=1) / counts
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = own / means
        ratio = np.where((ratio >= 0) & (ratio <= _LARGEST_RATIO), ratio, 1.0)
        each = np.where(votes, np.repeat(coefficients * ratio / counts, self.sizes, axis=1), 0.0)
        found = self.bank.attributions(rows, each, np.repeat(shares / np.array(self.sizes), self.sizes, axis=1))
        rest = (coefficients * (own - ratio * means)).reshape(rows.n, -1).sum(axis=1)
        return found._replace(start=found.start + rest)

    def member_names(self) -> list[str]:
        """Names of the committees: their size and the kinds of their members."""
        of_members, names, first = self.bank.member_names(), [], 0
        for size in self.sizes:
            kinds = ", ".join(name for name, _ in groupby(of_members[first : first + size]))
            names.append(kinds if size == 1 else f"{size} x {kinds}")
            first += size
        return names

    def _averaged(self, scores: Array) -> Array:
        from bayesvote.members.wrappers._committee_kernels import mean_scores

        out = np.empty((len(scores), len(self.sizes), *scores.shape[2:]))
        mean_scores(scores, self._ends, out)
        return out
