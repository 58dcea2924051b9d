"""Columns of X, matched by name with those of a fitted classifier."""

from importlib.metadata import version
from typing import Any, Self

import numpy as np

from bayesvote.core.checks import InputError
from bayesvote.core.rows import as_rows
from bayesvote.tables import as_numbers, has_text, holds_text, ignore, is_table, matched, read_table, usual_names


def by_name(who: str, X: Any, names: list[str] | None, n_features: int, encoded: bool) -> Any:
    """Return X with the columns of a fitted model: a table, an array, or checked rows of numbers.

    ``names`` are the names of the fitted columns, or None for an array. ``encoded`` is True if columns are encoded.
    """
    unnamed = isinstance(X, np.ndarray) and X.ndim == 2 and (names is None if encoded else holds_text(X))
    if not unnamed and (encoded or not is_table(X)):
        return X
    wanted = usual_names(n_features) if names is None else names
    if unnamed:
        if X.shape[1] != n_features:
            # The sentence of scikit-learn.
            must = f"has {X.shape[1]} features, but {who} is expecting {n_features} features as input"
            raise InputError("", "X", must)
        X = dict(zip(wanted, X.T, strict=True))
    if encoded:
        return X
    if hasattr(X, "iloc") and not has_text(X):
        # scikit-learn checks the order of the columns of a DataFrame; only drop unknown columns here.
        known = set(wanted)
        others = [name for name in X.columns if name not in known]
        if names is None or not others or len(X.columns) - len(others) < len(wanted):
            return X
        ignore(who, [str(name) for name in others])
        return X[[name for name in X.columns if name in known]]
    return as_rows(who, as_numbers(who, matched(who, read_table(who, X), wanted)))


class _Named(np.ndarray[Any, Any]):
    """An array with column names where scikit-learn looks for them."""

    names: list[str]

    def __dataframe__(self) -> Self:
        return self

    def column_names(self) -> list[str]:
        return self.names


def with_names(X: Any) -> Any:
    """Make the names of a table of polars 2 known to scikit-learn before 1.9."""
    if not hasattr(X, "get_columns") or hasattr(X, "__dataframe__"):
        return X
    if [int(part) for part in version("scikit-learn").split(".")[:2]] >= [1, 9]:
        return X
    named = np.asarray(X).view(_Named)
    named.names = X.columns
    return named
