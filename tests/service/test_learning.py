"""Learning: what is learned, once, in which order, and how errors are counted."""

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from bayesvote import BayesianEnsembleClassifier, OzaBoostClassifier, load
from bayesvote.apps.service.batch import AnyTask, LabelTask, LearnTask, PredictTask
from bayesvote.apps.service.models import CHUNK, RunningScores
from bayesvote.core.rows import as_rows
from bayesvote.io.model_file import dumps
from service.conftest import wait_until
from service.helpers import Api, objects, output, rows_of, said

PARTS = (slice(10), slice(10, 40), slice(40, None))


def classifier() -> BayesianEnsembleClassifier:
    model = BayesianEnsembleClassifier("perceptron", 10, random_state=0).start(3, np.array(["no", "yes"]))
    model.name_features(["a", "b", "c"])
    return model


def test_rows_are_learned_in_order_bit_for_bit(api: Api) -> None:
    X, y = rows_of(300)
    for part in (slice(0, 1), slice(1, 120), slice(120, 300)):
        answer = api.post("learn", rows=objects(X[part]), labels=said(y[part]))
        assert answer["learned"] == part.stop - part.start
        assert answer["repeated"] == 0
    model = classifier()
    made = model.probabilities(*model.advance(as_rows("test", X), y, np.ones(300)))
    wrong = (made.argmax(axis=1) != y).sum()
    assert dumps(model) == api.state()[0]
    tally = api.learner.models["m"].scores.tally
    assert (tally.rows, tally.mistakes) == (300, wrong)


def test_a_late_label_counts_with_the_prediction_as_it_was_made(api: Api) -> None:
    X, y = rows_of(400)
    ids = [f"row {k}" for k in range(100)]
    before = output(api.post("infer", rows=objects(X[:100]), ids=ids), "probability")
    api.post("learn", rows=objects(X[100:]), labels=said(y[100:]))  # the model is a better one by now
    after = output(api.post("infer", rows=objects(X[:100])), "probability")
    assert (after.argmax(axis=1) != before.argmax(axis=1)).any()
    mistakes = api.learner.models["m"].scores.tally.mistakes
    order = np.random.default_rng(0).permutation(100)
    found = 0
    for part in np.array_split(order, 7):
        found += api.post("label", ids=[ids[k] for k in part], labels=said(y[part]))["mistakes"]
    assert found == (before.argmax(axis=1) != y[:100]).sum()
    assert api.learner.models["m"].scores.tally.mistakes == mistakes + found
    model = classifier()
    forecast = model.forecast(as_rows("test", X[:100]))[0]
    model.advance(as_rows("test", X[100:]), y[100:], np.ones(300))
    model.advance(as_rows("test", X[order]), y[order], np.ones(100), forecast.take(order))
    assert dumps(model) == api.state()[0]


def test_repeating_is_harmless_and_contradicting_is_refused(api: Api) -> None:
    X, y = rows_of(3)
    rows, ids, labels = objects(X), ["u", "v", "w"], said(y)
    first = api.post("infer", rows=rows, ids=ids)
    assert api.post("infer", rows=rows, ids=ids) == first
    assert "another pending row" in api.refused("infer", 409, rows=rows[::-1], ids=ids)
    assert "the row 'z' is not waiting for its label" in api.refused("label", 404, ids=["u", "z"], labels=labels[:2])
    assert api.post("label", ids=["u"], labels=labels[:1])["learned"] == 1
    state = api.state()
    assert api.post("label", ids=["u"], labels=labels[:1]) == {
        "model_name": "m",
        "learned": 0,
        "repeated": 1,
        "mistakes": 0,
    }
    assert api.state() == state
    other = "no" if labels[0] == "yes" else "yes"
    assert f"not {other!r}" in api.refused("label", 409, ids=["v", "u"], labels=[labels[1], other])
    assert "has its label and was learned" in api.refused("infer", 409, rows=rows[:1], ids=["u"])
    answer = api.post("label", ids=["u", "v"], labels=labels[:2])
    assert (answer["learned"], answer["repeated"]) == (1, 1)
    assert "is waiting for its label" in api.refused("learn", 409, rows=rows[2:], labels=labels[2:], ids=["w"])
    assert api.post("learn", rows=rows[:1], labels=labels[:1], ids=["new"])["learned"] == 1
    assert api.post("learn", rows=rows[:2], labels=labels[:2], ids=["new", "newer"])["repeated"] == 1
    assert "was learned with" in api.refused("learn", 409, rows=rows[:1], labels=[other], ids=["new"])
    assert "must be one of 'no', 'yes'" in api.refused("learn", 400, rows=rows[:1], labels=["maybe"])
    assert "one per row" in api.refused("learn", 400, rows=rows, labels=labels[:2])


