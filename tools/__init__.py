"""Tools for maintainers; ``python -m tools --list`` lists them."""
