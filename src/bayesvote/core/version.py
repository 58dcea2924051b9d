"""Version of the library, and the versions that a result was computed with."""

import platform
from functools import cache
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed

__version__ = "0.2.0.dev0"  # tools/version.py reads this line for the package metadata


@cache
def versions() -> dict[str, str]:
    """Return the versions of Python, bayesvote and its dependencies, and the platform."""
    found = {"Python": platform.python_version(), "bayesvote": __version__}
    for name in ("numpy", "scipy", "scikit-learn"):
        try:
            found[name] = installed(name)
        except PackageNotFoundError:
            continue
    return found | {"platform": f"{platform.system()} {platform.machine()}"}
