"""Labels that come late teach what the same labels teach in Python, before and after a crash."""

import asyncio
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bayesvote import BayesianEnsembleClassifier, OzaBoostClassifier
from bayesvote.apps import service
from bayesvote.apps.service.batch import AnyTask, LabelTask, LearnTask
from bayesvote.apps.service.forecasts import Forecasts, to_bytes
from bayesvote.core.checks import Array, Labels
from bayesvote.core.rollback import Forecast
from bayesvote.core.rows import as_rows
from bayesvote.evaluation import prequential
from bayesvote.io.model_file import dumps, save
from service.conftest import wait_until
from service.helpers import Api, objects, output, rows_of, said
from service.test_recovery import crashed

DEFAULT: dict[str, Any] = {"n_members": 20}
PAPER: dict[str, Any] = {"members": "perceptron", "weighter": "gamma_rate", "n_members": 10}
BOOSTER: dict[str, Any] = {"model": "ozaboost", "n_members": 5}


def made(api: Api, options: dict[str, Any]) -> Any:
    """Make the model m in the service; return the same in Python."""
    api.put("m", columns=["a", "b", "c"], classes=["no", "yes"], **options)
    given = {name: value for name, value in options.items() if name != "model"}
    kind = OzaBoostClassifier if "model" in options else BayesianEnsembleClassifier
    twin = kind(**given, random_state=0).start(3, np.array(["no", "yes"]))
    twin.name_features(["a", "b", "c"])
    return twin


def learn(twin: Any, X: Array, y: Labels, forecast: Forecast | None = None) -> None:
    twin.advance(as_rows("test", X), y, np.ones(len(y)), forecast)


@pytest.mark.parametrize("options", [DEFAULT, PAPER, BOOSTER])
def test_late_labels_teach_what_they_teach_in_python(
    serve: Callable[..., Api], tmp_path: Path, options: dict[str, Any]
) -> None:
    api, (X, y) = serve(every=170), rows_of(340)
    twin = made(api, options)
    forecasts: dict[int, Forecast] = {}

    def predict(first: int, last: int) -> None:
        ids = [str(k) for k in range(first, last)]
        plain = api.post("infer", rows=objects(X[first:last]))
        assert api.post("infer", rows=objects(X[first:last]), ids=ids) == plain
        found, losses = twin.forecast(as_rows("test", X[first:last]))
        np.testing.assert_array_equal(output(plain, "probability"), twin.probabilities(losses))
        forecasts.update({first + k: found.part(k, k + 1) for k in range(last - first)})

    def label(service_: Api, order: list[int]) -> None:
        answer = service_.post("label", ids=[str(k) for k in order], labels=said(y[order]))
        assert answer["learned"] == len(order)
        for k in order:  # one by one, as chunks of any size give the same
            learn(twin, X[k : k + 1], y[k : k + 1], forecasts[k])

    predict(0, 40)
    api.post("learn", rows=objects(X[200:260]), labels=said(y[200:260]))
    learn(twin, X[200:260], y[200:260])
    label(api, list(range(30)))
    for first in range(40, 160, 40):
        predict(first, first + 40)
        label(api, list(range(first - 10, first + 30))[::-1])
    api.post("learn", rows=objects(X[260:]), labels=said(y[260:]))
    learn(twin, X[260:], y[260:])
    assert dumps(twin) == api.state()[0]

    wait_until(lambda: api.learner.models["m"].saved > 0)
    again = serve(crashed(api, tmp_path))
    assert again.learner.models["m"].saved < again.learner.models["m"].rows
    assert again.state() == api.state()
    label(again, list(range(150, 160)))
    assert dumps(twin) == again.state()[0]
    report = service.check(again.folder)
    assert report.bad == []
    assert any("bit for bit" in line for line in report.good)


def test_a_stream_with_a_delay_is_learned_as_by_prequential(serve: Callable[..., Api]) -> None:
    api, (X, y), delay = serve(), rows_of(150), 20
    twin = made(api, DEFAULT)
    for k in range(150):
        api.post("infer", rows=objects(X[k : k + 1]), ids=[str(k)], outputs=[{"name": "label"}])
        if k >= delay:
            api.post("label", ids=[str(k - delay)], labels=said(y[k - delay : k - delay + 1]))
    prequential(twin, X, said(y), delay=delay)
    assert dumps(twin) == api.state()[0]


