"""What goes over the wire, as msgspec types: requests are decoded strictly, and /openapi.json is made from these."""

import re
from dataclasses import dataclass
from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType

Label = bool | int | float | str
Cell = bool | int | float | str | None
Name = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$", description="Of a model.")]
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")  # as a whole: the end of a pattern takes a line's end, too
NAME_RULE = "1 to 64 letters, digits, dots, dashes or underscores, the first of them a letter or digit"
Id = Annotated[str, Meta(pattern=r"^[^\x00-\x1f\x7f]+$", min_length=1, max_length=128, description="Of a row.")]
Text = Annotated[str, Meta(max_length=200)]
Size = Annotated[int, Meta(ge=0, le=2**31 - 1)]


class Refusal(Exception):  # noqa: N818 - an answer, not a fault
    """A request that is refused, with its HTTP status and the reason in plain words; it has changed nothing."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status, self.reason = status, reason
        self.headers: dict[str, str] = {}


@dataclass(frozen=True)
class Limits:
    """What is taken at most, and for how long.

    Attributes
    ----------
    body, rows, columns, members, classes
        Bytes and rows of a request, columns, members and classes of a model.
    model_bytes
        Of a new model.
    pending, pending_seconds
        Rows that wait for their label, per model, and how long they do.
    waiting
        Requests that wait for the disk; more are sent away for a while.
    request_seconds
        Until a request must have come whole.
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
    """Why a request was refused."""

    error: str


class ModelRequest(Struct, forbid_unknown_fields=True):
    """A new model. What is left out is as the classifier has it by default."""

    columns: Annotated[
        dict[Text, Text] | list[Text] | int,
        Meta(
            description="Names with their kinds (number, category, boolean, date); names alone, which are numbers; or "
            "how many numbers: x0, x1, ..."
        ),
    ]
    classes: Annotated[list[Label], Meta(min_length=2, description="All labels that can come; of one type.")]
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


class Wanted(Struct, forbid_unknown_fields=True):
    """Output that is asked for."""

    name: Text
    parameters: dict[str, Any] | UnsetType = UNSET


Rows = Annotated[list[dict[str, Cell]], Meta(description="By column name; null is a missing value. Our extension.")]
Ids = Annotated[list[Id], Meta(description="One per row, each used once.")]


class InferRequest(Struct, forbid_unknown_fields=True):
    """Rows to predict, as tensors or as objects. Rows with ids wait for their labels."""

    id: Text | UnsetType = UNSET
    parameters: dict[str, Any] | UnsetType = UNSET
    inputs: list[Tensor] | UnsetType = UNSET
    outputs: list[Wanted] | UnsetType = UNSET
    rows: Rows | UnsetType = UNSET
    ids: Ids | UnsetType = UNSET


class LearnRequest(Struct, forbid_unknown_fields=True):
    """Rows with their labels. With ids, a repeated request is harmless."""

    labels: list[Label]
    inputs: list[Tensor] | UnsetType = UNSET
    rows: Rows | UnsetType = UNSET
    ids: Ids | UnsetType = UNSET


class LabelRequest(Struct, forbid_unknown_fields=True):
    """Labels of rows that were predicted with ids."""

    ids: Ids
    labels: list[Label]


class LearnAnswer(Struct):
    """What was learned: durable, and in the model. ``mistakes`` are by the predictions as they were made."""

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
    """Labels, their probabilities in the order of the classes, and whether the decision would survive (certainty)."""

    model_name: str
    model_version: str
    outputs: list[OutputTensor]
    id: str | UnsetType = UNSET


class TensorFacts(Struct):
    """A tensor that a model takes or gives."""

    name: str
    datatype: str
    shape: list[int]


class ModelFacts(Struct):
    """Metadata of a model, by the Open Inference Protocol; ``classes`` and ``columns`` are ours."""

    name: str
    versions: list[str]
    platform: str
    inputs: list[TensorFacts]
    outputs: list[TensorFacts]
    classes: list[Label]
    columns: dict[str, str]
    rows: int
    pending: int


class ServerFacts(Struct):
    """Metadata of the server, by the Open Inference Protocol; ``models`` is ours."""

    name: str
    version: str
    extensions: list[str]
    models: list[str]


class Live(Struct):
    """Whether the server is up."""

    live: bool


class Ready(Struct):
    """Whether the server, or a model, can be used."""

    ready: bool


class NamedReady(Struct):
    """Whether a model can be used."""

    name: str
    ready: bool
