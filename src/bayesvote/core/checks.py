"""Input checks, and structured errors: what is wrong, what was given, what to do."""

import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from difflib import get_close_matches
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]
Labels = NDArray[np.intp]


MOST_WEIGHT = 1e9  # of a sample: leaves 7 of the 16 digits of a sum to a sample of weight 1
MOST_PARAMETER = 1e100  # squares of parameters up to it, or down to its inverse, are normal doubles
_FIRST_ROUNDED = 2**53  # floats represent all smaller integers exactly


class Argument(NamedTuple):
    """A parameter and a value for it, such as ``bad_lines='skip'`` or ``columns={'zip': 'category'}``."""

    name: str
    value: str | bool | dict[str, str] | None = None

    def __str__(self) -> str:
        return self.name if self.value is None else f"{self.name}={self.value!r}"


Advice = str | tuple[str | Argument, ...]  # text, or text with arguments in it


def advice_text(advice: Advice, written: Callable[[Argument], str] = str) -> str:
    """Join the parts of an advice; ``written`` formats the arguments.

    >>> advice_text(("Read text with ", Argument("columns", {"zip": "category"}), "."))
    "Read text with columns={'zip': 'category'}."
    """
    if isinstance(advice, str):
        return advice
    return "".join(written(part) if isinstance(part, Argument) else part for part in advice)


class InputWarning(UserWarning):
    """A warning about the input. Arguments in its text are fields, so that the command line can write them as options.

    Examples
    --------
    >>> print(InputWarning("Leave it out with ", Argument("columns", {"id": "drop"}), "."))
    Leave it out with columns={'id': 'drop'}.
    """

    def sentence(self, written: Callable[[Argument], str] = str) -> str:
        """Return the text; ``written`` formats the arguments."""
        return advice_text(self.args, written)

    def __str__(self) -> str:
        return self.sentence()


class InvalidInputError(Exception):
    """Base class of errors about invalid input. The parts of the message are attributes, for other interfaces to use.

    Attributes
    ----------
    who
        Function or class that raises the error; empty if the user knows it.
    subject
        Name of the parameter, or of the thing that is wrong.
    must
        Requirement, such as "must be above 0".
    got
        Value that was given; empty if the user knows it.
    do
        Advice to the user: text, or a tuple of texts and arguments.
    using
        Argument that solves the problem, if there is one; it completes the sentence in ``do``.

    Examples
    --------
    >>> print(InputError("stream", "line 3", "must have 4 fields", "2", "Skip it with", Argument("bad_lines", "skip")))
    stream: line 3 must have 4 fields, got 2. Skip it with bad_lines='skip'.
    """

    def __init__(
        self, who: str, subject: str, must: str, got: str = "", do: Advice = "", using: Argument | None = None
    ) -> None:
        super().__init__(who, subject, must, got, do, using)  # all of them, or the error could not be pickled
        self.who, self.subject, self.must, self.got, self.do, self.using = who, subject, must, got, do, using

    def sentence(self, subject: str | None = None, written: Callable[[Argument], str] = str) -> str:
        """Return what is wrong and what to do, without ``who``.

        ``subject`` replaces the subject, and ``written`` formats the arguments.
        """
        text = f"{self.subject if subject is None else subject} {self.must}".lstrip()
        if self.got:
            text += f", got {self.got}"
        text += "."
        if self.do:
            text += f" {advice_text(self.do, written)}"
        if self.using:
            text += f" {written(self.using)}."
        return text

    def __str__(self) -> str:
        return f"{self.who}: {self.sentence()}" if self.who else self.sentence()


class InputError(InvalidInputError, ValueError):
    """Invalid value."""


class InputTypeError(InvalidInputError, TypeError):
    """Invalid type."""


class InputFileError(InvalidInputError, OSError):
    """A file or an address that cannot be read or written."""


class UnknownLabelError(InputError):
    """Label that is not among the classes; ``row`` is the first row with such a label, counted from 0."""

    row = 0


def positive(who: str, name: str, value: float, *, zero: bool = False) -> None:
    """Require a finite number above 0 (or at least 0, with ``zero=True``) whose square is a normal double."""
    floor = "at least 0" if zero else "above 0"
    number = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    if overflows(value):
        raise InputError(who, name, f"must be a finite number {floor}", "a number too large for float64")
    if not number or not np.isfinite(value) or value < 0 or (value == 0 and not zero):
        raise InputError(who, name, f"must be a finite number {floor}", repr(value))
    if value and not 1 / MOST_PARAMETER <= value <= MOST_PARAMETER:
        raise InputError(who, name, f"must be from {1 / MOST_PARAMETER:g} to {MOST_PARAMETER:g}", repr(value))


