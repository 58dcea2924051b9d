"""What can be in a saved model: the kinds of the packages' tables. A file can name no others."""

from importlib import import_module
from typing import Any

from bayesvote.boosting import BOOSTERS
from bayesvote.ensemble import Ensemble
from bayesvote.members import BANKS
from bayesvote.tables import Columns
from bayesvote.weighting import WEIGHTERS

# Packages that need other libraries are imported only when one of their models is saved or loaded. Each key is the
# prefix of its class names in a file.
_LATER = {
    "": "bayesvote.estimators",
    "river.": "bayesvote.integrations.river",
    "capymoa.": "bayesvote.integrations.capymoa",
}


def kind_of(part: Any) -> str | None:
    """Return the name by which files know a part; None if they do not."""
    name = type(part).__name__
    if _core().get(name) is type(part):
        return name
    for prefix, module in _LATER.items():
        if f"{type(part).__module__}.".startswith(f"{module}.") and _table(module).get(name) is type(part):
            return prefix + name
    return None


def class_of(kind: str) -> Any:
    """Return the class of that name."""
    if kind in _core():
        return _core()[kind]
    prefix, dot, name = kind.rpartition(".")
    module = _LATER.get(prefix + dot)
    found = _table(module).get(name) if module else None
    if found is None:
        raise ValueError(f"the unknown kind {kind[:50]!r}")
    return found


def _core() -> dict[str, Any]:
    kinds: list[type] = [*BANKS.values(), *WEIGHTERS.values(), *BOOSTERS.values(), Ensemble, Columns]
    return {kind.__name__: kind for kind in kinds}


def _table(module: str) -> dict[str, Any]:
    return {kind.__name__: kind for kind in import_module(module).CLASSIFIERS.values()}
