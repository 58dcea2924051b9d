"""Members that vote together: fewer weights to learn, and so fewer rows to learn them from."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np

from bayesvote.core.checks import Array, Labels, integer
from bayesvote.core.rows import Rows
from bayesvote.core.state import Learned, Shape
from bayesvote.members.attribution import Attribution
from bayesvote.members.base import Bank, check_bank


@dataclass
class Committees(Bank[Any]):
    """A bank whose members vote in committees, each with one score: the mean of its members' probabilities.

    Scores are taken for half the log-odds of class 1 (half the log-probabilities, with more than two classes), as those
    of trees are, and given as such. Members that abstain are left out of the mean; a committee of which all abstain
    does, too. All members learn as they would alone.

    Every weight has to be learned, and costs rows until it is. Trees that differ by chance alone need no weights of
    their own.

    Parameters
    ----------
    bank
        The members.
    sizes
        How many members each committee has, in their order: together all of them.

    Examples
    --------
    >>> from bayesvote.members.perceptron import PerceptronBank
    >>> bank = Committees(PerceptronBank(n_members=5), sizes=[3, 2]).start(n_features=2, rng=0)
    >>> bank.n_members, bank.member_names()
    (2, ['3 x Perceptron', '2 x Perceptron'])
    """

    bank: Bank[Any]
    sizes: Sequence[int]

    def __post_init__(self) -> None:
        """Check the bank and the sizes."""
        check_bank("Committees", self.bank)
        for size in self.sizes:
            integer("Committees", "sizes", size)
        if sum(self.sizes) != self.bank.n_members:
            raise ValueError(
                f"Committees: sizes must sum to the {self.bank.n_members} members of the bank, "
                f"got {list(self.sizes)}, which sum to {sum(self.sizes)}."
            )
        self._ends = np.cumsum(self.sizes)
        self.share(self.bank.lock)

    @property
    def n_members(self) -> int:
        """How many committees there are."""
        return len(self.sizes)

    @property
    def learns(self) -> bool:
        """Whether the members do."""
        return self.bank.learns

    @property
    def parts(self) -> tuple[Bank[Any], ...]:
        """The bank."""
        return (self.bank,)

    def rebuilt(self, change: "Callable[[Bank[Any]], Bank[Any]]") -> "Committees":
        """Return committees of the changed bank."""
        return Committees(change(self.bank), self.sizes)

    @property
    def state(self) -> Any:
        """What the bank has learned."""
        return self.bank.state

    @property
    def shape(self) -> Shape | None:
        """Features and classes of the bank."""
        return self.bank.shape

    def snapshot(self) -> Any:
        """Copy what learning changes of the bank."""
        return self.bank.snapshot()

    def returning(self, snapshot: Any) -> Callable[[], None]:
        """Get the bank ready to take up such a copy."""
        return self.bank.returning(snapshot)

    def ready(self, state: Any, shape: Shape) -> Callable[[], None]:
        """Get the bank ready for a state."""
        return self.bank.ready(state, shape)

    def init(self, n_features: int, n_classes: int, rng: np.random.Generator) -> Any:
        """Return the bank's state before any row."""
        return self.bank.init(n_features, n_classes, rng)

    def score(self, rows: Rows) -> Array:
        """Score checked rows."""
        return self._together(self.bank.score(rows))

    def advance(self, rows: Rows, y: Labels, w: Array) -> Array:
        """Score checked row t before learning row t."""
        return self._together(self.bank.advance(rows, y, w))

    def attributions(self, rows: Rows, coefficients: Array, shares: Array) -> Attribution:
        """Those of the members, each with an equal part in the committee's score.

        A committee's score is not the mean of its members', though near it: where they are of one mind, the difference
        is shared out, too; elsewhere it counts as what was said before they looked at anything.
        """
        scores = self.bank.score(rows)
        own, votes = np.nan_to_num(self._together(scores)), ~np.isnan(scores)
        first = np.cumsum([0, *self.sizes[:-1]])
        counts = np.maximum(np.add.reduceat(votes, first, axis=1, dtype=np.float64), 1)
        means = np.add.reduceat(np.where(votes, scores, 0.0), first, axis=1) / counts
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = own / means
        ratio = np.where((ratio >= 0) & (ratio <= 2), ratio, 1.0)
        each = np.where(votes, np.repeat(coefficients * ratio / counts, self.sizes, axis=1), 0.0)
        told = self.bank.attributions(rows, each, np.repeat(shares / np.array(self.sizes), self.sizes, axis=1))
        rest = (coefficients * (own - ratio * means)).reshape(rows.n, -1).sum(axis=1)
        return told._replace(start=told.start + rest)

    def kept_rows(self) -> Any:
        """Rows that the members keep."""
        return self.bank.kept_rows()

    def frozen_state(self) -> Any:
        """That of the bank."""
        return self.bank.frozen_state()

    def check_weights(self, w: Array) -> None:
        """Refuse weights that the bank cannot learn from."""
        self.bank.check_weights(w)

    def wider(self, n_features: int, rng: np.random.Generator) -> Any:
        """Widen the bank."""
        return self.bank.wider(n_features, rng)

    def member_names(self) -> list[str]:
        """What each committee is of."""
        of_members, names, first = self.bank.member_names(), [], 0
        for size in self.sizes:
            kinds = ", ".join(name for name, _ in groupby(of_members[first : first + size]))
            names.append(kinds if size == 1 else f"{size} x {kinds}")
            first += size
        return names

    def least_bytes(self, n_features: int, n_classes: int) -> int:
        """The size of the bank's state."""
        return self.bank.least_bytes(n_features, n_classes)

    def validate(self, state: Any) -> None:
        """Check the bank's state."""
        self.bank.validate(state)

    def learned(self) -> Learned | None:
        """Nothing of its own."""
        return None

    def _together(self, scores: Array) -> Array:
        from bayesvote.members._committee_kernels import mean_scores

        out = np.empty((len(scores), self.n_members, *scores.shape[2:]))
        mean_scores(scores, self._ends, out)
        return out
