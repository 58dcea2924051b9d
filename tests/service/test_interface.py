"""The interface as others see it: schemathesis over its description, and a client that nobody here wrote."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bayesvote.apps.service import openapi
from service.helpers import Api
from service_client import Forked, free_port, stream
from service_schema import trial


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Forked]:
    """The service in a process of its own, with a model."""
    found = Forked(tmp_path_factory.mktemp("served") / "folder", free_port())
    found.wait()
    found.json("PUT", "/v2/models/m", {"columns": 4, "classes": ["no", "yes"], "members": "perceptron"})
    yield found
    found.kill()


def test_the_description_names_every_route(api: Api) -> None:
    described = api.request("GET", "/openapi.json").json()
    assert described == json.loads(json.dumps(openapi.document()))
    for path, operations in described["paths"].items():
        for method in operations:
            answer = api.request(method.upper(), path.replace("{name}", "none").replace("{version}", "1"))
            assert answer.status_code != 405
    page = api.request("GET", "/docs").text
    assert all(f"<code>{o.method.upper()} {o.path}</code>" in page for o in openapi.OPERATIONS)


def test_schemathesis_finds_no_server_error(server: Forked) -> None:
    pytest.importorskip("schemathesis")
    assert trial(server.port, examples=3) > 50


def test_triton_client(server: Forked) -> None:
    http: Any = pytest.importorskip("tritonclient.http")
    client = http.InferenceServerClient(f"127.0.0.1:{server.port}")
    assert client.is_server_live()
    assert client.is_server_ready()
    assert client.is_model_ready("m")
    assert client.is_model_ready("m", "1")
    assert not client.is_model_ready("other")
    assert client.get_server_metadata()["name"] == "bayesvote"
    facts = client.get_model_metadata("m")
    assert facts["inputs"][0] == {"name": "X", "datatype": "FP64", "shape": [-1, 4]}
    X, _ = stream(5, 4)
    found = []
    for binary in (True, False):
        rows = http.InferInput("X", list(X.shape), "FP64")
        rows.set_data_from_numpy(X, binary_data=binary)
        names = ["label", "probability", "certainty"]
        for wanted in (None, [http.InferRequestedOutput(name, binary_data=not binary) for name in names]):
            answer = client.infer("m", [rows], outputs=wanted, request_id="7")
            assert answer.get_response()["id"] == "7"
            found.append([answer.as_numpy(name) for name in names])
    for labels, probabilities, certainty in found:
        assert [str(label, "utf-8") if isinstance(label, bytes) else label for label in labels] == ["yes"] * 5
        np.testing.assert_array_equal(probabilities, found[0][1])
        np.testing.assert_array_equal(certainty, found[0][2])
    ids = http.InferInput("ids", [5], "BYTES")
    ids.set_data_from_numpy(np.array([f"triton {k}" for k in range(5)], dtype=object))
    client.infer("m", [rows, ids])
    body = {"ids": [f"triton {k}" for k in range(5)], "labels": ["no"] * 5}
    assert server.json("POST", "/v2/models/m/label", body)["learned"] == 5
    wrong = http.InferInput("X", [5, 2], "FP64")
    wrong.set_data_from_numpy(X[:, :2].copy())
    with pytest.raises(Exception, match="shape"):
        client.infer("m", [wrong])
    client.close()


def test_prometheus_can_read_the_figures(server: Forked) -> None:
    parser: Any = pytest.importorskip("prometheus_client.parser")
    names = {family.name for family in parser.text_string_to_metric_families(server.text("/metrics"))}
    assert {"bayesvote_rows_learned", "bayesvote_requests", "bayesvote_request_seconds", "bayesvote_commits"} <= names


def test_types_are_installed(tmp_path: Path) -> None:  # noqa: ARG001
    here = Path(openapi.__file__).parent
    assert {"page.html", "page.js", "page.css", "icon.svg"} <= {path.name for path in here.iterdir()}
