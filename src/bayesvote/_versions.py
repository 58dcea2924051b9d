"""What results were computed with."""

import platform
from functools import cache
from importlib.metadata import PackageNotFoundError, version

from bayesvote._version import __version__


@cache
def versions() -> dict[str, str]:
    """Versions of what takes part in a run, as far as it is installed."""
    found = {"Python": platform.python_version(), "bayesvote": __version__}
    for name in ("numpy", "scipy", "scikit-learn"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found | {"platform": f"{platform.system()} {platform.machine()}"}
