"""Predictions of a fitted record: losses, probabilities and forecasts."""

from typing import Any

import numpy as np

from bayesvote.core.checks import Array
from bayesvote.core.rollback import Forecast
from bayesvote.core.rows import Rows
from bayesvote.estimators._calibration import trust_in
from bayesvote.estimators._validation import table_or_rows
from bayesvote.estimators.fitted import Fitted
from bayesvote.model import agreeing
from bayesvote.tables import Table


def losses(who: str, fitted: Fitted[Any], X: Any) -> Array:
    """Return the losses (n, K) of every label for the rows of a user."""
    rows = table_or_rows(who, fitted, X)
    if isinstance(rows, Rows):
        return np.asarray(fitted.model.losses(rows))
    assert fitted.columns is not None  # only then is X read as a table
    with fitted.model.lock.read:  # model and columns must be of the same moment
        encoded = fitted.columns.encoded(fitted.columns.checked(rows, strict=True))
        return np.concatenate([fitted.model.losses(part) for part in encoded])


def probabilities(
    fitted: Fitted[Any], losses: Array, calibration: Array | None = None, *, calibrates: bool = True
) -> Array:
    """Return probabilities from losses, by the calibration now or by that at each row."""
    model = fitted.model
    if not calibrates:
        return np.asarray(model.probabilities(losses))
    given = model.shares(losses), losses, calibration, trust_in(model.loss_scale)
    return agreeing(fitted.calibration.calibrated(*given), losses)


def decision_function(who: str, fitted: Fitted[Any], X: Any) -> Array:
    """Return the lead of the second label, (n,), for two classes; minus the losses (n, K) for more."""
    found = losses(who, fitted, X)
    votes = agreeing(-found, found)
    return np.asarray(votes[:, 1] - votes[:, 0]) if votes.shape[1] == 2 else votes


def forecast(fitted: Fitted[Any], rows: Rows | Table) -> tuple[Forecast, Array]:
    """Return the parts of predictions of checked rows and their losses (n, K)."""
    if isinstance(rows, Rows):
        return fitted.model.forecast(rows)  # type: ignore[no-any-return]
    assert fitted.columns is not None  # only then are rows a table
    with fitted.model.lock.read:  # model and columns must be of the same moment
        forecasts, found = zip(*map(fitted.model.forecast, fitted.columns.encoded(rows)), strict=True)
    return Forecast(*map(np.concatenate, zip(*forecasts, strict=True))), np.concatenate(found)
