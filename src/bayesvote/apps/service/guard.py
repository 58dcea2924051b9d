"""What stands before every route: who may ask, what every answer carries, and what becomes of refusals."""

import base64
import binascii
import hmac
import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, NamedTuple

import msgspec
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bayesvote.apps.service.group import AnyJob
from bayesvote.apps.service.learner import Learner
from bayesvote.apps.service.service import Service
from bayesvote.apps.service.types import ErrorAnswer, Refusal

Headers = list[tuple[bytes, bytes]]
MODELS = b"/v2/models/"
BINARY_HEADER = b"inference-header-content-length"

log = logging.getLogger("bayesvote.serve")

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)
HEADERS = [  # of every answer
    (b"content-security-policy", _POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
]
_OPEN = {"/v2/health/live", "/v2/health/ready"}  # for whoever watches over processes
_LOGGED_PER_SECOND = 5


async def not_found(scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG001
    """Answer where there is no route."""
    raise Refusal(404, f"there is nothing at {scope['path'][:100]!r}. /docs lists what there is.")


class Hot(NamedTuple):
    """A request that may come thousands of times per second, read whole."""

    names: Mapping[str, str]  # of its path
    headers: Mapping[bytes, bytes]
    body: bytes


class Answer(NamedTuple):
    """Its answer: a body, and the length of its JSON if the bytes of tensors follow."""

    body: bytes
    json: int | None = None

    @property
    def headers(self) -> Headers:
        """What the body is."""
        kind = b"application/json" if self.json is None else b"application/octet-stream"
        found = [(b"content-type", kind), (b"content-length", b"%d" % len(self.body))]
        if self.json is not None:
            found.append((BINARY_HEADER, b"%d" % self.json))
        return found


class Later(NamedTuple):
    """What the learning thread has to do first, and the answer that its result becomes."""

    job: AnyJob
    finish: Callable[[Any], Answer]


Begun = Answer | Later | Coroutine[Any, Any, Answer]


class Lean:
    """A route for such requests; as an application, it answers those that need the usual way."""

    def __init__(self, service: Service, path: str, work: Callable[[Hot], Begun]) -> None:
        self._service, self.path, self.work = service, path, work

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer as an application does."""
        body = await self._service.body(scope, receive)
        answer = await resolved(
            self.work(Hot(scope["path_params"], dict(scope["headers"]), body)), self._service.learner
        )
        await send({"type": "http.response.start", "status": 200, "headers": answer.headers})
        await send({"type": "http.response.body", "body": answer.body})


async def resolved(begun: Begun, learner: Learner) -> Answer:
    """Wait for an answer."""
    if isinstance(begun, Later):
        return begun.finish(await learner.do(begun.job))
    return begun if isinstance(begun, Answer) else await begun


class Guard:
    """The application around the routes."""

    def __init__(
        self,
        routes: ASGIApp,
        leans: Mapping[bytes, Lean],
        service: Service,
        token: str | None,
        hosts: frozenset[str] | None,
    ) -> None:
        self._routes, self._leans, self.service = routes, leans, service
        self._token = None if token is None else token.encode()
        self._hosts = hosts
        self._logged: list[float] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            return  # no web sockets; lifespan is the server's own
        start, status, scope["app"] = time.perf_counter(), 0, self

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], *HEADERS]
            await send(message)

        try:
            if scope.get("crowded") and scope["path"] not in _OPEN:
                refusal = Refusal(503, "there are too many connections. Close some, or try again later.")
                refusal.headers = {"connection": "close"}
                raise refusal
            self.check(scope["path"], dict(scope["headers"]))
            await self._routes(scope, receive, sending)
        except Exception as error:
            refusal = _refusal(error)
            if status:  # the answer has begun; all that can be done is to cut it off
                raise
            self.note(scope["method"], scope["path"], refusal)
            headers, body = _refused(refusal)
            await sending({"type": "http.response.start", "status": refusal.status, "headers": headers})
            await sending({"type": "http.response.body", "body": body})
        finally:
            route = getattr(scope.get("route"), "path", "none")
            self.service.metrics.count(route, status, time.perf_counter() - start)

    def lean(self, url: bytes) -> tuple[Lean, str] | None:
        """Lean route that an address is of, if it is of one, and the name of the model."""
        before, _, rest = url.partition(MODELS)
        name, _, what = rest.partition(b"/")
        found = self._leans.get(what)
        if before or not name or found is None or b"%" in name or b"?" in name:
            return None
        return found, name.decode("ascii")

    def unrouted(self, refusal: Refusal) -> tuple[int, Headers, bytes]:
        """Note the refusal of what is no request, and return the answer."""
        self.note("a connection", "", refusal)
        self.service.metrics.count("none", refusal.status, 0.0)
        return refusal.status, *_refused(refusal)

    def check(self, path: str, headers: Mapping[bytes, bytes]) -> None:
        """Refuse who may not ask."""
        host = headers.get(b"host", b"").decode("latin-1")
        # A page elsewhere must not speak to a server on this machine through the user's browser: neither by a name
        # that it lets point here, nor across origins.
        if self._hosts is not None and _name(host) not in self._hosts:
            raise Refusal(403, f"the Host must be one of {', '.join(sorted(self._hosts))}, got {host[:100]!r}.")
        origin = headers.get(b"origin")
        if origin is not None and origin.decode("latin-1").partition("://")[2] != host:
            raise Refusal(403, "requests from pages of other sites are refused.")
        if self._token is not None and path not in _OPEN:
            given = _credentials(headers.get(b"authorization", b""))
            if not hmac.compare_digest(given, self._token):
                raise Refusal(
                    401, "a token must be given: Authorization: Bearer TOKEN, or as the password in a browser."
                )

    def note(self, method: str, path: str, refusal: Refusal) -> None:
        """Remember a refusal, and log it."""
        what = f"{method} {path}".rstrip()
        self.service.refused(what, refusal)
        now = time.monotonic()
        self._logged = [each for each in self._logged if each > now - 1]
        if len(self._logged) < _LOGGED_PER_SECOND:  # a client that is wrong is often wrong many times
            self._logged.append(now)
            log.info("refused", extra={"request": what[:120], "status": refusal.status, "reason": refusal.reason[:300]})


class Exchange(ABC):
    """A request for a lean route and its answer: what ``Guard.__call__`` does, without messages."""

    def __init__(self, guard: Guard, route: Lean, name: str, headers: Mapping[bytes, bytes]) -> None:
        self._guard, self._route, self._name, self.headers = guard, route, name, headers
        self._start = time.perf_counter()

    def begin(self, body: bytes) -> Coroutine[Any, Any, None] | None:
        """Answer, now or when the learning thread has done its part; what takes longer is returned as a coroutine."""
        guard, service = self._guard, self._guard.service
        try:
            guard.check(self._route.path, self.headers)
            service.check_head(self.headers)
            service.check_size(len(body))
            begun = self._route.work(Hot({"name": self._name}, self.headers, body))
            if isinstance(begun, Later):
                self._finish = begun.finish
                service.learner.submit(begun.job, self._learned)
                return None
        except Exception as error:
            self._refuse(error)
            return None
        if not isinstance(begun, Answer):
            return self._wait(begun)
        self._end(begun)
        return None

    async def _wait(self, begun: Coroutine[Any, Any, Answer]) -> None:
        try:
            found = await begun
        except Exception as error:
            self._refuse(error)
        else:
            self._end(found)

    def _learned(self, result: Any) -> None:
        if isinstance(result, Exception):
            self._refuse(result)
            return
        try:
            found = self._finish(result)
        except Exception as error:
            self._refuse(error)
        else:
            self._end(found)

    def _end(self, answer: Answer) -> None:
        self.write(200, answer.headers, answer.body)
        self._guard.service.metrics.count(self._route.path, 200, time.perf_counter() - self._start)

    def _refuse(self, error: Exception) -> None:
        refusal = _refusal(error)
        path = self._route.path.replace("{name}", self._name)
        self._guard.note("POST", path, refusal)
        self.write(refusal.status, *_refused(refusal))
        self._guard.service.metrics.count(self._route.path, refusal.status, time.perf_counter() - self._start)

    @abstractmethod
    def write(self, status: int, headers: Headers, body: bytes) -> None:
        """Write an answer, with the headers that all have."""


def _refusal(error: Exception) -> Refusal:
    if isinstance(error, Refusal):
        return error
    if isinstance(error, HTTPException):
        reason = "this method is not allowed here" if error.status_code == 405 else str(error.detail)
        refusal = Refusal(error.status_code, f"{reason}. /docs lists what there is.")
        refusal.headers = dict(error.headers or {})
        return refusal
    log.exception("a request failed")
    return Refusal(500, "the request failed; the log has the reason.")


def _refused(refusal: Refusal) -> tuple[Headers, bytes]:
    body = msgspec.json.encode(ErrorAnswer(refusal.reason))
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    headers += [(name.lower().encode(), value.encode()) for name, value in refusal.headers.items()]
    if refusal.status == 401:
        headers.append((b"www-authenticate", b'Basic realm="bayesvote", charset="UTF-8"'))
    if refusal.status in (503, 507):
        headers.append((b"retry-after", b"1"))
    if refusal.status == 413:  # what is left of the body is not read
        headers.append((b"connection", b"close"))
    return headers, body


def _name(host: str) -> str:
    """Host without its port."""
    if host.startswith("["):
        return host.partition("]")[0] + "]"
    return host.partition(":")[0].lower()


def _credentials(header: bytes) -> bytes:
    """Token of a header: Bearer, or the password of Basic, which browsers can ask for."""
    kind, _, value = header.partition(b" ")
    if kind.lower() == b"bearer":
        return value.strip()
    if kind.lower() == b"basic":
        try:
            return base64.b64decode(value, validate=True).partition(b":")[2]
        except (binascii.Error, ValueError):
            return b""
    return b""
