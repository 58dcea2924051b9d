"""The routes."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, Router
from starlette.types import Receive, Scope

from bayesvote.service import pages
from bayesvote.service.columns import Answers
from bayesvote.service.group import Ask, Reveal, Teach
from bayesvote.service.guard import MODELS, Guard, Headers, Lean, not_found
from bayesvote.service.models import Served
from bayesvote.service.protocol import BINARY_HEADER, answered, check_ids, decoded, given, labels, parted, wanted
from bayesvote.service.service import Service
from bayesvote.service.types import (
    InferRequest,
    LabelRequest,
    LearnRequest,
    Live,
    ModelRequest,
    Name,
    NamedReady,
    Ready,
    Refusal,
    ServerFacts,
)

Answer = tuple[bytes, int | None]  # a body, and the length of its JSON if the bytes of tensors follow

_encode = msgspec.json.Encoder().encode
_SMALL = 200_000  # bytes of a body that the event loop can decode without others noticing
_SMALL_ROWS = 64  # that it can predict


def made(kind: Any, status: int = 200) -> Response:
    """Answer in JSON."""
    return Response(msgspec.json.encode(kind), status, media_type="application/json")


class Hot(NamedTuple):
    """A request that may come thousands of times per second, read whole."""

    scope: Scope
    body: bytes

    def header(self, name: str) -> str | None:
        """Value of a header."""
        wanted = name.encode()
        return next((value.decode("latin-1") for key, value in self.scope["headers"] if key == wanted), None)


class Work(Lean):
    """A lean route that reads a body and answers with JSON, or with JSON and the bytes of tensors."""

    def __init__(self, service: Service, path: str, work: Callable[[Hot], Awaitable[Answer]]) -> None:
        self._service, self.path, self._work = service, path, work

    async def answer(self, scope: Scope, receive: Receive) -> tuple[Headers, bytes]:
        """Headers and body of the answer."""
        body, length = await self._work(Hot(scope, await self._service.body(scope, receive)))
        kind = b"application/json" if length is None else b"application/octet-stream"
        headers = [(b"content-type", kind), (b"content-length", b"%d" % len(body))]
        if length is not None:
            headers.append((BINARY_HEADER.encode(), b"%d" % length))
        return headers, body


class Routes:
    """The routes of a service."""

    def __init__(self, service: Service) -> None:
        self.service, self.learner = service, service.learner

    async def infer(self, request: Hot) -> Answer:
        """Predict; rows with ids are kept until their labels come."""
        served = self.service.model(request.scope)
        head, rest = parted(request.body, request.header(BINARY_HEADER))

        def parse() -> Any:
            asked = decoded(InferRequest, head)
            return asked, wanted(served, asked), given(served, asked, rest, self.service.limits)

        asked, outputs, (rows, ids) = await _aside(parse, request.body)
        names = {each.name for each in outputs}
        more = {name: name in names for name in ("certainty", "contributions")}
        aside = more["contributions"] or (more["certainty"] and not served.soon_certain)
        answers = None
        if not ids or aside:  # others are predicted together, by the learning thread
            answers = await _predicted(served, rows, more, aside)
        if ids:
            future = asyncio.get_running_loop().create_future()
            answers = await self.learner.do(Ask(served, ids, future, rows, more["certainty"], answers))
        assert answers is not None
        return answered(served, asked, outputs, answers)

    async def learn(self, request: Hot) -> Answer:
        """Learn rows with their labels."""
        served = self.service.model(request.scope)
        head, rest = parted(request.body, request.header(BINARY_HEADER))

        def parse() -> Any:
            asked = decoded(LearnRequest, head)
            rows, ids = given(served, asked, rest, self.service.limits)
            return rows, ids, labels(served, asked, len(rows))

        rows, ids, codes = await _aside(parse, request.body)
        future = asyncio.get_running_loop().create_future()
        return _encode(await self.learner.do(Teach(served, ids, future, rows, codes))), None

    async def label(self, request: Hot) -> Answer:
        """Learn rows that were predicted, now that their labels are known."""
        served = self.service.model(request.scope)
        asked = decoded(LabelRequest, request.body)
        n = len(asked.ids)
        if not 1 <= n <= self.service.limits.rows:
            raise Refusal(413 if n else 400, f"ids must be from 1 to {self.service.limits.rows:,}, got {n:,}.")
        check_ids(asked.ids, n)
        codes = labels(served, asked, n)
        future = asyncio.get_running_loop().create_future()
        return _encode(await self.learner.do(Reveal(served, asked.ids, future, codes))), None

    async def one(self, request: Request) -> Response:
        """Show, make or retire a model."""
        return await {"PUT": self.put, "DELETE": self.delete}.get(request.method, self.model)(request)

    async def put(self, request: Request) -> Response:
        """Make a model."""
        name = request.path_params["name"]
        try:
            msgspec.convert(name, Name)
        except msgspec.ValidationError:
            reason = "the name of a model must have from 1 to 64 letters, digits, dots, dashes or underscores"
            raise Refusal(400, f"{reason}, and start with a letter or digit.") from None
        asked = decoded(ModelRequest, await self.service.body(request.scope, request.receive))
        spec = msgspec.json.encode(asked).decode()
        served, new = await self.learner.call(lambda: self.learner.create(name, asked, spec))
        return made(served.facts(), 201 if new else 200)

    async def delete(self, request: Request) -> Response:
        """Retire a model."""
        name = request.path_params["name"]
        await self.learner.call(lambda: self.learner.retire(name))
        return Response(status_code=204)

    async def model(self, request: Request) -> Response:
        """Metadata of a model."""
        return made(self.service.model(request.scope).facts())

    async def model_ready(self, request: Request) -> Response:
        """Whether a model can be used."""
        return made(NamedReady(self.service.model(request.scope).name, True))

    async def server(self, request: Request) -> Response:  # noqa: ARG002
        """Metadata of the server."""
        from bayesvote import __version__

        extensions = ["binary_tensor_data", "rows", "ids", "learn", "label"]
        return made(ServerFacts("bayesvote", __version__, extensions, sorted(self.learner.models)))

    async def live(self, request: Request) -> Response:  # noqa: ARG002
        """Whether the server is up."""
        return made(Live(True))

    async def ready(self, request: Request) -> Response:  # noqa: ARG002
        """Whether the server can be used."""
        ready = self.learner.is_alive() and not self.service.stopping.is_set()
        return made(Ready(ready), 200 if ready else 503)

    async def metrics(self, request: Request) -> Response:  # noqa: ARG002
        """Figures for Prometheus."""
        return Response(self.service.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")


async def _aside(work: Callable[[], Any], body: bytes) -> Any:
    """Read a body here, or in another thread if that takes long."""
    return await asyncio.to_thread(work) if len(body) > _SMALL else work()


async def _predicted(served: Served, rows: Any, more: dict[str, bool], aside: bool) -> Answers:
    def work() -> Answers:
        with served.turn():
            return served.predict(rows, **more)

    if len(rows) <= _SMALL_ROWS and not aside:
        with served.turn(wait=False) as mine:
            if mine:
                return served.predict(rows, **more)
    return await asyncio.to_thread(work)


def make_app(service: Service, token: str | None, hosts: frozenset[str] | None) -> Guard:
    """Return the application; without a token, it answers on those hosts only."""
    routes, at = Routes(service), f"{MODELS}{{name}}"
    works = {"infer": routes.infer, "label": routes.label, "learn": routes.learn}
    leans = {name: Work(service, f"{at}/{name}", work) for name, work in works.items()}
    table = [
        *(Route(lean.path, lean, methods=["POST"]) for lean in leans.values()),
        Route("/v2/health/live", routes.live),
        Route("/v2/health/ready", routes.ready),
        Route("/v2", routes.server),
        Route(at, routes.one, methods=["GET", "PUT", "DELETE"]),
        Route(f"{at}/ready", routes.model_ready),
        Route(f"{at}/versions/{{version}}", routes.model),
        Route(f"{at}/versions/{{version}}/ready", routes.model_ready),
        Route(f"{at}/versions/{{version}}/infer", leans["infer"], methods=["POST"]),
        Route("/metrics", routes.metrics),
        *pages.routes(service),
    ]
    return Guard(Router(table, default=not_found, redirect_slashes=False), leans, service, token, hosts)
