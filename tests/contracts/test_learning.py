"""What holds while a model learns, and when learning fails: readers see whole chunks, and errors tell how many."""

import copy
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bayesvote import (
    BayesianEnsembleClassifier,
    Committees,
    Ensemble,
    EstimatorBank,
    FernBank,
    Frozen,
    GammaRate,
    JointGaussian,
    LogisticBank,
    NaiveBayesBank,
    NeighbourBank,
    OGBoost,
    OSBoost,
    OzaBoost,
    PerceptronBank,
    Scaled,
    TreeBank,
    Union,
    mixed,
)
from bayesvote.core.checks import Array, Labels
from bayesvote.core.lock import RWLock, Uninterrupted, Yielding
from bayesvote.core.rollback import Chunk
from bayesvote.core.threads import in_background
from bayesvote.integrations import river
from bayesvote.io.model_file import dumps, loads
from bayesvote.model import Model

import_module("polars")  # has a handler of its own for Ctrl-C, behind which signals must wait, too
GaussianNB: Any = import_module("sklearn.naive_bayes").GaussianNB

rng = np.random.default_rng(5)
X = rng.normal(size=(6000, 5))
y = (X[:, 0] * X[:, 1] > 0).astype(np.intp)
PROBE = rng.normal(size=(40, 5))

TREES: dict[str, Any] = {"n_trees": 3, "recent": [(64, 2, 32)], "refined": [1.0], "rows_kept": 256}
MODELS: dict[str, Callable[[], Model[Any]]] = {
    "perceptrons": lambda: Ensemble(PerceptronBank(5)),
    "naive Bayes": lambda: Ensemble(NaiveBayesBank(5)),
    "neighbours": lambda: Ensemble(NeighbourBank((20, 300))),
    "ferns": lambda: Ensemble(FernBank(8, depth=4)),
    "trees": lambda: Ensemble(TreeBank(**TREES)),
    "mixed": lambda: Ensemble(mixed(9), JointGaussian()),
    "scaled": lambda: Ensemble(Scaled(PerceptronBank(5))),
    "logistic": lambda: Ensemble(LogisticBank(5)),
    "committees": lambda: Ensemble(Committees(Union([PerceptronBank(3), TreeBank(**TREES)]), [4, 5])),
    "foreign": lambda: Ensemble(EstimatorBank([GaussianNB()], online=True)),
    "OzaBoost": lambda: OzaBoost(n_members=5),
    "OGBoost": lambda: OGBoost(n_members=5),
    "OSBoost": lambda: OSBoost("naive_bayes", n_members=5),
}


def started(name: str) -> Model[Any]:
    return MODELS[name]().start(5, 2, rng=1)


def told(caught: Any) -> int:
    return int(caught.value.rows_learned)


def learned(name: str, n: int) -> Model[Any]:
    model = started(name)
    model.decide_then_learn(X[:n], y[:n])
    return model


def answers_seen(learn: Callable[[int], object], answer: Callable[[], Any], n_calls: int) -> list[bytes]:
    """What two threads get while another learns; an error in any of them is raised."""
    seen: list[bytes] = []
    errors: list[BaseException] = []
    done = threading.Event()

    def look() -> None:
        try:
            while not done.is_set():
                seen.append(np.asarray(answer()).tobytes())
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=look) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for k in range(n_calls):
            learn(k)
            time.sleep(0.001)
    finally:
        done.set()
        for thread in threads:
            thread.join()
    if errors:
        raise errors[0]
    return seen


@pytest.mark.parametrize("name", MODELS)
def test_readers_see_whole_calls(name: str) -> None:
    step, n_calls = (8, 12) if name == "foreign" else (40, 25)
    twin, states = started(name), []
    for k in range(n_calls + 1):
        states.append(twin.decide(PROBE).tobytes())
        twin.decide_then_learn(X[k * step : (k + 1) * step], y[k * step : (k + 1) * step])
    model = started(name)
    copies: list[Callable[[], Any]] = [lambda: model, lambda: copy.deepcopy(model)]
    copies.append(lambda: pickle.loads(pickle.dumps(model)))
    if name != "foreign":
        copies.append(lambda: loads(dumps(model)))
    turn = iter(range(10**9))

    def learn(k: int) -> None:
        model.decide_then_learn(X[k * step : (k + 1) * step], y[k * step : (k + 1) * step])

    seen = answers_seen(learn, lambda: copies[next(turn) % len(copies)]().decide(PROBE), n_calls)
    assert set(seen) <= set(states)
    assert len(seen) > 10


