"""The CapyMOA adapters: evaluated and plotted beside CapyMOA's own learners."""

import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bayesvote import Ensemble, GammaRate, PerceptronBank, decided, estimators
from bayesvote.core.checks import Array
from bayesvote.core.rows import as_rows


def test_without_capymoa_the_error_says_what_to_install() -> None:
    code = "import sys; sys.modules['capymoa.base'] = None; import bayesvote.integrations.capymoa"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "pip install 'bayesvote[capymoa]'" in done.stderr.splitlines()[-1]


@pytest.fixture(scope="module")
def capymoa() -> Any:
    base = pytest.importorskip(
        "capymoa.base", reason="CapyMOA is not installed, which these tests need: pip install 'bayesvote[capymoa]'"
    )
    for name in ("classifier", "evaluation", "evaluation.visualization", "stream"):
        import_module(f"capymoa.{name}")
    return import_module(base.__package__.split(".")[0])


@pytest.fixture(scope="module")
def adapters(capymoa: Any) -> Any:  # noqa: ARG001
    return import_module("bayesvote.integrations.capymoa")


def stream(capymoa: Any, n_classes: int = 2, n: int = 600) -> tuple[Any, Array, Array]:
    X = np.random.default_rng(0).normal(size=(n, 5))
    y = X[:, :n_classes].argmax(axis=1)
    return capymoa.stream.NumpyStream(X, y, dataset_name="largest"), X, y


LEARNERS = ["BayesianEnsembleClassifier", "OzaBoostClassifier", "OGBoostClassifier", "OSBoostClassifier"]


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("name", LEARNERS)
def test_prequential_evaluation(capymoa: Any, adapters: Any, name: str, n_classes: int) -> None:
    data, X, y = stream(capymoa, n_classes)
    learner = getattr(adapters, name)(schema=data.get_schema(), n_members=30, random_seed=1)
    assert isinstance(learner, capymoa.base.Classifier)
    result = capymoa.evaluation.prequential_evaluation(data, learner, window_size=200, store_predictions=True)
    assert result.cumulative.accuracy() > 80
    assert str(learner) == result["learner"] == name
    data.restart()
    instance = data.next_instance()
    chances = learner.predict_proba(instance)
    assert chances.shape == (n_classes,)
    assert chances.sum() == pytest.approx(1.0)
    assert learner.predict(instance) == chances.argmax()
    again = type(learner).from_params(data.get_schema(), learner.get_params(), 1)
    repeated = capymoa.evaluation.prequential_evaluation(data, again, window_size=200, store_predictions=True)
    assert np.array_equal(repeated.predictions(), result.predictions())
    assert len(X) == len(y) == len(result.predictions())


def test_is_the_ensemble_itself(capymoa: Any, adapters: Any) -> None:
    data, X, y = stream(capymoa)
    learner = adapters.BayesianEnsembleClassifier(
        data.get_schema(), members="perceptron", n_members=20, weighter="gamma_rate", scale=False, random_seed=4
    )
    result = capymoa.evaluation.prequential_evaluation(data, learner, store_predictions=True)
    model = Ensemble(PerceptronBank(20), GammaRate()).start(5, 2, rng=4)
    assert np.array_equal(result.predictions(), decided(model.decide_then_learn(X, y)))


def test_beside_capymoas_own_learners_and_in_plots(capymoa: Any, adapters: Any, tmp_path: Path) -> None:
    import_module("matplotlib").use("Agg")
    data, _, _ = stream(capymoa)
    learners = {
        "ours": adapters.BayesianEnsembleClassifier(data.get_schema(), n_members=30),
        "theirs": capymoa.classifier.HoeffdingTree(data.get_schema()),
    }
    results = capymoa.evaluation.prequential_evaluation_multiple_learners(data, learners, window_size=100)
    assert min(result.cumulative.accuracy() for result in results.values()) > 80
    capymoa.evaluation.visualization.plot_windowed_results(
        *results.values(), metric="accuracy", figure_path=f"{tmp_path}/", figure_name="both"
    )
    assert any(file.stat().st_size > 1000 for file in tmp_path.iterdir())


def test_batches(capymoa: Any, adapters: Any) -> None:
    pytest.importorskip("torch", reason="PyTorch is not installed, which CapyMOA's batches need")
    data, X, y = stream(capymoa)
    learner = adapters.OSBoostClassifier(data.get_schema(), n_members=20)
    many = adapters.batched(learner)
    result = capymoa.evaluation.prequential_evaluation(data, many, batch_size=50, store_predictions=True)
    model = type(learner.model)(n_members=20, scale=True).start(5, 2, rng=1)
    expected = []
    for first in range(0, len(X), 50):
        part = slice(first, first + 50)
        expected.append(decided(model.decide(X[part])))
        model.decide_then_learn(X[part], y[part])
    assert np.array_equal(result.predictions(), np.concatenate(expected))
    data.restart()
    instance = data.next_instance()
    assert many.predict_proba(instance) == pytest.approx(learner.predict_proba(instance))


def test_missing_values_and_bad_labels(capymoa: Any, adapters: Any) -> None:
    data, X, _ = stream(capymoa)
    schema = data.get_schema()
    learner = adapters.BayesianEnsembleClassifier(schema, members="perceptron", n_members=20)
    learner.train(data.next_instance())
    gap = capymoa.core.LabeledInstance.from_array(schema, np.where(np.arange(5) == 2, np.nan, X[1]), 1)
    learner.train(gap)
    assert np.isfinite(learner.predict_proba(gap)).all()
    before = learner.predict_proba(gap)
    with pytest.raises(ValueError, match="finite numbers"):
        learner.train(capymoa.core.LabeledInstance.from_array(schema, np.full(5, np.inf), 1))
    assert np.array_equal(learner.predict_proba(gap), before)


def test_nominal_attributes_become_indicators(capymoa: Any, adapters: Any, tmp_path: Any) -> None:
    rng = np.random.default_rng(0)
    colours, sizes = rng.choice(["red", "green", "blue"], 400), rng.normal(size=400)
    labels = np.where((colours == "green") == (sizes > 0), "yes", "no")
    lines = [
        "@relation r",
        "@attribute colour {red,green,blue}",
        "@attribute size numeric",
        "@attribute y {no,yes}",
        "@data",
    ]
    lines += [
        f"{'?' if t % 9 == 5 else c},{s},{y}" for t, (c, s, y) in enumerate(zip(colours, sizes, labels, strict=True))
    ]
    path = tmp_path / "rows.arff"
    path.write_text("\n".join(lines) + "\n")
    data = capymoa.stream.ARFFStream(str(path))
    learner = adapters.BayesianEnsembleClassifier(data.get_schema(), n_members=30, random_seed=4)
    assert learner.model.n_features == 4
    result = capymoa.evaluation.prequential_evaluation(data, learner, store_predictions=True)
    X = np.column_stack([*(colours == colour for colour in ("red", "green", "blue")), sizes])
    X[5::9, :3] = 0.0
    own = estimators.BayesianEnsembleClassifier(n_members=30).start(4, np.arange(2), np.random.default_rng(4))
    losses, _ = own.advance(as_rows("test", X), (labels == "yes").astype(np.intp), np.ones(400))
    assert np.array_equal(result.predictions(), decided(losses))
