"""Foundations of the library: checked rows, states, errors, locks and threads."""
