"""The synthetic streams against loops written from their papers' definitions."""

import pickle
from itertools import islice
from typing import Any

import numpy as np
import pytest
from numpy.random import SeedSequence

from bayesvote import BayesianEnsembleClassifier, prequential
from bayesvote.core.checks import Array, InputError, Labels
from bayesvote.datasets import SYNTHETIC, synthetic_stream
from bayesvote.datasets.generators import LED, SEA, Agrawal, Applicants, ConceptDrift, Hyperplane, RandomRBF, bounced
from oracles.streams import Nested, applicant_group, segments, wandering

SEED = SeedSequence(5)
MAKERS: dict[str, Any] = {
    "Agrawal": lambda: Agrawal(SEED, 4),
    "SEA": lambda: SEA(SEED, 2),
    "LED": lambda: LED(SEED, 3),
    "RandomRBF": lambda: RandomRBF(SeedSequence(5), 0.01),  # spawning changes a SeedSequence
    "Hyperplane": lambda: Hyperplane(SEED),
    "ConceptDrift": lambda: ConceptDrift(SeedSequence(5), [SEA(SeedSequence(k), k + 1) for k in range(3)], 20, 10),
}


def whole(name: str, n_rows: int, **options: Any) -> tuple[Array, Labels]:
    chunks = list(synthetic_stream(name, n_rows, **options))
    return np.concatenate([X for X, _ in chunks]), np.concatenate([y for _, y in chunks])


def near(share: float, expected: float, n: int) -> bool:
    """Within five standard deviations of a share of n independent rows."""
    return bool(abs(share - expected) < 5 * np.sqrt(expected * (1 - expected) / n))


@pytest.mark.parametrize("name", SYNTHETIC)
def test_rows(name: str) -> None:
    kind = SYNTHETIC[name]
    X, y = whole(name, 10_000, seed=1)
    assert X.shape == (10_000, kind.n_features)
    assert X.dtype == np.float64
    assert np.isfinite(X).all()
    assert y.dtype == np.intp
    assert set(y.tolist()) == set(kind.classes.tolist())


@pytest.mark.parametrize("name", SYNTHETIC)
def test_the_chunk_size_does_not_change_the_rows(name: str) -> None:
    X, y = whole(name, 9_000)
    for size in (1, 700, 4096, 5_000, 8_192, 20_000):
        n = 9_000 if size > 1 else 30
        chunks = list(islice(synthetic_stream(name, 9_000, chunk_size=size), n if size == 1 else None))
        assert {len(rows) for rows, _ in chunks[:-1]} <= {size}
        assert 0 < len(chunks[-1][0]) <= size
        np.testing.assert_array_equal(np.concatenate([rows for rows, _ in chunks]), X[:n])
        np.testing.assert_array_equal(np.concatenate([labels for _, labels in chunks]), y[:n])


@pytest.mark.parametrize("name", MAKERS)
def test_the_block_size_does_not_change_the_rows(name: str) -> None:
    X, y = MAKERS[name]().rows(60)
    generator, found = MAKERS[name](), []
    for n in (1, 1, 20, 7, 31):
        found.append(generator.rows(n))
    np.testing.assert_array_equal(np.concatenate([rows for rows, _ in found]), X)
    np.testing.assert_array_equal(np.concatenate([labels for _, labels in found]), y)


@pytest.mark.parametrize("name", SYNTHETIC)
def test_seeds(name: str) -> None:
    X, y = whole(name, 500, seed=3)
    again, other = whole(name, 500, seed=3), whole(name, 500, seed=4)
    np.testing.assert_array_equal(X, again[0])
    np.testing.assert_array_equal(y, again[1])
    assert not np.array_equal(X, other[0])
    assert not np.array_equal(y, other[1])


def test_concepts_have_random_numbers_of_their_own() -> None:
    X, _ = whole("SEA_a", 70_000)
    assert len(np.unique(X, axis=0)) == 70_000


def test_streams_are_lazy_and_endless_ones_cost_nothing() -> None:
    X, y = next(synthetic_stream("AGR_a", 10**12, chunk_size=10))
    assert len(X) == len(y) == 10


