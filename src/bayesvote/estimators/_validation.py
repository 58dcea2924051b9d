"""Validation of X and y: scikit-learn's checks, tables, and columns matched by name."""

from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags, column_or_1d
from sklearn.utils.validation import validate_data

from bayesvote.core import checks
from bayesvote.core.rows import Rows, as_rows, is_sparse, plain, within_float64
from bayesvote.estimators._by_name import by_name, with_names
from bayesvote.estimators._labels import one_column
from bayesvote.estimators.fitted import Fitted
from bayesvote.tables import Columns, Table, has_text, holds_text, is_table, named_columns, read_table

# ``as_rows`` looks for infinity; once is enough.
_CHECKS: dict[str, Any] = {"accept_sparse": "csr", "dtype": np.float64, "ensure_all_finite": False}
_DO = "Pass a DataFrame or a dict of columns."


class Features(NamedTuple):
    """The columns of the X that a model is started for."""

    width: int  # number of features of the model
    names: NDArray[Any] | None = None
    columns: Columns | None = None

    @classmethod
    def of(cls, who: str, stated: Mapping[Any, str] | None, rows: int | Rows | Table) -> "Features":
        """Return the features of checked rows, or unnamed ones. ``stated`` is the parameter ``columns``."""
        if isinstance(rows, Table):
            columns = Columns(stated).start(rows)
            return cls(columns.width, np.array(columns.names, dtype=object), columns)
        if isinstance(rows, Rows):
            _check_no_columns(who, stated, "rows of numbers")
            return cls(rows.width)
        return cls(rows)


def first_rows(
    who: str, stated: Mapping[Any, str] | None, X: Any, y: Any
) -> tuple[Rows | Table, NDArray[Any], Features]:
    """Validate the X and y that a new model learns first."""
    y = one_column(checks.label_array(y))
    from_table = is_table(X)
    X = named_columns(X) if holds_text(X) else X
    if not is_table(X):
        _check_no_columns(who, stated, type(X).__name__)
    elif stated is not None or has_text(X):
        return _first_table(who, stated, read_table(who, X), y, has_names=from_table)
    rows, labels, seen = _validated(who, X, y)
    if is_table(X) and len(labels) == rows.n:
        with suppress(checks.InvalidInputError):  # columns without names of their own
            columns = Columns().start(X)
            columns.advise(columns.checked(X), np.unique(labels, return_inverse=True)[1])
    return rows, labels, Features(rows.width, getattr(seen, "feature_names_in_", None))


def _first_table(
    who: str, stated: Mapping[Any, str] | None, table: Table, y: Any, *, has_names: bool
) -> tuple[Table, NDArray[Any], Features]:
    labels = _labels(who, y, table.n)
    if table.n == 0:
        # The sentence of scikit-learn.
        found = f"Found array with 0 sample(s) (shape=(0, {table.width}))"
        raise checks.InputError("", "", f"{found} while a minimum of 1 is required by {who}")
    features = Features.of(who, stated, table)
    assert features.columns is not None  # the rows are a table
    table = features.columns.checked(table)
    features.columns.advise(table, np.unique(labels, return_inverse=True)[1])
    # scikit-learn sets no feature_names_in_ for arrays.
    return table, labels, features if has_names else features._replace(names=None)


def labelled_rows(who: str, fitted: Fitted[Any], X: Any, y: Any) -> tuple[Rows | Table, NDArray[Any]]:
    """Validate rows and labels for a fitted model; a table is not encoded yet."""
    rows = _plain_rows(who, fitted, X)
    if rows is not None and type(y) is np.ndarray and y.shape == (rows.n,) and y.dtype.kind in "biuU":
        return rows, y
    y = one_column(checks.label_array(y))
    X = _matched(who, fitted, X)
    if fitted.columns is not None:
        table = read_table(who, X)
        labels = _labels(who, y, table.n)
        return fitted.columns.checked(table), labels
    if isinstance(X, Rows):
        return X, _labels(who, y, X.n, warn=True)
    return _validated(who, X, y, fitted)[:2]


def table_or_rows(who: str, fitted: Fitted[Any], X: Any) -> Rows | Table:
    """Validate rows for a fitted model; a table is not encoded yet."""
    rows = _plain_rows(who, fitted, X)
    if rows is not None:
        return rows
    X = _matched(who, fitted, X)
    if fitted.columns is not None:
        return read_table(who, X)
    return X if isinstance(X, Rows) else _validated(who, X, fitted=fitted)[0]


