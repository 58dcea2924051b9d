"""Hand-made results for the tests of tables and comparisons."""

from collections.abc import Mapping
from typing import Any


def line(experiment: str, members: str, dataset: str, errors: Mapping[str, float], trial: int = 0) -> dict[str, Any]:
    """Return a line of a file of results, with the fields that tables need."""
    return {
        "experiment": experiment,
        "members": members,
        "dataset": dataset,
        "trial": trial,
        "rows": 100,
        "partial": False,
        "errors": dict(errors),
    }
