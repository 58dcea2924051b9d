"""Committees beside plain means of probabilities, and the mixtures by name."""

from typing import Any

import numpy as np
import pytest
from scipy.special import expit, logit, softmax

from bayesvote import Committees, PerceptronBank, TreeBank, adaptive, fast
from bayesvote.members import Bank, named


def rows(n_classes: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    y = rng.integers(n_classes, size=200)
    X = rng.normal(size=(200, 6)) + y[:, None] * rng.normal(size=6)
    X[rng.random(X.shape) < 0.3] = np.nan
    return X, y


def test_a_committee_has_the_mean_of_its_members_probabilities() -> None:
    X, y = rows(2)
    alone, together = (PerceptronBank(5, max_features=2) for _ in range(2))
    scores = alone.start(6, rng=1).scores_then_learn(X, y)
    got = Committees(together, [3, 2]).start(6, rng=1).scores_then_learn(X, y)
    for k, own in enumerate((scores[:, :3], scores[:, 3:])):
        votes = ~np.isnan(own)
        mean = (expit(2 * np.nan_to_num(own)) * votes).sum(axis=1) / np.maximum(votes.sum(axis=1), 1)
        some = votes.any(axis=1)
        assert not some.all()  # on some rows the whole committee abstains
        near = some & (np.abs(mean - 0.5) < 0.49999)  # elsewhere the plain computation loses its digits
        assert near.sum() > 100
        np.testing.assert_allclose(got[near, k], logit(mean[near]) / 2, rtol=1e-6, atol=1e-12)
        np.testing.assert_array_equal(np.isnan(got[:, k]), ~some)


def test_with_several_classes_too() -> None:
    X, y = rows(3)
    X = np.nan_to_num(X)
    bank: dict[str, Any] = {"n_trees": 6, "recent": (), "refined": (), "rows_kept": 64}
    scores = TreeBank(**bank).start(6, 3, rng=1).scores_then_learn(X, y)
    got = Committees(TreeBank(**bank), [4, 1, 1]).start(6, 3, rng=1).scores_then_learn(X, y)
    expected = softmax(2 * scores[:, :4], axis=-1).mean(axis=1)
    np.testing.assert_allclose(softmax(2 * got[:, 0], axis=-1), expected, rtol=1e-12)
    np.testing.assert_array_equal(got[:, 1:], scores[:, 4:])  # a member alone keeps its score


@pytest.mark.parametrize("sizes", [[2, 2], [5, 1], []])
def test_committees_are_of_all_members(sizes: list[int]) -> None:
    with pytest.raises(ValueError, match="sum to the 5 members"):
        Committees(PerceptronBank(5), sizes)


def all_members(bank: Bank[Any]) -> int:
    return sum(map(all_members, bank.parts)) if bank.parts else bank.n_members


@pytest.mark.parametrize(
    ("mixture", "n"),
    [
        *((adaptive, n) for n in (3, 4, 7, 10, 19, 20, 31, 100, 250)),
        *((fast, n) for n in (5, 8, 20, 31, 100)),
        *((named().get("tree"), n) for n in (1, 2, 9, 13, 52, 100, 250)),
    ],
)
def test_mixtures_have_as_many_members_as_asked_for(mixture: Any, n: int) -> None:
    bank = mixture(n)
    assert all_members(bank) == n
    assert len(bank.member_names()) == bank.n_members
    X, y = rows(2)
    assert bank.start(6, rng=0).scores_then_learn(X, y).shape == (200, bank.n_members)


def test_the_default_is_as_its_docstring_says() -> None:
    names = " ".join(adaptive().member_names())
    assert names.count("8 x Tree") == 4
    assert names.count("Logistic") == 4
    assert names.count("PassiveAggressive") == 3
    assert names.count("Neighbours of") == 2
    assert names.count("38 x NaiveBayes") == 1
    assert "Tree" not in " ".join(fast().member_names())


def test_52_trees_by_name_are_the_bank_of_trees() -> None:
    assert named()["tree"](52).member_names() == TreeBank().member_names()
    small: Any = named()["tree"](100, rows_kept=256, max_nodes=64, max_features=3)
    assert (small.rows_kept, small.max_nodes, small.max_features) == (256, 64, 3)
    assert [group[0] for group in small.recent] == [256, 256]
