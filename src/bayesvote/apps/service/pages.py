"""The live page, its event stream, and the API documentation."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from bayesvote.apps import report
from bayesvote.apps.service import openapi
from bayesvote.apps.service.live import ModelWatcher
from bayesvote.apps.service.service import Service
from bayesvote.apps.service.types import RequestError

_HERE = Path(__file__).parent
_FILES = {
    "base.css": (Path(report.__file__).parent / "page.css", "text/css"),
    "page.css": (_HERE / "page.css", "text/css"),
    "page.js": (_HERE / "page.js", "text/javascript"),
    "icon.svg": (_HERE / "icon.svg", "image/svg+xml"),
}
_MAX_WATCHERS = 50  # open pages
_INTERVAL = 1.0  # seconds between two events


def routes(service: Service) -> list[Route]:
    """Return the routes of the pages."""
    watch = ModelWatcher(service)
    described = msgspec.json.encode(openapi.document())
    readable = openapi.page(openapi.document()).encode()

    async def index(request: Request) -> Response:  # noqa: ARG001
        return Response((_HERE / "page.html").read_bytes(), media_type="text/html")

    async def file(request: Request) -> Response:
        name = request.path_params["file"]
        if name not in _FILES:
            raise RequestError(404, f"the file {name[:100]!r}", "does not exist")
        path, kind = _FILES[name]
        return Response(path.read_bytes(), media_type=kind)

    async def events(request: Request) -> Response:
        if service.watchers >= _MAX_WATCHERS:
            raise RequestError(503, "the live page", f"is open {_MAX_WATCHERS} times, which is the limit")
        if request.method == "HEAD":
            return Response(media_type="text/event-stream")
        name = request.query_params.get("model")
        headers = {"x-accel-buffering": "no"}
        return StreamingResponse(_stream(service, watch, name), media_type="text/event-stream", headers=headers)

    async def described_json(request: Request) -> Response:  # noqa: ARG001
        return Response(described, media_type="application/json")

    async def docs(request: Request) -> Response:  # noqa: ARG001
        return Response(readable, media_type="text/html")

    return [
        Route("/", index),
        Route("/static/{file}", file),
        Route("/events", events),
        Route("/openapi.json", described_json),
        Route("/docs", docs),
    ]


async def _stream(service: Service, watch: ModelWatcher, name: str | None) -> AsyncIterator[bytes]:
    service.watchers += 1
    try:
        while not service.stopping.is_set():
            found: dict[str, Any] = await watch.status(name)
            yield b"data: " + msgspec.json.encode(found) + b"\n\n"
            try:
                await asyncio.wait_for(service.stopping.wait(), _INTERVAL)
            except TimeoutError:
                continue
    finally:
        service.watchers -= 1