def test_a_repeated_request_is_answered_as_at_first(api: Api) -> None:
    """Its label will be counted and learned by that answer, whatever the model has learned since."""
    X, y = rows_of(203)
    rows, ids = objects(X[:3]), ["u", "v", "w"]
    first = api.post("infer", rows=rows, ids=ids)
    api.post("learn", rows=objects(X[3:]), labels=said(y[3:]))
    now, again = api.post("infer", rows=rows), api.post("infer", rows=rows, ids=ids)
    assert not np.array_equal(output(now, "probability"), output(first, "probability"))
    for name in ("probability", "label"):
        np.testing.assert_array_equal(output(again, name), output(first, name))
    assert api.learner.models["m"].pending == 3


def test_models_have_ids_of_their_own(api: Api) -> None:
    api.put("other", columns=["a", "b", "c"], classes=["no", "yes"], members="perceptron", n_members=10)
    (X, y), path = rows_of(2), "/v2/models/other"
    for label in (False, True):  # the ids wait in one model, or were learned
        api.post(
            "label" if label else "infer", ids=["u", "v"], **({"labels": said(y)} if label else {"rows": objects(X)})
        )
        refused = api.request("POST", f"{path}/label", {"ids": ["u"], "labels": ["no"]})
        assert (refused.status_code, api.learner.models["other"].rows) == (404, 0)
    body = {"rows": objects(X[::-1]), "ids": ["u", "v"]}
    assert api.request("POST", f"{path}/infer", body).status_code == 200
    learned = api.request("POST", f"{path}/label", {"ids": ["u", "v"], "labels": said(1 - y)}).json()
    assert (learned["learned"], learned["repeated"]) == (2, 0)


def test_rows_that_come_and_go_in_one_commit_crowd_nobody_out(serve: Callable[..., Api]) -> None:
    api = serve(pending=2)
    api.put("m", columns=["a", "b", "c"], classes=["no", "yes"], members="perceptron", n_members=10)
    X, y = rows_of(4)
    api.post("infer", rows=objects(X[:2]), ids=["0", "1"])
    served, commits = api.learner.models["m"], api.learner.counters.commits

    async def together() -> list[Any]:
        """Predict and label row 2, label row 0, and predict row 3."""
        jobs: list[AnyTask] = [PredictTask(served, ["2"], X[2:3]), LabelTask(served, ["2"], y[2:3])]
        jobs += [LabelTask(served, ["0"], y[:1]), PredictTask(served, ["3"], X[3:])]
        return await asyncio.gather(*map(api.learner.do, jobs))

    found = asyncio.run_coroutine_threadsafe(together(), api._loop).result(60)
    assert (found[1].learned, found[2].learned, api.learner.counters.commits) == (1, 1, commits + 1)
    assert (served.pending, served.crowded) == (2, 0)
    assert sorted(api.learner.folder.journal.pending(1, ["0", "1", "2", "3"])) == ["1", "3"]


def test_many_at_once_are_each_learned_once(api: Api) -> None:
    X, y = rows_of(240)
    failed: list[Exception] = []

    def work(first: int) -> None:
        try:
            for k in range(first, 240, 8):
                api.post("infer", rows=objects(X[k : k + 1]), ids=[str(k)], outputs=[{"name": "label"}])
                for _ in range(2):
                    api.post("label", ids=[str(k)], labels=said(y[k : k + 1]))
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    served = api.learner.models["m"]
    assert (served.rows, served.pending, served.scores.tally.rows) == (240, 0, 240)
    entries = list(api.learner.folder.journal.entries(served.number))
    assert sum(entry.n for entry in entries) == 240


def test_rows_that_wait_too_long_or_are_too_many_are_dropped_and_counted(serve: Callable[..., Api]) -> None:
    api = serve(pending=5)
    api.put("m", columns=["a", "b", "c"], classes=["no", "yes"], members="perceptron")
    X, y = rows_of(8)
    for k in range(8):
        api.post("infer", rows=objects(X[k : k + 1]), ids=[str(k)], outputs=[{"name": "label"}])
    served = api.learner.models["m"]
    assert (served.pending, served.crowded, served.expired) == (5, 3, 0)
    assert "dropped" in api.refused("label", 404, ids=["2"], labels=["no"])
    assert api.post("label", ids=["3"], labels=said(y[3:4]))["learned"] == 1
    api.stop()
    again = serve(pending_seconds=0.0)
    served = again.learner.models["m"]
    assert (served.pending, served.crowded) == (4, 3)
    wait_until(lambda: served.expired == 4)
    assert served.pending == 0
    text = again.request("GET", "/metrics").text
    assert 'bayesvote_expired_total{model="m"} 4.0' in text
    assert 'bayesvote_crowded_total{model="m"} 3.0' in text


