"""Members that shards train, and their number per shard."""

from collections.abc import Sequence
from typing import Any

from bayesvote.members import Bank, NaiveBayesBank, PerceptronBank, Scaled, TreeBank, Union

PER_SHARD = 6  # least number of members per training shard, if there are enough shards
_MOST_BYTES = 2**26  # of the rows that trees learn from
_MOST_ROWS = 2**16


def shard_members(n_features: int, n_members: int = 8) -> Union:
    """Return the default members of a shard: trees, a refined tree, Perceptrons and naive Bayes.

    One in eight is a Perceptron, and one a naive Bayes. Trees learn from as many rows as fit into 64 MB, up to 65,536.
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
    """Return the number of members per training shard, spread evenly over the shards with rows.

    A bank keeps its size. Enough shards train a copy of it to reach the total, and at least two do.

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