def test_late_labels_and_batches_in_one_commit_are_learned_in_their_order(
    serve: Callable[..., Api], tmp_path: Path
) -> None:
    api, (X, y) = serve(), rows_of(60)
    twin = made(api, DEFAULT)
    api.post("infer", rows=objects(X[:20]), ids=[str(k) for k in range(20)])
    forecast = twin.forecast(as_rows("test", X[:20]))[0]
    served = api.learner.models["m"]
    parts = [slice(20, 30), slice(0, 5), slice(5, 12), slice(30, 60), slice(12, 20)]
    jobs: list[AnyTask] = []
    for part in parts:
        late = part.stop <= 20
        ids = [str(k) for k in range(part.start, part.stop)]
        jobs.append(LabelTask(served, ids, y[part]) if late else LearnTask(served, [], X[part], y[part]))
        learn(twin, X[part], y[part], forecast.part(part.start, part.stop) if late else None)

    async def together() -> None:
        await asyncio.gather(*map(api.learner.do, jobs))

    commits = api.learner.counters.commits
    asyncio.run_coroutine_threadsafe(together(), api._loop).result(60)
    assert (served.rows, api.learner.counters.commits) == (60, commits + 1)
    assert dumps(twin) == api.state()[0]
    assert serve(crashed(api, tmp_path)).state() == api.state()


def test_a_folder_of_version_1_is_taken_up(serve: Callable[..., Api], tmp_path: Path) -> None:
    """Rows that wait in it have no forecast."""
    api, (X, y) = serve(), rows_of(60)
    twin = made(api, DEFAULT)
    api.post("infer", rows=objects(X[:10]), ids=[str(k) for k in range(10)])
    api.post("learn", rows=objects(X[10:40]), labels=said(y[10:40]))
    folder = crashed(api, tmp_path)
    with sqlite3.connect(folder / "journal.sqlite") as db:
        db.executescript(
            "ALTER TABLE journal DROP COLUMN forecasts; ALTER TABLE pending DROP COLUMN forecast; PRAGMA user_version=1"
        )
    db.close()
    assert service.check(folder).bad == []
    service.copy(folder, tmp_path / "copy")
    assert serve(tmp_path / "copy").state() == api.state()
    again = serve(folder)
    assert again.state() == api.state()
    again.post("infer", rows=objects(X[40:]), ids=[str(k) for k in range(40, 60)])
    learn(twin, X[10:40], y[10:40])
    forecast = twin.forecast(as_rows("test", X[40:]))[0]
    order = [45, 3, 4, 5, 46, 47]
    again.post("label", ids=[str(k) for k in order], labels=said(y[order]))
    for k in order:
        learn(twin, X[k : k + 1], y[k : k + 1], forecast.part(k - 40, k - 39) if k >= 40 else None)
    assert dumps(twin) == again.state()[0]
    again.stop()
    assert service.check(folder).bad == []
    assert serve(folder).state()[0] == dumps(twin)


def test_a_forecast_that_does_not_fit_is_ignored(serve: Callable[..., Api], tmp_path: Path) -> None:
    api, (X, y) = serve(), rows_of(8)
    twin = made(api, DEFAULT)
    api.post("infer", rows=objects(X), ids=[str(k) for k in range(8)])
    forecast = twin.forecast(as_rows("test", X))[0]
    wrong = forecast.packed()[5]
    wrong[0] = np.inf
    db = api.learner.folder.journal._db
    db.execute("UPDATE pending SET forecast = substr(forecast, 9) WHERE id = '2'")
    db.execute("UPDATE pending SET forecast = NULL WHERE id = '3'")
    db.execute("UPDATE pending SET forecast = ? WHERE id = '5'", (wrong.tobytes(),))
    api.post("label", ids=[str(k) for k in range(8)], labels=said(y))
    for k in range(8):
        learn(twin, X[k : k + 1], y[k : k + 1], None if k in (2, 3, 5) else forecast.part(k, k + 1))
    assert dumps(twin) == api.state()[0]
    assert serve(crashed(api, tmp_path)).state() == api.state()


def test_an_altered_forecast_in_the_journal_is_noticed(serve: Callable[..., Api], tmp_path: Path) -> None:
    api, (X, y) = serve(), rows_of(8)
    made(api, DEFAULT)
    api.post("infer", rows=objects(X), ids=[str(k) for k in range(8)])
    api.post("label", ids=[str(k) for k in range(8)], labels=said(y))
    folder = crashed(api, tmp_path)
    with sqlite3.connect(folder / "journal.sqlite") as db:
        db.execute("UPDATE journal SET forecasts = NULL")
    db.close()
    with pytest.raises(ValueError, match="an entry that was altered"):
        serve(folder)