def test_chunks_do_not_share_memory() -> None:
    (first, _), (second, _) = islice(synthetic_stream("LED_a", 100, chunk_size=10), 2)
    kept = second.copy()
    first[:] = -1
    np.testing.assert_array_equal(second, kept)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"name": "AGR"}, r"synthetic_stream: name must be one of .*, got 'AGR'. Did you mean 'AGR_\w'\?"),
        ({"name": "sea_a"}, "got 'sea_a'"),
        ({"n_rows": 6}, "n_rows must be an integer of at least 7, got 6"),
        ({"n_rows": 1e6}, "n_rows must be an integer"),
        ({"chunk_size": 0}, "chunk_size must be an integer of at least 1, got 0"),
        ({"seed": -1}, "seed must be an integer of at least 0, got -1"),
    ],
)
def test_invalid_arguments_fail_at_the_call(options: dict[str, Any], error: str) -> None:
    with pytest.raises(InputError, match=error):
        synthetic_stream(**{"name": "SEA_a"} | options)


def test_settings_are_those_published() -> None:
    lengths = {name: kind.length(1_000_000) for name, kind in SYNTHETIC.items()}
    widths = {name: kind.width(1_000_000) for name, kind in SYNTHETIC.items() if len(kind.concepts) > 1}
    assert lengths == {
        **dict.fromkeys(("LED_a", "LED_g", "SEA_a", "SEA_g"), 142_857),
        **dict.fromkeys(("AGR_a", "AGR_g"), 100_000),
        **dict.fromkeys(("RBF_m", "RBF_f", "HYPER"), 1_000_000),
    }
    assert widths == {"LED_a": 50, "SEA_a": 50, "AGR_a": 50, "LED_g": 28_571, "SEA_g": 28_571, "AGR_g": 20_000}
    assert SYNTHETIC["SEA_g"].width(10_000_000) == 50_000
    settings = {
        name: [next(iter(make.keywords.values())) for make in kind.concepts]  # type: ignore[attr-defined]
        for name, kind in SYNTHETIC.items()
        if name != "HYPER"
    }
    up = list(range(1, 11))
    assert settings["AGR_a"] == up
    assert settings["AGR_g"] == up[::-1]
    assert settings["SEA_a"] == settings["SEA_g"] == [1, 2, 3, 4, 3, 2, 1]
    assert settings["LED_a"] == settings["LED_g"] == [7, 5, 3, 1, 3, 5, 7]
    assert (settings["RBF_m"], settings["RBF_f"]) == ([0.0001], [0.001])


@pytest.mark.parametrize("function", range(1, 11))
def test_agrawal_functions(function: int) -> None:
    X, y = Agrawal(SEED, function, noise=0).rows(3_000)
    assert [applicant_group(row, function) for row in X.tolist()] == ["AB"[label] for label in y]
    assert len(set(y.tolist())) == 2


def test_agrawal_values() -> None:
    n = 20_000
    people = Applicants(*Agrawal(SEED, 1, noise=0).rows(n)[0].T)
    salary, commission = people.salary, people.commission
    assert ((salary >= 20_000) & (salary < 150_000)).all()
    assert ((commission == 0) == (salary >= 75_000)).all()
    paid = commission[commission > 0]
    assert ((paid >= 10_000) & (paid < 75_000)).all()
    whole_numbers = {"age": (20, 80), "education": (0, 4), "car": (0, 19), "zip_code": (0, 8), "years": (1, 30)}
    for name, (low, high) in whole_numbers.items():
        values, counts = np.unique(getattr(people, name), return_counts=True)
        assert values.tolist() == list(range(low, high + 1))
        assert all(near(count / n, 1 / len(values), n) for count in counts)
    part = people.house / ((9 - people.zip_code) * 100_000)
    assert ((part >= 0.5) & (part < 1.5)).all()
    assert near(float((people.loan < 125_000).mean()), 0.25, n)
    assert people.loan.max() < 500_000


