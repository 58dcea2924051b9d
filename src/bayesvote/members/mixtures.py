"""Mixtures of several kinds of members that suit most data."""

from typing import Any

from bayesvote.core.checks import integer
from bayesvote.members.base import Bank
from bayesvote.members.ferns import FernBank
from bayesvote.members.linear import LinearBank
from bayesvote.members.logistic import LogisticBank
from bayesvote.members.naive_bayes import NaiveBayesBank
from bayesvote.members.neighbours import NeighbourBank
from bayesvote.members.perceptron import PerceptronBank
from bayesvote.members.trees import TreeBank
from bayesvote.members.union import Union
from bayesvote.members.wrappers.committees import Committees

REFINED = (1.0, 3.0, 10.0, 20.0)  # rates, about a factor of 3 apart: the weights choose the one that suits the data
NEIGHBOURS = (256, 1024)  # rows: a short window follows changes, a long one has nearer neighbours


def adaptive(n_members: int = 100) -> Union:
    """Return the members of the default classifier, ``members="adaptive"``.

    Of 100 members, 32 are trees of the first rows, 6 trees of the last 2,048 rows and 10 trees of the last 512 rows.
    4 members are refined over the leaves of all trees. 4 are Bayesian logistic regressions, 3 are passive-aggressive,
    and 2 use the nearest neighbours among the last 256 and 1,024 rows. One is a naive Bayes of all features, and 38
    are naive Bayes of 30% of the features. Trees and naive Bayes vote in committees.
    """
    integer("adaptive", "n_members", n_members, least=3)
    first, middle, last = max(1, n_members * 32 // 100), n_members * 6 // 100, n_members * 10 // 100
    recent = [(window, count, every) for window, count, every in ((2048, middle, 256), (512, last, 64)) if count]
    trees = TreeBank(first, recent=recent, refined=REFINED[: max(1, n_members // 10)])
    sizes = [*_even(first, 4), *_even(middle, 3), *_even(last, 3), *[1] * len(trees.refined)]
    return Union([*_beside_trees(n_members, n_members - trees.n_members), Committees(trees, sizes)])


def fast(n_members: int = 100) -> Union:
    """Return members without trees, which take little time per row, ``members="fast"``.

    A third each are averaged Perceptrons, naive Bayes and ferns, as in :func:`mixed`, but in committees. Up to three
    passive-aggressive members and a naive Bayes of all features are added.
    """
    integer("fast", "n_members", n_members, least=5)
    linear = LinearBank(min(3, n_members // 5))
    third = (n_members - 1 - linear.n_members) // 3
    bayes = n_members - 1 - linear.n_members - 2 * third
    return Union(
        [
            linear,
            NaiveBayesBank(1, max_features=None),
            Committees(PerceptronBank(third, max_features=0.5, averaged=True), _even(third, 3)),
            Committees(NaiveBayesBank(bayes, max_features=0.3), _even(bayes, 3)),
            Committees(FernBank(third, depth=8), _even(third, 8)),
        ]
    )


def mixed(n_members: int = 99) -> Union:
    """Return a third each of averaged Perceptrons, naive Bayes and ferns, ``members="mixed"``.

    Perceptrons see half of the features, naive Bayes 30%, and ferns have depth 8. Together with ``JointGaussian`` they
    were the default of version 0.1.
    """
    integer("mixed", "n_members", n_members, least=3)
    return Union(
        [
            PerceptronBank((n_members + 2) // 3, max_features=0.5, averaged=True),
            NaiveBayesBank((n_members + 1) // 3, max_features=0.3),
            FernBank(n_members // 3, depth=8),
        ]
    )


def tree(n_members: int = 100, *, rows_kept: int = 8192, max_nodes: int = 16384, max_features: int = 4096) -> TreeBank:
    """Return a :class:`TreeBank` with ``n_members`` members, ``members="tree"``.

    Of 100 members, 66 are trees of the first rows, 11 trees of the last 2,048 rows and 19 trees of the last 512 rows.
    4 members are refined over the leaves of all trees. The proportions are those of the 52 members of ``TreeBank()``.
    """
    integer("tree", "n_members", n_members)
    integer("tree", "rows_kept", rows_kept)
    middle, last, refined = n_members * 6 // 52, n_members * 10 // 52, REFINED[: n_members * 4 // 52]
    recent = [(window, count, every) for window, count, every in ((2048, middle, 256), (512, last, 64)) if count]
    return TreeBank(
        n_members - middle - last - len(refined),
        recent=[(min(window, rows_kept), count, every) for window, count, every in recent],
        refined=refined,
        rows_kept=rows_kept,
        max_nodes=max_nodes,
        max_features=max_features,
    )


def _beside_trees(n_members: int, rest: int) -> list[Bank[Any]]:
    """Return the members other than trees: a few linear ones and neighbours, which share scales, and naive Bayes."""
    few = max(1, n_members // 10)
    scaled: list[Bank[Any]] = [LogisticBank(min(4, few, rest))]
    rest -= scaled[0].n_members
    if (n_linear := min(3, few - 1, rest)) > 0:
        scaled.append(LinearBank(n_linear))
        rest -= n_linear
    if (n_windows := min(len(NEIGHBOURS), rest - 1)) > 0:
        scaled.append(NeighbourBank(NEIGHBOURS[:n_windows]))
        rest -= n_windows
    banks: list[Bank[Any]] = [Union(scaled)]
    if rest > 0:
        banks.append(NaiveBayesBank(1, max_features=None))
    if rest > 1:
        banks.append(Committees(NaiveBayesBank(rest - 1, max_features=0.3), [rest - 1]))
    return banks


def _even(total: int, parts: int) -> list[int]:
    """Split a number into nearly equal parts; none of them is 0.

    >>> _even(10, 3)
    [4, 3, 3]
    """
    parts = min(parts, total)
    return [total // parts + (i < total % parts) for i in range(parts)]
