"""Trees, grown anew from kept rows, and members refined over their leaves."""

from bayesvote.members.trees.bank import TreeBank

__all__ = ["TreeBank"]
