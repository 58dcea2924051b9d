"""Raw tables while a classifier learns them, and when learning fails: model, calibration, class counts and columns."""

import threading
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from bayesvote import BayesianEnsembleClassifier, Ensemble, tables
from bayesvote.core.checks import Array
from bayesvote.estimators._calibration import Calibration
from bayesvote.io.model_file import dumps

rng = np.random.default_rng(3)
N = 2600
NUMBERS = rng.normal(size=N)
TEXTS = [f"t{k}" for k in (np.arange(N) // 45)]  # new ones all the time, so that the model is widened again and again
LATE = [None] * 700 + ["1.5" if k % 3 else "2" for k in range(N - 700)]  # of a kind that is not known before row 700
y = (NUMBERS + rng.normal(size=N) > 1).astype(np.intp)


def table(first: int, last: int) -> dict[str, Any]:
    return {"x": NUMBERS[first:last], "text": TEXTS[first:last], "late": LATE[first:last]}


def fresh() -> BayesianEnsembleClassifier:
    return BayesianEnsembleClassifier(
        "perceptron", 5, weighter="gamma_rate", class_weight="balanced", calibrated=True, random_state=0
    )


def learned(*ends: int) -> BayesianEnsembleClassifier:
    model = fresh()
    for first, last in zip((0, *ends), ends, strict=False):
        model.partial_fit(table(first, last), y[first:last], classes=[0, 1])
    return model


def failing(true: Callable[..., Any], at: int) -> tuple[Callable[..., Any], list[int]]:
    """The same function, but for one call that finds no memory; and the numbers of its calls."""
    calls = list[int]()

    def act(*args: Any) -> Any:
        calls.append(len(calls) + 1)
        if calls[-1] == at:
            raise MemoryError
        return true(*args)

    return act, calls


@pytest.mark.parametrize("fails_at", [1, 2, 3, 5, 7])
def test_a_failure_leaves_a_whole_number_of_rows(monkeypatch: pytest.MonkeyPatch, fails_at: int) -> None:
    model = learned(10)
    monkeypatch.setattr(Ensemble, "step", failing(Ensemble.step, fails_at)[0])
    monkeypatch.setattr(Ensemble, "pipeline", lambda self, chunks: (self.step(*chunk[:3]) for chunk in chunks))
    with pytest.raises(MemoryError) as caught:
        model.partial_fit(table(10, N), y[10:])
    monkeypatch.undo()
    n: int = caught.value.rows_learned  # type: ignore[attr-defined]
    assert (n == 0) == (fails_at == 1)
    assert n < N - 10
    assert dumps(model) == dumps(learned(10 + n) if n else learned(10))
    model.partial_fit(table(10 + n, N), y[10 + n :])
    assert dumps(model) == dumps(learned(N))


def test_rows_of_earlier_calls_that_are_lost_for_want_of_memory_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    model, rows = fresh(), np.random.default_rng(0).normal(size=N)
    for first in range(30):
        model.partial_fit({"x": rows[first : first + 1]}, y[first : first + 1], classes=[0, 1])

    def without_memory(*_: Any) -> Any:
        raise MemoryError

    monkeypatch.setattr(Ensemble, "step", without_memory)
    with pytest.raises(MemoryError) as caught:
        model.partial_fit({"x": rows[30:40]}, y[30:40])
    monkeypatch.undo()
    lost: int = caught.value.rows_learned  # type: ignore[attr-defined]
    assert -30 <= lost < 0
    assert model.model_.about()["rows_learned"] == 30 + lost
    assert caught.value.__notes__[-1].endswith(f"is as it was {-lost} rows before this call.")


def test_calibration_and_counts_go_back_with_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    model = learned(10)
    before, calls = dumps(model), 0

    class Log(list[Any]):
        def append(self, _: Any) -> None:
            nonlocal calls
            calls += 1
            if calls == 1:
                raise MemoryError

    true = Calibration.learn

    def learn(self: Calibration, *args: Any) -> Array:
        found = true(self, *args)
        model.model_._rollback._chunks = Log(model.model_._rollback._chunks)
        return found

    monkeypatch.setattr(Calibration, "learn", learn)
    with pytest.raises(MemoryError) as caught:
        model.partial_fit(table(10, 30), y[10:30])
    assert caught.value.rows_learned == 0  # type: ignore[attr-defined]
    assert calls == 1
    assert dumps(model) == before


# The text that row 360 brings is the one for which the model must be widened before any further row.
@pytest.mark.parametrize("last", [361, N])
@pytest.mark.parametrize("fails_at", [1, 2, 3, 4])
@pytest.mark.parametrize("where", ["widen", "_with_events"])
def test_a_failure_at_features_that_rows_bring_leaves_a_whole_number_of_rows(
    monkeypatch: pytest.MonkeyPatch, where: str, fails_at: int, last: int
) -> None:
    owner: Any = Ensemble if where == "widen" else tables.columns
    model, (act, calls) = learned(10), failing(getattr(owner, where), fails_at)
    monkeypatch.setattr(owner, where, act)
    n, failed = last - 10, False
    try:
        model.partial_fit(table(10, last), y[10:last])
    except MemoryError as error:
        n, failed = error.rows_learned, True  # type: ignore[attr-defined]
    monkeypatch.undo()
    assert failed == (fails_at in calls)
    assert dumps(model) == dumps(learned(10 + n) if n else learned(10))
    model.predict(table(0, 30))
    if n < N - 10:
        model.partial_fit(table(10 + n, N), y[10 + n :])
    assert dumps(model) == dumps(learned(N))


def test_a_warning_that_is_raised_loses_nothing() -> None:
    names = [f"n{k % 80}" for k in range(2000)]
    labels = np.arange(2000) % 2
    quiet, strict = fresh(), fresh()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        quiet.partial_fit({"name": names}, labels, classes=[0, 1])
    strict.partial_fit({"name": names[:10]}, labels[:10], classes=[0, 1])
    with pytest.raises(UserWarning, match="different texts") as caught:
        strict.partial_fit({"name": names[10:]}, labels[10:])
    n: int = 10 + caught.value.rows_learned  # type: ignore[attr-defined]
    strict.partial_fit({"name": names[n:]}, labels[n:])
    assert dumps(strict) == dumps(quiet)


def test_readers_see_columns_and_model_of_one_moment() -> None:
    step = 100
    twin, states = fresh(), []
    for first in range(0, N, step):
        twin.partial_fit(table(first, first + step), y[first : first + step], classes=[0, 1])
        states.append((twin.predict_proba(table(0, 30)).tobytes(), twin.class_counts_.tobytes()))
    model = learned(step)
    seen, errors, done = list[bytes](), list[BaseException](), threading.Event()
    acts: list[Callable[[], object]] = [lambda: model.explain(table(0, 3)), lambda: dumps(model)]

    def look() -> None:
        try:
            while not done.is_set():
                seen.append(model.predict_proba(table(0, 30)).tobytes())
                acts[len(seen) % 2]()
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=look)
    thread.start()
    for first in range(step, N, step):
        model.partial_fit(table(first, first + step), y[first : first + step])
    done.set()
    thread.join()
    assert not errors
    assert seen
    assert set(seen) <= {answer for answer, _ in states}
    assert (model.predict_proba(table(0, 30)).tobytes(), model.class_counts_.tobytes()) == states[-1]
