"""Results made by hand, for the tests of what is made of them."""

from collections.abc import Mapping
from typing import Any


def line(experiment: str, members: str, dataset: str, errors: Mapping[str, float], trial: int = 0) -> dict[str, Any]:
    """A line of a file of results, as far as tables need it."""
    return {
        "experiment": experiment,
        "members": members,
        "dataset": dataset,
        "trial": trial,
        "rows": 100,
        "partial": False,
        "errors": dict(errors),
    }