def overflows(value: Any) -> bool:
    """Return True for a number that is too large for float64."""
    with suppress(TypeError, ValueError):
        try:
            float(value)
        except OverflowError:
            return True
    return False


def integer(who: str, name: str, value: int, *, least: int = 1) -> None:
    """Require an integer of at least ``least``, and at most 2**53."""
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < least:
        raise InputError(who, name, f"must be an integer of at least {least}", repr(value))
    if value > _FIRST_ROUNDED:
        raise InputError(who, name, f"must be an integer of at most {_FIRST_ROUNDED}", "a larger one")


def one_or_two(who: str, name: str, value: int) -> None:
    """Require the integer 1 or 2."""
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value not in (1, 2):
        raise InputError(who, name, "must be 1 or 2", repr(value))


def fraction(who: str, name: str, value: float) -> None:
    """Require a number in (0, 1]."""
    positive(who, name, value)
    if value > 1:
        raise InputError(who, name, "must be in (0, 1]", repr(value))


def one_of(who: str, name: str, value: Any, options: Iterable[str]) -> None:
    """Require one of the known names, and suggest the nearest one otherwise."""
    known = sorted(options)
    if value not in known:
        raise InputError(who, name, f"must be one of {', '.join(known)}", repr(value), did_you_mean(str(value), known))


def did_you_mean(name: str, known: Sequence[str]) -> str:
    """Return a question with the nearest known name; empty if none is near.

    >>> did_you_mean("hart", ["heart", "sonar"])
    "Did you mean 'heart'?"
    """
    near = get_close_matches(name, known, n=1)
    return f"Did you mean {near[0]!r}?" if near else ""


def unmasked(who: str, name: str, given: Any) -> Any:
    """Require an array without masked values: NumPy would use the values below the mask."""
    # A caller with a masked array has imported numpy.ma; others should not wait for the import.
    masked = sys.modules.get("numpy.ma")
    if masked is not None and isinstance(given, masked.MaskedArray) and masked.is_masked(given):
        by_row = name in ("y", "sample_weight", "classes")
        do = "Leave such rows out." if by_row else "Mark missing values with NaN, by array.filled(np.nan)."
        raise InputError(who, name, "must have no masked values", f"{masked.getmaskarray(given).sum()} of them", do)
    return given


def weights(who: str, sample_weight: ArrayLike | None, n_rows: int) -> Array:
    """Return a copy of the sample weights, one number from 0 to MOST_WEIGHT per row; ones for None."""
    if sample_weight is None:
        return np.ones(n_rows)
    try:
        # A copy, because kernels count rows by their weights, and other threads could change the caller's array.
        w = np.array(unmasked(who, "sample_weight", sample_weight), dtype=np.float64, order="C")
    except OverflowError:
        must, do = f"must be at most {MOST_WEIGHT:g}", "Divide all weights by one number."
        raise InputError(who, "sample_weight", must, "a number too large for float64", do) from None
    except (TypeError, ValueError) as error:
        if isinstance(error, InvalidInputError):
            raise
        raise InputTypeError(who, "sample_weight", "must hold one number per row", f"others: {error}") from None
    if w.ndim == 0:
        w = np.full(n_rows, w)
    if w.shape != (n_rows,):
        raise InputError(who, "sample_weight", f"must have one value per row, shape ({n_rows},)", f"shape {w.shape}")
    valid = np.isfinite(w) & (w >= 0)
    if not np.all(valid):
        raise InputError(
            who,
            "sample_weight",
            "must be finite and at least 0",
            str(w[~valid][0]),
            "Drop such rows or give them weight 0.",
        )
    if n_rows and w.max() > MOST_WEIGHT:
        raise InputError(
            who, "sample_weight", f"must be at most {MOST_WEIGHT:g}", str(w.max()), "Divide all weights by one number."
        )
    return w


def labels(who: str, y: ArrayLike, n_rows: int, n_classes: int) -> Labels:
    """Return a copy of the labels as class indices in [0, n_classes), one per row."""
    # A copy, because kernels do not check it, and other threads could change the caller's array.
    given = np.array(unmasked(who, "y", y))
    if given.shape != (n_rows,):
        raise InputError(who, "y", f"must have one label per row, shape ({n_rows},)", f"shape {given.shape}")
    if given.dtype.kind not in "iub" and not (given.dtype.kind == "f" and np.all(given == np.floor(given))):
        raise InputError(who, "y", f"must hold class indices 0 to {n_classes - 1}", f"{given.dtype} values")
    if given.dtype.kind == "f":
        with np.errstate(invalid="ignore"):  # a number above all integers becomes negative
            given = given.astype(np.intp)
    codes = np.ascontiguousarray(given, dtype=np.intp)
    # As an unsigned number, a negative index is large.
    if n_rows and codes.view(np.uintp).max() >= n_classes:
        bad = codes[(codes < 0) | (codes >= n_classes)][0]
        must = f"must hold class indices 0 to {n_classes - 1}"
        raise InputError(who, "y", must, str(bad), "Encode the labels first.")
    return codes


