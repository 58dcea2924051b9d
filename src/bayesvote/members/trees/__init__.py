"""Bank of online decision trees, with refined members on top of their leaves."""

from bayesvote.members.trees.bank import TreeBank

__all__ = ["TreeBank"]