def test_readers_come_in_between_the_chunks_of_a_call() -> None:
    model = learned("mixed", 2000)
    before, after = model.decide(PROBE).tobytes(), copy.deepcopy(model)
    after.decide_then_learn(np.tile(X, (4, 1)), np.tile(y, 4))
    seen = answers_seen(
        lambda _: model.decide_then_learn(np.tile(X, (4, 1)), np.tile(y, 4)), lambda: model.decide(PROBE), 1
    )
    assert set(seen) - {before, after.decide(PROBE).tobytes()}  # some were neither first nor last
    assert model.decide(PROBE).tobytes() == after.decide(PROBE).tobytes()


def test_members_of_a_model_may_be_asked_while_it_learns() -> None:
    model = Ensemble(Union([PerceptronBank(3), Frozen(Union([FernBank(4)]))])).start(5, rng=0)
    banks: list[Any] = [model.bank, *model.bank.parts, model.bank.parts[1].parts[0].parts[0]]
    assert all(bank.lock is model.lock for bank in banks)
    assert copy.deepcopy(model).bank.parts[0].lock is not model.lock
    again = copy.deepcopy(model)
    assert again.bank.parts[0].lock is again.lock


def test_a_calibrated_classifier_is_seen_whole() -> None:
    def fresh() -> BayesianEnsembleClassifier:
        return BayesianEnsembleClassifier("fern(depth=3)", 6, calibrated=True, random_state=0)

    def learn(model: BayesianEnsembleClassifier, k: int) -> None:
        model.partial_fit(X[k * 40 : (k + 1) * 40], y[k * 40 : (k + 1) * 40], classes=[0, 1])

    twin, states = fresh(), []
    for k in range(21):
        learn(twin, k)
        states.append(twin.predict_proba(PROBE).tobytes())
    model = fresh()
    learn(model, 0)
    seen = answers_seen(lambda k: learn(model, k + 1), lambda: model.predict_proba(PROBE), 20)
    assert set(seen) <= set(states)


def test_a_classifier_is_fitted_anew_in_one_step() -> None:
    narrow = BayesianEnsembleClassifier("perceptron", 5, random_state=0).fit(X[:200, :3], y[:200])
    wide = BayesianEnsembleClassifier("perceptron", 5, random_state=0).fit(X[:2000], y[:2000] + 7)
    both = {narrow.predict(PROBE[:, :3]).tobytes(), wide.predict(PROBE).tobytes()}

    def answer() -> Any:
        for width in (3, 5):
            try:
                return narrow.predict(PROBE[:, :width])
            except ValueError:  # not so wide at this moment
                continue
        return next(iter(both))

    narrow_fit = [lambda: narrow.fit(X[:2000], y[:2000] + 7), lambda: narrow.fit(X[:200, :3], y[:200])]
    seen = answers_seen(lambda k: narrow_fit[k % 2](), answer, 10)
    assert {np.frombuffer(one, dtype=np.int64).tobytes() for one in seen} <= both


