"""API documentation generated from the types: an OpenAPI document, and an HTML page."""

import html
import json
from typing import Any

import msgspec

from bayesvote.apps.service import types

_ERRORS = {
    400: "The request is not valid.",
    401: "A token is required.",
    403: "The request comes from a page of another site, or has a wrong Host header.",
    404: "The model, version or row does not exist.",
    408: "The body did not arrive in time.",
    409: "The request conflicts with an earlier request.",
    413: "The request is too large.",
    415: "The body is not JSON.",
    503: "The service is busy or stopping; retry later.",
    507: "A disk error, for example a full disk; nothing was changed.",
}
_READ = (401, 403, 404, 503)
_WRITE = (400, 401, 403, 404, 408, 409, 413, 415, 503, 507)


class Operation(msgspec.Struct, frozen=True):
    """A route, its request body and its responses."""

    method: str
    path: str
    summary: str
    answer: type[msgspec.Struct] | str | None
    body: type[msgspec.Struct] | None = None
    status: tuple[int, ...] = (200,)
    errors: tuple[int, ...] = _READ
    example: str = ""


_AT = "/v2/models/{name}"
OPERATIONS = (
    Operation("get", "/v2", "Metadata of the server", types.ServerMetadata),
    Operation("get", "/v2/health/live", "Check that the server is running", types.Live, errors=(403,)),
    Operation(
        "get",
        "/v2/health/ready",
        "Check that the server is ready for requests",
        types.Ready,
        errors=(403,),
        status=(200, 503),
    ),
    Operation("get", _AT, "Metadata of a model", types.ModelMetadata),
    Operation(
        "put",
        _AT,
        "Create a model; repeating the request changes nothing",
        types.ModelMetadata,
        types.ModelRequest,
        (200, 201),
        _WRITE,
        '{"columns": ["age", "income"], "classes": ["no", "yes"], "seed": 0}',
    ),
    Operation(
        "delete",
        _AT,
        "Stop serving a model; its last state is kept in the folder",
        None,
        status=(204,),
        errors=(*_READ, 507),
    ),
    Operation("get", f"{_AT}/ready", "Check that a model is ready for requests", types.NamedReady),
    Operation("get", f"{_AT}/versions/{{version}}", "Metadata of a model", types.ModelMetadata),
    Operation("get", f"{_AT}/versions/{{version}}/ready", "Check that a model is ready for requests", types.NamedReady),
    Operation(
        "post",
        f"{_AT}/versions/{{version}}/infer",
        "Predict rows; the version is 1",
        types.InferAnswer,
        types.InferRequest,
        errors=_WRITE,
    ),
    Operation(
        "post",
        f"{_AT}/infer",
        "Predict rows; rows with ids are kept until their labels arrive",
        types.InferAnswer,
        types.InferRequest,
        errors=_WRITE,
        example='{"rows": [{"age": 41, "income": null}], "ids": ["order-1"]}',
    ),
    Operation(
        "post",
        f"{_AT}/label",
        "Learn rows that were predicted earlier; repeating a label changes nothing",
        types.LearnAnswer,
        types.LabelRequest,
        errors=_WRITE,
        example='{"ids": ["order-1"], "labels": ["yes"]}',
    ),
    Operation(
        "post",
        f"{_AT}/learn",
        "Learn rows with their labels; with ids, repeating the request changes nothing",
        types.LearnAnswer,
        types.LearnRequest,
        errors=_WRITE,
        example='{"rows": [{"age": 41, "income": 30000}], "labels": ["yes"]}',
    ),
    Operation("get", "/metrics", "Metrics for Prometheus", "text/plain", errors=(401, 403)),
)


def document() -> dict[str, Any]:
    """Return the OpenAPI 3.1 document."""
    from bayesvote import __version__

    kinds = {each for o in OPERATIONS for each in (o.answer, o.body) if isinstance(each, type)} | {types.ErrorAnswer}
    ordered = sorted(kinds, key=lambda kind: kind.__name__)
    schemas, components = msgspec.json.schema_components(ordered, ref_template="#/components/schemas/{name}")
    refs = dict(zip(ordered, schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for operation in OPERATIONS:
        paths.setdefault(operation.path, {})[operation.method] = _described(operation, refs)
    security = {"token": {"type": "http", "scheme": "bearer"}}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "bayesvote",
            "version": __version__,
            "summary": "A learning service: predict now, label later. Open Inference Protocol V2, with extensions.",
        },
        "paths": paths,
        "components": {"schemas": components, "securitySchemes": security},
        "security": [{}, {"token": []}],
    }


