"""What the docs say in words about docs/reproduced.md. The figures themselves are written by benchmarks/pages.py."""

from typing import Any

import pytest

reproduced_table = pytest.importorskip("reproduced_table")

BAYES = "naive Bayes, Gaussian or Bernoulli as the feature is"
BOOSTERS = ("OzaBoost", "OGBoost", "OSBoost")


@pytest.fixture(scope="module")
def means() -> Any:
    return reproduced_table.figures(None)


def test_sag_with_its_best_step_is_below_gamma_rate_in_three_of_four_blocks(means: Any) -> None:
    blocks = [block for of in ("Table 1", "Table 2") for block in means[of].values()]
    assert [block["SAG, best step"] < block["GammaRate"] for block in blocks].count(True) == 3
    assert all(block["SAG"] > block["GammaRate"] for block in blocks)


def test_gamma_rate_is_below_voting_and_joint_gaussian_has_the_lowest_mean(means: Any) -> None:
    blocks = [means[f"Table {k}"]["averaged Perceptrons"] for k in (1, 3)]
    blocks += [means[f"Table {k}"][BAYES] for k in (2, 4)] + [means["Table 6"]]
    for block in blocks:
        assert block["GammaRate"] < block["Voting"]
        others = ("Voting", "SGD", "SAG", "SAG, best step", "GammaRate")
        assert block["JointGaussian"] < min(block[name] for name in others if name in block)


def test_boosting(means: Any) -> None:
    plain, averaged = means["Table 3"]["plain Perceptrons"], means["Table 3"]["averaged Perceptrons"]
    gaussian, bayes = means["Table 4"]["Gaussian naive Bayes"], means["Table 4"][BAYES]
    for block in (plain, gaussian):
        assert all(block[name] < block["GammaRate"] for name in BOOSTERS)
    assert [plain[name] < plain["JointGaussian"] for name in BOOSTERS] == [True, False, True]
    assert all(averaged["GammaRate"] < averaged[name] for name in BOOSTERS)
    assert averaged["single"] < averaged["GammaRate"]
    assert bayes["OSBoost"] < bayes["JointGaussian"] < bayes["GammaRate"] < min(bayes["OzaBoost"], bayes["OGBoost"])


def test_learned_weights_reach_more_cells_than_members_alone(means: Any) -> None:
    alone = means["reached"]["ours, uniform voting"]
    assert alone == means["reached"]["ours, a single classifier"]
    assert means["reached"]["ours, GammaRate (11)"] == alone + 2
    assert means["reached"]["ours, JointGaussian"] == alone + 10


def test_sets_below_a_single_classifier() -> None:
    below = reproduced_table.table("What the tables say", "Sets on which a method's error is below")
    kinds = (
        ("plain Perceptrons, the paper's", "Gaussian naive Bayes, the paper's"),
        ("averaged Perceptrons, ours", "naive Bayes, ours"),
    )
    counts = {
        name: [
            sum(
                int(reproduced_table.number(below[f"table {k}: {kind}"][name]))
                for k, kind in zip((3, 4), pair, strict=True)
            )
            for pair in kinds
        ]
        for name in ("GammaRate", "JointGaussian")
    }
    assert counts == {"GammaRate": [13, 12], "JointGaussian": [19, 19]}