def test_agrawal_noise_moves_values_but_no_labels() -> None:
    (before, y), (after, same) = (Agrawal(SEED, 1, noise=noise).rows(20_000) for noise in (0, 0.05))
    np.testing.assert_array_equal(y, same)
    old, new = Applicants(*before.T), Applicants(*after.T)
    for name in ("education", "car", "zip_code"):
        np.testing.assert_array_equal(getattr(old, name), getattr(new, name))
    ranges = {"salary": (20_000, 150_000), "age": (20, 80), "years": (1, 30), "loan": (0, 500_000)}
    # By how much a uniform move, and for whole numbers its rounded value, differs from 0 on average.
    expected = {"salary": 0.025 * 130_000, "age": 1.5, "years": (1.45 - 0.5) / 1.45, "loan": 0.025 * 500_000}
    for name, (low, high) in ranges.items():
        a, b = getattr(old, name), getattr(new, name)
        by = np.abs(a - b)
        inside = (b > low) & (b < high)
        assert by.max() <= 0.05 * (high - low) + (0.5 if name in ("age", "years") else 0)
        assert b.min() >= low
        assert b.max() <= high
        assert by[inside].mean() == pytest.approx(expected[name], rel=0.05)
    assert ((new.commission == 0) == (old.commission == 0)).all()
    assert np.abs(new.commission - old.commission).max() <= 0.05 * 65_000
    assert (new.age == np.round(new.age)).all()
    assert (new.years == np.round(new.years)).all()
    assert new.house.max() == 135_000
    moved = new.house < 135_000
    assert (np.abs(new.house - old.house)[moved] <= 0.05 * ((9 - old.zip_code) * 100_000)[moved]).all()


@pytest.mark.parametrize(("function", "threshold"), [(1, 8), (2, 9), (3, 7), (4, 9.5)])
def test_sea(function: int, threshold: float) -> None:
    n = 20_000
    X, y = SEA(SEED, function, noise=0).rows(n)
    assert [int(a + b > threshold) for a, b, _ in X.tolist()] == y.tolist()
    assert ((X >= 0) & (X < 10)).all()
    assert all(near(share, 0.3, n) for share in (X < 3).mean(axis=0))
    same, noisy = SEA(SEED, function).rows(n)
    np.testing.assert_array_equal(same, X)
    assert near(float((noisy != y).mean()), 0.1, n)


@pytest.mark.parametrize("swapped", [0, 1, 3, 5, 7])
def test_led(swapped: int) -> None:
    n = 20_000
    X, y = LED(SEED, swapped).rows(n)
    assert set(np.unique(X).tolist()) == {0.0, 1.0}
    assert all(near(float((y == digit).mean()), 0.1, n) for digit in range(10))
    places = [7 + k if k < swapped else k for k in range(7)]
    lit = np.array([segments(digit) for digit in y])
    assert all(near(share, 0.1, n) for share in (X[:, places] != lit).mean(axis=0))
    others = [k for k in range(24) if k not in places]
    assert all(near(share, 0.5, n) for share in X[:, others].mean(axis=0))
    exact, labels = LED(SEED, swapped, noise=0).rows(500)
    np.testing.assert_array_equal(exact[:, places], [segments(digit) for digit in labels])


def test_centroids_turn_back_at_the_walls() -> None:
    rng = np.random.default_rng(0)
    start, step = rng.random(40), np.concatenate((rng.random(37) / 30, [0.3, 0.0, 0.9]))
    expected = wandering(start, step, 1_000)
    found = bounced(start, step, np.arange(1.0, 1_001)[:, None])
    np.testing.assert_allclose(found, expected, atol=1e-9)
    assert ((np.sign(np.diff(expected[:, :37], axis=0)) != 0).any(axis=0)).all()


def test_rbf_rows_lie_around_their_centroids() -> None:
    n = 20_000
    generator = RandomRBF(SEED, 0.001, n_centroids=1)
    start, step = generator._start[0], generator._step[0]
    assert (step >= 0).all()
    assert np.linalg.norm(step) == pytest.approx(0.001)
    X, y = generator.rows(n)
    off = X - wandering(start, step, n)
    assert len(set(y.tolist())) == 1
    length = np.linalg.norm(off, axis=1) / generator._spread[0]
    for limit, share in ((0.5, 0.38292), (1, 0.68269), (2, 0.95450)):  # of a standard normal, without its sign
        assert near(float((length < limit).mean()), share, n)
    assert all(near(share, 0.5, n) for share in (off > 0).mean(axis=0))


