"""Parts are merged in their order, whatever the order in which they come."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayesvote.apps.distributed.members import spread
from bayesvote.apps.distributed.order import InOrder


@given(st.integers(1, 40), st.data())
def test_the_result_depends_on_no_order_of_arrival_and_on_no_part_that_comes_again(n: int, data: st.DataObject) -> None:
    absent = data.draw(st.sets(st.integers(0, n - 1)))
    parts = [None if place in absent else f"{place}" for place in range(n)]
    straight, mixed = (InOrder(n, lambda a, b: f"({a} {b})") for _ in range(2))
    for place in range(n):
        straight.add(place, parts[place])
    for place in data.draw(st.permutations([*range(n), *range(n)])):
        mixed.add(place, parts[place])
    assert mixed.complete
    assert mixed.result == straight.result
    words = (mixed.result or "").replace("(", "").replace(")", "").split()
    assert words == [part for part in parts if part is not None]


@given(st.permutations(list(range(33))))
def test_few_parts_wait(order: list[int]) -> None:
    merged = InOrder(33, lambda a, b: a + b)
    for place in order[:-1]:
        merged.add(place, 1)
        with pytest.raises(ValueError, match="parts are missing"):
            _ = merged.result
    merged.add(order[-1], 1)
    assert merged.result == 33
    late = InOrder(1024, lambda a, b: a + b)
    for place in range(1, 1024):
        late.add(place, 1)
    assert len(late._waiting) == 10


@given(st.lists(st.integers(0, 3), min_size=3, max_size=50), st.integers(3, 60))
def test_members_are_spread_evenly_over_shards_with_rows(n_rows: list[int], n_members: int) -> None:
    if not any(n_rows):
        return
    found = spread(n_rows, n_members, None)
    assert sum(found.values()) == n_members
    assert all(n_rows[place] for place in found)
    assert max(found.values()) - min(found.values()) <= 1
    assert list(found) == sorted(found)
    gaps = np.diff([k for k, place in enumerate(np.flatnonzero(n_rows)) if place in found])
    assert len(gaps) == 0 or gaps.max() - gaps.min() <= 1