def label_array(y: Any, name: str = "y") -> Any:
    r"""Return the labels, as an array if NumPy would otherwise make equal labels of different ones.

    NumPy strips NUL from the end of strings, and converts some large integers to floats. Missing and masked labels are
    errors, and so is a mix of text and other labels, which have no order.

    >>> label_array(["x", "x\0"])
    array(['x', 'x\x00'], dtype=object)
    >>> label_array([2**63 + 1, 5])
    array([9223372036854775809,                   5], dtype=uint64)
    """
    unmasked("", name, y)
    if isinstance(y, (list, tuple)):
        ends_in_nul = any(isinstance(label, str) and label.endswith("\0") for label in y)
        if any(label is None or isinstance(label, str) for label in y):
            _check_objects(list(y), name)  # NumPy would convert NaN to the text "nan" and 1 to "1"
        return np.array(y, dtype=object) if ends_in_nul else unrounded(y)
    given = np.asarray([] if y is None else y)
    if given.dtype.kind in "OmM":
        _check_objects(given.ravel().tolist() if given.dtype.kind == "O" else list(given.ravel()), name)
    if given.dtype.kind in "iu":  # scikit-learn would convert nullable integers to floats
        return given
    return unrounded(y)


def unrounded(y: Any) -> Any:
    """Return y, or an exact array of integer labels that NumPy would convert to floats or objects."""
    if isinstance(y, list | tuple):
        labels: Sequence[Any] = y
    else:
        given = np.asarray([] if y is None else y)
        if given.dtype.kind != "O" or given.ndim != 1:
            return y
        labels = given.tolist()
    if not all(isinstance(label, int | float | np.integer | np.floating) for label in labels):
        return y
    plain = [label.item() if isinstance(label, np.generic) else label for label in labels]
    if plain and all(type(label) is int for label in plain):
        for dtype in (np.int64, np.uint64):
            if np.iinfo(dtype).min <= min(plain) and max(plain) <= np.iinfo(dtype).max:
                return np.array(plain, dtype=dtype)
    large = any(type(label) is int and abs(label) > _FIRST_ROUNDED for label in plain)
    return np.array(plain, dtype=object) if large else y


def _check_known(labels: list[Any], name: str) -> None:
    missing = [not isinstance(label, (str, bool, int)) and _is_missing(label) for label in labels]
    if any(missing):
        at = missing.index(True)
        if name == "y":
            must, got, do = "must hold a label for every row", "row", "Leave out rows with an unknown label."
        else:
            must, got, do = "must hold labels only", "place", "Leave it out."
        raise InputError(name, "", must, f"a missing one in {got} {at}", do)


def _is_missing(label: Any) -> bool:
    if label is None or np.ndim(label):  # nested lists are rejected later, by their shape
        return label is None
    differs = label != label
    return differs is label or bool(differs)  # comparisons of pandas.NA return pandas.NA


def _check_objects(labels: list[Any], name: str) -> None:
    _check_known(labels, name)
    text = [isinstance(label, str) for label in labels]
    if any(text) and not all(text):
        got = f"{labels[text.index(True)]!r} and {labels[text.index(False)]!r}"
        raise InputError(name, "", "must hold labels of one kind", got, "Convert all of them to text with str.")


def encoded(who: str, y: NDArray[Any], classes: NDArray[Any]) -> Labels:
    """Return the indices of the labels among the sorted classes, which must include all of them."""
    if _rounded(y, classes):
        y, classes = y.astype(object), classes.astype(object)
    # No index may be out of range, even if another thread changes y meanwhile: kernels do not check them.
    places = np.minimum(np.searchsorted(classes, y), len(classes) - 1)
    unknown = classes[places] != y
    if np.any(unknown):
        row = int(np.argmax(unknown))
        error = UnknownLabelError(
            who,
            "y",
            f"must hold the classes {classes.tolist()} only",
            repr(y[row : row + 1].tolist()[0]),
            "Pass all possible labels as classes before the first row.",
        )
        error.row = row
        raise error
    return places


def _rounded(y: NDArray[Any], classes: NDArray[Any]) -> bool:
    """Return whether NumPy would compare integers as floats, and the classes are too large for that."""
    kinds = {y.dtype.kind, classes.dtype.kind}
    if len(kinds) == 1 or not kinds <= {*"iuf"} or len(classes) == 0:
        return False
    return bool(max(abs(classes[0].item()), abs(classes[-1].item())) >= _FIRST_ROUNDED)
