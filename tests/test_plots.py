"""Plots, and what notebooks show."""

from importlib import import_module
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from bayesvote import BayesianEnsembleClassifier, OzaBoostClassifier
from bayesvote.plots import plot_explanation, plot_weights

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
NAMES = ["plain", "<script>alert(1)</script>", "$cost", "fourth"]


@pytest.fixture(autouse=True)
def _closed() -> Any:
    yield
    from matplotlib import pyplot

    pyplot.close("all")


def fitted(kind: Any = BayesianEnsembleClassifier, **given: Any) -> tuple[Any, Any]:
    pandas = pytest.importorskip("pandas")
    X = pandas.DataFrame(np.random.default_rng(0).normal(size=(200, 4)), columns=NAMES)
    y = np.where(X["plain"] + X["$cost"] > 0, "<b>yes</b>", "no")
    return kind(n_members=12, random_state=0, **given).fit(X, y), X


@pytest.mark.parametrize("weighter", ["joint_gaussian", "voting", "gamma_shape_rate"])
def test_weights_are_drawn(weighter: str) -> None:
    model, _ = fitted(weighter=weighter, loss="logistic" if weighter == "gamma_shape_rate" else "ramp")
    axes = plot_weights(model, top=5)
    axes.figure.canvas.draw()
    table = model.weights_
    mean = np.sort(table["mean" if "mean" in table else "mean_1"])[::-1][:5]
    np.testing.assert_allclose(np.asarray(axes.lines[0].get_xdata(), dtype=float), mean)
    assert len(axes.get_yticklabels()) == 5
    assert len(axes.collections) == (weighter != "voting")


def test_an_explanation_is_drawn() -> None:
    model, X = fitted()
    axes = plot_explanation(model, X[:5], row=3, top=2)
    axes.figure.canvas.draw()
    table = model.explain(X[:5], top=2)
    moved = table[(table["row"] == 3) & ((table["moved"] != 0) | table["column"].isin(NAMES))]["moved"]
    bars: list[Any] = list(axes.patches)
    np.testing.assert_allclose([bar.get_width() for bar in bars], moved)
    assert sum(bar.get_width() for bar in bars) == pytest.approx(table[table["row"] == 3]["lead"].iloc[0])
    given = axes.figure.subplots()
    assert plot_explanation(model, X[:5], ax=given) is given
    with pytest.raises(ValueError, match="from 0 to 4"):
        plot_explanation(model, X[:5], row=5)


def test_what_cannot_be_drawn() -> None:
    model, X = fitted(OzaBoostClassifier)
    for draw in (plot_weights, lambda it: plot_explanation(it, X)):
        with pytest.raises(TypeError, match="BayesianEnsembleClassifier"):
            draw(model)
    with pytest.raises(TypeError, match="BayesianEnsembleClassifier"):
        plot_weights(LogisticRegression())  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", [BayesianEnsembleClassifier, OzaBoostClassifier])
def test_notebooks_show_what_was_learned(kind: Any) -> None:
    config = import_module("sklearn").config_context
    pipeline = import_module("sklearn.pipeline").make_pipeline
    model, _ = fitted(kind)
    for page in (model._repr_html_(), model._repr_mimebundle_()["text/html"]):
        assert "sk-top-container" in page  # scikit-learn's own
        assert "Fitted model" in page
        assert "<script>alert" not in page
        assert "<b>yes" not in page
        assert "&lt;b&gt;yes&lt;/b&gt;" in page
    assert "Fitted model" not in kind()._repr_html_()
    assert "sk-top-container" in pipeline(model)._repr_html_()
    with config(display="text"):
        assert not hasattr(model, "_repr_html_")
        assert list(model._repr_mimebundle_()) == ["text/plain"]
