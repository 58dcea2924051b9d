"""The ASGI application and its routes."""

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, Router

from bayesvote.apps.service import pages
from bayesvote.apps.service.access import (
    MODELS,
    AccessMiddleware,
    AnyResponse,
    BufferedRequest,
    BufferedResponse,
    DeferredResponse,
    ModelRoute,
    complete,
    not_found,
)
from bayesvote.apps.service.batch import LabelTask, LearnTask, PredictTask
from bayesvote.apps.service.models import ServedModel
from bayesvote.apps.service.protocol import (
    check_ids,
    check_keys,
    decode,
    encode_labels,
    infer_response,
    parse_rows,
    requested_outputs,
    split_body,
)
from bayesvote.apps.service.row_formats import ModelOutputs
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
    RequestError,
    ServerMetadata,
)

_encode = msgspec.json.Encoder().encode
_SMALL = 200_000  # bytes of a body that the event loop decodes itself; this takes about a millisecond
_SMALL_ROWS = 64  # rows that the event loop predicts itself

Handler = Callable[[ServedModel, BufferedRequest], AnyResponse]


def json_response(content: Any, status: int = 200) -> Response:
    """Return a JSON response."""
    return Response(msgspec.json.encode(content), status, media_type="application/json")


class Routes:
    """The route handlers of a service."""

    def __init__(self, service: Service) -> None:
        self.service, self.learner = service, service.learner

    # The event loop decodes small bodies; another thread decodes large ones.

    def infer(self, request: BufferedRequest) -> AnyResponse:
        """Predict rows. Rows with ids are kept until their labels arrive."""
        return self._handle(self._infer, request)

    def learn(self, request: BufferedRequest) -> AnyResponse:
        """Learn rows with their labels."""
        return self._handle(self._learn, request)

    def _handle(self, handler: Handler, request: BufferedRequest) -> AnyResponse:
        served = self.service.model(request.names)
        if len(request.body) <= _SMALL:
            return handler(served, request)
        return self._handle_in_thread(handler, served, request)

    async def _handle_in_thread(
        self, handler: Handler, served: ServedModel, request: BufferedRequest
    ) -> BufferedResponse:
        return await complete(await asyncio.to_thread(handler, served, request), self.learner)

    def _infer(self, served: ServedModel, request: BufferedRequest) -> AnyResponse:
        head, rest = split_body(request)
        asked = decode(InferRequest, head)
        outputs = requested_outputs(served, asked)
        rows, ids = parse_rows(served, asked, rest, self.service.limits)
        most = self.service.limits.pending
        if len(ids) > most:
            raise RequestError(413, "ids", f"must be at most {most:,}, the limit of rows that wait for labels")
        names = {each.name for each in outputs}
        certainty, contributions = "certainty" in names, "contributions" in names
        slow = contributions or (certainty and not served.has_fast_certainty)

        def finish(found: ModelOutputs) -> BufferedResponse:
            return infer_response(served, asked, outputs, found)

        def predict() -> ModelOutputs:
            with served.locked():
                return served.predict(rows, certainty=certainty, contributions=contributions)

        async def predict_in_thread() -> BufferedResponse:
            found = await asyncio.to_thread(predict)
            if ids:
                found = await self.learner.do(PredictTask(served, ids, rows, certainty, found))
            return finish(found)

        if ids and not slow:  # the learning thread predicts these rows together with those of other requests
            return DeferredResponse(PredictTask(served, ids, rows, certainty), finish)
        if not slow and len(rows) <= _SMALL_ROWS:
            with served.locked(wait=False) as acquired:
                if acquired:
                    return finish(served.predict(rows, certainty=certainty))
        return predict_in_thread()

    def _learn(self, served: ServedModel, request: BufferedRequest) -> AnyResponse:
        head, rest = split_body(request)
        asked = decode(LearnRequest, head)
        rows, ids = parse_rows(served, asked, rest, self.service.limits)
        codes = encode_labels(served, asked, len(rows))
        return DeferredResponse(LearnTask(served, ids, rows, codes), _learn_response)

    def label(self, request: BufferedRequest) -> AnyResponse:
        """Learn rows that were predicted earlier, with their labels."""
        served = self.service.model(request.names)
        asked = decode(LabelRequest, request.body)
        n = len(asked.ids)
        if not 1 <= n <= self.service.limits.rows:
            raise RequestError(413 if n else 400, "ids", f"must be from 1 to {self.service.limits.rows:,}", f"{n:,}")
        check_ids(asked.ids, n)
        return DeferredResponse(LabelTask(served, asked.ids, encode_labels(served, asked, n)), _learn_response)

    async def one(self, request: Request) -> Response:
        """Show, create or retire a model."""
        return await {"PUT": self.put, "DELETE": self.delete}.get(request.method, self.model)(request)

    async def put(self, request: Request) -> Response:
        """Create a model."""
        name = request.path_params["name"]
        if not NAME.fullmatch(name):
            raise RequestError(400, "the name of a model", f"must have {NAME_RULE}")
        body = await self.service.body(request.scope, request.receive)
        asked = decode(ModelRequest, body)
        check_keys(body)
        spec = msgspec.json.encode(asked).decode()
        served, new = await self.learner.call(lambda: self.learner.create(name, asked, spec))
        return json_response(served.metadata(), 201 if new else 200)

    async def delete(self, request: Request) -> Response:
        """Retire a model."""
        name = request.path_params["name"]
        await self.learner.call(lambda: self.learner.retire(name))
        return Response(status_code=204)

    async def model(self, request: Request) -> Response:
        """Return the metadata of a model."""
        return json_response(self.service.model(request.path_params).metadata())

    async def model_ready(self, request: Request) -> Response:
        """Report that a model is ready."""
        return json_response(NamedReady(self.service.model(request.path_params).name, True))

    async def server(self, request: Request) -> Response:  # noqa: ARG002
        """Return the metadata of the server."""
        from bayesvote import __version__

        extensions = ["binary_tensor_data", "rows", "ids", "learn", "label"]
        return json_response(ServerMetadata("bayesvote", __version__, extensions, sorted(self.learner.models)))

    async def live(self, request: Request) -> Response:  # noqa: ARG002
        """Report that the server is running."""
        return json_response(Live(True))

    async def ready(self, request: Request) -> Response:  # noqa: ARG002
        """Report if the server is ready for requests."""
        ready = self.learner.is_alive() and not self.service.stopping.is_set()
        return json_response(Ready(ready), 200 if ready else 503)

    async def metrics(self, request: Request) -> Response:  # noqa: ARG002
        """Return the metrics for Prometheus."""
        return Response(self.service.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")


def _learn_response(answer: LearnAnswer) -> BufferedResponse:
    return BufferedResponse(_encode(answer))


def make_app(service: Service, token: str | None, hosts: frozenset[str] | None) -> AccessMiddleware:
    """Return the application. Without a token, it accepts requests for these hosts only."""
    routes, at = Routes(service), f"{MODELS.decode()}{{name}}"
    handlers = {"infer": routes.infer, "label": routes.label, "learn": routes.learn}
    of_models = {name.encode(): ModelRoute(service, f"{at}/{name}", each) for name, each in handlers.items()}
    table = [
        *(Route(route.path, route, methods=["POST"]) for route in of_models.values()),
        Route("/v2/health/live", routes.live),
        Route("/v2/health/ready", routes.ready),
        Route("/v2", routes.server),
        Route(at, routes.one, methods=["GET", "PUT", "DELETE"]),
        Route(f"{at}/ready", routes.model_ready),
        Route(f"{at}/versions/{{version}}", routes.model),
        Route(f"{at}/versions/{{version}}/ready", routes.model_ready),
        Route(f"{at}/versions/{{version}}/infer", of_models[b"infer"], methods=["POST"]),
        Route("/metrics", routes.metrics),
        *pages.routes(service),
    ]
    return AccessMiddleware(Router(table, default=not_found, redirect_slashes=False), of_models, service, token, hosts)
