"""The live page, its events, and the description of the interface."""

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
from bayesvote.apps.service.live import Watch
from bayesvote.apps.service.service import Service
from bayesvote.apps.service.types import Refusal

_HERE = Path(__file__).parent
_FILES = {
    "base.css": (Path(report.__file__).parent / "page.css", "text/css"),
    "page.css": (_HERE / "page.css", "text/css"),
    "page.js": (_HERE / "page.js", "text/javascript"),
    "icon.svg": (_HERE / "icon.svg", "image/svg+xml"),
}
_WATCHERS = 50  # pages that are open at a time
_EVERY = 1.0  # seconds between two events


def routes(service: Service) -> list[Route]:
    """Routes of the pages."""
    watch = Watch(service)
    described = msgspec.json.encode(openapi.document())
    readable = openapi.page(openapi.document()).encode()

    async def index(request: Request) -> Response:  # noqa: ARG001
        return Response((_HERE / "page.html").read_bytes(), media_type="text/html")

    async def file(request: Request) -> Response:
        name = request.path_params["file"]
        if name not in _FILES:
            raise Refusal(404, "there is no such file.")
        path, kind = _FILES[name]
        return Response(path.read_bytes(), media_type=kind)

    async def events(request: Request) -> Response:
        if service.watchers >= _WATCHERS:
            raise Refusal(503, f"{_WATCHERS} pages watch already.")
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


async def _stream(service: Service, watch: Watch, name: str | None) -> AsyncIterator[bytes]:
    service.watchers += 1
    try:
        while not service.stopping.is_set():
            found: dict[str, Any] = await watch.status(name)
            yield b"data: " + msgspec.json.encode(found) + b"\n\n"
            try:
                await asyncio.wait_for(service.stopping.wait(), _EVERY)
            except TimeoutError:
                continue
    finally:
        service.watchers -= 1