def _described(operation: Operation, refs: dict[Any, Any]) -> dict[str, Any]:
    answers: dict[str, Any] = {str(code): {"description": "Done."} for code in operation.status}
    if isinstance(operation.answer, str):
        content: dict[str, Any] = {operation.answer: {"schema": {"type": "string"}}}
    else:
        content = {"application/json": {"schema": refs.get(operation.answer)}}
    if operation.answer is not None:
        for answer in answers.values():
            answer["content"] = content
    for code in operation.errors:
        wrong = {"application/json": {"schema": refs[types.ErrorAnswer]}}
        answers.setdefault(str(code), {"description": _ERRORS[code], "content": wrong})
    found: dict[str, Any] = {"summary": operation.summary, "responses": answers}
    names = [part[1:-1] for part in operation.path.split("/") if part.startswith("{")]
    if names:
        schema = msgspec.json.schema(types.Name)
        found["parameters"] = [
            {"name": name, "in": "path", "required": True, "schema": schema if name == "name" else {"type": "string"}}
            for name in names
        ]
    if operation.body is not None:
        body: dict[str, Any] = {"schema": refs[operation.body]}
        if operation.example:
            body["example"] = json.loads(operation.example)
        found["requestBody"] = {"required": True, "content": {"application/json": body}}
    return found


def page(described: dict[str, Any]) -> str:
    """Return the HTML page."""
    parts = []
    for operation in OPERATIONS:
        found = described["paths"][operation.path][operation.method]
        heading = f"{operation.method.upper()} {operation.path}"
        parts.append(f"<section><h2><code>{html.escape(heading)}</code></h2><p>{html.escape(operation.summary)}.</p>")
        if operation.example:
            parts.append(f"<pre><code>{html.escape(_curl(operation))}</code></pre>")
        for kind, title in ((operation.body, "Request"), (operation.answer, "Response")):
            if isinstance(kind, type):
                parts.append(_fields(title, described["components"]["schemas"][kind.__name__]))
        refused = "".join(
            f"<li><b>{code}</b> {html.escape(answer['description'])}</li>"
            for code, answer in found["responses"].items()
            if code >= "400"
        )
        parts.append(f"<details><summary>Errors</summary><ul>{refused}</ul></details></section>")
    return _PAGE.format(title="bayesvote: API", body="".join(parts))


def _curl(operation: Operation) -> str:
    path = operation.path.replace("{name}", "orders")
    method = "-X PUT " if operation.method == "put" else ""
    return f"curl {method}--json '{operation.example}' http://127.0.0.1:8000{path}"


def _fields(title: str, schema: dict[str, Any]) -> str:
    rows = []
    for name, field in schema.get("properties", {}).items():
        needed = " (required)" if name in schema.get("required", ()) else ""
        about = html.escape(_kind(field) + needed)
        more = html.escape(str(field.get("description", "")))
        rows.append(f"<div><dt><code>{html.escape(name)}</code></dt><dd>{about}<br>{more}</dd></div>")
    return (
        f"<h3>{title}</h3><p>{html.escape(schema.get('description', '').replace('``', ''))}</p><dl>{''.join(rows)}</dl>"
    )


def _kind(field: dict[str, Any]) -> str:
    if "anyOf" in field:
        return " or ".join(dict.fromkeys(_kind(each) for each in field["anyOf"]))
    if "$ref" in field:
        return str(field["$ref"]).rpartition("/")[2]
    kind = field.get("type", "any value")
    if kind == "array":
        return f"list of {_kind(field.get('items', {}))}"
    values = field.get("additionalProperties")
    return f"object of {_kind(values)}" if isinstance(values, dict) else kind


_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title><link rel="icon" href="/static/icon.svg"><link rel="stylesheet" href="/static/base.css">
<link rel="stylesheet" href="/static/page.css"></head>
<body><header><h1>{title}</h1><p class="lead">Also as an <a href="/openapi.json">OpenAPI document</a>.
The <a href="/">live page</a>.</p></header><main>{body}</main></body></html>
"""
