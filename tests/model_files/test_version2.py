"""Model files of version 0.2.0.dev0 load, predict what they predicted, and continue learning as they did.

With more than two classes, trees of that version had one AdaGrad sum for each class. Now the classes share one, so
their models predict the same, but learn further rows slightly differently.

``expected.json`` has the probabilities that version 0.2.0.dev0 gave for the rows of the functions below: of ten rows
before further learning, of 40 further rows before each of them was learned, and of the ten rows after that.
"""

import gzip
import json
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bayesvote.core.checks import Array
from bayesvote.io.model_file import dumps, loads

FOLDER = Path(__file__).parent / "version2"
EXPECTED: dict[str, Any] = json.loads((FOLDER / "expected.json").read_text())


def numbers(n: int, n_classes: int, seed: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4)).round(3)
    y = np.clip(np.round(X[:, 0] + 0.5 * X[:, 1] + n_classes / 2 - 0.5), 0, n_classes - 1).astype(int)
    X[rng.random(X.shape) < 0.05] = np.nan
    return X, np.array(["a", "b", "c"])[y]


def table(n: int, seed: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    mass = rng.normal(size=n).round(3)
    island = rng.integers(3, size=n)
    day = rng.integers(400, size=n)
    y = np.where(mass + island > 1, "yes", "no")
    gap = rng.random(n) < 0.1
    X = {
        "mass": [None if missing else value for missing, value in zip(gap.tolist(), mass.tolist(), strict=True)],
        "island": [["Dream", "Torgersen", None][k] for k in island],
        "tame": [bool(k) for k in rng.integers(2, size=n)],
        "seen": [(date(2024, 1, 1) + timedelta(days=int(k))).isoformat() for k in day],
    }
    return X, y


def dictionaries(n: int, seed: int) -> tuple[Any, Any]:
    X, y = table(n, seed)
    rows = [{"mass": X["mass"][t], "island": X["island"][t] or "none", "tame": X["tame"][t]} for t in range(n)]
    return rows, y.tolist()


def rows_for(name: str, n: int, seed: int) -> tuple[Any, Any]:
    """Return the rows and labels that a model was given."""
    if EXPECTED[name]["rows"] == "numbers":
        return numbers(n, len(EXPECTED[name]["classes"]), seed)
    return {"table": table, "dictionaries": dictionaries}[EXPECTED[name]["rows"]](n, seed)


def read(name: str) -> bytes:
    return gzip.decompress((FOLDER / f"{name}.safetensors.gz").read_bytes())


def predicted(model: Any, X: Any) -> Array:
    if not isinstance(X, list):
        return np.asarray(model.predict_proba(X))
    found = [model.predict_proba_one(x) for x in X]
    return np.array([[each[label] for label in ("no", "yes")] for each in found])


def predicted_then_learned(model: Any, X: Any, y: Any) -> Array:
    if not isinstance(X, list):
        return np.asarray(model.predict_proba_then_learn(X, y))
    found = []
    for x, label in zip(X, y, strict=True):
        found.append(predicted(model, [x]))
        model.learn_one(x, label)
    return np.concatenate(found)


@pytest.mark.parametrize("name", EXPECTED)
@pytest.mark.parametrize("resaved", [False, True])
def test_a_model_of_version_0_2_predicts_and_learns_as_it_did(name: str, resaved: bool) -> None:
    if name == "river":
        pytest.importorskip("river")
    model: Any = loads(read(name))
    if resaved:
        model = loads(dumps(model))
    expected, (Z, _) = EXPECTED[name], rows_for(name, 10, 2)
    np.testing.assert_allclose(predicted(model, Z), expected["before"], rtol=1e-12, atol=0)
    later = predicted_then_learned(model, *rows_for(name, 40, 3))
    rtol, atol = (1e-9, 0.0) if len(expected["classes"]) == 2 else (0.0, 0.02)
    np.testing.assert_allclose(later, expected["then_learn"], rtol=rtol, atol=atol)
    np.testing.assert_allclose(predicted(model, Z), expected["after"], rtol=rtol, atol=atol)
