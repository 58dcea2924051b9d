import numpy as np
import pytest

from bayesvote.members.subsets import random_subsets


@pytest.mark.parametrize(
    ("max_features", "size"),
    [(None, 10), (3, 3), (1, 1), (10, 10), (0.5, 5), (1.0, 10), (0.01, 1), (0.34, 3), (0.36, 4), (np.int64(4), 4)],
)
def test_every_member_sees_so_many_features(max_features: float | None, size: int) -> None:
    mask = random_subsets(10, 50, max_features, rng=0)
    assert mask.shape == (50, 10)
    assert mask.dtype == np.bool_
    assert (mask.sum(axis=1) == size).all()


def test_features_are_drawn_evenly_and_members_differ() -> None:
    mask = random_subsets(10, 4000, 0.3, rng=1)
    np.testing.assert_allclose(mask.mean(axis=0), 0.3, atol=0.03)
    assert len(np.unique(mask, axis=0)) == 120  # all subsets of 3 of 10


def test_the_seed_decides() -> None:
    np.testing.assert_array_equal(random_subsets(10, 5, 0.5, rng=3), random_subsets(10, 5, 0.5, rng=3))
    assert (random_subsets(10, 5, 0.5, rng=3) != random_subsets(10, 5, 0.5, rng=4)).any()


@pytest.mark.parametrize("bad", [0, -1, 11, 0.0, 1.5, -0.5, np.nan, True, "half"])
def test_bad_sizes_are_refused(bad: float) -> None:
    with pytest.raises(ValueError, match="max_features"):
        random_subsets(10, 5, bad, rng=0)