def test_forecasts_go_with_their_rows(serve: Callable[..., Api]) -> None:
    api, (X, y) = serve(every=20, prune=True), rows_of(200)
    made(api, PAPER)
    journal = api.learner.folder.journal
    for first in range(0, 200, 10):
        ids = [str(k) for k in range(first, first + 10)]
        api.post("infer", rows=objects(X[first : first + 10]), ids=ids, outputs=[{"name": "label"}])
        if first < 190:
            api.post("label", ids=ids, labels=said(y[first : first + 10]))
    wait_until(lambda: (journal.oldest_row(1) or 0) >= journal.snapshots(1)[-1].rows > 0)
    left = [entry for entry in journal.entries(1) if entry.forecasts is not None]
    assert 0 < sum(entry.n for entry in left) < 190
    assert api.request("DELETE", "/v2/models/m").status_code == 204
    assert journal._db.execute("SELECT count(*) FROM pending").fetchone()[0] == 0


def test_rows_that_a_saved_model_held_back_are_learned_when_it_is_taken_up(serve: Callable[..., Api]) -> None:
    """Or it would learn them with the first label, and could not use the forecasts from before."""
    X, y = rows_of(400)
    model = BayesianEnsembleClassifier(**DEFAULT, horizon=50, random_state=0)
    n, gap = 0, None
    while gap is None or gap.waiting is None:
        n += 1
        gap = model.partial_fit(X[n : n + 1], y[n : n + 1], [0, 1]).model_._gap
    api = serve()
    save(model, api.folder / "m.safetensors")
    api.stop()
    again = serve()
    model.advance(as_rows("test", X[:1]), y[:1], np.zeros(1))  # of weight 0: ends the gap
    rows = objects(X[n : n + 3], ("x0", "x1", "x2"))
    found = output(again.post("infer", rows=rows, ids=["u", "v", "w"]), "probability")
    np.testing.assert_array_equal(found, model.predict_proba(X[n : n + 3]))
    forecast = model.forecast(as_rows("test", X[n : n + 3]))[0]
    for first, last in ((0, 1), (1, 3)):
        again.post("label", ids=["u", "v", "w"][first:last], labels=y[n + first : n + last].tolist())
        learn(model, X[n + first : n + last], y[n + first : n + last], forecast.part(first, last))
    assert dumps(model) == again.state()[0]


@pytest.mark.parametrize("slow", [False, True])
def test_late_labels_of_three_classes_and_of_slow_answers(serve: Callable[..., Api], slow: bool) -> None:
    api, (X, _) = serve(), rows_of(60)
    y = np.digitize(X[:, 0], [-0.4, 0.4]).astype(np.intp)
    api.put("m", columns=["a", "b", "c"], classes=[0, 1, 2], n_members=20)
    twin = BayesianEnsembleClassifier(n_members=20, random_state=0).start(3, np.arange(3))
    twin.name_features(["a", "b", "c"])
    outputs = [{"name": name} for name in ("probability", *["contributions"] * slow)]
    for first in (0, 30):
        part, ids = slice(first, first + 30), [str(k) for k in range(first, first + 30)]
        found = output(api.post("infer", rows=objects(X[part]), ids=ids, outputs=outputs), "probability")
        forecast, losses = twin.forecast(as_rows("test", X[part]))
        np.testing.assert_array_equal(found, twin.probabilities(losses))
        api.post("label", ids=ids, labels=y[part].tolist())
        learn(twin, X[part], y[part], forecast)
    assert dumps(twin) == api.state()[0]


def test_rows_do_not_wait_for_a_model_that_replaces_theirs(serve: Callable[..., Api]) -> None:
    api, (X, y) = serve(), rows_of(4)
    made(api, PAPER)
    api.post("infer", rows=objects(X), ids=["u", "v", "w", "x"])
    assert api.request("DELETE", "/v2/models/m").status_code == 204
    twin = made(api, DEFAULT)
    assert "the row 'u' is not waiting for its label" in api.refused("label", 404, ids=["u"], labels=["no"])
    api.post("infer", rows=objects(X), ids=["u", "v", "w", "x"])
    api.post("label", ids=["u", "v", "w", "x"], labels=said(y))
    learn(twin, X, y, twin.forecast(as_rows("test", X))[0])
    assert dumps(twin) == api.state()[0]


def test_bytes_of_forecasts() -> None:
    lines = [None, np.arange(3.0).tobytes(), b"", np.zeros(2).tobytes(), *([np.ones(3).tobytes()] * 9)]
    data = to_bytes(lines, 3)
    found = Forecasts.from_bytes([(2, None), (13, data), (1, np.zeros(9).tobytes())], 3)
    assert found is not None
    assert found.flags.tolist() == [False] * 3 + [True] + [False] * 2 + [True] * 9 + [False]
    np.testing.assert_array_equal(found.packed, [[0, 1, 2], *([[1, 1, 1]] * 9)])
    assert to_bytes([None, b""], 3) is None
    assert Forecasts.from_bytes([(2, None)], 3) is None
