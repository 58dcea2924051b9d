"""Version of the library; tools/version.py reads it for the package metadata."""

__version__ = "0.2.0.dev0"
