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
    """Count mistakes, with the most frequent label so far as the prediction where a model gives None.

    Among equally frequent labels, the one seen first is used. Before any label is known it is the lowest of all labels,
    which is also what classifiers of this library predict then. ``answers`` may be a generator that learns a row when
    the next answer is requested.

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
    """Return probabilities with rows of NaN replaced by the label frequencies so far, and the number of such rows.

    Every label counts as if it had been seen once before the first row.
    """
    n, n_classes = probabilities.shape
    seen = 1.0 + np.cumsum(np.eye(n_classes)[y], axis=0) - np.eye(n_classes)[y]
    missing = np.asarray(np.isnan(probabilities).any(axis=1))
    filled = np.where(missing[:, None], seen / (n_classes + np.arange(n))[:, None], probabilities)
    return filled, int(missing.sum())