def test_a_river_model_takes_new_names_and_labels_while_others_ask() -> None:
    model = river.BayesianEnsembleClassifier("perceptron", 5, seed=0)
    rows = [{f"f{j}": v for j, v in enumerate(row[: 1 + t // 20])} for t, row in enumerate(X[:100].tolist())]
    model.learn_one(rows[0], 0)

    def learn(k: int) -> None:
        for t in range(k * 5, k * 5 + 5):
            model.learn_one(rows[t], int(y[t]) if t < 60 else t % 3)

    seen = answers_seen(learn, lambda: sum(model.predict_proba_one(rows[-1]).values()), 20)
    assert np.allclose([np.frombuffer(one)[0] for one in seen], 1.0)


class Breaking(GaussianNB):  # type: ignore[misc]
    """Does something once, at its n-th row."""

    at = 0
    act: Callable[[], None] = staticmethod(lambda: None)

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Any:
        Breaking.at -= 1
        if Breaking.at == 0:
            Breaking.act()
        return super().partial_fit(X, y, classes, sample_weight)


def fail() -> None:
    raise OSError("the member's disk is full")


def no_memory() -> None:
    raise MemoryError


def interrupt() -> None:
    signal.raise_signal(signal.SIGINT)
    time.sleep(0.01)


@pytest.mark.parametrize(("act", "kind"), [(fail, OSError), (no_memory, MemoryError), (interrupt, KeyboardInterrupt)])
@pytest.mark.parametrize("by", [1, 7, 200])
def test_a_failing_member_leaves_a_whole_number_of_rows(
    act: Callable[[], None], kind: type[BaseException], by: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fresh() -> Model[Any]:
        bank = Union([PerceptronBank(3), EstimatorBank([GaussianNB(), Breaking()], online=True), FernBank(4)])
        return Ensemble(bank, JointGaussian()).start(5, rng=0)

    monkeypatch.setattr(Breaking, "act", staticmethod(act))
    monkeypatch.setattr(Breaking, "at", 150)
    model, done = fresh(), 0
    with pytest.raises(kind) as caught:  # noqa: PT012
        for done in range(0, 200, by):
            model.decide_then_learn(X[done : done + by], y[done : done + by])
    assert f"Ensemble: {told(caught)} of {by} rows" in caught.value.__notes__[0]
    n = done + told(caught)
    assert n <= 150 or act is interrupt
    twin = fresh()
    twin.decide_then_learn(X[:n], y[:n])
    assert model.decide(PROBE).tobytes() == twin.decide(PROBE).tobytes()
    for one in (model, twin):
        one.decide_then_learn(X[n : n + 60], y[n : n + 60])
    assert model.decide(PROBE).tobytes() == twin.decide(PROBE).tobytes()


@pytest.mark.parametrize("name", [name for name in MODELS if "Boost" not in name and name != "foreign"])
@pytest.mark.parametrize("by", [1, 500, 6000])
def test_a_failing_weighter_or_loss_leaves_a_whole_number_of_rows(
    name: str, by: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = started(name)
    assert isinstance(model, Ensemble)
    left = 300 if by == 1 else 6
    weighter, true = type(model.weighter), type(model.weighter).advance_scores

    def failing(*args: Any) -> Any:
        nonlocal left
        left -= 1
        if left == 0:
            raise MemoryError
        return true(*args)

    monkeypatch.setattr(weighter, "advance_scores", failing)
    done = 0
    with pytest.raises(MemoryError) as caught:  # noqa: PT012
        for done in range(0, 6000, by):
            model.decide_then_learn(X[done : done + by], y[done : done + by])
    n = done + told(caught)
    assert 0 < n < 6000
    twin = learned(name, n)
    assert model.decide(PROBE).tobytes() == twin.decide(PROBE).tobytes()
    assert dumps(model) == dumps(twin)


def test_without_memory_to_go_back_the_error_tells_how_many_rows_are_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    fails = False

    def loss(z: Array) -> Array:
        if fails:
            raise MemoryError("no")
        return np.asarray(np.clip((1 - z) / 2, 0, 1))

    def no_memory(_: Any) -> Any:
        raise MemoryError("no copy")

    def taught(*ends: int) -> Any:
        model = Ensemble(PerceptronBank(5), GammaRate(), loss).start(5, rng=0)
        for first, last in pairwise((0, *ends)):
            model.decide_then_learn(X[first:last], y[first:last])
        return model

    for ends, lost in (((20, 22), -22), ((), 0)):
        fails = False
        model, fresh = taught(*ends), taught()
        fails = True
        with monkeypatch.context() as patch:
            patch.setattr("bayesvote.core.rollback.deepcopy", no_memory)
            with pytest.raises(MemoryError) as caught:
                model.decide_then_learn(X[30:50], y[30:50])
        fails = False
        assert told(caught) == lost
        notes = caught.value.__notes__
        assert notes[-1].endswith("is as it was 22 rows before this call." if lost else "the model is as after them.")
        for one in (model, fresh):
            one.decide_then_learn(X[:30], y[:30])
        assert model.decide(PROBE).tobytes() == fresh.decide(PROBE).tobytes()
        assert model.weights().tobytes() == fresh.weights().tobytes()


def test_what_else_was_learned_of_a_chunk_in_the_log_is_taken_up_when_the_model_goes_back() -> None:
    model, taken = started("perceptrons"), list[str]()

    def after(*_: Any) -> Callable[[], None]:
        def take_up() -> None:
            taken.append("up")
            if len(taken) == 1:
                raise MemoryError

        return take_up

    with pytest.raises(MemoryError) as caught:
        model.advance(*model.checked_labelled(X[:50], y[:50], None), after)
    assert told(caught) == 50
    assert taken == ["up", "up"]
    assert model.decide(PROBE).tobytes() == learned("perceptrons", 50).decide(PROBE).tobytes()


def test_an_interrupt_waits_for_the_chunk() -> None:
    model, chunks = started("mixed"), list[int]()

    def after(chunk: Chunk, _: Array) -> Callable[[], None]:
        chunks.append(chunk.rows.n)
        if len(chunks) == 3:  # while the members are a chunk ahead
            signal.raise_signal(signal.SIGINT)
        return lambda: None

    rows, labels, w = model.checked_labelled(X, y, None)
    with pytest.raises(KeyboardInterrupt) as caught:
        model.advance(rows, labels, w, after)
    state = model.decide(PROBE).tobytes()
    in_background(lambda: None).result()
    assert model.decide(PROBE).tobytes() == state  # nothing runs on
    n: int = told(caught)
    assert sum(chunks[:3]) <= n <= sum(chunks) < 6000
    assert state == learned("mixed", n).decide(PROBE).tobytes()


def test_a_fit_that_fails_changes_nothing() -> None:
    calls = 0

    def loss(z: Array) -> Array:
        nonlocal calls
        calls += 1
        if calls == 4:
            raise OSError("no")
        return np.clip((1 - z) / 2, 0, 1)

    model = BayesianEnsembleClassifier("perceptron", 5, loss=loss, weighter="gamma_rate", random_state=0)
    for act in (model.fit, lambda X, y: model.partial_fit(X, y, classes=[0, 1])):
        calls = 0
        with pytest.raises(OSError, match="no") as caught:
            act(X, y)
        assert told(caught) == 0
        assert not hasattr(model, "model_")


def test_a_river_model_is_as_before_a_row_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    model = river.BayesianEnsembleClassifier("perceptron", 5, weighter="gamma_rate", seed=0)
    model.learn_one({"a": 1.0}, "no")
    model.learn_one({"a": -1.0}, "yes")
    before = pickle.dumps(model)
    true, failing = Ensemble.step, True

    def step(*args: Any) -> Array:
        nonlocal failing
        if not failing:
            failing = True
            raise MemoryError
        return true(*args)

    monkeypatch.setattr(Ensemble, "step", step)
    for x, label in (({"a": 2.0}, "no"), ({"b": 2.0}, "yes"), ({"a": 2.0, "b": 1.0}, "perhaps")):
        failing = False
        with pytest.raises(MemoryError) as caught:
            model.learn_one(x, label)
        assert told(caught) == 0
        assert model.feature_names == ["a"]
        assert model.labels == ["no", "yes"]
    monkeypatch.undo()
    model.learn_one({"a": 0.5, "b": 2.0}, "no")
    again = pickle.loads(before)
    again.learn_one({"a": 0.5, "b": 2.0}, "no")
    assert model.predict_proba_one({"a": 1.0, "b": 1.0}) == again.predict_proba_one({"a": 1.0, "b": 1.0})


def test_a_guard_lets_in_readers_together_and_writers_alone_in_their_order() -> None:
    guard, log = RWLock(), list[str]()

    def write(name: str) -> None:
        with guard.write:
            log.append(name)

    with guard.read, guard.read:
        late = threading.Thread(target=write, args=("late",))
        late.start()
        while not guard.wanted:
            time.sleep(0.001)
        with guard.read:  # again, though a writer waits
            log.append("reader")
        with pytest.raises(RuntimeError, match="must not learn while the same thread predicts"), guard.write:
            pass
    late.join()
    with guard.write, guard.read, guard.write:
        others = [threading.Thread(target=write, args=(str(k),)) for k in range(4)]
        for k, other in enumerate(others):
            other.start()
            while len(log) < 2 or not guard.wanted or k > threading.active_count():
                time.sleep(0.001)
            time.sleep(0.01)
    for other in others:
        other.join()
    assert log == ["reader", "late", "0", "1", "2", "3"]
    assert guard.writes == 6


@pytest.fixture(autouse=True)
def interruptible() -> Iterator[None]:
    """Ctrl-C raises, also where the process was started with it ignored, as shells do in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_a_waiting_thread_can_be_interrupted() -> None:
    guard, held, leave = RWLock(), threading.Event(), threading.Event()

    def hold() -> None:
        with guard.write:
            held.set()
            leave.wait()

    other = threading.Thread(target=hold)
    other.start()
    held.wait()
    for context in (guard.read, guard.write):
        timer = threading.Timer(0.02, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        with pytest.raises(KeyboardInterrupt), context:
            pass
        assert not guard.wanted
    leave.set()
    other.join()
    with guard.write:
        pass


def test_signals_wait_and_a_second_one_only_does_not_where_work_may_not_end() -> None:
    steps = list[str]()
    with pytest.raises(KeyboardInterrupt):  # noqa: PT012
        with Uninterrupted():
            signal.raise_signal(signal.SIGINT)
            steps.append("inside")
        steps.append("after")
    assert steps == ["inside"]
    steps.clear()
    with pytest.raises(KeyboardInterrupt):  # noqa: PT012
        with Uninterrupted():
            try:
                with Yielding():
                    signal.raise_signal(signal.SIGINT)
                    steps.append("again")
                    with Uninterrupted():
                        signal.raise_signal(signal.SIGINT)
                        steps.append("within")
                    steps.append("never")
            finally:
                signal.raise_signal(signal.SIGINT)
                steps.append("finally")
        steps.append("never")
    assert steps == ["again", "within", "finally"]
    with Uninterrupted(), Yielding():
        pass
    for _ in range(2):  # nothing is left of them
        with pytest.raises(KeyboardInterrupt), Uninterrupted():  # noqa: PT012
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)
            steps.append("held")
    assert steps[3:] == ["held", "held"]
    with pytest.raises(KeyboardInterrupt), Uninterrupted():  # noqa: PT012
        with Yielding():  # members at work may do this, asyncio.run does
            signal.signal(signal.SIGINT, signal.signal(signal.SIGINT, signal.SIG_IGN))
        signal.raise_signal(signal.SIGINT)
        steps.append("held again")
    assert steps[5:] == ["held again"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_process_can_use_a_model_that_nobody_was_teaching() -> None:
    model = learned("perceptrons", 100)
    with model.lock.read:
        child = os.fork()
        if child == 0:
            model.decide_then_learn(X[:1], y[:1])
            os._exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.parametrize("noted", [False, True])
def test_a_process_that_is_forked_while_signals_wait_can_be_interrupted(noted: bool) -> None:
    children = list[int]()

    def fork() -> None:
        child = os.fork()
        if child:
            children.append(child)
            return
        try:
            signal.raise_signal(signal.SIGINT)
            os._exit(1)
        except KeyboardInterrupt:
            os._exit(7)

    other = threading.Thread(target=fork)
    try:
        with Uninterrupted(), Uninterrupted():
            if noted:
                signal.raise_signal(signal.SIGINT)
            other.start()
            other.join()
    except KeyboardInterrupt:
        assert noted
    assert os.waitstatus_to_exitcode(os.waitpid(children[0], 0)[1]) == 7


def test_labels_are_learned_by_one_thread_at_a_time() -> None:
    model = started("perceptrons")

    def learn(_: int) -> None:
        def part(codes: Labels) -> None:
            model.decide_then_learn(X[: len(codes)], codes)

        threads = [threading.Thread(target=part, args=(y[:30],)) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    answers_seen(learn, lambda: model.decide(PROBE), 5)
    assert model.about()["rows_learned"] == 450


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="Python 3.12 itself crashes where it finds no memory")
@pytest.mark.parametrize("kind", ["array", "table", "booster", "default"])
def test_a_request_for_memory_that_fails_leaves_a_whole_number_of_rows(kind: str) -> None:
    pytest.importorskip("_testcapi")
    command = [sys.executable, "-X", "faulthandler", str(Path(__file__).parent / "no_memory.py"), kind]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200)
    _, _, crash = done.stderr.partition("Current thread")
    if len(crash.splitlines()) > 1 and "numpy" in crash.splitlines()[1]:
        pytest.skip("NumPy crashes where it finds no memory")
    assert done.returncode == 0, done.stderr
    assert int(done.stdout.split()[0]) > 100
