"""Bodies of the Open Inference Protocol: JSON, or JSON followed by the bytes of tensors."""

import json
import re
from typing import Any, NamedTuple, TypeVar

import msgspec
import numpy as np
from msgspec import UnsetType

from bayesvote.apps.service.columns import IDS, Answers
from bayesvote.apps.service.guard import BINARY_HEADER, Answer, Hot
from bayesvote.apps.service.models import VERSION, Served
from bayesvote.apps.service.tensors import encoded_texts, texts
from bayesvote.apps.service.types import (
    InferAnswer,
    InferRequest,
    LabelRequest,
    LearnRequest,
    Limits,
    ModelRequest,
    OutputTensor,
    Refusal,
    Tensor,
    Wanted,
)
from bayesvote.core.checks import Labels

T = TypeVar("T", InferRequest, LearnRequest, LabelRequest, ModelRequest)

_DECODERS: dict[type[Any], Any] = {
    kind: msgspec.json.Decoder(kind) for kind in (InferRequest, LearnRequest, LabelRequest, ModelRequest)
}
_encode = msgspec.json.Encoder().encode
_ID = re.compile(r"[^\x00-\x1f\x7f]{1,128}")


class Given(NamedTuple):
    """Rows of a request, and their ids; none if they have none."""

    rows: Any
    ids: list[str]


def decoded(kind: type[T], body: bytes) -> T:
    """Decode a JSON body strictly."""
    try:
        found: T = _DECODERS[kind].decode(body)
    except msgspec.ValidationError as error:
        raise Refusal(400, f"the body must be as /openapi.json says: {error}.") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        odd = next((word for word in ("NaN", "Infinity") if word.encode() in body), None)
        do = "" if odd is None else f" {odd} is not JSON: send null for a value that is not known."
        raise Refusal(400, f"the body must be JSON: {error}.{do}") from None
    return found


def check_keys(body: bytes) -> None:
    """Refuse JSON, decoded already, of which an object has a key twice; nobody can know which value is meant."""

    def once(pairs: list[tuple[str, Any]]) -> None:
        keys = [key for key, _ in pairs]
        twice = next((key for key in keys if keys.count(key) > 1), None) if len({*keys}) < len(keys) else None
        if twice is not None:
            raise Refusal(400, f"the body must have each key once, got {twice[:100]!r} twice.")

    json.loads(body, object_pairs_hook=once)


def parted(request: Hot) -> tuple[bytes, bytes]:
    """JSON of a body, and the bytes that follow it."""
    header, body = request.headers.get(BINARY_HEADER), request.body
    if header is None:
        return body, b""
    length = int(header) if header.isdigit() and len(header) < 12 else -1
    if not 0 <= length <= len(body):
        got = header[:20].decode("latin-1")
        raise Refusal(400, f"Inference-Header-Content-Length must be from 0 to {len(body)}, got {got!r}.")
    return body[:length], body[length:]


def _binary(inputs: list[Tensor], rest: bytes) -> dict[str, bytes]:
    """Bytes of the tensors that have no data of their own."""
    found, at = {}, 0
    for tensor in inputs:
        parameters = {} if isinstance(tensor.parameters, UnsetType) else tensor.parameters
        if "binary_data_size" not in parameters:
            continue
        size = parameters["binary_data_size"]
        if type(size) is not int or not 0 <= size <= len(rest) - at or not isinstance(tensor.data, UnsetType):
            raise Refusal(400, f"inputs: {tensor.name!r} must have data, or binary_data_size bytes after the JSON.")
        found[tensor.name] = rest[at : at + size]
        at += size
    if at < len(rest):
        raise Refusal(400, f"the body has {len(rest) - at} bytes that belong to no input.")
    return found


