"""Kinds of parts that a model file may contain: the classes in the packages' tables, and no others."""

from importlib import import_module
from typing import Any

from bayesvote.boosting import BOOSTERS
from bayesvote.ensemble import Ensemble
from bayesvote.members import BANKS
from bayesvote.tables import Columns
from bayesvote.weighting import WEIGHTERS

# Packages that need other libraries are imported only when one of their models is saved or loaded. The keys are the
# prefixes of their class names in a file.
_LAZY = {
    "": "bayesvote.estimators",
    "river.": "bayesvote.integrations.river",
    "capymoa.": "bayesvote.integrations.capymoa",
}


def kind_of(part: Any) -> str | None:
    """Return the name of a part's class in files, or None if it has none."""
    name = type(part).__name__
    if _core().get(name) is type(part):
        return name
    for prefix, module in _LAZY.items():
        if f"{type(part).__module__}.".startswith(f"{module}.") and _table(module).get(name) is type(part):
            return prefix + name
    return None


def class_of(kind: str) -> Any:
    """Return the class with this name in files."""
    if kind in _core():
        return _core()[kind]
    prefix, dot, name = kind.rpartition(".")
    module = _LAZY.get(prefix + dot)
    found = _table(module).get(name) if module else None
    if found is None:
        raise ValueError(f"the kind {kind[:50]!r} is unknown")
    return found


def _core() -> dict[str, Any]:
    kinds: list[type] = [*BANKS.values(), *WEIGHTERS.values(), *BOOSTERS.values(), Ensemble, Columns]
    return {kind.__name__: kind for kind in kinds}


def _table(module: str) -> dict[str, Any]:
    return {kind.__name__: kind for kind in import_module(module).CLASSIFIERS.values()}
