"""Work that is shared among threads: every item once, in whole blocks, and errors are told."""

import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from bayesvote import Ensemble, EstimatorBank, PerceptronBank
from bayesvote.core.checks import Array, Labels
from bayesvote.core.threads import finish_background, in_background, n_threads, parallel_for


@pytest.mark.parametrize("n_items", [1, 7, 8, 9, 100])
@pytest.mark.parametrize("block", [1, 4])
@pytest.mark.parametrize("threads", [1, 2, 3, 16])
def test_every_item_is_done_once_and_blocks_stay_whole(
    monkeypatch: pytest.MonkeyPatch, threads: int, block: int, n_items: int
) -> None:
    monkeypatch.setenv("BAYESVOTE_THREADS", str(threads))
    assert n_threads() == threads
    shares: list[tuple[int, int]] = []
    parallel_for(lambda first, last: shares.append((first, last)), n_items, block)
    shares.sort()
    assert [item for first, last in shares for item in range(first, last)] == list(range(n_items))
    assert all(first % block == 0 for first, _ in shares)
    assert len(shares) == min(threads, -(-n_items // block))


def test_what_is_not_worth_sharing_stays_in_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BAYESVOTE_THREADS", "4")
    here: list[int] = []
    parallel_for(lambda *_: here.append(threading.get_ident()), 100, worth=False)
    assert here == [threading.get_ident()]


def test_the_last_thread_is_waited_for_and_its_error_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BAYESVOTE_THREADS", "2")
    done: list[int] = []

    def slow(first: int, last: int) -> None:
        time.sleep(0.05 * first)
        done.extend(range(first, last))

    parallel_for(slow, 4)
    assert sorted(done) == [0, 1, 2, 3]

    def failing(first: int, last: int) -> None:
        if first:
            raise ArithmeticError(f"{first} to {last}")

    with pytest.raises(ArithmeticError, match="2 to 4"):
        parallel_for(failing, 4)

    def failing_here(first: int, last: int) -> None:
        if first == 0:
            raise ArithmeticError(f"{first} to {last}")
        slow(first, last)

    done.clear()
    with pytest.raises(ArithmeticError, match="0 to 2"):
        parallel_for(failing_here, 4)
    assert done == [2, 3]  # nobody else is at work any more


@pytest.mark.parametrize("given", ["", "0", "-1", "many"])
def test_without_a_number_the_cores_count(monkeypatch: pytest.MonkeyPatch, given: str) -> None:
    monkeypatch.delenv("BAYESVOTE_THREADS", raising=False)
    cores = n_threads()
    monkeypatch.setenv("BAYESVOTE_THREADS", given)
    assert n_threads() == cores >= 1


def test_work_in_the_background_may_start_more_of_it_and_wait() -> None:
    done: list[str] = []

    def elsewhere() -> str:
        with ThreadPoolExecutor(1) as other:
            return other.submit(lambda: in_background(lambda: "elsewhere").result()).result(timeout=20)

    def nested() -> None:
        finish_background()
        done.append(in_background(lambda: "within").result())
        done.append(elsewhere())

    in_background(nested).result()
    assert done == ["within", "elsewhere"]


def test_work_of_a_thread_is_done_in_its_order_and_waited_for() -> None:
    others, done = list[threading.Thread](), list[tuple[int, int]]()

    def some(thread: int) -> None:
        for k in range(200):
            in_background(lambda k=k: done.append((thread, k)))  # type: ignore[misc]
        finish_background()
        assert [k for of, k in done if of == thread] == list(range(200))
        done.append((thread, 200))

    for thread in range(3):
        others.append(threading.Thread(target=some, args=(thread,)))
        others[-1].start()
    for other in others:
        other.join()
    assert len(done) == 3 * 201


def test_an_error_of_work_that_is_done_at_once_is_told_when_it_is_waited_for() -> None:
    def failing() -> None:
        raise ArithmeticError("no")

    def nested() -> str:
        job = in_background(failing)
        with pytest.raises(ArithmeticError, match="no"):
            job.result()
        return "told"

    assert in_background(nested).result() == "told"


NO_MEMORY = """
import _testcapi, faulthandler
from bayesvote.core.threads import finish_background, in_background, parallel_for

faulthandler.dump_traceback_later(20, exit=True)

def work(first=1, last=1):
    if first:
        _testcapi.set_nomemory(0)  # from now on nobody gets any

def job():
    in_background(work).wait()

def share():
    parallel_for(work, 2)

def finish():
    in_background(work)
    finish_background()

for act in (job, share, finish) * 50:
    try:
        act()
    except MemoryError:
        pass
    _testcapi.remove_mem_hooks()
    assert in_background(lambda: 7).result() == 7
    parallel_for(lambda *_: None, 2)
print("done")
"""


def test_who_waits_is_told_the_end_where_no_memory_is_left() -> None:
    pytest.importorskip("_testcapi")
    environment = os.environ | {"BAYESVOTE_THREADS": "2"}
    command = [sys.executable, "-c", NO_MEMORY]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.returncode) == ("done\n", 0), done.stderr


class Nested:
    """A classifier that has an ensemble of its own, and has it learn chunks."""

    classes_ = np.array([0, 1])

    def __init__(self) -> None:
        self.model = Ensemble(PerceptronBank(3)).start(2, rng=0)

    def get_params(self, deep: bool = True) -> dict[str, object]:  # noqa: ARG002
        return {}

    def partial_fit(self, X: Array, y: Labels, classes: object = None) -> "Nested":  # noqa: ARG002
        self.model.decide_then_learn(np.repeat(X, 3000, axis=0), np.repeat(y, 3000))
        return self

    def predict(self, X: Array) -> NDArray[Any]:
        return np.asarray(self.model.decide(X).argmin(axis=1))


def test_a_member_may_use_the_library_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BAYESVOTE_THREADS", "2")
    X = np.random.default_rng(0).normal(size=(300, 2))
    y = (X[:, 0] > 0).astype(np.intp)
    model, found = Ensemble(EstimatorBank([Nested()], online=True)).start(2, rng=0), list[int]()
    learning = threading.Thread(target=lambda: found.extend(model.decide_then_learn(X, y)), daemon=True)
    learning.start()
    learning.join(timeout=30)
    assert len(found) == 300
