"""Scores shared out over the features: against sums, against plain loops, and against what each kind means."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from bayesvote import (
    Ensemble,
    FernBank,
    Frozen,
    JointGaussian,
    LinearBank,
    NaiveBayesBank,
    PerceptronBank,
    TreeBank,
    Union,
)
from bayesvote.core.checks import Array, Labels
from bayesvote.core.rows import as_rows
from bayesvote.members import Bank
from bayesvote.members.attribution import Attribution, Explanation

BANKS: dict[str, Any] = {
    "perceptron": lambda: PerceptronBank(6),
    "averaged": lambda: PerceptronBank(6, averaged=True),
    "linear": lambda: LinearBank(6, max_features=0.5),
    "naive_bayes": lambda: NaiveBayesBank(6),
    "fern": lambda: FernBank(6, depth=4),
    "tree": lambda: TreeBank(4, recent=[(64, 2, 32)], refined=[1.0, 10.0]),
    "union": lambda: Union([LinearBank(3), FernBank(2, depth=3), TreeBank(2, recent=[], refined=[3.0])]),
    "frozen": lambda: Frozen(NaiveBayesBank(6)),
}


def stream(n_classes: int, missing: float = 0.0, n: int = 500, d: int = 6) -> tuple[Array, Labels]:
    rng = np.random.default_rng(n_classes)
    X = rng.normal(size=(n, d))
    X[:, 3] = X[:, 3] > 0
    y = (X[:, 0] * X[:, 1] > 0).astype(np.intp) + (n_classes > 2) * (X[:, 2] > 0.5)
    X[rng.random(X.shape) < missing] = np.nan
    return X, y


def taught(name: str, n_classes: int, missing: float = 0.0) -> tuple[Bank[Any], Array]:
    X, y = stream(n_classes, missing)
    bank: Bank[Any] = BANKS[name]().start(X.shape[1], n_classes, rng=1)
    inner = bank.parts[0] if name == "frozen" else bank
    inner.scores_then_learn(X, y)
    return bank, X


def drawn(bank: Bank[Any], X: Array) -> tuple[Array, Array, Attribution]:
    rng, rows = np.random.default_rng(3), as_rows("test", X)
    scores = bank.score(rows)
    coefficients = np.where(np.isnan(scores), 0.0, rng.normal(size=scores.shape))
    return scores, coefficients, bank.attributions(rows, coefficients, rng.random(scores.shape[:2]))


@pytest.mark.parametrize("missing", [0.0, 0.05])
@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("name", BANKS)
def test_parts_and_start_add_up_to_the_scores(name: str, n_classes: int, missing: float) -> None:
    bank, X = taught(name, n_classes if n_classes == 2 else 3, missing)
    scores, coefficients, found = drawn(bank, X[:60])
    total = np.nansum((coefficients * scores).reshape(60, -1), axis=1)
    np.testing.assert_allclose(found.parts.sum(axis=1) + found.start, total, rtol=1e-6, atol=1e-5)
    assert found.parts.shape == found.looked.shape == (60, 6)


@pytest.mark.parametrize("name", BANKS)
def test_rows_are_told_of_one_by_one_and_sparse_as_together(name: str) -> None:
    from scipy.sparse import csr_array

    bank, X = taught(name, 3)
    rows = as_rows("test", X[:20])
    rng = np.random.default_rng(0)
    coefficients, shares = rng.normal(size=(20, bank.n_members, 3)), rng.random((20, bank.n_members))
    whole = bank.attributions(rows, coefficients, shares)
    sparse = bank.attributions(as_rows("test", csr_array(X[:20])), coefficients, shares)
    for t in range(20):
        one = slice(t, t + 1)
        alone = bank.attributions(rows.part(t, t + 1), coefficients[one], shares[one])
        for mine, other, third in zip(whole, alone, sparse, strict=True):
            np.testing.assert_allclose(mine[one], other, rtol=1e-9, atol=1e-12)
            np.testing.assert_allclose(mine, third, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", ["perceptron", "averaged", "linear", "naive_bayes"])
def test_exact_parts_are_what_a_member_gains_by_a_feature(name: str) -> None:
    """A score is a sum over the features: changing one value changes its part, and no other."""
    bank, X = taught(name, 2)
    x = X[:1].copy()
    other = x.copy()
    other[0, 1] += 0.7
    for i in range(bank.n_members):
        one = np.eye(bank.n_members)[i][None]
        before, after = (bank.attributions(as_rows("test", row), one, one) for row in (x, other))
        gain = (bank.scores(other) - bank.scores(x))[0, i]
        np.testing.assert_allclose((after.parts - before.parts)[0], np.eye(6)[1] * gain, rtol=1e-9, atol=1e-9)
        assert (before.looked[0, 1] == 1) == (gain != 0 or before.parts[0, 1] != 0)
        assert set(before.looked[0]) <= {0.0, 1.0}


def fern_by_hand(bank: FernBank, x: Array, i: int) -> Array:
    """Parts of one fern, by filtering the patterns question by question."""
    state = bank.state
    assert state is not None
    feature_of = {int(slot): j for j, slot in enumerate(state.slot_of) if slot >= 0}
    patterns = np.arange(2**bank.depth)

    def said() -> float:
        n = state.counts[i, patterns].sum(axis=0) + bank.smoothing
        return float(np.log(n[1] / n[0]) / 2)

    parts = np.zeros(len(x))
    for q in range(bank.depth):
        before, j = said(), feature_of[int(state.slots[i, q])]
        patterns = patterns[((patterns >> q) & 1) == int(x[j] <= state.thresholds[i, q])]
        parts[j] += said() - before
    return parts


def test_ferns_answer_question_by_question() -> None:
    bank, X = taught("fern", 2)
    assert isinstance(bank, FernBank)
    for t in range(20):
        for i in range(bank.n_members):
            one = np.eye(bank.n_members)[i][None]
            found = bank.attributions(as_rows("test", X[t : t + 1]), one, one)
            np.testing.assert_allclose(found.parts[0], fern_by_hand(bank, X[t], i), rtol=1e-9, atol=1e-12)


def tree_by_hand(state: Any, x: NDArray[np.float32], i: int) -> tuple[Array, set[int]]:
    """Parts of one tree, and the features it asked, by going down its nodes; two classes."""
    root = int(state.sizes[:i].sum())
    feature_of = {int(column): j for j, column in enumerate(state.column_of) if column >= 0}
    prior, at, parts, asked = np.array([0.5, 0.5]), root, np.zeros(len(x)), set()

    def shares(node: int) -> Array:
        last = int(state.count_sizes[: node + 1].sum())
        of_node = slice(last - int(state.count_sizes[node]), last)
        found = 0.3 * prior + (state.root_counts[i] if node == root else 0.0)
        found[state.count_labels[of_node]] += state.counts[of_node]
        return np.asarray(found / found.sum())

    while state.columns[at] >= 0:
        j = feature_of[int(state.columns[at])]
        before = shares(at)
        side = state.missing[at] if np.isnan(x[j]) else x[j] > state.thresholds[at]
        at, prior = root + state.lefts[at] + int(side), before
        after = shares(at)
        parts[j] += (np.log(after[1] / after[0]) - np.log(before[1] / before[0])) / 2
        asked.add(j)
    return parts, asked


@pytest.mark.parametrize("missing", [0.0, 0.1])
def test_trees_change_their_mind_where_they_ask(missing: float) -> None:
    bank, X = taught("tree", 2, missing)
    for t in range(20):
        for i in range(6):
            one = np.eye(bank.n_members)[i][None]
            found = bank.attributions(as_rows("test", X[t : t + 1]), one, one)
            parts, asked = tree_by_hand(bank.state, X[t].astype(np.float32), i)
            np.testing.assert_allclose(found.parts[0], parts, rtol=1e-5, atol=1e-6)
            assert set(np.flatnonzero(found.looked[0])) == asked


def test_refined_members_look_where_a_tree_asks() -> None:
    bank, X = taught("tree", 2)
    n = bank.n_members
    one = np.eye(n)[-1][None]
    for t in range(20):
        found = bank.attributions(as_rows("test", X[t : t + 1]), one, one)
        asked = set.union(*(tree_by_hand(bank.state, X[t].astype(np.float32), i)[1] for i in range(6)))
        assert set(np.flatnonzero(found.looked[0])) == asked
        assert set(np.flatnonzero(found.parts[0])) <= asked


def test_a_feature_that_nobody_needs_moves_nothing() -> None:
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=400), np.zeros(400)])
    y = (X[:, 0] > 0).astype(np.intp)
    trees = TreeBank(4, recent=[], refined=[1.0])
    bank = Union([PerceptronBank(4, max_features=None), FernBank(4, depth=3), trees])
    model = Ensemble(bank, JointGaussian()).start(2, rng=0)
    model.decide_then_learn(X, y)
    found = model.explain(X[:50])
    assert not found.parts[:, 1].any()
    assert np.abs(found.parts[:, 0]).min() > 0


@pytest.mark.parametrize("n_classes", [2, 3])
def test_contributions_are_shared_out_member_by_member(n_classes: int) -> None:
    """The parts of an ensemble are the sums of those of its members, each explained alone."""
    X, y = stream(n_classes)
    bank = Union([LinearBank(6, max_features=0.5), FernBank(6, depth=4)])
    model = Ensemble(bank, JointGaussian()).start(6, n_classes, rng=0)
    model.decide_then_learn(X, y)
    found = model.explain(X[:30])
    added, scores, rows = model.contributions(X[:30]), model.bank.scores(X[:30]), as_rows("test", X[:30])
    np.testing.assert_allclose(found.lead, added.sum(axis=1), rtol=1e-12)
    expected, start = np.zeros((30, 6)), np.zeros(30)
    for t in range(30):
        a, b = found.decision[t], found.runner_up[t]
        for i in range(12):
            score = scores[t, i] if n_classes == 2 else scores[t, i, a] - scores[t, i, b]
            one = np.zeros((1, *scores.shape[1:]))
            if n_classes == 2:
                one[0, i] = 1.0
            else:
                one[0, i, [a, b]] = 1.0, -1.0
            alone = model.bank.attributions(rows.part(t, t + 1), one, np.ones((1, 12)))
            expected[t] += added[t, i] / score * alone.parts[0] if score else 0.0
            start[t] += added[t, i] / score * alone.start[0] if score else 0.0
    np.testing.assert_allclose(found.parts, expected, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(found.start, start, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(found.remainder, 0, atol=1e-9)


def test_what_is_not_told_remains() -> None:
    found = Explanation(
        np.array([0]), np.array([1]), np.array([1.0]), np.array([[0.25, -0.5]]), np.array([0.5]), np.zeros((1, 2))
    )
    assert found.remainder.tolist() == [0.75]
    assert found._replace(lead=np.array([0.25 + 1e-9])).remainder.tolist() == [0.0]


@pytest.mark.parametrize("name", BANKS)
def test_kept_rows_are_those_of_the_stream(name: str) -> None:
    bank, X = taught(name, 2)
    kept = bank.kept_rows()
    if name in ("fern", "tree", "union"):
        assert kept is not None
        assert 64 <= len(kept) <= 500
        np.testing.assert_allclose(kept, X[: len(kept)] if name == "fern" else X[-len(kept) :], rtol=1e-6)
    else:
        assert kept is None
