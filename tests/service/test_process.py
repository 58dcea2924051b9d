"""The command: signals, log, checks, copies."""

import json
import socket
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from bayesvote.apps import service
from bayesvote.apps.cli import main
from service_client import PAPER, Server, stream, tensor


def request(port: int, method: str, path: str, body: object = None) -> bytes:
    data = None if body is None else json.dumps(body).encode()
    asked = urllib.request.Request(
        f"http://127.0.0.1:{port}{path}", data, {"Content-Type": "application/json"}, method=method
    )
    with urllib.request.urlopen(asked, timeout=60) as answer:
        found: bytes = answer.read()
    return found


def test_a_life(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Serve, learn, watch, stop by a signal; then check and copy."""
    folder, log = tmp_path / "folder", tmp_path / "log"
    server = Server.of(folder, "--log-json", log=log)
    server.wait()
    request(server.port, "PUT", "/v2/models/m", {"columns": 20, "classes": [0, 1], **PAPER})
    X, y = stream(300)
    request(server.port, "POST", "/v2/models/m/learn", {"inputs": [tensor(X)], "labels": y.tolist()})
    seen: list[bytes] = []

    def watch() -> None:
        with urllib.request.urlopen(f"http://127.0.0.1:{server.port}/events", timeout=60) as events:
            seen.extend(events)

    watcher = threading.Thread(target=watch)
    watcher.start()
    while not seen:
        time.sleep(0.05)
    with pytest.raises(urllib.error.HTTPError, match="404"):
        request(server.port, "GET", "/v2/models/other")
    assert main(["serve", str(folder), "--check"]) == 0
    start = time.monotonic()
    assert server.stop() == 0
    watcher.join()  # an open page does not hold the end up
    assert time.monotonic() - start < 20
    assert json.loads(seen[0].removeprefix(b"data: "))["model"]["rows"] == 300
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert [line["message"] for line in lines] == [
        "serving",
        "created a model",
        "request rejected",
        "saved a snapshot",
        "stopped",
    ]
    assert lines[3]["rows"] == 300
    assert main(["serve", str(folder), "--backup", str(tmp_path / "copy")]) == 0
    assert main(["serve", str(tmp_path / "copy"), "--check"]) == 0
    printed = capsys.readouterr().out
    assert "300 rows learned" in printed
    assert "bit for bit" in printed
    latest = sorted(folder.glob("snapshots/*"))[-1]
    latest.write_bytes(latest.read_bytes()[:-1])
    assert main(["serve", str(folder), "--check"]) == 1
    assert f"BAD:  snapshots/{latest.name} cannot be loaded" in capsys.readouterr().out


def test_errors_are_sentences(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", str(tmp_path / "none"), "--check"]) == 1
    assert "must hold journal.sqlite to be checked" in capsys.readouterr().err
    (tmp_path / "m.safetensors").write_bytes(b"nothing")
    assert main(["serve", str(tmp_path), "--port", "0"]) == 1
    assert "must be a model that can be served" in capsys.readouterr().err
    assert main(["serve", str(tmp_path), "--host", "0.0.0.0"]) == 1
    assert "a token is required" in capsys.readouterr().err


def test_a_port_that_is_taken(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        assert main(["serve", str(tmp_path / "folder"), "--port", str(taken.getsockname()[1])]) == 1
    assert "must be available" in capsys.readouterr().err
    assert not (tmp_path / "folder").exists()


def test_every_option_reaches_the_service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    served: list[service.Options] = []

    def serve(options: service.Options) -> int:
        served.append(options)
        return 3

    monkeypatch.setattr(service, "serve", serve)
    (tmp_path / "token").touch()
    text = f"""
        --host ::1 --port 99 --token-file {tmp_path / "token"} --snapshot-every 7 --prune --shutdown-seconds 5
        --log-json --pending-days 2 --max-pending 11 --max-body 12 --max-rows 13 --max-columns 14 --max-connections 15
        --request-seconds 16"""
    assert main(["serve", str(tmp_path / "folder"), *text.split()]) == 3  # the exit code is the service's
    limits = service.Limits(
        body=12, rows=13, columns=14, pending=11, pending_seconds=2 * 24 * 60 * 60, request_seconds=16
    )
    assert served == [
        service.Options(
            tmp_path / "folder",
            "::1",
            99,
            tmp_path / "token",
            7,
            True,
            5.0,
            connections=15,
            log_json=True,
            limits=limits,
        )
    ]
    assert main(["serve", str(tmp_path / "folder")]) == 3
    assert served[1] == service.Options(tmp_path / "folder")
