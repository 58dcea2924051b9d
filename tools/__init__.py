"""Tools for development; `python -m tools --list` lists them."""
