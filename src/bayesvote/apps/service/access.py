"""Middleware before every route: access control, security headers, error responses, and the routes of the models."""

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

from bayesvote.apps.service.batch import AnyTask
from bayesvote.apps.service.learner import LearningThread
from bayesvote.apps.service.service import Service
from bayesvote.apps.service.types import ErrorAnswer, RequestError

Headers = list[tuple[bytes, bytes]]
MODELS = b"/v2/models/"
BINARY_HEADER = b"inference-header-content-length"

log = logging.getLogger("bayesvote.serve")

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)
HEADERS = [  # of every response
    (b"content-security-policy", _POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
]
_OPEN = {"/v2/health/live", "/v2/health/ready"}  # process supervisors call these without a token
_MAX_LOGGED_PER_SECOND = 5


async def not_found(scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG001
    """Raise the error for a path without a route."""
    raise RequestError(404, "the path", f"{scope['path'][:100]!r} does not exist", do="/docs lists all paths.")


class BufferedRequest(NamedTuple):
    """A request whose body was read completely."""

    names: Mapping[str, str]  # path parameters
    headers: Mapping[bytes, bytes]
    body: bytes


class BufferedResponse(NamedTuple):
    """A successful response. ``json`` is the length of the JSON part if binary tensors follow it."""

    body: bytes
    json: int | None = None

    @property
    def headers(self) -> Headers:
        """Content headers."""
        kind = b"application/json" if self.json is None else b"application/octet-stream"
        found = [(b"content-type", kind), (b"content-length", b"%d" % len(self.body))]
        if self.json is not None:
            found.append((BINARY_HEADER, b"%d" % self.json))
        return found


class DeferredResponse(NamedTuple):
    """A task for the learning thread, and the function that turns its result into a response."""

    task: AnyTask
    finish: Callable[[Any], BufferedResponse]


AnyResponse = BufferedResponse | DeferredResponse | Coroutine[Any, Any, BufferedResponse]


class ModelRoute:
    """A POST route of a model. Its handler takes a buffered request, on the direct path or as an ASGI application."""

    def __init__(self, service: Service, path: str, handler: Callable[[BufferedRequest], AnyResponse]) -> None:
        self._service, self.path, self.handler = service, path, handler

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Respond as an ASGI application."""
        body = await self._service.body(scope, receive)
        request = BufferedRequest(scope["path_params"], dict(scope["headers"]), body)
        response = await complete(self.handler(request), self._service.learner)
        await send({"type": "http.response.start", "status": 200, "headers": response.headers})
        await send({"type": "http.response.body", "body": response.body})


async def complete(response: AnyResponse, learner: LearningThread) -> BufferedResponse:
    """Wait until a response is complete."""
    if isinstance(response, DeferredResponse):
        return response.finish(await learner.do(response.task))
    return response if isinstance(response, BufferedResponse) else await response


class AccessMiddleware:
    """ASGI middleware: checks who may send requests, adds headers to all responses, and turns errors into responses."""

    def __init__(
        self,
        routes: ASGIApp,
        model_routes: Mapping[bytes, ModelRoute],
        service: Service,
        token: str | None,
        hosts: frozenset[str] | None,
    ) -> None:
        self._routes, self._model_routes, self.service = routes, model_routes, service
        self._token = None if token is None else token.encode()
        self._hosts = hosts
        self._logged: list[float] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Respond to a request."""
        if scope["type"] != "http":
            return  # no web sockets; the server handles lifespan events itself
        start, status, scope["app"] = time.perf_counter(), 0, self

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], *HEADERS]
            await send(message)

        try:
            if scope.get("crowded") and scope["path"] not in _OPEN:
                crowded = RequestError(503, "the service", "has too many connections", do="Close some, or retry later.")
                crowded.headers = {"connection": "close"}
                raise crowded
            self.check(scope["path"], dict(scope["headers"]))
            await self._routes(scope, receive, sending)
        except Exception as exception:
            error = _request_error(exception)
            if status:  # the response has begun; all that is left is to cut it off
                raise
            self.note(scope["method"], scope["path"], error)
            headers, body = _error_response(error)
            await sending({"type": "http.response.start", "status": error.status, "headers": headers})
            await sending({"type": "http.response.body", "body": body})
        finally:
            route = getattr(scope.get("route"), "path", "none")
            self.service.metrics.count(route, status, time.perf_counter() - start)

    def find_model_route(self, url: bytes) -> tuple[ModelRoute, str] | None:
        """Return the model route of a URL and the name of the model, or None if it has another route."""
        before, _, rest = url.partition(MODELS)
        name, _, what = rest.partition(b"/")
        found = self._model_routes.get(what)
        if before or not name or found is None or b"%" in name or b"?" in name:
            return None
        return found, name.decode("ascii")

    def connection_error(self, error: RequestError) -> tuple[int, Headers, bytes]:
        """Record an error of a connection without a request, and return the response."""
        self.note("a connection", "", error)
        self.service.metrics.count("none", error.status, 0.0)
        return error.status, *_error_response(error)

    def check(self, path: str, headers: Mapping[bytes, bytes]) -> None:
        """Raise an error if a request has the wrong host, origin or token."""
        host = headers.get(b"host", b"").decode("latin-1")
        # A web page from another site must not reach a server on this machine through the user's browser: neither by
        # a host name that resolves to this machine, nor by a cross-origin request.
        if self._hosts is not None and _without_port(host) not in self._hosts:
            raise RequestError(403, "the Host", f"must be one of {', '.join(sorted(self._hosts))}", f"{host[:100]!r}")
        origin = headers.get(b"origin")
        if origin is not None and origin.decode("latin-1").partition("://")[2] != host:
            raise RequestError(403, "requests", "from pages of other sites are not allowed")
        if self._token is not None and path not in _OPEN:
            given = _credentials(headers.get(b"authorization", b""))
            if not hmac.compare_digest(given, self._token):
                do = "Send the header Authorization: Bearer TOKEN, or enter the token as the password in a browser."
                raise RequestError(401, "a token", "is required", do=do)

    def note(self, method: str, path: str, error: RequestError) -> None:
        """Record a rejected request, and log it."""
        what = f"{method} {path}".rstrip()
        self.service.note_rejected(what, error)
        now = time.monotonic()
        self._logged = [each for each in self._logged if each > now - 1]
        if len(self._logged) < _MAX_LOGGED_PER_SECOND:  # a client that sends wrong requests often sends many
            self._logged.append(now)
            extra = {"request": what[:120], "status": error.status, "reason": error.reason[:300]}
            log.info("request rejected", extra=extra)