@pytest.mark.parametrize("restart", [False, True])
def test_a_clock_that_is_set_back_and_then_right_drops_nothing(
    serve: Callable[..., Api], monkeypatch: pytest.MonkeyPatch, restart: bool
) -> None:
    """A row that comes meanwhile is kept with the latest time so far, or it would look old afterwards."""
    clock = [1e9]
    monkeypatch.setattr("bayesvote.apps.service.learner.time.time", lambda: clock[0])
    api = serve(pending_seconds=3600.0)
    api.put("m", columns=["a", "b", "c"], classes=["no", "yes"], members="perceptron")
    X, y = rows_of(3)

    api.post("infer", rows=objects(X[:1]), ids=["before"])
    clock[0] = 1000.0
    if restart:
        api.stop()
        api = serve(pending_seconds=3600.0)
    else:
        api.tidy()
    api.post("infer", rows=objects(X[1:2]), ids=["meanwhile"])
    api.post("label", ids=["before"], labels=said(y[:1]))  # so that the other row is the oldest
    clock[0] = 1e9 + 3600
    api.tidy()
    assert api.learner.models["m"].pending == 1
    clock[0] += 1
    api.tidy()
    assert (api.learner.models["m"].pending, api.learner.models["m"].expired) == (0, 1)


def test_rows_of_several_kinds(serve: Callable[..., Api]) -> None:
    kinds = {"age": "number", "city": "category", "vip": "boolean", "since": "date"}
    api = serve(every=50)
    facts = api.put("m", columns=kinds, classes=["no", "yes"], n_members=20)
    assert facts["columns"] == kinds
    assert [each["datatype"] for each in facts["inputs"]] == [
        "FP64",
        "BYTES",
        "BOOL",
        "BYTES",
        "BYTES",
    ]
    rng = np.random.default_rng(0)
    rows: list[dict[str, Any]] = [
        {
            "age": None if rng.random() < 0.1 else float(rng.integers(18, 80)),
            "city": ["Bonn", "Köln", None, "<b>"][rng.integers(4)],
            "vip": [True, False, None][rng.integers(3)],
            "since": ["2020-01-01", "2026-03-04T05:06", None][rng.integers(3)],
        }
        for _ in range(120)
    ]
    labels = ["yes" if row["city"] == "Bonn" or row["vip"] else "no" for row in rows]
    api.post("learn", rows=rows[:10], labels=labels[:10])
    api.post("infer", rows=rows[10:40], ids=[str(k) for k in range(10, 40)])
    for first in range(40, 120, 20):
        api.post("learn", rows=rows[first : first + 20], labels=labels[first : first + 20])
    api.post("label", ids=[str(k) for k in range(10, 40)], labels=labels[10:40])
    model = BayesianEnsembleClassifier(n_members=20, columns=kinds, random_state=0)
    near, late, far = ({name: [row[name] for row in rows[part]] for name in kinds} for part in PARTS)
    model.predict_proba_then_learn(near, labels[:10], classes=["no", "yes"])
    table = model.columns_.checked(late)
    forecast = model.forecast(table)[0]
    model.predict_proba_then_learn(far, labels[40:])
    codes = np.array([label == "yes" for label in labels[10:40]], dtype=np.intp)
    model.advance(model.columns_.checked(late), codes, np.ones(30), forecast)
    assert dumps(model) == api.state()[0]
    wrong = {"age": "41", "city": 5.0, "vip": 1.0, "since": "soon"}
    for name in ("age", "vip", "since"):
        assert name in api.refused("learn", 400, rows=[rows[0] | {name: wrong[name]}], labels=["no"])
    tensors = [
        {"name": "age", "shape": [1], "datatype": "FP32", "data": [41]},
        {"name": "city", "shape": [1, 1], "datatype": "BYTES", "data": ["Bonn"]},
        {"name": "vip", "shape": [1], "datatype": "BOOL", "data": [None]},
        {"name": "since", "shape": [1], "datatype": "BYTES", "data": ["2020-01-01"]},
    ]
    by_rows = api.post("infer", rows=[{"age": 41, "city": "Bonn", "vip": None, "since": "2020-01-01"}])
    assert api.post("infer", inputs=tensors) == by_rows
    state = api.state()
    api.stop()
    assert serve().state()[:2] == state[:2]


