"""State that the routes share: the learning thread, the limits, and the latest rejected requests."""

import asyncio
import time
from collections import deque
from collections.abc import Mapping
from typing import NamedTuple

from starlette.types import Receive, Scope

from bayesvote.apps.service.learner import LearningThread
from bayesvote.apps.service.metrics import Metrics
from bayesvote.apps.service.models import VERSION, ServedModel
from bayesvote.apps.service.types import Limits, RequestError


class RejectedRequest(NamedTuple):
    """A rejected request, for the live page."""

    when: float
    what: str
    status: int
    reason: str


class Service:
    """The service of a folder."""

    def __init__(self, learner: LearningThread) -> None:
        self.learner = learner
        self.limits: Limits = learner.policy.limits
        self.metrics = Metrics(learner)
        self.rejected: deque[RejectedRequest] = deque(maxlen=20)
        self.stopping = asyncio.Event()
        self.watchers = 0

    def model(self, names: Mapping[str, str]) -> ServedModel:
        """Return the model that the parameters of a path name."""
        name = names["name"]
        served = self.learner.models.get(name)
        if served is None:
            raise RequestError(404, f"the model {name[:100]!r}", "does not exist")
        if names.get("version", VERSION) != VERSION:
            raise RequestError(404, f"the model {name!r}", f"has one version, {VERSION!r}")
        served.require_usable()
        return served

    def note_rejected(self, request: str, error: RequestError) -> None:
        """Record a rejected request for the live page."""
        self.rejected.appendleft(RejectedRequest(time.time(), request[:120], error.status, error.reason[:300]))

    def check_head(self, headers: Mapping[bytes, bytes]) -> None:
        """Require a body of a supported type and size."""
        kind = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
        if kind not in (b"", b"application/json", b"application/octet-stream"):
            got = kind.decode("latin-1")[:50]
            raise RequestError(415, "Content-Type", "must be application/json", f"{got!r}", "With curl, use --json.")
        coding = headers.get(b"content-encoding", b"identity").lower()
        if coding != b"identity":
            got = coding.decode("latin-1")[:50]
            raise RequestError(415, "Content-Encoding", "must be left out: the body must be uncompressed", f"{got!r}")
        if headers.get(b"transfer-encoding", b"chunked").lower() != b"chunked":
            raise RequestError(415, "Transfer-Encoding", "must be chunked, or be left out")
        length = int(headers.get(b"content-length", b"0"))
        if length > self.limits.body:
            raise self._too_long(f"{length:,}")

    def check_size(self, size: int) -> None:
        """Require a body that is not too long, after ``size`` bytes of it were read."""
        if size > self.limits.body:
            raise self._too_long("more")

    def _too_long(self, got: str) -> RequestError:
        return RequestError(413, "the body", f"must have at most {self.limits.body:,} bytes", got)

    async def body(self, scope: Scope, receive: Receive) -> bytes:
        """Read the body of a request, up to the limit. The server limits the time that this may take."""
        self.check_head(dict(scope["headers"]))
        parts, size, more = [], 0, True
        while more:
            message = await receive()
            if message["type"] != "http.request":
                raise RequestError(400, "the client", "closed the connection before the body was complete")
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            self.check_size(size)
            more = message.get("more_body", False)
        return parts[0] if len(parts) == 1 else b"".join(parts)
