"""The routes."""

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, Router

from bayesvote.apps.service import pages
from bayesvote.apps.service.columns import Answers
from bayesvote.apps.service.group import Ask, Reveal, Teach
from bayesvote.apps.service.guard import MODELS, Answer, Begun, Guard, Hot, Later, Lean, not_found, resolved
from bayesvote.apps.service.models import Served
from bayesvote.apps.service.protocol import answered, check_ids, check_keys, decoded, given, labels, parted, wanted
from bayesvote.apps.service.service import Service
from bayesvote.apps.service.types import (
    NAME,
    NAME_RULE,
    InferRequest,
    LabelRequest,
    LearnAnswer,
    LearnRequest,
    Live,
    ModelRequest,
    NamedReady,
    Ready,
    Refusal,
    ServerFacts,
)

_encode = msgspec.json.Encoder().encode
_SMALL = 200_000  # bytes of a body that the event loop can decode without others noticing
_SMALL_ROWS = 64  # that it can predict


def made(kind: Any, status: int = 200) -> Response:
    """Answer in JSON."""
    return Response(msgspec.json.encode(kind), status, media_type="application/json")


class Routes:
    """The routes of a service."""

    def __init__(self, service: Service) -> None:
        self.service, self.learner = service, service.learner

    # Bodies are read here, or in another thread if that takes long.

    def infer(self, request: Hot) -> Begun:
        """Predict; rows with ids are kept until their labels come."""
        return self._read(self._infer, request)

    def learn(self, request: Hot) -> Begun:
        """Learn rows with their labels."""
        return self._read(self._learn, request)

    def _read(self, read: Callable[[Served, Hot], Begun], request: Hot) -> Begun:
        served = self.service.model(request.names)
        return read(served, request) if len(request.body) <= _SMALL else self._aside(read, served, request)

    async def _aside(self, read: Callable[[Served, Hot], Begun], served: Served, request: Hot) -> Answer:
        return await resolved(await asyncio.to_thread(read, served, request), self.learner)

    def _infer(self, served: Served, request: Hot) -> Begun:
        head, rest = parted(request)
        asked = decoded(InferRequest, head)
        outputs = wanted(served, asked)
        rows, ids = given(served, asked, rest, self.service.limits)
        if len(ids) > self.service.limits.pending:
            most = self.service.limits.pending
            raise Refusal(413, f"ids must be at most {most:,}, as so many rows may wait for their labels.")
        names = {each.name for each in outputs}
        certainty, contributions = "certainty" in names, "contributions" in names
        slow = contributions or (certainty and not served.soon_certain)

        def finish(answers: Answers) -> Answer:
            return answered(served, asked, outputs, answers)

        def predict() -> Answers:
            with served.turn():
                return served.predict(rows, certainty=certainty, contributions=contributions, forecast=bool(ids))

        async def predict_aside() -> Answer:
            answers = await asyncio.to_thread(predict)
            if ids:
                answers = await self.learner.do(Ask(served, ids, rows, certainty, answers))
            return finish(answers)

        if ids and not slow:  # predicted together with others, by the learning thread
            return Later(Ask(served, ids, rows, certainty), finish)
        if not slow and len(rows) <= _SMALL_ROWS:
            with served.turn(wait=False) as mine:
                if mine:
                    return finish(served.predict(rows, certainty=certainty))
        return predict_aside()

    def _learn(self, served: Served, request: Hot) -> Begun:
        head, rest = parted(request)
        asked = decoded(LearnRequest, head)
        rows, ids = given(served, asked, rest, self.service.limits)
        return Later(Teach(served, ids, rows, labels(served, asked, len(rows))), _learned)

    def label(self, request: Hot) -> Begun:
        """Learn rows that were predicted, now that their labels are known."""
        served = self.service.model(request.names)
        asked = decoded(LabelRequest, request.body)
        n = len(asked.ids)
        if not 1 <= n <= self.service.limits.rows:
            raise Refusal(413 if n else 400, f"ids must be from 1 to {self.service.limits.rows:,}, got {n:,}.")
        check_ids(asked.ids, n)
        return Later(Reveal(served, asked.ids, labels(served, asked, n)), _learned)

    async def one(self, request: Request) -> Response:
        """Show, make or retire a model."""
        return await {"PUT": self.put, "DELETE": self.delete}.get(request.method, self.model)(request)

    async def put(self, request: Request) -> Response:
        """Make a model."""
        name = request.path_params["name"]
        if not NAME.fullmatch(name):
            raise Refusal(400, f"the name of a model must have {NAME_RULE}.")
        body = await self.service.body(request.scope, request.receive)
        asked = decoded(ModelRequest, body)
        check_keys(body)
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
        return made(self.service.model(request.path_params).facts())

    async def model_ready(self, request: Request) -> Response:
        """Whether a model can be used."""
        return made(NamedReady(self.service.model(request.path_params).name, True))

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


def _learned(answer: LearnAnswer) -> Answer:
    return Answer(_encode(answer))


def make_app(service: Service, token: str | None, hosts: frozenset[str] | None) -> Guard:
    """Return the application; without a token, it answers on those hosts only."""
    routes, at = Routes(service), f"{MODELS.decode()}{{name}}"
    works = {"infer": routes.infer, "label": routes.label, "learn": routes.learn}
    leans = {name.encode(): Lean(service, f"{at}/{name}", work) for name, work in works.items()}
    table = [
        *(Route(lean.path, lean, methods=["POST"]) for lean in leans.values()),
        Route("/v2/health/live", routes.live),
        Route("/v2/health/ready", routes.ready),
        Route("/v2", routes.server),
        Route(at, routes.one, methods=["GET", "PUT", "DELETE"]),
        Route(f"{at}/ready", routes.model_ready),
        Route(f"{at}/versions/{{version}}", routes.model),
        Route(f"{at}/versions/{{version}}/ready", routes.model_ready),
        Route(f"{at}/versions/{{version}}/infer", leans[b"infer"], methods=["POST"]),
        Route("/metrics", routes.metrics),
        *pages.routes(service),
    ]
    return Guard(Router(table, default=not_found, redirect_slashes=False), leans, service, token, hosts)
