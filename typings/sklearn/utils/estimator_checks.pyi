# The checks of scikit-learn that this project uses; scikit-learn ships no types.
from typing import Any

def check_estimator(
    estimator: object,
    *,
    expected_failed_checks: dict[str, str] | None = None,
    on_skip: str | None = "warn",
    on_fail: str | None = "raise",
) -> list[dict[str, Any]]: ...