def given(served: Served, asked: InferRequest | LearnRequest, rest: bytes, limits: Limits) -> Given:
    """Rows of a request, as arrays, and their ids."""
    inputs = [] if isinstance(asked.inputs, UnsetType) else asked.inputs
    ids = [] if isinstance(asked.ids, UnsetType) else asked.ids
    has_ids = not isinstance(asked.ids, UnsetType)
    if isinstance(asked.rows, UnsetType) == isinstance(asked.inputs, UnsetType):
        raise Refusal(400, "the body must have either rows or inputs.")
    rows: Any
    if isinstance(asked.rows, UnsetType):
        tensors = {tensor.name: tensor for tensor in inputs}
        if len(tensors) < len(inputs):
            raise Refusal(400, "inputs must have names that differ.")
        for tensor in inputs:
            if tensor.shape[0] > limits.rows:
                raise Refusal(413, f"a request must have at most {limits.rows:,} rows, got {tensor.shape[0]:,}.")
        binary = _binary(inputs, rest)
        if IDS in tensors and not has_ids:
            ids, has_ids = texts(tensors.pop(IDS), binary.get(IDS)), True
        rows = served.columns.tensors(tensors, binary)
    else:
        if len(asked.rows) > limits.rows:
            raise Refusal(413, f"a request must have at most {limits.rows:,} rows, got {len(asked.rows):,}.")
        rows = served.columns.rows(asked.rows)
    if not len(rows):
        raise Refusal(400, "a request must have at least one row.")
    if has_ids:
        check_ids(ids, len(rows))
    return Given(rows, ids)


def check_ids(ids: list[str], n: int) -> None:
    """Refuse ids that are not one per row, all different."""
    if len(ids) != n:
        raise Refusal(400, f"ids must be one per row, {n}, got {len(ids)}.")
    if n > 1 and len({*ids}) < n:
        raise Refusal(400, "ids must differ from each other.")
    if not all(type(id_) is str and _ID.fullmatch(id_) for id_ in ids):
        raise Refusal(400, "ids must have from 1 to 128 characters, none of them a control character.")


def labels(served: Served, asked: LearnRequest | LabelRequest, n: int) -> Labels:
    """Places of a request's labels among the classes, one per row."""
    if len(asked.labels) != n:
        raise Refusal(400, f"labels must be one per row, {n}, got {len(asked.labels)}.")
    return served.codes(asked.labels)


def wanted(served: Served, asked: InferRequest) -> list[Wanted]:
    """Outputs that are asked for; all but the contributions if none are named."""
    known = [each.name for each in served.outputs]
    if isinstance(asked.outputs, UnsetType) or not asked.outputs:
        return [Wanted(name) for name in known if name != "contributions"]
    names = [each.name for each in asked.outputs]
    for name in names:
        if name not in known or names.count(name) > 1:
            raise Refusal(400, f"outputs must be some of {', '.join(known)}, each once, got {name!r}.")
    return asked.outputs


def answered(served: Served, asked: InferRequest, outputs: list[Wanted], answers: Answers) -> Answer:
    """Answer with some of what the model says."""
    parameters = {} if isinstance(asked.parameters, UnsetType) else asked.parameters
    everything = parameters.get("binary_data_output") is True
    tensors, rest = [], []
    for each in outputs:
        own = {} if isinstance(each.parameters, UnsetType) else each.parameters
        found, data = _output(served, each.name, answers), None
        if own.get("binary_data", everything) is True:
            data = _bytes(found)
            found.data, found.parameters = None, {"binary_data_size": len(data)}
            rest.append(data)
        tensors.append(found)
    head = _encode(InferAnswer(served.name, VERSION, tensors, asked.id))
    return Answer(b"".join((head, *rest)), len(head)) if rest else Answer(head)


def _output(served: Served, name: str, answers: Answers) -> OutputTensor:
    if name == "label":
        # For a row or a few, lists are quicker than arrays.
        labels = [served.classes[row.index(max(row))] for row in answers.probabilities.tolist()]
        return OutputTensor(name, served.outputs[0].datatype, [len(labels)], labels)
    found = np.asarray(getattr(answers, "probabilities" if name == "probability" else name))
    return OutputTensor(name, "FP64", list(found.shape), found.ravel().tolist())


def _bytes(tensor: OutputTensor) -> bytes:
    data = tensor.data or []
    if tensor.datatype == "BYTES":
        return encoded_texts(data)
    kind = {"INT64": "<i8", "UINT64": "<u8", "BOOL": "?"}.get(tensor.datatype, "<f8")
    return np.array(data, dtype=kind).tobytes()