def encoded_rows(who: str, fitted: Fitted[Any], X: Any) -> Rows:
    """Validate rows for a fitted model, and encode a table."""
    rows = table_or_rows(who, fitted, X)
    if isinstance(rows, Rows):
        return rows
    assert fitted.columns is not None  # only then is X read as a table
    with fitted.model.lock.read:
        return fitted.columns.encode(rows, strict=True)


def given_table(who: str, fitted: Fitted[Any], X: Any) -> Table:
    """Return the X of a classifier that encodes columns, with the columns that were fitted."""
    assert fitted.columns is not None
    return fitted.columns.checked(_matched(who, fitted, X))


def check_rows(who: str, fitted: Fitted[Any], rows: Rows | Table) -> Rows | Table:
    """Reject a table for a model of numbers, and numbers for a model of a table."""
    if isinstance(rows, Table) != (fitted.columns is not None):
        must = "rows of numbers" if fitted.columns is None else "a table with text, dates or categories"
        raise checks.InputTypeError(who, "X", f"must be {must}, like the first rows")
    return fitted.columns.checked(rows) if fitted.columns is not None and isinstance(rows, Table) else rows


def check_numbers_only(who: str, columns: Columns) -> None:
    """Reject a new table with text, dates or categories: frozen members cannot learn its encoding."""
    other = [about["name"] for about in columns.describe() if about["kind"] not in ("number", "boolean", "drop")]
    if other:
        raise checks.InputTypeError(
            who,
            "X",
            "must hold numbers only for frozen members, which cannot learn an encoding",
            f"a table with {other}",
            "Let members learn such tables, or train them on shards with bayesvote.distributed.fit.",
        )


def _plain_rows(who: str, fitted: Fitted[Any], X: Any) -> Rows | None:
    """Rows of an unnamed float64 array of the right width, on which scikit-learn's checks find nothing.

    Streams pass one row per call, for which those checks take longer than learning.
    """
    if (
        type(X) is not np.ndarray
        or X.dtype != np.float64
        or X.ndim != 2
        or fitted.names is not None
        or fitted.columns is not None
        or X.shape[1] != fitted.model.n_features
    ):
        return None
    return as_rows(who, X)


def _matched(who: str, fitted: Fitted[Any], X: Any) -> Any:
    """Return X with the columns of the fitted model; see docs/tables.md."""
    names = None if fitted.names is None else fitted.names.tolist()
    X = by_name(who, X, names, fitted.n_features, fitted.columns is not None)
    if fitted.columns is not None and not is_table(X):
        must = f"must be a table with the columns {fitted.columns.names}"
        raise checks.InputTypeError(who, "X", must, type(X).__name__, _DO)
    return X


def _labels(who: str, y: Any, n_rows: int, *, warn: bool = False) -> NDArray[Any]:
    labels: NDArray[Any] = column_or_1d(y, warn=warn)
    if len(labels) != n_rows:
        raise checks.InputError(who, "y", f"must have one label per row, {n_rows}", str(len(labels)))
    return labels


def _check_no_columns(who: str, stated: Mapping[Any, str] | None, got: str) -> None:
    if stated:
        must, do = "must be a table if columns= says how to read it", f"{_DO[:-1]}, or leave out columns=."
        raise checks.InputTypeError(who, "X", must, got, do)


class _Seen(ClassifierMixin, BaseEstimator):
    """The attributes of X that scikit-learn's ``validate_data`` sets on an estimator, and compares later."""

    n_features_in_: int
    feature_names_in_: NDArray[Any]

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.sparse = True
        return tags


@lru_cache(maxsize=32)
def _named_seen(who: str) -> type[_Seen]:
    """Return a class of this name, which scikit-learn puts into its messages."""
    return type(who, (_Seen,), {})


def _validated(
    who: str, X: Any, y: Any = "no_validation", fitted: Fitted[Any] | None = None
) -> tuple[Rows, NDArray[Any], _Seen]:
    """Validate X, and y if it is given, with scikit-learn's checks and with those of the kernels."""
    seen = _named_seen(who)()
    if fitted is not None:
        seen.n_features_in_ = fitted.n_features
        if fitted.names is not None:
            seen.feature_names_in_ = fitted.names
    # scikit-learn trusts the indices of a sparse matrix, so it gets one that is made of checked rows.
    rows = as_rows(who, X) if is_sparse(X) else None
    given = rows.tocsr() if rows else with_names(plain(who, X))
    reset = fitted is None
    with within_float64(who, given):
        checked = validate_data(seen, given, y, reset=reset, ensure_min_samples=int(reset), **_CHECKS)
    found, labels = checked if isinstance(checked, tuple) else (checked, np.empty(0))
    return rows or as_rows(who, found), labels, seen
