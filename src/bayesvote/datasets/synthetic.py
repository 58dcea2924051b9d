"""The synthetic streams of papers on online ensembles, generated in constant memory."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from numpy.random import SeedSequence

from bayesvote.core.checks import Array, Labels, integer, one_of
from bayesvote.datasets.generators import LED, SEA, Agrawal, Concept, ConceptDrift, Hyperplane, RandomRBF

_WHO = "synthetic_stream"
_BLOCK = 4096  # rows generated at a time
_ABRUPT_WIDTH, _MOST_WIDTH = 50, 50_000


class SyntheticStream(NamedTuple):
    """Properties of a synthetic stream.

    Attributes
    ----------
    n_features, n_classes
        Number of features and of classes.
    concepts
        Constructors of its concepts, in order; each takes a seed.
    gradual
        True if a change takes a fifth of a concept, at most 50,000 rows; False if it takes 50 rows.
    """

    n_features: int
    n_classes: int
    concepts: tuple[Callable[[SeedSequence], Concept], ...]
    gradual: bool = False

    @property
    def classes(self) -> Labels:
        """The labels."""
        return np.arange(self.n_classes)

    def length(self, n_rows: int) -> int:
        """Rows per concept."""
        return n_rows // len(self.concepts)

    def width(self, n_rows: int) -> int:
        """Rows that a change takes."""
        return max(1, min(self.length(n_rows) // 5, _MOST_WIDTH)) if self.gradual else _ABRUPT_WIDTH

    def start(self, n_rows: int, seed: int) -> Concept:
        """Return the source of the rows."""
        first, *others = SeedSequence(seed).spawn(1 + len(self.concepts))
        concepts = [make(one) for make, one in zip(self.concepts, others, strict=True)]
        if len(concepts) == 1:
            return concepts[0]
        return ConceptDrift(first, concepts, self.length(n_rows), self.width(n_rows))


def _led(gradual: bool) -> SyntheticStream:
    return SyntheticStream(24, 10, tuple(partial(LED, swapped=k) for k in (7, 5, 3, 1, 3, 5, 7)), gradual)


def _sea(gradual: bool) -> SyntheticStream:
    return SyntheticStream(3, 2, tuple(partial(SEA, function=k) for k in (1, 2, 3, 4, 3, 2, 1)), gradual)


def _agrawal(functions: Iterable[int], gradual: bool) -> SyntheticStream:
    return SyntheticStream(9, 2, tuple(partial(Agrawal, function=k) for k in functions), gradual)


SYNTHETIC: Mapping[str, SyntheticStream] = MappingProxyType(
    {
        "LED_a": _led(gradual=False),
        "LED_g": _led(gradual=True),
        "SEA_a": _sea(gradual=False),
        "SEA_g": _sea(gradual=True),
        "AGR_a": _agrawal(range(1, 11), gradual=False),
        "AGR_g": _agrawal(range(10, 0, -1), gradual=True),
        "RBF_m": SyntheticStream(10, 5, (partial(RandomRBF, speed=0.0001),)),
        "RBF_f": SyntheticStream(10, 5, (partial(RandomRBF, speed=0.001),)),
        "HYPER": SyntheticStream(10, 2, (Hyperplane,)),
    }
)


def synthetic_stream(
    name: str, n_rows: int = 1_000_000, *, seed: int = 0, chunk_size: int = 4096
) -> Iterator[tuple[Array, Labels]]:
    """Generate a synthetic stream chunk by chunk, in constant memory.

    Parameters
    ----------
    name
        One of `SYNTHETIC`: LED, SEA or AGR (Agrawal) with abrupt (``_a``) or gradual (``_g``) changes, RBF with
        moderate (``_m``) or fast (``_f``) drift, or HYPER. Their settings are in docs/evaluation.md.
    n_rows
        Number of rows. Each concept gets an equal share of them.
    seed
        The same seed gives the same rows. Every concept has random numbers of its own.
    chunk_size
        Rows per chunk; the last one may be smaller. It does not change the rows.

    Returns
    -------
    iterator of (X, y)
        X has shape (rows, n_features), and y holds class indices.

    Examples
    --------
    >>> from bayesvote import BayesianEnsembleClassifier, prequential
    >>> model = BayesianEnsembleClassifier(random_state=0)
    >>> rows = synthetic_stream("SEA_a", n_rows=2_000, seed=0)
    >>> prequential(model, rows, classes=SYNTHETIC["SEA_a"].classes).error < 0.2
    True
    """
    one_of(_WHO, "name", name, SYNTHETIC)
    kind = SYNTHETIC[name]
    integer(_WHO, "n_rows", n_rows, least=len(kind.concepts))
    integer(_WHO, "seed", seed, least=0)
    integer(_WHO, "chunk_size", chunk_size)
    # The function checks at once; only the generator that it returns waits for the first chunk.
    return _chunks(_blocks(kind.start(int(n_rows), int(seed)), int(n_rows)), int(chunk_size))


def _blocks(source: Concept, n_rows: int) -> Iterator[tuple[Array, Labels]]:
    for first in range(0, n_rows, _BLOCK):
        yield source.rows(min(_BLOCK, n_rows - first))


def _chunks(blocks: Iterator[tuple[Array, Labels]], size: int) -> Iterator[tuple[Array, Labels]]:
    held: list[tuple[Array, Labels]] = []
    n_held = 0
    for X, y in blocks:
        used = 0
        while n_held + len(y) - used >= size:
            cut = used + size - n_held
            yield _joined([*held, (X[used:cut], y[used:cut])])
            held, n_held, used = [], 0, cut
        held.append((X[used:], y[used:]))
        n_held += len(y) - used
    if n_held:
        yield _joined(held)


def _joined(parts: list[tuple[Array, Labels]]) -> tuple[Array, Labels]:
    return np.concatenate([X for X, _ in parts]), np.concatenate([y for _, y in parts])
