"""A row of a table is parsed twice and scored once between its prediction and its label."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from bayesvote.core.checks import Array
from bayesvote.core.rows import Rows
from bayesvote.tables import Cells, reading
from service.helpers import Api

KINDS = {"mass": "number", "island": "category", "tame": "boolean", "seen": "date"}
ROW = {"mass": 3.5, "island": "Dream", "tame": True, "seen": "2024-01-31"}


@pytest.fixture
def counts(serve: Callable[..., Api], monkeypatch: pytest.MonkeyPatch) -> tuple[Api, Counter[str]]:
    """A service with a model of a table, and the number of times a row is parsed and scored from now on."""
    api, found = serve(), Counter[str]()
    api.put("m", columns=KINDS, classes=["no", "yes"], members="fast", n_members=5)
    bank: Any = api.learner.models["m"].estimator.model_.bank
    parse, score = reading._of_list, type(bank).score

    def counted_parse(who: str, name: str, values: Any) -> Cells:
        found["parses"] += len(values) * (name == "mass")
        return parse(who, name, values)

    def counted_score(self: Any, rows: Rows) -> Array:
        found["scorings"] += rows.n * (self is bank)
        scores: Array = score(self, rows)
        return scores

    monkeypatch.setattr(reading, "_of_list", counted_parse)
    monkeypatch.setattr(type(bank), "score", counted_score)
    return api, found


def test_a_row_that_is_predicted_and_labelled(counts: tuple[Api, Counter[str]]) -> None:
    api, found = counts
    outputs = {each["name"] for each in api.post("infer", rows=[ROW], ids=["1"])["outputs"]}
    assert outputs == {"label", "probability", "certainty"}
    assert api.post("label", ids=["1"], labels=["yes"])["learned"] == 1
    assert found == {"parses": 2, "scorings": 1}


def test_a_row_with_all_outputs(counts: tuple[Api, Counter[str]]) -> None:
    api, found = counts
    names = ["label", "probability", "certainty", "contributions"]
    api.post("infer", rows=[ROW, ROW], outputs=[{"name": name} for name in names])
    assert found == {"parses": 2, "scorings": 2}  # of two rows, one each


def test_a_row_that_comes_with_its_label(counts: tuple[Api, Counter[str]]) -> None:
    api, found = counts
    api.post("learn", rows=[ROW], labels=["yes"])
    assert found == {"parses": 2}
