"""Ctrl-C at every line of a call that learns: the error tells how many rows, and the model is as after them."""

import copy
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from types import FrameType
from typing import Any

import numpy as np
import pytest

import bayesvote
from bayesvote import (
    BayesianEnsembleClassifier,
    Ensemble,
    EstimatorBank,
    FernBank,
    JointGaussian,
    OzaBoost,
    PerceptronBank,
)
from bayesvote.core.lock import Uninterrupted
from bayesvote.io.model_file import dumps

HERE = str(bayesvote.__file__).removesuffix("__init__.py")
pandas: Any = import_module("pandas")
rng = np.random.default_rng(5)
X = rng.normal(size=(6000, 4))
y = (X[:, 0] * X[:, 1] > 0).astype(np.intp)
TABLE = pandas.DataFrame({"size": X[:, 0], "how": np.where(X[:, 2] > 0, "many", "few"), "gaps": np.log(abs(X[:, 3]))})


def classifier() -> Any:
    return BayesianEnsembleClassifier("perceptron", 4, calibrated=True, class_weight="balanced", random_state=0)


def begun(model: Any, given: Any) -> Any:
    return model.partial_fit(given[:30], y[:30], classes=[0, 1])


def on(model: Any, given: Any, n: int) -> None:
    model.partial_fit(given[30 : 30 + n], y[30 : 30 + n])


def of_model(model: Any, n: int) -> None:
    model.decide_then_learn(X[:n], y[:n])


# What learns, by what call; how many rows are asked for; whether the call is all or nothing.
CALLS: dict[str, tuple[Callable[[], Any], Callable[[Any, int], Any], int, bool]] = {
    "a chunk": (lambda: Ensemble(PerceptronBank(3)).start(4, rng=0), of_model, 20, False),
    "chunks": (lambda: Ensemble(FernBank(3, depth=2), JointGaussian()).start(4, rng=0), of_model, 900, False),
    "booster": (lambda: OzaBoost(n_members=3).start(4, rng=0), of_model, 300, False),
    "partial_fit": (lambda: begun(classifier(), X), lambda model, n: on(model, X, n), 20, False),
    "partial_fit by chunks": (lambda: begun(classifier(), X), lambda model, n: on(model, X, n), 300, False),
    "first partial_fit": (classifier, lambda model, n: model.partial_fit(X[:n], y[:n], classes=[0, 1]), 20, True),
    "fit": (lambda: begun(classifier(), X), lambda model, n: model.fit(X[:n], y[:n]), 140, True),
    "table": (lambda: begun(classifier(), TABLE), lambda model, n: on(model, TABLE, n), 20, False),
}


