"""Predictions: what the Open Inference Protocol says, and that they are those of the classifier."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from bayesvote import BayesianEnsembleClassifier, save
from service.helpers import Api, objects, output, rows_of, said


def tensor(X: Any, datatype: str = "FP64", name: str = "X") -> dict[str, Any]:
    return {"name": name, "shape": list(X.shape), "datatype": datatype, "data": X.ravel().tolist()}


def test_server_and_model_tell_about_themselves(api: Api) -> None:
    about = api.request("GET", "/v2").json()
    assert about["name"] == "bayesvote"
    assert about["models"] == ["m"]
    assert api.request("GET", "/v2/health/live").json() == {"live": True}
    assert api.request("GET", "/v2/health/ready").json() == {"ready": True}
    for path in ("/v2/models/m", "/v2/models/m/versions/1"):
        facts = api.request("GET", path).json()
        assert facts["name"] == "m"
        assert facts["versions"] == ["1"]
        assert facts["platform"] == "bayesvote"
        assert facts["inputs"][0] == {"name": "X", "datatype": "FP64", "shape": [-1, 3]}
        assert [each["name"] for each in facts["outputs"]] == ["label", "probability", "certainty", "contributions"]
    assert api.request("GET", "/v2/models/m/ready").json() == {"name": "m", "ready": True}
    assert api.request("GET", "/v2/models/m/versions/2").status_code == 404
    assert api.request("GET", "/v2/models/other/ready").status_code == 404


def test_answers_are_those_of_the_classifier(api: Api) -> None:
    X, y = rows_of(200)
    X[5, 1] = np.nan
    api.post("learn", rows=objects(X), labels=said(y))
    model = BayesianEnsembleClassifier("perceptron", 10, random_state=0).start(3, np.array(["no", "yes"]))
    model.predict_proba_then_learn(X, said(y))
    new, _ = rows_of(7, seed=1)
    wanted = [{"name": name} for name in ("contributions", "label", "probability", "certainty")]
    by_rows = api.post("infer", rows=objects(new), outputs=wanted, id="question")
    by_tensor = api.post("infer", inputs=[tensor(new)], outputs=wanted, id="question")
    by_columns = api.post(
        "infer", inputs=[tensor(new[:, k], name="abc"[k]) for k in (2, 0, 1)], outputs=wanted, id="question"
    )
    assert by_rows == by_tensor == by_columns
    assert by_rows["id"] == "question"
    assert [each["name"] for each in by_rows["outputs"]] == [w["name"] for w in wanted]
    assert output(by_rows, "label").tolist() == model.predict(new).tolist()
    np.testing.assert_array_equal(output(by_rows, "probability"), model.predict_proba(new))
    np.testing.assert_array_equal(output(by_rows, "certainty"), model.decision_certainty(new))
    np.testing.assert_array_equal(output(by_rows, "contributions"), model.contributions(new))
    usual = api.post("infer", rows=objects(new))
    assert [each["name"] for each in usual["outputs"]] == ["label", "probability", "certainty"]
    assert "id" not in usual


def test_a_model_that_has_learned_nothing_is_not_certain(api: Api) -> None:
    found = api.post("infer", rows=objects(rows_of(2)[0]))
    assert output(found, "certainty").tolist() == [0.5, 0.5]
    np.testing.assert_allclose(output(found, "probability"), 0.5)


def test_tensors_may_be_nested_or_bytes_and_null_is_missing(api: Api) -> None:
    X, y = rows_of(100)
    api.post("learn", rows=objects(X), labels=said(y))
    flat = api.post("infer", rows=objects(np.array([[1.0, np.nan, 2.0], [0.5, 0.0, -1.0]])))
    data = [[1, None, 2], [0.5, 0, -1]]
    nested = api.post("infer", inputs=[{"name": "X", "shape": [2, 3], "datatype": "FP32", "data": data}])
    assert nested == flat
    raw = np.array([[1.0, np.nan, 2.0], [0.5, 0.0, -1.0]], dtype="<f4").tobytes()
    head = {
        "inputs": [{"name": "X", "shape": [2, 3], "datatype": "FP32", "parameters": {"binary_data_size": len(raw)}}],
        "parameters": {"binary_data_output": True},
    }
    text = json.dumps(head).encode()
    headers = {"Inference-Header-Content-Length": str(len(text)), "Content-Type": "application/octet-stream"}
    answer = api.request("POST", "/v2/models/m/infer", content=text + raw, headers=headers)
    length = int(answer.headers["Inference-Header-Content-Length"])
    found, rest = json.loads(answer.content[:length]), answer.content[length:]
    sizes = [each["parameters"]["binary_data_size"] for each in found["outputs"]]
    assert sum(sizes) == len(rest)
    np.testing.assert_array_equal(
        np.frombuffer(rest[sizes[0] : sizes[0] + sizes[1]]), output(flat, "probability").ravel()
    )
    assert rest[: sizes[0]].count(b"\x02\0\0\0no") + rest[: sizes[0]].count(b"\x03\0\0\0yes") == 2


@pytest.mark.parametrize("of_all", [False, True, None])
def test_an_output_is_bytes_if_it_or_else_the_request_says_so(api: Api, of_all: bool | None) -> None:
    outputs = [
        {"name": "label", "parameters": {"binary_data": False}},
        {"name": "probability", "parameters": {"binary_data": True}},
        {"name": "certainty"},
    ]
    body = {"rows": objects(rows_of(2)[0]), "outputs": outputs}
    body |= {} if of_all is None else {"parameters": {"binary_data_output": of_all}}
    answer = api.request("POST", "/v2/models/m/infer", body)
    length = int(answer.headers["Inference-Header-Content-Length"])
    found = {each["name"]: each for each in json.loads(answer.content[:length])["outputs"]}
    assert [name for name, each in found.items() if each.get("data") is None] == ["probability", "certainty"][
        : 1 + bool(of_all)
    ]
    assert len(answer.content) - length == 8 * 2 * (3 if of_all else 2)


BAD_ROW = {"a": 1.0, "b": 2.0}
X1 = {"name": "X", "shape": [1, 3], "datatype": "FP64", "data": [1, 2, 3]}


@pytest.mark.parametrize(
    ("body", "word"),
    [
        ({}, "either rows or inputs"),
        ({"rows": [], "inputs": []}, "either rows or inputs"),
        ({"rows": []}, "at least one row"),
        ({"rows": [BAD_ROW]}, "'c' is missing"),
        ({"rows": [BAD_ROW | {"c": "1"}]}, "must be a number"),
        ({"rows": [BAD_ROW | {"c": True}]}, "must be a number"),
        ({"rows": [BAD_ROW | {"c": 1e101}]}, "finite"),
        ({"rows": [BAD_ROW | {"c": [1]}]}, "openapi"),
        ({"rows": 5}, "openapi"),
        ({"row": []}, "unknown field"),
        ({"rows": [BAD_ROW | {"c": 0.0}], "ids": ["a", "b"]}, "one per row"),
        ({"rows": [BAD_ROW | {"c": 0.0}] * 2, "ids": ["a", "a"]}, "differ"),
        ({"rows": [BAD_ROW | {"c": 0.0}], "ids": ["a\nb"]}, "matching regex"),
        ({"rows": [BAD_ROW | {"c": 0.0}], "outputs": [{"name": "other"}]}, "got 'other'"),
        ({"rows": [BAD_ROW | {"c": 0.0}], "outputs": [{"name": "label"}] * 2}, "each once"),
        ({"inputs": [X1 | {"shape": [1, 2], "data": [1, 2]}]}, "shape"),
        ({"inputs": [X1 | {"shape": [3]}]}, "shape"),
        ({"inputs": [X1 | {"data": [1, 2]}]}, "shape"),
        ({"inputs": [X1 | {"data": [1, 2, "3"]}]}, "numbers or null"),
        ({"inputs": [X1 | {"data": [1, 2, True]}]}, "numbers or null"),
        ({"inputs": [X1 | {"data": [[1], 2, 3]}]}, "numbers or null"),
        ({"inputs": [X1 | {"datatype": "FP63"}]}, "datatypes"),
        ({"inputs": [X1, X1]}, "differ"),
        ({"inputs": [X1 | {"name": "Y"}]}, "'a' is missing"),
        ({"inputs": [{key: value for key, value in X1.items() if key != "data"}]}, "must have data"),
    ],
)
def test_what_is_wrong_is_said(api: Api, body: dict[str, Any], word: str) -> None:
    assert word in api.refused("infer", 400, **body)


def test_a_model_of_ones_own_is_served(serve: Callable[..., Api], tmp_path: Any) -> None:
    X, y = rows_of(50)
    model = BayesianEnsembleClassifier("fern", 8, random_state=1).fit(X, y + 5)
    (tmp_path / "folder").mkdir()
    save(model, tmp_path / "folder" / "m.safetensors")
    api = serve()
    answer = api.post("infer", rows=objects(X[:3], ["x0", "x1", "x2"]), outputs=[{"name": "label"}])
    assert answer["outputs"] == [
        {"name": "label", "datatype": "INT64", "shape": [3], "data": model.predict(X[:3]).tolist()}
    ]
    assert "must be one of 5, 6" in api.refused("learn", 400, rows=objects(X[:1], ["x0", "x1", "x2"]), labels=[7])
    assert api.post("learn", rows=objects(X[:1], ["x0", "x1", "x2"]), labels=[5])["learned"] == 1
    api.stop()
    assert serve().learner.models["m"].rows == 1


def test_boosters_have_neither_certainty_nor_contributions(serve: Callable[..., Api]) -> None:
    api = serve()
    facts = api.put("m", columns=3, classes=[True, False], model="osboost", n_members=5)
    assert [each["name"] for each in facts["outputs"]] == ["label", "probability"]
    X, y = rows_of(20)
    names = ["x0", "x1", "x2"]
    api.post("learn", rows=objects(X, names), labels=[bool(code) for code in y])
    assert {*output(api.post("infer", rows=objects(X, names)), "label").tolist()} <= {True, False}
    assert "must be one of" in api.refused("learn", 400, rows=objects(X[:1], names), labels=[1])


@pytest.mark.parametrize(
    ("datatype", "good", "wrong"),
    [("INT64", -(2**40), 1.5), ("UINT8", 255, 256), ("UINT8", 0, -1), ("INT8", -128, 128), ("INT16", None, 1e300)],
)
def test_integers_are_integers(api: Api, datatype: str, good: float | None, wrong: float) -> None:
    def tensor(value: float | None) -> dict[str, Any]:
        return {"name": "X", "shape": [1, 3], "datatype": datatype, "data": [0, value, 1]}

    api.post("infer", inputs=[tensor(good)])
    assert f"must hold numbers of {datatype}, got {wrong:g}" in api.refused("infer", 400, inputs=[tensor(wrong)])


def test_further_columns_are_ignored(api: Api) -> None:
    X, y = rows_of(50)
    api.post("learn", rows=objects(X), labels=said(y))
    expected = api.post("infer", rows=objects(X[:3]))
    more = [row | {"note": "new", "d": 1.0} for row in objects(X[:3])]
    assert api.post("infer", rows=more) == expected
    columns = [tensor(X[:3, k], name="abc"[k]) for k in range(3)]
    assert api.post("infer", inputs=[*columns, tensor(X[:1, 0], name="d")]) == expected
    assert "'c' is missing" in api.refused("infer", 400, rows=[BAD_ROW | {"d": 1.0}])


def test_bytes_of_truth_values_are_0_or_1(serve: Callable[..., Api]) -> None:
    """Other bytes are a mistake of the client, such as numbers of another type."""
    api = serve()
    api.put("m", columns={"vip": "boolean"}, classes=["no", "yes"], members="naive_bayes", n_members=3)

    def ask(data: bytes) -> Any:
        about = {"name": "vip", "shape": [2], "datatype": "BOOL", "parameters": {"binary_data_size": len(data)}}
        text = json.dumps({"inputs": [about]}).encode()
        headers = {"Inference-Header-Content-Length": str(len(text))}
        return api.request("POST", "/v2/models/m/infer", content=text + data, headers=headers)

    asked = {"name": "vip", "shape": [2], "datatype": "BOOL", "data": [False, True]}
    assert ask(b"\0\1").json() == api.post("infer", inputs=[asked])
    for wrong in (b"\0\2", b"\xff\1"):
        refused = ask(wrong)
        assert refused.status_code == 400
        assert f"inputs: 'vip' must hold bytes that are 0 or 1, got {max(wrong)}." in refused.json()["error"]
