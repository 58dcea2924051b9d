"""A service in this process, for tests."""

import asyncio
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from bayesvote.apps.service.app import make_app
from bayesvote.apps.service.folder import Folder
from bayesvote.apps.service.learner import LearningThread, Policy
from bayesvote.apps.service.service import Service
from bayesvote.apps.service.types import Limits
from bayesvote.core.checks import Array, Labels
from bayesvote.io.model_file import dumps


class Api:
    """A service, and requests to it."""

    def __init__(self, folder: Path, token: str | None = None, every: int = 10_000, prune: bool = False, **limits: Any):
        self.folder = folder
        opened = Folder(folder)
        try:
            self.learner = LearningThread(opened, Policy(every, prune, Limits(**limits)))
        except BaseException:
            opened.close()
            raise
        self.learner.start()
        self.service = Service(self.learner)
        hosts = frozenset({"127.0.0.1"}) if token is None else None
        transport = httpx.ASGITransport(make_app(self.service, token, hosts))
        self._client = httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1", timeout=60)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop it; once is enough."""
        if self.learner.is_alive():
            assert self.learner.stop(30)
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()

    def request(self, method: str, path: str, body: Any = None, **more: Any) -> Any:
        """Answer of a request."""
        given = {} if body is None else {"json": body}
        return asyncio.run_coroutine_threadsafe(self._client.request(method, path, **given, **more), self._loop).result(
            60
        )

    def put(self, name: str, **body: Any) -> Any:
        """Make a model."""
        answer = self.request("PUT", f"/v2/models/{name}", body)
        assert answer.status_code == 201, answer.text
        return answer.json()

    def post(self, path: str, **body: Any) -> Any:
        """Answer about the model m that must not be refused."""
        answer = self.request("POST", f"/v2/models/m/{path}", body)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def refused(self, path: str, status: int, **body: Any) -> str:
        """Reason for which a request about the model m is refused, which must change nothing."""
        before = self.state()
        answer = self.request("POST", f"/v2/models/m/{path}", body)
        assert answer.status_code == status, answer.text
        assert self.state() == before
        return str(answer.json()["error"])

    def tidy(self) -> None:
        """Let the learning thread drop what is old, as it does once per second."""
        asyncio.run_coroutine_threadsafe(self.learner.call(self.learner._tidy), self._loop).result(60)

    def state(self, name: str = "m") -> tuple[bytes, int, int, str]:
        """All that a model is."""
        served = self.learner.models[name]
        return dumps(served.estimator), served.rows, served.pending, str(served.scores.to_json())


def rows_of(n: int, seed: int = 0) -> tuple[Array, Labels]:
    """Rows of three numbers, and labels that depend on them."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, (X[:, 0] > 0.3 * X[:, 1]).astype(np.intp)


def objects(X: Array, names: Sequence[str] = "abc") -> list[dict[str, float | None]]:
    """Rows as JSON objects."""
    return [
        {name: None if value != value else value for name, value in zip(names, row, strict=True)} for row in X.tolist()
    ]


def said(codes: Labels) -> list[str]:
    """Labels of the model m."""
    return [("no", "yes")[code] for code in codes]


def output(answer: Any, name: str) -> Array:
    """Values of an output."""
    found = next(each for each in answer["outputs"] if each["name"] == name)
    return np.array(found["data"]).reshape(found["shape"])
