"""Files of version 1, written by bayesvote 0.1, load and go on as they did then."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB

from bayesvote import Ensemble, NumericalPosterior, PerceptronBank
from bayesvote.io.model_file import ModelFileError, dumps, load, loads
from model_files.samples import D, described, rate_loss, rate_prior, rows

FOLDER = Path(__file__).parent / "version1"
EXPECTED: dict[str, Any] = json.loads((FOLDER / "expected.json").read_text())


def objects_of(name: str) -> dict[str, Any]:
    """What the file does not hold, made as it was then."""
    if name == "numerical":
        return {"weighter": NumericalPosterior(rate_loss, rate_prior)}
    if name != "foreign":
        return {}
    X, y = rows(80)
    X = np.nan_to_num(X)
    both = [GaussianNB().fit(X[:40], y[:40]), (GaussianNB().fit(X[:40, :2], y[:40]), [0, 1])]
    return {"bank.bank.estimators": both}


# Naive Bayes abstained on a row with a missing value then; now it leaves the value out.
WITH_NAIVE_BAYES = {
    *(f"bank-{kind}-{n_classes}" for kind in ("naive_bayes", "kinds", "mixed", "nested") for n_classes in (2, 3)),
    "estimator-default",
}


@pytest.mark.parametrize("name", EXPECTED)
def test_a_model_of_version_1_goes_on_as_it_did(name: str) -> None:
    objects = objects_of(name)
    model = load(FOLDER / f"{name}.safetensors", objects=objects)
    model = loads(dumps(model), objects=objects)  # and through the present version
    later, last = EXPECTED[name]["then_learn"], EXPECTED[name]["decide"]
    X, y = rows(40, len(later[0]), seed=1)
    if name in WITH_NAIVE_BAYES:
        complete = int(np.argmax(np.isnan(X).any(axis=1)))
        assert complete > 0
        X, y, later, last = X[:complete], y[:complete], later[:complete], None
    if hasattr(model, "predict_proba_then_learn"):
        found, decide = model.predict_proba_then_learn(X, np.array(["no", "yes"])[y]), model.predict_proba
    else:
        found, decide = model.decide_then_learn(X, y), model.decide
    assert found == pytest.approx(np.array(later), rel=1e-9, nan_ok=True)
    if last is not None:
        assert decide(rows(5, seed=2)[0]) == pytest.approx(np.array(last), rel=1e-9, nan_ok=True)


def test_a_model_of_version_1_that_was_not_started() -> None:
    assert load(FOLDER / "not-started.safetensors") == Ensemble(PerceptronBank(3))
    assert load(FOLDER / "not-started.safetensors").start(D).shape == (D, 2)


@pytest.mark.parametrize("name", ["bank-perceptron-2", "bank-naive_bayes-2", "bank-ferns-2", "booster-convex"])
def test_a_version_of_a_state_that_is_not_known_is_refused(name: str) -> None:
    data = dumps(load(FOLDER / f"{name}.safetensors"))

    def change(node: Any) -> None:
        node["parameters"].get("bank", node)["learned"]["facts"]["version"] = 99

    with pytest.raises(ModelFileError, match="of version 99, which is not known"):
        loads(described(data, change))
