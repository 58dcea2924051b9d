"""Work that is shared among threads: every item once, in whole blocks, and errors are told."""

import threading
import time

import pytest

from bayesvote._threads import n_threads, parallel_for


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
