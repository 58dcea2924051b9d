"""Bodies of the Open Inference Protocol: JSON, optionally followed by the bytes of tensors."""

import json
import re
from typing import Any, NamedTuple, TypeVar

import msgspec
import numpy as np
from msgspec import UnsetType

from bayesvote.apps.service.access import BINARY_HEADER, BufferedRequest, BufferedResponse
from bayesvote.apps.service.models import VERSION, ServedModel
from bayesvote.apps.service.row_formats import IDS, ModelOutputs
from bayesvote.apps.service.tensors import encoded_texts, texts
from bayesvote.apps.service.types import (
    InferAnswer,
    InferRequest,
    LabelRequest,
    LearnRequest,
    Limits,
    ModelRequest,
    OutputTensor,
    RequestedOutput,
    RequestError,
    Tensor,
)
from bayesvote.core.checks import Labels

T = TypeVar("T", InferRequest, LearnRequest, LabelRequest, ModelRequest)

_DECODERS: dict[type[Any], Any] = {
    kind: msgspec.json.Decoder(kind) for kind in (InferRequest, LearnRequest, LabelRequest, ModelRequest)
}
_encode = msgspec.json.Encoder().encode
_ID = re.compile(r"[^\x00-\x1f\x7f]{1,128}")


class RequestRows(NamedTuple):
    """Rows of a request, and their ids; an empty list if they have none."""

    rows: Any
    ids: list[str]