@pytest.fixture(autouse=True)
def interruptible() -> Iterator[None]:
    """Ctrl-C raises, also where the process was started with it ignored, as shells do in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@contextmanager
def interrupted(at: int, *more: int) -> Iterator[list[str]]:
    """Press Ctrl-C at that line that is reached of the package, but for the first of a call; gives the lines.

    It is pressed again as many lines later as ``more`` says.
    """
    lines: list[str] = []

    def look(frame: FrameType, event: str, _: Any) -> Any:
        if not frame.f_code.co_filename.startswith(HERE):
            return None
        if event == "line" and (frame.f_code.co_name != "reporting" or lines):
            lines.append(f"{frame.f_code.co_filename.removeprefix(HERE)}:{frame.f_lineno}")
            for _ in range((at, *(at + after for after in more)).count(len(lines))):
                signal.raise_signal(signal.SIGINT)
        return look

    before = sys.gettrace()
    sys.settrace(look)
    try:
        yield lines
    finally:
        sys.settrace(before)


@pytest.mark.parametrize("name", CALLS)
def test_an_interrupt_at_any_line_tells_what_was_learned(name: str) -> None:
    make, learn, n, whole = CALLS[name]
    started = make()
    states: dict[int, bytes] = {}
    warm = copy.deepcopy(started)
    learn(warm, n)  # what is imported at first use is imported
    at = 0
    while True:
        at += 1
        model = copy.deepcopy(started)
        error: BaseException | None = None
        with interrupted(at) as lines:
            try:
                learn(model, n)
            except KeyboardInterrupt as caught:
                error = caught
        if len(lines) < at:
            break
        where = lines[at - 1]
        assert error is not None, where
        learned: Any = getattr(error, "rows_learned", None)
        assert learned in ((0, n) if whole else range(n + 1)), where
        assert f"{learned} " in error.__notes__[-1], where
        if learned not in states:
            twin = copy.deepcopy(started)
            if learned:
                learn(twin, learned)
            states[learned] = dumps(twin)
        assert dumps(model) == states[learned], where
    assert at > 30
    assert states.keys() >= {0, n}


@pytest.mark.parametrize("name", ["a chunk", "partial_fit", "table"])
@pytest.mark.parametrize("more", [(0,), (0, 1), (0, 3), (0, 0, 5), (7,), (40, 80)])
def test_an_interrupt_that_is_pressed_again_costs_no_row_of_earlier_calls(name: str, more: tuple[int, ...]) -> None:
    make, learn, n, _ = CALLS[name]

    def before() -> Any:
        model = make()
        for _ in range(3):  # which its journal keeps
            learn(model, 1)
        return model

    states = {0: dumps(before())}
    at = 0
    while True:
        at += 1
        model = before()
        error: Any = None
        with interrupted(at, *more) as lines:
            try:
                learn(model, n)
            except KeyboardInterrupt as caught:
                error = caught
        for _ in range(10):  # a tracer can raise at the end of a section, which is then not left, as no signal does
            with suppress(KeyboardInterrupt):
                Uninterrupted().__exit__()
        if len(lines) < at:
            break
        where = lines[at - 1 : at + 5]
        assert hasattr(error, "rows_learned"), where
        learned = error.rows_learned
        assert f"{learned} " in error.__notes__[-1], where
        if learned not in states:
            twin = before()
            learn(twin, learned)
            states[learned] = dumps(twin)
        assert dumps(model) == states[learned], (learned, where)
    assert states.keys() >= {0, n}


@pytest.mark.skipif(sys.platform == "win32", reason="a signal to the process itself ends it")
def test_interrupts_at_random_moments_tell_what_was_learned() -> None:
    started, n, draws = begun(classifier(), X), 2500, np.random.default_rng(0)
    full = copy.deepcopy(started)
    start = time.perf_counter()
    on(full, X, n)
    seconds, told = time.perf_counter() - start, list[int]()
    for _ in range(300):  # on a busy machine many come late
        if len(told) > 15:
            break
        model = copy.deepcopy(started)
        presser = threading.Timer(draws.uniform(0, 1.2 * seconds), os.kill, (os.getpid(), signal.SIGINT))
        error: Any = None
        try:
            presser.start()
            on(model, X, n)
            presser.join()
        except KeyboardInterrupt as caught:
            error = caught
        presser.join()
        trace = traceback.extract_tb(error.__traceback__)
        if any(frame.filename.startswith(HERE) for frame in trace):
            told.append(error.rows_learned)
            twin = copy.deepcopy(started)
            if told[-1]:
                on(twin, X, told[-1])
            assert dumps(model) == dumps(twin)
        else:  # before or after the call
            assert dumps(model) in (dumps(started), dumps(full))
    assert len(told) > 5


def test_an_error_tells_the_rows_of_its_own_thread() -> None:
    model, others = Ensemble(PerceptronBank(3)).start(4, rng=0), list[threading.Thread]()

    def after(*_: Any) -> Callable[[], None]:
        others.append(threading.Thread(target=of_model, args=(model, 50)))
        others[-1].start()
        while not model.lock.wanted:
            time.sleep(0.001)
        if len(others) == 2:  # the first of them has come in by now
            raise OSError("no")
        return lambda: None

    with pytest.raises(OSError, match="no") as caught:
        model.advance(*model.checked_labelled(X, y, None), after)
    for other in others:
        other.join()
    assert caught.value.rows_learned + 100 == model.about()["rows_learned"]  # type: ignore[attr-defined]


class Odd:
    """A classifier that waits for ever in a row; it may set a handler of its own for a while, as asyncio.run does."""

    classes_ = np.array([0, 1])

    def __init__(self, waits_at: int = 0, *, sets_handler: bool) -> None:
        self.waits_at, self.sets_handler, self.rows = waits_at, sets_handler, 0

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002
        return {}

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> "Odd":  # noqa: ARG002
        self.rows += 1
        if self.sets_handler:
            before = signal.signal(signal.SIGINT, lambda *_: None)
            signal.signal(signal.SIGINT, before)
        if self.rows == self.waits_at:
            for k in range(1 if self.sets_handler else 2):  # with its handler gone, the first comes through
                threading.Timer(0.1 * (k + 1), os.kill, (os.getpid(), signal.SIGINT)).start()
            threading.Event().wait(30)
        return self

    def decision_function(self, X: Any) -> Any:
        return X[:, 0] + self.rows


@pytest.mark.skipif(sys.platform == "win32", reason="a signal to the process itself ends it")
@pytest.mark.parametrize("sets_handler", [False, True])
@pytest.mark.parametrize("n", [40, 900])  # in one chunk, and in several
def test_a_member_that_waits_for_ever_can_be_interrupted(n: int, sets_handler: bool) -> None:
    members: list[Any] = [Odd(n - 10, sets_handler=sets_handler), Odd(sets_handler=sets_handler)]
    bank = EstimatorBank(members, online=True)
    model, twin = (Ensemble(copy.deepcopy(bank)).start(4, rng=0) for _ in range(2))
    start = time.perf_counter()
    with pytest.raises(KeyboardInterrupt) as caught:
        of_model(model, n)
    assert time.perf_counter() - start < 20
    learned: int = caught.value.rows_learned  # type: ignore[attr-defined]
    assert 0 <= learned < n - 10
    if learned:
        of_model(twin, learned)
    assert model.decide(X[:9]).tobytes() == twin.decide(X[:9]).tobytes()
    with pytest.raises(KeyboardInterrupt), Uninterrupted():
        signal.raise_signal(signal.SIGINT)  # as ever


@pytest.mark.skipif(sys.platform == "win32", reason="a signal to the process itself ends it")
def test_going_back_that_takes_long_can_be_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bayesvote.core.rollback._PATIENCE", 1)
    model, true, calls = Ensemble(PerceptronBank(3)).start(4, rng=0), Ensemble.step, list[float]()
    of_model(model, 5)

    def step(*args: Any) -> Any:
        calls.append(time.perf_counter())
        if len(calls) == 1:
            raise OSError("no")
        for _ in range(30):  # going back
            time.sleep(0.1)
            signal.raise_signal(signal.SIGINT)
        return true(*args)

    monkeypatch.setattr(Ensemble, "step", step)
    with pytest.raises(KeyboardInterrupt) as caught:
        of_model(model, 5)
    assert 0.9 < time.perf_counter() - calls[1] < 2.9
    assert caught.value.rows_learned == -5  # type: ignore[attr-defined]
