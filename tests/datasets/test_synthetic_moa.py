"""The generators of synthetic streams against MOA's own rows; see benchmarks/moa_streams.py for 100,000 rows."""

import shutil
from importlib.util import find_spec

import numpy as np
import pytest

moa_streams = pytest.importorskip("moa_streams")

ROWS = 5_000
FAR = 2.7  # a Kolmogorov-Smirnov distance, times sqrt(n / 2), has a chance of 1e-6 to be larger
STANDARD_ERRORS = 5

needs_moa = pytest.mark.skipif(
    find_spec("capymoa") is None or shutil.which("java") is None,
    reason="needs Java and CapyMOA: pip install 'bayesvote[capymoa]'",
)


@needs_moa
@pytest.mark.parametrize("name", moa_streams.GENERATORS)
def test_rows_have_the_distribution_of_moa(name: str) -> None:
    found = moa_streams.GENERATORS[name](ROWS)
    n = ROWS // moa_streams.RBF_PARTS if name.startswith("RBF") else ROWS
    error = np.sqrt(2 / n)
    assert found["distance of features"] < FAR * error
    assert found["difference of means"] < STANDARD_ERRORS * error
    assert found["difference of class shares"] < STANDARD_ERRORS * 0.5 * error
    tested = n // 40 if name == "HYPER" else n // 2
    for rows in ("MOA's", "our"):
        assert abs(found[f"accuracy on {rows} rows"]) < STANDARD_ERRORS * np.sqrt(0.5 / tested)
    assert found.get("rows of the loop", 1) == 1
    assert found.get("z of windows", 0) < 6  # thousands of means
    noise = {"AGR": 0.0, "SEA": 0.1, "LED": 0.1, "HYPER": 0.05}.get(name)
    if noise is not None:
        for whose in ("MOA", "ours"):
            assert abs(found[f"off the rule, {whose}"] - noise) <= STANDARD_ERRORS * np.sqrt(noise / n)


def test_the_random_numbers_of_java() -> None:
    rng = moa_streams.JavaRandom(42)  # new java.util.Random(42): nextInt(10), nextInt(10), ...
    assert [rng.below(10) for _ in range(8)] == [0, 3, 8, 4, 0, 5, 5, 8]
    assert moa_streams.JavaRandom(42).double() == 0.7275636800328681
    assert moa_streams.JavaRandom(42).normal() == pytest.approx(1.1419053154730547)
