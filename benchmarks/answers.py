"""Score models that give no prediction for some rows."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from bayesvote.core.checks import Array, Labels


class Scored(NamedTuple):
    """Number of wrong predictions, and number of rows without a prediction."""

    mistakes: int
    unanswered: int


def scored(answers: Iterable[Any], labels: Sequence[Any]) -> Scored:
    """Count mistakes. Where a model gives None, the commonest label so far stands in for its prediction.

    Of equally common labels the one that came first counts. Before any label is known it is the least of all labels,
    which is also what classifiers of this library answer then. ``answers`` may be a generator that learns a row when
    asked for the next answer.

    >>> scored([None, None, "b", None], ["b", "b", "a", "a"])
    Scored(mistakes=3, unanswered=3)
    """
    counts: Counter[Any] = Counter()
    mistakes = unanswered = 0
    for answer, label in zip(answers, labels, strict=True):
        unanswered += answer is None
        said = (counts.most_common(1)[0][0] if counts else min(labels)) if answer is None else answer
        mistakes += bool(said != label)
        counts[label] += 1
    return Scored(mistakes, unanswered)


def with_shares(probabilities: Array, y: Labels) -> tuple[Array, int]:
    """Return probabilities in which the shares of the labels so far replace rows of NaN, and the number of these rows.

    Every label counts as if it had been seen once before the first row.
    """
    n, n_classes = probabilities.shape
    seen = 1.0 + np.cumsum(np.eye(n_classes)[y], axis=0) - np.eye(n_classes)[y]
    missing = np.asarray(np.isnan(probabilities).any(axis=1))
    filled = np.where(missing[:, None], seen / (n_classes + np.arange(n))[:, None], probabilities)
    return filled, int(missing.sum())
