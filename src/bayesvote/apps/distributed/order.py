"""Merging of shard results in shard order, for any order of arrival."""

from collections.abc import Callable
from typing import Any


class InOrder:
    """Merges n parts pairwise, in a tree whose shape depends on n only.

    The result does not depend on the order of arrival, and few parts are kept in memory. Pass None for a missing part.
    A part that is added again is ignored.

    Examples
    --------
    >>> words = InOrder(5, lambda a, b: f"({a} {b})")
    >>> for place, word in [(4, "e"), (1, "b"), (0, "a"), (1, "again"), (2, None), (3, "d")]:
    ...     words.add(place, word)
    >>> words.result
    '(((a b) d) e)'
    """

    def __init__(self, n: int, merged: Callable[[Any, Any], Any]) -> None:
        self._n = n
        self._merged = merged
        self._waiting: dict[tuple[int, int], Any] = {}  # by level and place in it
        self._seen: set[int] = set()
        self._height = max(n - 1, 0).bit_length()

    @property
    def complete(self) -> bool:
        """True once all parts were added."""
        return len(self._seen) == self._n

    @property
    def result(self) -> Any:
        """The merged parts, or None if all were None."""
        if not self.complete:
            raise ValueError(f"{self._n - len(self._seen)} of {self._n} parts are missing")
        return self._waiting.get((self._height, 0))

    def add(self, place: int, part: Any) -> None:
        """Add the part at an index."""
        if place in self._seen:
            return
        self._seen.add(place)
        level = 0
        while level < self._height:
            other = place ^ 1
            if other << level < self._n:  # otherwise the node has no sibling
                if (level, other) not in self._waiting:
                    break
                left, right = self._waiting.pop((level, other)), part
                if other > place:
                    left, right = right, left
                part = right if left is None else left if right is None else self._merged(left, right)
            level, place = level + 1, place >> 1
        self._waiting[level, place] = part