class DirectExchange(ABC):
    """A request to a model route and its response, without ASGI messages.

    It does what ``AccessMiddleware.__call__`` does.
    """

    def __init__(self, access: AccessMiddleware, route: ModelRoute, name: str, headers: Mapping[bytes, bytes]) -> None:
        self._access, self._route, self._name, self.headers = access, route, name, headers
        self._start = time.perf_counter()

    def begin(self, body: bytes) -> Coroutine[Any, Any, None] | None:
        """Respond now, or when the learning thread has finished. A slow response is returned as a coroutine to run."""
        access, service = self._access, self._access.service
        try:
            access.check(self._route.path, self.headers)
            service.check_head(self.headers)
            service.check_size(len(body))
            response = self._route.handler(BufferedRequest({"name": self._name}, self.headers, body))
            if isinstance(response, DeferredResponse):
                self._finish = response.finish
                service.learner.submit(response.task, self._task_done)
                return None
        except Exception as error:
            self._fail(error)
            return None
        if not isinstance(response, BufferedResponse):
            return self._wait(response)
        self._end(response)
        return None

    async def _wait(self, response: Coroutine[Any, Any, BufferedResponse]) -> None:
        try:
            found = await response
        except Exception as error:
            self._fail(error)
        else:
            self._end(found)

    def _task_done(self, result: Any) -> None:
        if isinstance(result, Exception):
            self._fail(result)
            return
        try:
            found = self._finish(result)
        except Exception as error:
            self._fail(error)
        else:
            self._end(found)

    def _end(self, response: BufferedResponse) -> None:
        self.write(200, response.headers, response.body)
        self._access.service.metrics.count(self._route.path, 200, time.perf_counter() - self._start)

    def _fail(self, exception: Exception) -> None:
        error = _request_error(exception)
        path = self._route.path.replace("{name}", self._name)
        self._access.note("POST", path, error)
        self.write(error.status, *_error_response(error))
        self._access.service.metrics.count(self._route.path, error.status, time.perf_counter() - self._start)

    @abstractmethod
    def write(self, status: int, headers: Headers, body: bytes) -> None:
        """Write a response, with the headers that all responses have."""


def _request_error(error: Exception) -> RequestError:
    if isinstance(error, RequestError):
        return error
    if isinstance(error, HTTPException):
        reason = "this method is not allowed here" if error.status_code == 405 else str(error.detail)
        found = RequestError(error.status_code, "", reason, do="/docs lists all paths.")
        found.headers = dict(error.headers or {})
        return found
    log.exception("a request failed")
    return RequestError(500, "the request", "failed", do="See the log for the reason.")


def _error_response(error: RequestError) -> tuple[Headers, bytes]:
    body = msgspec.json.encode(ErrorAnswer(error.reason))
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    headers += [(name.lower().encode(), value.encode()) for name, value in error.headers.items()]
    if error.status == 401:
        headers.append((b"www-authenticate", b'Basic realm="bayesvote", charset="UTF-8"'))
    if error.status in (503, 507):
        headers.append((b"retry-after", b"1"))
    if error.status == 413:  # the rest of the body is not read
        headers.append((b"connection", b"close"))
    return headers, body


def _without_port(host: str) -> str:
    if host.startswith("["):
        return host.partition("]")[0] + "]"
    return host.partition(":")[0].lower()


def _credentials(header: bytes) -> bytes:
    """Return the token of an Authorization header: Bearer, or the password of Basic, which browsers support."""
    kind, _, value = header.partition(b" ")
    if kind.lower() == b"bearer":
        return value.strip()
    if kind.lower() == b"basic":
        try:
            return base64.b64decode(value, validate=True).partition(b":")[2]
        except (binascii.Error, ValueError):
            return b""
    return b""
