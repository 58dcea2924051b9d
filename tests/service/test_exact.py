"""Integers that a float would round, as categories and as labels."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from service.helpers import Api, output

LARGE = 2**60


@pytest.fixture
def own(tmp_path: Path) -> Any:
    api = Api(tmp_path)
    yield api
    api.stop()


def test_large_integers_are_one_category_however_they_come(own: Api, tmp_path: Path) -> None:
    own.put("m", columns={"id": "category", "a": "number"}, classes=[LARGE + 1, LARGE], n_members=5)
    for k in range(40):
        rows = [{"id": value, "a": 0} for value in (LARGE + k % 2, str(LARGE + k % 2))]
        own.post("learn", rows=rows, labels=[LARGE + k % 2] * 2)
    asked = [LARGE, LARGE + 1]
    expected = output(own.post("infer", rows=[{"id": value, "a": 0} for value in asked]), "probability")
    assert expected.argmax(axis=1).tolist() == [0, 1]
    answer = own.post("infer", rows=[{"id": str(value), "a": 0.0} for value in asked])
    assert np.array_equal(output(answer, "probability"), expected)
    label = next(each for each in answer["outputs"] if each["name"] == "label")
    assert (label["datatype"], label["data"]) == ("INT64", asked)
    a = {"name": "a", "shape": [2], "datatype": "FP64", "data": [0, 0.0]}
    for datatype in ("INT64", "UINT64"):
        ids = {"name": "id", "shape": [2], "datatype": datatype, "data": asked}
        assert np.array_equal(output(own.post("infer", inputs=[ids, a]), "probability"), expected)
    state = own.state()
    own.stop()
    again = Api(tmp_path)
    try:
        assert again.state() == state
    finally:
        again.stop()


def test_integers_are_checked_as_numbers_were(own: Api) -> None:
    own.put("m", columns={"id": "category", "a": "number"}, classes=["no", "yes"], n_members=5)
    own.post("learn", rows=[{"id": 5, "a": 5}, {"id": 5.0, "a": 2**62}], labels=["no", "yes"])
    assert own.learner.models["m"].estimator.columns_.describe()[0]["texts"] == ["5"]
    assert "'a' must be a number" in own.refused("infer", 400, rows=[{"id": 1, "a": True}])
    ids = {"name": "id", "shape": [1], "datatype": "INT64", "data": [2**63]}
    a = {"name": "a", "shape": [1], "datatype": "FP64", "data": [0.0]}
    assert "must hold numbers of INT64" in own.refused("infer", 400, inputs=[ids, a])
    own.put("n", columns=["a", "b"], classes=[1, 2], n_members=5)
    answer = own.request("POST", "/v2/models/n/infer", {"rows": [{"a": 1, "b": 2**60}]})
    assert answer.status_code == 200, answer.text
