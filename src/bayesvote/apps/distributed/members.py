"""Which members the shards train, and how many of them each."""

from collections.abc import Sequence
from typing import Any

from bayesvote.members import Bank, NaiveBayesBank, PerceptronBank, Scaled, TreeBank, Union

PER_SHARD = 6  # members that a shard trains at least, if there are shards enough
_MOST_BYTES = 2**26  # of the rows that trees are grown from
_MOST_ROWS = 2**16


def shard_members(n_features: int, n_members: int = 8) -> Union:
    """What a shard trains unless members are named: trees and one refined over them, Perceptrons and naive Bayes.

    One in eight is a Perceptron, and one a naive Bayes. Trees are grown from as many rows as 64 MB hold, up to 65,536.
    """
    few = max(1, n_members // 8)
    rows = min(_MOST_ROWS, max(2048, _MOST_BYTES // (5 * n_features)))
    trees = max(1, n_members - 2 * few - 1)
    return Union(
        [
            TreeBank(n_trees=trees, recent=(), refined=(10.0,), rows_kept=rows, max_nodes=rows),
            Scaled(PerceptronBank(few, max_features=0.5, averaged=True)),
            NaiveBayesBank(few, max_features=0.3),
        ]
    )


def spread(n_rows: Sequence[int], n_members: int, bank: Bank[Any] | None) -> dict[int, int]:
    """How many members each shard trains, by its place: m in all, over shards that have rows, evenly.

    A bank is trained as it is, by as many shards as make up the number of members; at least by two.

    >>> spread([10, 0, 10, 10], 10, None)
    {0: 5, 2: 5}
    >>> spread([10] * 1000, 24, None)
    {0: 6, 250: 6, 500: 6, 750: 6}
    """
    able = [place for place, n in enumerate(n_rows) if n > 0]
    each = PER_SHARD if bank is None else bank.n_members
    n_training = min(len(able), max(2, n_members // each))
    chosen = [able[k * len(able) // n_training] for k in range(n_training)]
    if bank is not None:
        return dict.fromkeys(chosen, bank.n_members)
    return {place: n_members // n_training + (k < n_members % n_training) for k, place in enumerate(chosen)}
