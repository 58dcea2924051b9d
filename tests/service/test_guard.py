"""Who may ask, what is taken, and what every answer carries."""

import asyncio
import base64
import json
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bayesvote.apps import service
from bayesvote.apps.service.app import make_app
from bayesvote.apps.service.group import Teach
from bayesvote.apps.service.types import Refusal
from service.helpers import Api, objects, rows_of
from service_client import Forked, free_port

TOKEN = "a-token-of-some-length"


def test_a_token_is_demanded(serve: Callable[..., Api]) -> None:
    api = serve(token=TOKEN)
    basic = base64.b64encode(f"anybody:{TOKEN}".encode()).decode()
    for given in (f"Bearer {TOKEN}", f"bearer {TOKEN}", f"Basic {basic}"):
        assert api.request("GET", "/v2", headers={"Authorization": given}).status_code == 200
    for given in (
        "",
        "Bearer",
        f"Bearer {TOKEN}x",
        f"Bearer {TOKEN[:-1]}",
        "Basic !",
        f"Basic {TOKEN}",
        "Bearer \u00e9",
    ):
        answer = api.request("GET", "/", headers={"Authorization": given.encode()})
        assert answer.status_code == 401
        assert answer.headers["WWW-Authenticate"].startswith("Basic")
    assert api.request("GET", "/v2/health/live").status_code == 200
    assert api.request("GET", "/metrics").status_code == 401


def test_pages_of_other_sites_are_refused(api: Api) -> None:
    assert api.request("GET", "/v2", headers={"Host": "evil.example"}).status_code == 403
    assert api.request("GET", "/v2", headers={"Host": "127.0.0.1.evil.example"}).status_code == 403
    for origin in ("http://evil.example", "http://evil-127.0.0.1", "http://127.0.0.1.evil.example", "null"):
        assert api.request("GET", "/v2", headers={"Origin": origin}).status_code == 403
    assert api.request("GET", "/v2", headers={"Origin": "http://127.0.0.1"}).status_code == 200
    assert (
        api.request("GET", "/v2", headers={"Host": "127.0.0.1:99", "Origin": "http://127.0.0.1:99"}).status_code == 200
    )


def test_names_of_hosts_are_compared_without_case_and_port(api: Api) -> None:
    guard = make_app(api.service, None, frozenset({"localhost"}))
    for host in (b"localhost", b"LocalHost", b"LOCALHOST:8080"):
        guard.check("/v2", {b"host": host})
    with pytest.raises(Refusal, match=r"the Host must be one of localhost, got 'localhost\.evil\.example'"):
        guard.check("/v2", {b"host": b"localhost.evil.example"})


def test_every_answer_has_a_policy(api: Api) -> None:
    for path in ("/", "/docs", "/v2", "/nothing", "/static/page.js", "/static/other"):
        answer = api.request("GET", path)
        assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert api.request("GET", "/static/..%2fapp.py").status_code == 404
    assert api.request("PATCH", "/v2").status_code == 405
    answer = api.request("PATCH", "/v2/models/m")
    assert "PUT" in answer.headers["Allow"]


def test_size_and_kind_of_bodies(serve: Callable[..., Api]) -> None:
    api = serve(body=1000, rows=5)
    api.put("m", columns=["a", "b", "c"], classes=["no", "yes"], members="perceptron", n_members=10)
    X, _ = rows_of(6)
    assert "at most 1,000 bytes" in api.refused("infer", 413, rows=objects(X) * 10)
    assert "at most 5 rows" in api.refused("infer", 413, rows=objects(X))
    zeros = {"name": "X", "shape": [10**6, 3], "datatype": "FP64", "data": []}
    assert "at most 5 rows" in api.refused("infer", 413, inputs=[zeros])
    for kind in ("text/plain", "application/x-www-form-urlencoded"):
        answer = api.request("POST", "/v2/models/m/infer", content=b"{}", headers={"Content-Type": kind})
        assert answer.status_code == 415
    answer = api.request("POST", "/v2/models/m/infer", content=b"{}", headers={"Content-Encoding": "gzip"})
    assert answer.status_code == 415
    assert "Content-Encoding must be left out" in answer.text
    headers = {"Content-Type": "application/json"}
    answer = api.request("POST", "/v2/models/m/infer", content=b'{"rows": [{"a": NaN}]}', headers=headers)
    assert "NaN is not JSON: send null" in answer.text
    for body in (b"", b"{", b"\xff", b"[" * 900, b'{"rows": [{"a": NaN}]}', b'"\\ud800"'):
        answer = api.request("POST", "/v2/models/m/infer", content=body, headers={"Content-Type": "application/json"})
        assert answer.status_code == 400