def decode(kind: type[T], body: bytes) -> T:
    """Decode a JSON body strictly."""
    try:
        found: T = _DECODERS[kind].decode(body)
    except msgspec.ValidationError as error:
        raise RequestError(400, "the body", f"must match the schema in /openapi.json: {error}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        odd = next((word for word in ("NaN", "Infinity") if word.encode() in body), None)
        do = "" if odd is None else f"{odd} is not valid JSON: send null for a missing value."
        raise RequestError(400, "the body", f"must be JSON: {error}", do=do) from None
    return found


def check_keys(body: bytes) -> None:
    """Reject JSON, already decoded, with a duplicate key in an object: it is not known which value is meant."""

    def once(pairs: list[tuple[str, Any]]) -> None:
        keys = [key for key, _ in pairs]
        twice = next((key for key in keys if keys.count(key) > 1), None) if len({*keys}) < len(keys) else None
        if twice is not None:
            raise RequestError(400, "the body", "must have each key once", f"{twice[:100]!r} twice")

    json.loads(body, object_pairs_hook=once)


def split_body(request: BufferedRequest) -> tuple[bytes, bytes]:
    """Return the JSON of a body, and the bytes that follow it."""
    header, body = request.headers.get(BINARY_HEADER), request.body
    if header is None:
        return body, b""
    length = int(header) if header.isdigit() and len(header) < 12 else -1
    if not 0 <= length <= len(body):
        got = header[:20].decode("latin-1")
        raise RequestError(400, "Inference-Header-Content-Length", f"must be from 0 to {len(body)}", f"{got!r}")
    return body[:length], body[length:]


def _binary_data(inputs: list[Tensor], rest: bytes) -> dict[str, bytes]:
    """Return the bytes of the tensors without JSON data."""
    found, at = {}, 0
    for tensor in inputs:
        parameters = {} if isinstance(tensor.parameters, UnsetType) else tensor.parameters
        if "binary_data_size" not in parameters:
            continue
        size = parameters["binary_data_size"]
        if type(size) is not int or not 0 <= size <= len(rest) - at or not isinstance(tensor.data, UnsetType):
            must = "must have data, or binary_data_size bytes after the JSON"
            raise RequestError(400, f"inputs: {tensor.name!r}", must)
        found[tensor.name] = rest[at : at + size]
        at += size
    if at < len(rest):
        raise RequestError(400, "the body", f"has {len(rest) - at} bytes that belong to no input")
    return found


def parse_rows(served: ServedModel, asked: InferRequest | LearnRequest, rest: bytes, limits: Limits) -> RequestRows:
    """Parse the rows and ids of a request."""
    inputs = [] if isinstance(asked.inputs, UnsetType) else asked.inputs
    ids = [] if isinstance(asked.ids, UnsetType) else asked.ids
    has_ids = not isinstance(asked.ids, UnsetType)
    if isinstance(asked.rows, UnsetType) == isinstance(asked.inputs, UnsetType):
        raise RequestError(400, "the body", "must have either rows or inputs")
    rows: Any
    if isinstance(asked.rows, UnsetType):
        tensors = {tensor.name: tensor for tensor in inputs}
        if len(tensors) < len(inputs):
            raise RequestError(400, "inputs", "must have different names")
        for tensor in inputs:
            _check_count(tensor.shape[0], limits)
        binary = _binary_data(inputs, rest)
        if IDS in tensors and not has_ids:
            ids, has_ids = texts(tensors.pop(IDS), binary.get(IDS)), True
        rows = served.format.from_tensors(tensors, binary)
    else:
        _check_count(len(asked.rows), limits)
        rows = served.format.from_objects(asked.rows)
    if not len(rows):
        raise RequestError(400, "a request", "must have at least one row")
    if has_ids:
        check_ids(ids, len(rows))
    return RequestRows(rows, ids)


def _check_count(n: int, limits: Limits) -> None:
    if n > limits.rows:
        raise RequestError(413, "a request", f"must have at most {limits.rows:,} rows", f"{n:,}")


def check_ids(ids: list[str], n: int) -> None:
    """Require one id per row, all different."""
    if len(ids) != n:
        raise RequestError(400, "ids", f"must be one per row, {n}", str(len(ids)))
    if n > 1 and len({*ids}) < n:
        raise RequestError(400, "ids", "must differ from each other")
    if not all(type(id_) is str and _ID.fullmatch(id_) for id_ in ids):
        raise RequestError(400, "ids", "must have from 1 to 128 characters, none of them a control character")


def encode_labels(served: ServedModel, asked: LearnRequest | LabelRequest, n: int) -> Labels:
    """Return the class index of each label, one per row."""
    if len(asked.labels) != n:
        raise RequestError(400, "labels", f"must be one per row, {n}", str(len(asked.labels)))
    return served.codes(asked.labels)


def requested_outputs(served: ServedModel, asked: InferRequest) -> list[RequestedOutput]:
    """Return the requested outputs; by default all but the contributions."""
    known = [each.name for each in served.outputs]
    if isinstance(asked.outputs, UnsetType) or not asked.outputs:
        return [RequestedOutput(name) for name in known if name != "contributions"]
    names = [each.name for each in asked.outputs]
    for name in names:
        if name not in known or names.count(name) > 1:
            raise RequestError(400, "outputs", f"must be some of {', '.join(known)}, each once", repr(name))
    return asked.outputs


def infer_response(
    served: ServedModel, asked: InferRequest, requested: list[RequestedOutput], outputs: ModelOutputs
) -> BufferedResponse:
    """Return the response with the requested outputs."""
    parameters = {} if isinstance(asked.parameters, UnsetType) else asked.parameters
    everything = parameters.get("binary_data_output") is True
    tensors, rest = [], []
    for each in requested:
        own = {} if isinstance(each.parameters, UnsetType) else each.parameters
        found, data = _output_tensor(served, each.name, outputs), None
        if own.get("binary_data", everything) is True:
            data = _to_bytes(found)
            found.data, found.parameters = None, {"binary_data_size": len(data)}
            rest.append(data)
        tensors.append(found)
    head = _encode(InferAnswer(served.name, VERSION, tensors, asked.id))
    return BufferedResponse(b"".join((head, *rest)), len(head)) if rest else BufferedResponse(head)


def _output_tensor(served: ServedModel, name: str, outputs: ModelOutputs) -> OutputTensor:
    if name == "label":
        # For a few rows, lists are faster than arrays.
        labels = [served.classes[row.index(max(row))] for row in outputs.probabilities.tolist()]
        return OutputTensor(name, served.outputs[0].datatype, [len(labels)], labels)
    found = np.asarray(getattr(outputs, "probabilities" if name == "probability" else name))
    return OutputTensor(name, "FP64", list(found.shape), found.ravel().tolist())


def _to_bytes(tensor: OutputTensor) -> bytes:
    data = tensor.data or []
    if tensor.datatype == "BYTES":
        return encoded_texts(data)
    kind = {"INT64": "<i8", "UINT64": "<u8", "BOOL": "?"}.get(tensor.datatype, "<f8")
    return np.array(data, dtype=kind).tobytes()
