"""What the routes share: the learner, the limits, and the latest refusals."""

import asyncio
import time
from collections import deque
from collections.abc import Mapping
from typing import NamedTuple

from starlette.types import Receive, Scope

from bayesvote.apps.service.learner import Learner
from bayesvote.apps.service.metrics import Metrics
from bayesvote.apps.service.models import VERSION, Served
from bayesvote.apps.service.types import Limits, Refusal


class Refused(NamedTuple):
    """A refusal, for the live page."""

    when: float
    what: str
    status: int
    reason: str


class Service:
    """The service of a folder."""

    def __init__(self, learner: Learner) -> None:
        self.learner = learner
        self.limits: Limits = learner.policy.limits
        self.metrics = Metrics(learner)
        self.refusals: deque[Refused] = deque(maxlen=20)
        self.stopping = asyncio.Event()
        self.watchers = 0

    def model(self, names: Mapping[str, str]) -> Served:
        """Model that the parameters of a path name."""
        name = names["name"]
        served = self.learner.models.get(name)
        if served is None:
            raise Refusal(404, f"there is no model {name[:100]!r}.")
        if names.get("version", VERSION) != VERSION:
            raise Refusal(404, f"the model {name!r} has one version, {VERSION!r}.")
        if served.failed:
            raise Refusal(503, served.failed)
        return served

    def refused(self, request: str, refusal: Refusal) -> None:
        """Remember a refusal."""
        self.refusals.appendleft(Refused(time.time(), request[:120], refusal.status, refusal.reason[:300]))

    def check_head(self, headers: Mapping[bytes, bytes]) -> None:
        """Refuse a body of another kind, or one that is too long."""
        kind = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
        if kind not in (b"", b"application/json", b"application/octet-stream"):
            got = kind.decode("latin-1")[:50]
            raise Refusal(415, f"Content-Type must be application/json, got {got!r}. With curl, use --json.")
        coding = headers.get(b"content-encoding", b"identity").lower()
        if coding != b"identity":
            got = coding.decode("latin-1")[:50]
            raise Refusal(415, f"Content-Encoding must be left out: bodies are taken as they are, got {got!r}.")
        if headers.get(b"transfer-encoding", b"chunked").lower() != b"chunked":
            raise Refusal(415, "Transfer-Encoding must be chunked, or be left out.")
        length = int(headers.get(b"content-length", b"0"))
        if length > self.limits.body:
            raise Refusal(413, f"the body must have at most {self.limits.body:,} bytes, got {length:,}.")

    def check_size(self, size: int) -> None:
        """Refuse a body that is too long, of so many bytes so far."""
        if size > self.limits.body:
            raise Refusal(413, f"the body must have at most {self.limits.body:,} bytes, got more.")

    async def body(self, scope: Scope, receive: Receive) -> bytes:
        """Body of a request, of limited size; the server sees to it that it comes in time."""
        self.check_head(dict(scope["headers"]))
        parts, size, more = [], 0, True
        while more:
            message = await receive()
            if message["type"] != "http.request":
                raise Refusal(400, "the client went away before the body was whole.")
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            self.check_size(size)
            more = message.get("more_body", False)
        return parts[0] if len(parts) == 1 else b"".join(parts)
