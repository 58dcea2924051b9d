"""The streams that change: that they are what they say, and that the table and the figure are made of them."""

from importlib import import_module
from itertools import pairwise

import numpy as np
import pytest

from bayesvote_paper.changing import ROWS, STREAMS, Changing
from bayesvote_paper.changing_streams import FIGURE7, JUST_AFTER, TABLE7, WHOLE


@pytest.mark.parametrize("name", STREAMS)
def test_streams(name: str) -> None:
    data, again, other = STREAMS[name](0), STREAMS[name](0), STREAMS[name](1)
    assert len(data.X) == len(data.y) == (18_159 if name == "weather" else ROWS)
    assert np.isfinite(data.X).all()
    assert set(data.y.tolist()) == {0, 1}
    assert 0.25 < data.y.mean() < 0.75
    np.testing.assert_array_equal(data.X, again.X)
    np.testing.assert_array_equal(data.y, again.y)
    assert name == "weather" or not np.array_equal(data.y, other.y)


@pytest.mark.parametrize("name", ["SEA", "Agrawal, abrupt", "sine", "LED"])
def test_what_was_true_is_not_after_a_change(name: str) -> None:
    """A tree that has learned what holds between two changes knows it there, and less of it after the next."""
    data = STREAMS[name](0)
    worse = 0
    for start, end in pairwise((0, *data.changes)):
        tree = import_module("sklearn.tree").DecisionTreeClassifier(min_samples_leaf=20, random_state=0)
        tree.fit(data.X[start : end - 1000], data.y[start : end - 1000])
        before, after = (
            tree.score(data.X[part], data.y[part]) for part in (slice(end - 1000, end), slice(end, end + 1000))
        )
        assert before > 0.8
        worse += after < before - 0.02
    assert worse >= 2


def test_hyperplanes_turn_without_a_break() -> None:
    slow, fast = (STREAMS[name](0) for name in ("hyperplane", "hyperplane, fast"))
    assert slow.changes == fast.changes == ()
    np.testing.assert_array_equal(slow.X, fast.X)  # only the weights turn faster
    assert np.mean(slow.y != fast.y) > 0.05


def test_rows_after_changes() -> None:
    data = Changing(np.zeros((10, 1)), np.zeros(10, dtype=np.intp), (3, 8))
    assert np.flatnonzero(data.after_changes(2)).tolist() == [3, 4, 8, 9]
    assert not data._replace(changes=()).after_changes(2).any()


def test_the_table_leaves_out_what_has_no_rows() -> None:
    jobs = TABLE7.jobs((), 2)
    steady = {job.dataset for job in jobs if job.members == WHOLE} - {
        job.dataset for job in jobs if job.members == JUST_AFTER
    }
    assert steady == {name for name, make in STREAMS.items() if not make(0).changes}
    assert "5,000, 10,000, 15,000" in FIGURE7.shown_as("SEA")
