"""Requests and responses as msgspec types. Requests are decoded strictly, and /openapi.json is made from them."""

import re
from dataclasses import dataclass
from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType

from bayesvote.core.checks import Advice, InvalidInputError

Label = bool | int | float | str
Cell = bool | int | float | str | None
Name = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$", description="Name of a model.")]
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")  # for fullmatch: $ would also accept a final newline
NAME_RULE = "1 to 64 letters, digits, dots, dashes or underscores, the first of them a letter or digit"
Id = Annotated[str, Meta(pattern=r"^[^\x00-\x1f\x7f]+$", min_length=1, max_length=128, description="Id of a row.")]
Text = Annotated[str, Meta(max_length=200)]
Size = Annotated[int, Meta(ge=0, le=2**31 - 1)]


class RequestError(InvalidInputError):
    """An HTTP error response. The rejected request has changed nothing.

    ``status`` is the HTTP status. The other parts are those of ``InvalidInputError``: what is wrong, what is required,
    what was given, and what to do.
    """

    def __init__(self, status: int, subject: str, must: str, got: str = "", do: Advice = "") -> None:
        super().__init__("", subject, must, got, do)
        self.args = status, subject, must, got, do
        self.status = status
        self.headers: dict[str, str] = {}

    @property
    def reason(self) -> str:
        """The error message."""
        return self.sentence()


@dataclass(frozen=True)
class Limits:
    """Limits on requests and models.

    Attributes
    ----------
    body, rows
        Maximum number of bytes and rows per request.
    columns, members, classes, model_bytes
        Maximum size of a new model.
    pending, pending_seconds
        Maximum number of rows per model that wait for their labels, and how long they wait.
    waiting
        Maximum number of requests that wait for the disk. Further requests get the status 503.
    request_seconds
        Time in which a request must arrive completely.
    """

    body: int = 8_000_000
    rows: int = 10_000
    columns: int = 10_000
    members: int = 2_000
    classes: int = 200
    model_bytes: int = 2**28
    pending: int = 1_000_000
    pending_seconds: float = 30 * 86_400.0
    waiting: int = 10_000
    request_seconds: float = 30.0


class ErrorAnswer(Struct):
    """The reason why a request was rejected."""

    error: str


class ModelRequest(Struct, forbid_unknown_fields=True):
    """A new model. Fields that are left out have the defaults of the classifier."""

    columns: Annotated[
        dict[Text, Text] | list[Text] | int,
        Meta(
            description="Names with their kinds (number, category, boolean, date); names of numeric columns; or "
            "the number of numeric columns, which are named x0, x1, ..."
        ),
    ]
    classes: Annotated[list[Label], Meta(min_length=2, description="All possible labels, of one type.")]
    model: Text = "bayesian"
    members: Text | UnsetType = UNSET
    n_members: Annotated[int, Meta(ge=1, le=1_000_000)] | UnsetType = UNSET
    max_features: Text | int | float | UnsetType | None = UNSET
    weighter: Text | UnsetType = UNSET
    loss: Text | UnsetType = UNSET
    forgetting: float | UnsetType = UNSET
    scale: bool | UnsetType = UNSET
    calibrated: bool | UnsetType = UNSET
    seed: Annotated[int, Meta(ge=0, le=2**32 - 1)] = 0


class Tensor(Struct, forbid_unknown_fields=True):
    """Input of the Open Inference Protocol: flat or nested values, or ``binary_data_size`` bytes after the JSON."""

    name: Text
    shape: Annotated[list[Size], Meta(min_length=1, max_length=2)]
    datatype: Text
    data: list[Cell | list[Cell]] | UnsetType = UNSET
    parameters: dict[str, Any] | UnsetType = UNSET


class RequestedOutput(Struct, forbid_unknown_fields=True):
    """A requested output."""

    name: Text
    parameters: dict[str, Any] | UnsetType = UNSET


Rows = Annotated[
    list[dict[str, Cell]],
    Meta(description="Values by column name; null is a missing value. An extension of the protocol."),
]
Ids = Annotated[list[Id], Meta(description="One per row, each used once.")]


class InferRequest(Struct, forbid_unknown_fields=True):
    """Rows to predict, as tensors or as objects. Rows with ids are kept until their labels arrive."""

    id: Text | UnsetType = UNSET
    parameters: dict[str, Any] | UnsetType = UNSET
    inputs: list[Tensor] | UnsetType = UNSET
    outputs: list[RequestedOutput] | UnsetType = UNSET
    rows: Rows | UnsetType = UNSET
    ids: Ids | UnsetType = UNSET


class LearnRequest(Struct, forbid_unknown_fields=True):
    """Rows with their labels. With ids, a repeated request changes nothing."""

    labels: list[Label]
    inputs: list[Tensor] | UnsetType = UNSET
    rows: Rows | UnsetType = UNSET
    ids: Ids | UnsetType = UNSET


class LabelRequest(Struct, forbid_unknown_fields=True):
    """Labels of rows that were predicted with ids."""

    ids: Ids
    labels: list[Label]


class LearnAnswer(Struct):
    """Number of rows that are on disk and learned. ``mistakes`` counts wrong predictions, as they were first made."""

    model_name: str
    learned: int
    repeated: int
    mistakes: int


class OutputTensor(Struct, omit_defaults=True):
    """Output of the Open Inference Protocol."""

    name: str
    datatype: str
    shape: list[int]
    data: list[Any] | None = None
    parameters: dict[str, Any] | None = None


class InferAnswer(Struct, omit_defaults=True):
    """Labels, class probabilities, and the probability that the decision is right under the posterior (certainty)."""

    model_name: str
    model_version: str
    outputs: list[OutputTensor]
    id: str | UnsetType = UNSET


class TensorMetadata(Struct):
    """Metadata of an input or output tensor."""

    name: str
    datatype: str
    shape: list[int]


class ModelMetadata(Struct):
    """Metadata of a model by the Open Inference Protocol; fields from ``classes`` on are extensions."""

    name: str
    versions: list[str]
    platform: str
    inputs: list[TensorMetadata]
    outputs: list[TensorMetadata]
    classes: list[Label]
    columns: dict[str, str]
    rows: int
    pending: int


class ServerMetadata(Struct):
    """Metadata of the server by the Open Inference Protocol; ``models`` is an extension."""

    name: str
    version: str
    extensions: list[str]
    models: list[str]


class Live(Struct):
    """True if the server is running."""

    live: bool


class Ready(Struct):
    """True if the server is ready for requests."""

    ready: bool


class NamedReady(Struct):
    """True if a model is ready for requests."""

    name: str
    ready: bool