def test_more_rows_than_the_weights_take_are_refused_before_the_journal(serve: Callable[..., Api]) -> None:
    api = serve()
    api.put("m", columns=["a", "b", "c"], classes=["no", "yes"], members="perceptron", weighter="sag(horizon=10)")
    X, y = rows_of(12)
    api.post("learn", rows=objects(X[:8]), labels=said(y[:8]))
    assert "horizon" in api.refused("learn", 409, rows=objects(X[:3]), labels=said(y[:3]))
    api.post("learn", rows=objects(X[:2]), labels=said(y[:2]))
    api.stop()
    assert serve().learner.models["m"].rows == 10


def test_models_are_made_once_and_retired(api: Api, serve: Callable[..., Api]) -> None:
    body = {"columns": ["a", "b", "c"], "classes": ["no", "yes"], "members": "perceptron", "n_members": 10}
    assert api.request("PUT", "/v2/models/m", body).status_code == 200  # the same again
    answer = api.request("PUT", "/v2/models/m", body | {"seed": 1})
    assert answer.status_code == 409
    assert "DELETE it first" in answer.json()["error"]
    X, y = rows_of(20)
    api.post("learn", rows=objects(X), labels=said(y))
    state = api.state()[0]
    assert api.request("DELETE", "/v2/models/m").status_code == 204
    assert api.request("DELETE", "/v2/models/m").status_code == 404
    assert api.request("POST", "/v2/models/m/infer", {"rows": objects(X)}).status_code == 404
    assert dumps(load(api.folder / "retired" / "m.1.safetensors")) == state
    api.put("m", **body | {"seed": 1})
    assert api.learner.models["m"].rows == 0
    api.stop()
    assert serve().learner.models["m"].rows == 0


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"columns": []}, "columns must be from 1"),
        ({"columns": 0}, "columns must be from 1"),
        ({"columns": 10**9}, "columns must be from 1"),
        ({"columns": ["a", "a"]}, "differ"),
        ({"columns": ["a", "X"]}, "'X'"),
        ({"columns": {"a": "colour"}}, "'colour'"),
        ({"classes": [0]}, "length"),
        ({"classes": [0, 0]}, "different labels"),
        ({"classes": [0, "1"]}, "different labels"),
        ({"classes": ["", "1"]}, "characters"),
        ({"classes": list(range(201))}, "at most 200"),
        ({"members": "perceptrons"}, "Did you mean 'perceptron'"),
        ({"members": "fern(depth=40)"}, ""),
        ({"members": "fern(depth=(((((((1)))))))"}, "name with parameters"),
        ({"members": "__import__('os')"}, "must be one of"),
        ({"n_members": 10**6}, "n_members must be at most"),
        ({"weighter": "none"}, "weighter must be one of"),
        ({"loss": "other"}, "must be one of"),
        ({"forgetting": 2.0}, "(0, 1]"),
        ({"model": "forest"}, "bayesian"),
        ({"model": "osboost", "weighter": "voting"}, "is not a parameter of the model"),
        ({"seed": -1}, ">= 0"),
        ({"more": 1}, "unknown field"),
        ({"scale": 1}, "scale"),
    ],
)
def test_models_that_are_refused(serve: Callable[..., Api], change: dict[str, Any], word: str) -> None:
    api = serve()
    body = {"columns": 3, "classes": [0, 1]} | change
    answer = api.request("PUT", "/v2/models/m", body)
    assert answer.status_code == 400
    assert word in answer.json()["error"]
    assert api.learner.models == {}
    assert api.learner.folder.journal.models() == []
    for name in (".hidden", "line%0a", "%ff"):
        assert api.request("PUT", f"/v2/models/{name}", {"columns": 3, "classes": [0, 1]}).status_code == 400


