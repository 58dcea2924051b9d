"""The description of the interface, made from the types, and a page for those who read."""

import html
import json
from typing import Any

import msgspec

from bayesvote.apps.service import types

_ANSWERS = {
    400: "The request is not as it must be.",
    401: "A token must be given.",
    403: "The request comes from a page of another site, or by another name of this host.",
    404: "There is no such model, version or row.",
    408: "The body did not come in time.",
    409: "It contradicts what is there.",
    413: "It is too large.",
    415: "The body is not JSON.",
    503: "Not now; try again later.",
    507: "The disk is full or cannot be written to; nothing was changed.",
}
_READ = (401, 403, 404, 503)
_WRITE = (400, 401, 403, 404, 408, 409, 413, 415, 503, 507)


class Operation(msgspec.Struct, frozen=True):
    """A route and what it takes and gives."""

    method: str
    path: str
    summary: str
    answer: type[msgspec.Struct] | str | None
    body: type[msgspec.Struct] | None = None
    status: tuple[int, ...] = (200,)
    refusals: tuple[int, ...] = _READ
    example: str = ""


_AT = "/v2/models/{name}"
OPERATIONS = (
    Operation("get", "/v2", "Metadata of the server", types.ServerFacts),
    Operation("get", "/v2/health/live", "Whether the server is up", types.Live, refusals=(403,)),
    Operation(
        "get", "/v2/health/ready", "Whether the server can be used", types.Ready, refusals=(403,), status=(200, 503)
    ),
    Operation("get", _AT, "Metadata of a model", types.ModelFacts),
    Operation(
        "put",
        _AT,
        "Make a model; the same request again is harmless",
        types.ModelFacts,
        types.ModelRequest,
        (200, 201),
        _WRITE,
        '{"columns": ["age", "income"], "classes": ["no", "yes"], "seed": 0}',
    ),
    Operation(
        "delete",
        _AT,
        "Retire a model: its last state is kept in the folder",
        None,
        status=(204,),
        refusals=(*_READ, 507),
    ),
    Operation("get", f"{_AT}/ready", "Whether a model can be used", types.NamedReady),
    Operation("get", f"{_AT}/versions/{{version}}", "Metadata of a model", types.ModelFacts),
    Operation("get", f"{_AT}/versions/{{version}}/ready", "Whether a model can be used", types.NamedReady),
    Operation(
        "post",
        f"{_AT}/versions/{{version}}/infer",
        "Predict, by the Open Inference Protocol with a version, which is 1",
        types.InferAnswer,
        types.InferRequest,
        refusals=_WRITE,
    ),
    Operation(
        "post",
        f"{_AT}/infer",
        "Predict; rows with ids are kept until their labels come",
        types.InferAnswer,
        types.InferRequest,
        refusals=_WRITE,
        example='{"rows": [{"age": 41, "income": null}], "ids": ["order-1"]}',
    ),
    Operation(
        "post",
        f"{_AT}/label",
        "Labels of rows that were predicted: they are learned now; a repeated label is harmless",
        types.LearnAnswer,
        types.LabelRequest,
        refusals=_WRITE,
        example='{"ids": ["order-1"], "labels": ["yes"]}',
    ),
    Operation(
        "post",
        f"{_AT}/learn",
        "Learn rows with their labels; with ids, a repeated request is harmless",
        types.LearnAnswer,
        types.LearnRequest,
        refusals=_WRITE,
        example='{"rows": [{"age": 41, "income": 30000}], "labels": ["yes"]}',
    ),
    Operation("get", "/metrics", "Figures for Prometheus", "text/plain", refusals=(401, 403)),
)


def document() -> dict[str, Any]:
    """The description, by OpenAPI 3.1."""
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
    for code in operation.refusals:
        wrong = {"application/json": {"schema": refs[types.ErrorAnswer]}}
        answers.setdefault(str(code), {"description": _ANSWERS[code], "content": wrong})
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
    """The description for readers."""
    parts = []
    for operation in OPERATIONS:
        found = described["paths"][operation.path][operation.method]
        heading = f"{operation.method.upper()} {operation.path}"
        parts.append(f"<section><h2><code>{html.escape(heading)}</code></h2><p>{html.escape(operation.summary)}.</p>")
        if operation.example:
            parts.append(f"<pre><code>{html.escape(_curl(operation))}</code></pre>")
        for kind, title in ((operation.body, "Takes"), (operation.answer, "Gives")):
            if isinstance(kind, type):
                parts.append(_fields(title, described["components"]["schemas"][kind.__name__]))
        refused = "".join(
            f"<li><b>{code}</b> {html.escape(answer['description'])}</li>"
            for code, answer in found["responses"].items()
            if code >= "400"
        )
        parts.append(f"<details><summary>Refusals</summary><ul>{refused}</ul></details></section>")
    return _PAGE.format(title="bayesvote: the interface", body="".join(parts))


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
    kind = field.get("type", "anything")
    if kind == "array":
        return f"list of {_kind(field.get('items', {}))}"
    values = field.get("additionalProperties")
    return f"object of {_kind(values)}" if isinstance(values, dict) else kind


_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title><link rel="icon" href="/static/icon.svg"><link rel="stylesheet" href="/static/base.css">
<link rel="stylesheet" href="/static/page.css"></head>
<body><header><h1>{title}</h1><p class="lead">As a <a href="/openapi.json">document for programs</a>.
The <a href="/">live page</a>.</p></header><main>{body}</main></body></html>
"""
