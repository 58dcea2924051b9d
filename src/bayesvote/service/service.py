"""What the routes share: the learner, the limits, and the latest refusals."""

import asyncio
import time
from collections import deque
from typing import NamedTuple

from starlette.types import Receive, Scope

from bayesvote.service.learner import Learner
from bayesvote.service.metrics import Metrics
from bayesvote.service.models import VERSION, Served
from bayesvote.service.types import Limits, Refusal


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

    def model(self, scope: Scope) -> Served:
        """Model that a path names."""
        names = scope["path_params"]
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

    async def body(self, scope: Scope, receive: Receive) -> bytes:
        """Body of a request, of limited size; the server sees to it that it comes in time."""
        kind, length, most = b"", b"0", self.limits.body
        for name, value in scope["headers"]:
            if name == b"content-type":
                kind = value.partition(b";")[0].strip().lower()
            elif name == b"content-length":
                length = value
        if kind not in (b"", b"application/json", b"application/octet-stream"):
            got = kind.decode("latin-1")[:50]
            raise Refusal(415, f"Content-Type must be application/json, got {got!r}. With curl, use --json.")
        if int(length) > most:
            raise Refusal(413, f"the body must have at most {most:,} bytes, got {int(length):,}.")
        parts, size, more = [], 0, True
        while more:
            message = await receive()
            if message["type"] != "http.request":
                raise Refusal(400, "the client went away before the body was whole.")
            part = message.get("body", b"")
            size += len(part)
            if size > most:
                raise Refusal(413, f"the body must have at most {most:,} bytes, got more.")
            parts.append(part)
            more = message.get("more_body", False)
        return parts[0] if len(parts) == 1 else b"".join(parts)
