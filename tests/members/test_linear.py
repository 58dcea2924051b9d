from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

from bayesvote import LinearBank, PerceptronBank
from bayesvote.core.checks import Array, Labels
from bayesvote.core.threads import parallel_for
from oracles.members import PassiveAggressive


def make_rows(n: int, d: int, n_classes: int, seed: int, missing: float = 0.0) -> tuple[Array, Labels, Array]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = (X[:, 0] + 0.5 * rng.normal(size=n) > 0).astype(np.intp) + (X[:, 1] > 0.5) * (n_classes - 2)
    X[rng.random((n, d)) < 0.4] = 0.0
    X[rng.random((n, d)) < missing] = np.nan
    return X, np.minimum(y, n_classes - 1), rng.choice([0.0, 0.5, 1.0, 2.25], size=n)


@pytest.mark.parametrize("n_classes", [2, 3, 4])
@pytest.mark.parametrize("rule", ["passive_aggressive", "passive_aggressive_squared"])
@pytest.mark.parametrize("max_features", [None, 0.5])
def test_members_are_those_written_out(n_classes: int, rule: str, max_features: float | None) -> None:
    X, y, w = make_rows(150, 7, n_classes, seed=n_classes, missing=0.02)
    bank = LinearBank(5, max_features, aggressiveness=(0.01, 0.1, 1.0), rule=rule).start(7, n_classes, rng=0)
    assert bank.state is not None
    members = [
        PassiveAggressive(features, n_classes, c, rule.endswith("squared"))
        for features, c in zip(bank.state.features.tolist(), (0.01, 0.1, 1.0, 0.01, 0.1), strict=True)
    ]
    expected = []
    for row, label, weight in zip(X.tolist(), y.tolist(), w.tolist(), strict=True):
        expected.append([member.score(row) for member in members])
        for member in members:
            member.learn(row, label, weight)
    found = bank.scores_then_learn(X, y, w)
    np.testing.assert_allclose(
        found, np.array(expected)[:, :, 0] if n_classes == 2 else expected, rtol=1e-9, atol=1e-12
    )
    assert np.isnan(found).any()


def test_a_row_within_reach_is_scored_with_a_margin_of_one_thereafter() -> None:
    bank = LinearBank(1, aggressiveness=100.0).start(3, rng=0)
    x = [[0.5, -2.0, 1.0]]
    bank.scores_then_learn(x, [0])
    assert bank.scores(x)[0, 0] == pytest.approx(-1)
    several = LinearBank(1, aggressiveness=100.0).start(3, 4, rng=0)
    several.scores_then_learn(x, [2])
    scores = several.scores(x)[0, 0]
    assert scores == pytest.approx([-0.5, 0.0, 0.5, 0.0])  # a lead of 1 over the rival, the first of those that tied


def test_the_sample_weight_multiplies_the_aggressiveness() -> None:
    x = [[3.0, 1.0]]
    one, other = LinearBank(1, aggressiveness=0.02).start(2, rng=0), LinearBank(1, aggressiveness=0.01).start(2, rng=0)
    one.scores_then_learn(x, [1])
    other.scores_then_learn(x, [1], [2.0])
    np.testing.assert_array_equal(one.scores(x), other.scores(x))


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("sparse", [False, True])
def test_threads_and_chunks_change_nothing(n_classes: int, sparse: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """So many rows that they are shared out, against a row at a time, and against the other form."""
    X, y, w = make_rows(2500, 23, n_classes, seed=1, missing=0.001)
    given: Any = csr_array(X) if sparse else X
    whole, rows = (LinearBank(37, 0.5).start(23, n_classes, rng=0) for _ in range(2))
    shared = []

    def watched(*args: Any) -> None:
        shared.append(args)
        parallel_for(*args)

    monkeypatch.setattr("bayesvote.members.linear.parallel_for", watched)
    scores = whole.scores_then_learn(given, y, w)
    assert shared
    for t in range(len(X)):
        np.testing.assert_array_equal(rows.scores_then_learn(X[t : t + 1], y[t : t + 1], w[t : t + 1])[0], scores[t])
    assert whole.state is not None
    assert rows.state is not None
    for a, b in zip(whole.state, rows.state, strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(whole.scores(given)[:50], rows.scores(X[:50]))


def test_they_follow_a_change() -> None:
    """The label turns around. The average of a Perceptron's weights still holds what was before."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 5))
    y = np.where(np.arange(2000) < 1000, X[:, 0] > 0, X[:, 0] < 0).astype(int)
    wrong = {}
    for bank in (LinearBank(1, aggressiveness=1.0), PerceptronBank(1, max_features=None, averaged=True)):
        scores = bank.start(5, rng=0).scores_then_learn(X, y)[:, 0]
        wrong[bank.who] = (scores > 0) != y
    assert wrong["LinearBank"][1100:].mean() < 0.05
    assert wrong["PerceptronBank"][1100:].mean() > 0.3


def test_states_are_checked_and_parameters_too() -> None:
    bank = LinearBank(2, 2).start(4, rng=0)
    assert bank.state is not None
    state = bank.state
    with pytest.raises(ValueError, match="weights must be 0 for features"):
        bank.validate(state._replace(weights=np.ones((4, 2))))
    with pytest.raises(ValueError, match="must agree"):
        bank.validate(state._replace(mask=1 - state.mask))
    with pytest.raises(ValueError, match="finite"):
        bank.validate(state._replace(bias=state.bias + np.nan))
    with pytest.raises(ValueError, match="LinearBank: aggressiveness must be a finite number above 0, got 0"):
        LinearBank(aggressiveness=(0.1, 0.0))
    with pytest.raises(ValueError, match="aggressiveness must hold at least one number"):
        LinearBank(aggressiveness=())
    with pytest.raises(ValueError, match=r"rule must be one of .* Did you mean 'passive_aggressive'"):
        LinearBank(rule="pasive_aggressive")
    assert LinearBank(2).member_names() == ["PassiveAggressive"] * 2
