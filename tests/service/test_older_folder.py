"""A folder that version 0.2.0.dev0 served is opened, replayed, and continues learning as it did then.

The folder has the models ``raw``, of a table, and ``numbers``. Both have learned 46 rows, 6 of them with late labels;
their last snapshots are of 30 rows, and 6 rows wait for their labels. The JSON file next to it has what version
0.2.0.dev0 answered before and after it was given the other labels.
"""

import json
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bayesvote.apps import service
from bayesvote.apps.service.types import Cell
from bayesvote.core.checks import Array
from service.helpers import Api, output, said

HERE = Path(__file__).parent
EXPECTED: dict[str, Any] = json.loads((HERE / "folder_0_2_dev.json").read_text())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the folder."""
    found = tmp_path / "folder"
    with tarfile.open(HERE / "folder_0_2_dev.tar.gz") as archive:
        archive.extractall(found, filter="data")
    return found


def raw_rows(n: int, seed: int) -> tuple[list[dict[str, Cell]], list[str]]:
    rng = np.random.default_rng(seed)
    mass, islands = rng.normal(size=n).round(3).tolist(), rng.integers(3, size=n).tolist()
    gap = (rng.random(n) < 0.1).tolist()
    rows: list[dict[str, Cell]] = [
        {
            "mass": None if gap[t] else mass[t],
            "island": ["Dream", "Torgersen", None][islands[t]],
            "tame": bool(islands[t] % 2),
            "seen": f"2024-0{1 + t % 9}-11",
        }
        for t in range(n)
    ]
    return rows, ["yes" if value + island > 1 else "no" for value, island in zip(mass, islands, strict=True)]


def number_rows(n: int, seed: int) -> tuple[list[dict[str, Cell]], list[str]]:
    X = np.random.default_rng(seed).normal(size=(n, 3)).round(3)
    return [dict(zip("abc", row, strict=True)) for row in X.tolist()], said((X[:, 0] > 0.3 * X[:, 1]).astype(np.intp))


ROWS = {"raw": raw_rows, "numbers": number_rows}


def test_a_check_of_an_older_folder_finds_nothing_wrong(folder: Path) -> None:
    report = service.check(folder)
    assert report.bad == []
    assert "raw: 46 rows learned, 6 wait for their labels" in report.good
    assert sum("bit for bit" in line for line in report.good) == 2


@pytest.mark.parametrize("name", EXPECTED)
def test_an_older_folder_is_replayed_and_continues_learning(serve: Callable[..., Api], folder: Path, name: str) -> None:
    api, expected = serve(folder), EXPECTED[name]
    served = api.learner.models[name]
    assert (served.rows, served.saved, served.pending) == (expected["rows"], expected["saved"], expected["pending"])

    def post(path: str, **body: Any) -> Any:
        answer = api.request("POST", f"/v2/models/{name}/{path}", body)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def check(answer: Any, probabilities: list[float]) -> None:
        found: Array = output(answer, "probability").ravel()
        np.testing.assert_allclose(found, probabilities, rtol=1e-12, atol=0)

    late, truth = ROWS[name](12, 2)
    asked, labels = ROWS[name](5, 3)
    ids = [f"late-{k}" for k in range(12)]
    check(post("infer", rows=asked), expected["probability"])
    check(post("infer", rows=late[6:], ids=ids[6:]), expected["waiting"][4:])  # as they were first predicted
    answer = post("label", ids=ids, labels=truth)
    assert answer == {"model_name": name, "learned": 6, "repeated": 6, "mistakes": expected["mistakes"]}
    post("learn", rows=asked, labels=labels)
    check(post("infer", rows=asked), expected["after"])
    assert served.scores.tally.error == expected["error"]
    state = api.state(name)
    api.stop()
    assert service.check(folder).bad == []
    assert serve(folder).state(name) == state
