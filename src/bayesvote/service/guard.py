"""What stands before every route: who may ask, what every answer carries, and what becomes of refusals."""

import base64
import binascii
import hmac
import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping

import msgspec
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bayesvote.service.service import Service
from bayesvote.service.types import ErrorAnswer, Refusal

Headers = list[tuple[bytes, bytes]]
MODELS = "/v2/models/"

log = logging.getLogger("bayesvote.serve")

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = [
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


class Lean(ABC):
    """A route for requests that may come thousands of times per second: without Starlette's requests and responses."""

    path: str

    @abstractmethod
    async def answer(self, scope: Scope, receive: Receive) -> tuple[Headers, bytes]:
        """Headers and body of the answer; a refusal is raised."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer as an application does."""
        headers, body = await self.answer(scope, receive)
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})


class Guard:
    """The application around the routes."""

    def __init__(
        self,
        routes: ASGIApp,
        leans: Mapping[str, Lean],
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
                message["headers"] = [*message["headers"], *_HEADERS]
            await send(message)

        try:
            self._check(scope)
            await self._routes(scope, receive, sending)
        except Exception as error:
            refusal = _refusal(error)
            if status:  # the answer has begun; all that can be done is to cut it off
                raise
            self._note(scope, refusal)
            headers, body = _refused(refusal)
            await sending({"type": "http.response.start", "status": refusal.status, "headers": headers})
            await sending({"type": "http.response.body", "body": body})
        finally:
            route = getattr(scope.get("route"), "path", "none")
            self.service.metrics.count(route, status, time.perf_counter() - start)

    def lean(self, scope: Scope) -> Lean | None:
        """Lean route of a request, if it is for one."""
        before, _, rest = scope["path"].partition(MODELS)
        name, _, what = rest.partition("/")
        found = self._leans.get(what)
        if before or not name or found is None or scope["method"] != "POST":
            return None
        scope["path_params"] = {"name": name}
        return found

    async def answer(self, scope: Scope, receive: Receive, route: Lean) -> tuple[int, Headers, bytes]:
        """Answer a request for a lean route: what ``__call__`` does, without messages."""
        start, status = time.perf_counter(), 200
        try:
            self._check(scope)
            headers, body = await route.answer(scope, receive)
        except Exception as error:
            refusal = _refusal(error)
            self._note(scope, refusal)
            status = refusal.status
            headers, body = _refused(refusal)
        finally:
            self.service.metrics.count(route.path, status, time.perf_counter() - start)
        return status, [*headers, *_HEADERS], body

    def _check(self, scope: Scope) -> None:
        headers = dict(scope["headers"])
        host = headers.get(b"host", b"").decode("latin-1")
        # A page elsewhere must not speak to a server on this machine through the user's browser: neither by a name
        # that it lets point here, nor across origins.
        if self._hosts is not None and _name(host) not in self._hosts:
            raise Refusal(403, f"the Host must be one of {', '.join(sorted(self._hosts))}, got {host[:100]!r}.")
        origin = headers.get(b"origin")
        if origin is not None and origin.decode("latin-1").partition("://")[2] != host:
            raise Refusal(403, "requests from pages of other sites are refused.")
        if self._token is not None and scope["path"] not in _OPEN:
            given = _credentials(headers.get(b"authorization", b""))
            if not hmac.compare_digest(given, self._token):
                raise Refusal(
                    401, "a token must be given: Authorization: Bearer TOKEN, or as the password in a browser."
                )

    def _note(self, scope: Scope, refusal: Refusal) -> None:
        what = f"{scope['method']} {scope['path']}"
        self.service.refused(what, refusal)
        now = time.monotonic()
        self._logged = [each for each in self._logged if each > now - 1]
        if len(self._logged) < _LOGGED_PER_SECOND:  # a client that is wrong is often wrong many times
            self._logged.append(now)
            log.info("refused", extra={"request": what[:120], "status": refusal.status, "reason": refusal.reason[:300]})


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
    if refusal.status in (408, 413):  # what is left of the body is not read
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