@pytest.mark.parametrize("model", [BayesianEnsembleClassifier, OzaBoostClassifier])
def test_numbers_whose_kinds_are_stated_are_a_table_as_in_python(serve: Callable[..., Api], model: Any) -> None:
    """So that boosters learn rows with gaps, too."""
    api = serve()
    kinds = dict.fromkeys("abc", "number")
    name = "ozaboost" if model is OzaBoostClassifier else "bayesian"
    api.put("m", columns=kinds, classes=["no", "yes"], model=name, n_members=5, scale=False)
    X, y = rows_of(60)
    X[np.random.default_rng(1).random(X.shape) < 0.2] = np.nan
    api.post("learn", rows=objects(X), labels=said(y))
    twin = model(n_members=5, scale=False, columns=kinds, random_state=0)
    table = {name: [row[name] for row in objects(X)] for name in kinds}
    twin.predict_proba_then_learn(table, said(y), classes=["no", "yes"])
    given = {"name": "X", "shape": [60, 3], "datatype": "FP64"}
    given["data"] = [None if value != value else value for value in X.ravel().tolist()]
    for asked in ({"rows": objects(X)}, {"inputs": [given]}):
        np.testing.assert_array_equal(output(api.post("infer", **asked), "probability"), twin.predict_proba(table))
    assert len(np.unique(output(api.post("infer", rows=objects(X)), "label"))) == 2


def test_more_rows_than_may_wait_are_refused(serve: Callable[..., Api]) -> None:
    api = serve(pending=3)
    api.put("m", columns=["a", "b", "c"], classes=["no", "yes"], members="perceptron")
    X, _ = rows_of(4)
    assert "at most 3" in api.refused("infer", 413, rows=objects(X), ids=list("uvwx"))


def test_a_key_that_comes_twice_makes_no_model(serve: Callable[..., Api]) -> None:
    api = serve()
    body = b'{"columns": {"a": "number", "b": "number", "a": "category"}, "classes": [0, 1]}'
    answer = api.request("PUT", "/v2/models/m", content=body)
    assert (answer.status_code, api.learner.models) == (400, {})
    assert "each key once, got 'a' twice" in answer.text


def test_who_comes_back_at_once_shares_the_next_commit(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of clients that ask again as soon as they are answered, all but the first commits hold nearly all."""
    clients, each = 8, 30
    before = api.learner.folder.journal.transaction

    @contextmanager
    def slow() -> Iterator[None]:
        with before():
            yield
        time.sleep(0.01)  # as a disk may be

    monkeypatch.setattr(api.learner.folder.journal, "transaction", slow)
    X, _ = rows_of(clients * each)

    def client(number: int) -> None:
        for k in range(each):
            row = number * each + k
            api.post("learn", rows=objects(X[row : row + 1]), labels=["no"])

    threads = [threading.Thread(target=client, args=(number,)) for number in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    counters = api.learner.counters
    assert counters.grouped == clients * each
    assert counters.grouped / counters.commits > 0.75 * clients


def test_one_client_is_not_kept_waiting(api: Api) -> None:
    X, _ = rows_of(1)
    api.post("learn", rows=objects(X), labels=["no"])
    start = time.monotonic()

    def expect() -> None:
        api.learner._expected, api.learner._waits_until = 1, start + 20

    # By the thread itself, or what it remembers of the commit before could come after.
    asyncio.run_coroutine_threadsafe(api.learner.call(expect), api._loop).result(60)
    api.post("learn", rows=objects(X), labels=["no"])
    assert time.monotonic() - start < 15


def test_a_crowd_that_comes_at_once_is_learned_about_a_chunk_at_a_time(api: Api) -> None:
    """Between two chunks others may predict, and a commit does not grow with the crowd."""
    served, n, each = api.learner.models["m"], 7, CHUNK // 2
    X, y = rows_of(n * each)

    async def teach() -> None:
        parts = [slice(k * each, (k + 1) * each) for k in range(n)]
        await asyncio.gather(*(api.learner.do(LearnTask(served, [], X[part], y[part])) for part in parts))

    asyncio.run_coroutine_threadsafe(teach(), api._loop).result(60)
    assert (served.rows, api.learner.counters.grouped, api.learner.counters.commits) == (n * each, n, 4)


def test_a_probability_on_the_edge_of_a_bin_belongs_to_the_bin_above() -> None:
    below = float(np.nextafter(0.5, 0))
    figures = RunningScores(2)
    figures.add(np.array([0, 0, 1]), np.array([[below, 0.1], [0.5, 0.1], [0.54, 0.1]]))
    assert figures.bins[4].tolist() == [1, below, 1]
    assert figures.bins[5].tolist() == pytest.approx([2, 1.04, 1])
    figures.add(np.array([1]), np.array([[0.0, 1.0]]))
    assert figures.bins[-1].tolist() == [1, 1, 1]