def test_as_much_as_is_allowed_is_taken(serve: Callable[..., Api]) -> None:
    X = rows_of(6)[0]
    body = json.dumps({"rows": objects(X[:5])}).encode()
    api = serve(body=len(body), rows=5, columns=3, pending=5)
    api.put("m", columns=["a", "b", "c"], classes=["no", "yes"], members="perceptron", n_members=10)
    headers = {"Content-Type": "application/json"}
    assert api.request("POST", "/v2/models/m/infer", content=body, headers=headers).status_code == 200
    assert api.request("POST", "/v2/models/m/infer", content=body + b" ", headers=headers).status_code == 413
    tensor = {"name": "X", "shape": [5, 3], "datatype": "FP64", "data": X[:5].round(1).ravel().tolist()}
    api.post("infer", inputs=[tensor], ids=list("uvwxy"))
    assert "from 1 to 5, got 6" in api.refused("label", 413, ids=list("uvwxyz"), labels=["no"] * 6)
    assert api.post("label", ids=list("uvwxy"), labels=["no"] * 5)["learned"] == 5


def test_of_too_many_requests_some_are_sent_away(serve: Callable[..., Api]) -> None:
    api = serve(waiting=2)
    api.put("m", columns=["a", "b", "c"], classes=["no", "yes"], members="perceptron", n_members=10)
    (X, y), served = rows_of(4), api.learner.models["m"]

    async def together() -> Any:
        jobs = [Teach(served, [], X[k : k + 1], y[k : k + 1]) for k in range(4)]
        return await asyncio.gather(*map(api.learner.do, jobs), return_exceptions=True)

    found = asyncio.run_coroutine_threadsafe(together(), api._loop).result(60)
    refused = [each for each in found if isinstance(each, Refusal)]
    assert [each.status for each in refused] == [503, 503]
    assert "too many requests wait for the disk" in refused[0].reason
    assert served.rows == 2


def test_refusals_are_remembered(api: Api) -> None:
    api.refused("label", 404, ids=["<i>"], labels=["no"])
    assert "<i>" in api.service.refusals[0].reason


def test_beyond_this_machine_a_token_is_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BAYESVOTE_TOKEN", raising=False)
    options = service.Options(tmp_path / "folder", host="0.0.0.0", port=0)
    with pytest.raises(ValueError, match=r"a token must be given .* to listen on 0.0.0.0"):
        service.serve(options)
    assert not (tmp_path / "folder").exists()
    monkeypatch.setenv("BAYESVOTE_TOKEN", "short")
    with pytest.raises(ValueError, match="at least 16 characters"):
        options.token()
    monkeypatch.setenv("BAYESVOTE_TOKEN", "just-16-are-long")
    assert options.token() == "just-16-are-long"
    monkeypatch.setenv("BAYESVOTE_TOKEN", TOKEN)
    assert options.token() == TOKEN
    (tmp_path / "token").write_text(f"{TOKEN}-2\n")
    assert service.Options(tmp_path, token_file=tmp_path / "token").token() == f"{TOKEN}-2"
    (tmp_path / "token").write_bytes(b"\xff" * 20)
    with pytest.raises(ValueError, match=r"token must be a text file with the token, got"):
        service.Options(tmp_path, token_file=tmp_path / "token").token()


def test_slow_clients_are_let_go(tmp_path: Path) -> None:
    server = Forked(tmp_path / "folder", free_port(), limits=service.Limits(request_seconds=0.5))
    server.wait()
    head = b"POST /v2/models/m/infer HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    for begun in (b"", head, head + b"Content-Length: 99\r\n\r\n{"):
        start = time.monotonic()
        with socket.create_connection(("127.0.0.1", server.port), timeout=30) as connection:
            connection.sendall(begun)
            answer = b""
            while part := connection.recv(1000):
                answer += part
        assert answer.startswith((b"HTTP/1.1 408", b"HTTP/1.1 404"))
        assert time.monotonic() - start < 20
    server.kill()
