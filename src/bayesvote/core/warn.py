"""Warnings that show the line of the caller, not a line of the library."""

import sys
import warnings


def warn(message: str | Warning, category: type[Warning] = UserWarning) -> None:
    """Warn at the innermost line outside the library."""
    frame, level = sys._getframe(1), 2
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] == "bayesvote":
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