def test_rbf_chooses_centroids_by_weight() -> None:
    n = 20_000
    generator = RandomRBF(SeedSequence(8), 0.001)
    shares = np.diff(generator._shares, prepend=0) / generator._shares[-1]
    _, y = generator.rows(n)
    for label in range(5):
        assert near(float((y == label).mean()), float(shares[generator._labels == label].sum()), n)


def test_hyperplane() -> None:
    n = 3_000
    X, y = Hyperplane(SEED, noise=0).rows(n)
    rng = np.random.default_rng(SEED)
    weights, direction, reversals = rng.random(10), np.ones(10), 0
    for row, label in zip(X, y, strict=True):
        drawn = rng.random(21)
        np.testing.assert_array_equal(row, drawn[:10])
        assert label == (sum(weights * row) >= 0.5 * sum(weights))
        weights = weights + 0.001 * direction
        for j in range(10):
            if drawn[11 + j] < 0.1:
                direction[j] *= -1
                reversals += 1
    assert near(reversals / (10 * n), 0.1, 10 * n)
    same, noisy = Hyperplane(SEED).rows(n)
    np.testing.assert_array_equal(same, X)
    assert near(float((noisy != y).mean()), 0.05, n)


@pytest.mark.parametrize(("n_concepts", "length", "width"), [(4, 300, 20), (4, 300, 60), (7, 100, 200), (2, 1_000, 1)])
def test_changes_are_those_of_nested_streams(n_concepts: int, length: int, width: int) -> None:
    n = n_concepts * length
    drift = ConceptDrift(SeedSequence(2), [SEA(SEED, 1) for _ in range(n_concepts)], length, width)
    draws = [np.random.default_rng(one) for one in SeedSequence(2).spawn(n_concepts - 1)]
    nested = Nested(draws, length, width)
    np.testing.assert_array_equal(drift.concepts(n), [nested.next() for _ in range(n)])


@pytest.mark.parametrize(("name", "nearest"), [("AGR_a", 200), ("AGR_g", 20_000)])
def test_positions_of_changes(name: str, nearest: int) -> None:
    source: Any = SYNTHETIC[name].start(1_000_000, seed=0)
    which = source.concepts(1_000_000)
    for k in range(1, 10):
        place = k * 100_000
        assert (which[place - 100_000 + nearest : place - nearest] == k - 1).mean() > 0.95
        assert abs(int((which < k).sum()) - place) < 500  # as many rows come too early as too late
        if nearest > 1_000:  # a sigmoid of slope 1 / width at the centre
            for off, share in ((-5_000, 0.26894), (0, 0.5), (5_000, 0.73106)):
                window = which[place + off - 500 : place + off + 500]
                assert abs((window == k).mean() - share) < 0.1


def test_rows_of_a_concept_follow_its_rule() -> None:
    source: Any = SYNTHETIC["AGR_a"].start(20_000, seed=1)
    source._concepts = [Agrawal(SeedSequence(k), k + 1, noise=0) for k in range(10)]
    which = pickle.loads(pickle.dumps(source)).concepts(20_000)
    X, y = source.rows(20_000)
    for k in range(10):
        rows = which == k
        assert [applicant_group(row, k + 1) for row in X[rows].tolist()] == ["AB"[label] for label in y[rows]]


def test_prequential_reads_the_stream() -> None:
    found = []
    for size in (333, 4096):
        model = BayesianEnsembleClassifier(members="fast", n_members=5, random_state=0)
        rows = synthetic_stream("LED_g", 1_000, chunk_size=size)
        found.append(prequential(model, rows, classes=SYNTHETIC["LED_g"].classes).predictions)
    np.testing.assert_array_equal(found[0], found[1])
