"""A service in this process, and requests to it."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette", reason="the service needs pip install 'bayesvote[serve]'")

from service.helpers import Api


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., Api]]:
    """Start a service on a folder; all are stopped at the end."""
    started: list[Api] = []

    def start(folder: Path = tmp_path / "folder", **options: Any) -> Api:
        started.append(Api(folder, **options))
        return started[-1]

    yield start
    for api in started:
        api.stop()


@pytest.fixture
def api(serve: Callable[..., Api]) -> Api:
    """A service with a model ``m`` of three numbers and the labels no and yes."""
    found = serve()
    found.put("m", columns=["a", "b", "c"], classes=["no", "yes"], members="perceptron", n_members=10)
    return found


def wait_until(holds: Callable[[], bool], seconds: float = 20.0) -> None:
    """Wait for another thread."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.02)
