"""Dask as the engine: a real cluster of processes, whose workers are killed."""

import os
import random
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bayesvote.apps.distributed import Dask, Failure, Job, fit, predict
from bayesvote.apps.distributed.dask import check_address
from bayesvote.io.model_file import dumps
from distributing.rows import classifier, shards, write_csv

da: Any = import_module("dask.array")


@pytest.fixture(scope="module")
def engine() -> Iterator[Dask]:
    with Dask(workers=2) as found:
        yield found


def double(item: int, shared: Sequence[int]) -> int:
    if item == 3:
        raise LookupError("no three")
    return 2 * item + sum(shared)


def sleep(item: float, shared: Sequence[Any]) -> float:  # noqa: ARG001
    time.sleep(item)
    return item


def end_the_process(item: int, shared: Sequence[Any]) -> int:  # noqa: ARG001
    if item == 1:
        os._exit(1)
    return item


def test_every_item_is_answered_and_errors_are_failures(engine: Dask) -> None:
    found = dict(engine.map(double, range(30), [100, 1000]))
    assert found == {k: 2 * k + 1100 if k != 3 else Failure("LookupError", "no three") for k in range(30)}
    assert engine.link is not None
    assert engine.link.startswith("http://127.0.0.1:")


def test_two_workers_give_the_bits_of_the_loop(engine: Dask, tmp_path: Path) -> None:
    parts = shards(6)
    assert dumps(fit(parts, classifier(), engine=engine)) == dumps(fit(parts, classifier()))
    files = write_csv(tmp_path, shards(5, n_classes=3))
    job = Job(engine)
    model = job.fit(files, classifier(weighter="gamma_rate"))
    assert dumps(model) == dumps(fit(files, classifier(weighter="gamma_rate")))
    assert 0 < job.error(model) < 0.5
    Path(files[3]).write_text("a,b,c,d,pet\n1,2,3,4\n")
    with pytest.raises(ValueError, match=r"03\.csv must pass .*must have 5 fields"):
        fit(files, classifier(), engine=engine)


@pytest.mark.parametrize("workers", [1, 3])
def test_the_bits_do_not_depend_on_the_number_of_workers(workers: int) -> None:
    parts = shards(5, n_classes=3)
    with Dask(workers) as engine:
        assert len(engine.worker_pids()) == workers
        model = fit(parts, classifier(class_weight={"yes": 2.0}), engine=engine)
    assert dumps(model) == dumps(fit(parts, classifier(class_weight={"yes": 2.0})))
    assert engine.link is None


def test_a_cluster_that_is_slow_to_end_takes_no_result_away(monkeypatch: pytest.MonkeyPatch) -> None:
    with Dask(workers=1) as engine:
        cluster: Any = engine.client.cluster
        close, found = cluster.close, dict(engine.map(double, [1, 2]))

        def slowly_close(*arguments: Any, **options: Any) -> None:
            close(*arguments, **options)
            raise TimeoutError

        monkeypatch.setattr(cluster, "close", slowly_close)
    assert found == {0: 2, 1: 4}
    assert engine.link is None


def test_workers_of_a_cluster_that_does_not_end_are_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    with Dask(workers=1) as engine:
        cluster: Any = engine.client.cluster
        close, (pid,) = cluster.close, engine.worker_pids()

        def never_close(timeout: float) -> None:
            assert timeout > 0
            for nanny in cluster.workers.values():
                nanny.auto_restart = False
            raise TimeoutError

        monkeypatch.setattr(cluster, "close", never_close)
    deadline = time.monotonic() + 20
    with suppress(ProcessLookupError):
        while True:
            os.kill(pid, 0)  # asks whether it is there
            assert time.monotonic() < deadline
            time.sleep(0.05)
    close(timeout=20)


def test_collections_are_shards_and_are_predicted_on_the_cluster(engine: Dask) -> None:
    parts = shards(4)
    X, y = (np.concatenate(some) for some in zip(*parts, strict=True))
    rows = da.from_array(X, chunks=(240, 4))
    model = fit((rows, da.from_array(y, chunks=240)), classifier(), engine=engine)
    assert dumps(model) == dumps(fit(parts, classifier()))
    client: Any = engine.client
    np.testing.assert_array_equal(client.compute(predict(model, rows)).result(), model.predict(X))
    with pytest.raises(ValueError, match="must not be persisted"):
        fit((client.persist(rows), da.from_array(y, chunks=240)), classifier(), engine=engine)


def test_a_running_scheduler_and_a_client_of_ones_own_are_used(engine: Dask) -> None:
    client: Any = engine.client
    with Dask(scheduler=client.scheduler.address) as other, other:
        assert dict(other.map(double, [1, 2])) == {0: 2, 1: 4}
    with Dask(client=client) as other:
        assert dict(other.map(double, [1, 2])) == {0: 2, 1: 4}
    assert dict(engine.map(double, [1])) == {0: 2}  # it is still open


def test_after_the_time_limit_nothing_is_waited_for(engine: Dask) -> None:
    start = time.monotonic()
    with pytest.raises(TimeoutError):
        list(engine.map(sleep, [0.0, 5.0, 5.0, 5.0], deadline=start + 1))
    assert time.monotonic() - start < 10


def slowly(rows: Any) -> Any:
    if len(rows) > 0 and np.nanmin(rows) < -100:
        time.sleep(600)
    return rows


def test_a_shard_that_hangs_stops_the_run_at_its_time_limit(tmp_path: Path) -> None:
    parts = shards(4, 60)
    X, y = (np.concatenate(some) for some in zip(*parts, strict=True))
    labels = da.from_array(y, chunks=60)
    with Dask(workers=2) as engine:
        fit((da.from_array(X, chunks=(60, 4)), labels), classifier(), engine=engine)  # all that is needed is imported
        X[-1, 0] = -1000.0
        rows = da.from_array(X, chunks=(60, 4)).map_blocks(slowly, dtype=float, meta=np.empty((0, 4)))
        start = time.monotonic()
        with pytest.raises(TimeoutError, match=r"limit of 10 s has passed; [1-3] of 4 shards finished the reading"):
            fit((rows, labels), classifier(), engine=engine, record=tmp_path, time_limit=10)
        assert time.monotonic() - start < 30
    assert time.monotonic() - start < 60  # nor does the cluster wait for it
    assert len([*tmp_path.glob("survey/??????")]) in (1, 2, 3)  # one may have waited behind it


def test_work_that_ends_its_process_every_time_is_to_blame_and_no_other(engine: Dask) -> None:
    client: Any = engine.client
    client.cluster.scheduler.allowed_failures = 0
    try:
        found = dict(engine.map(end_the_process, range(6), [0]))
    finally:
        client.cluster.scheduler.allowed_failures = 5
    assert found.pop(1).kind == "KilledWorker"
    assert found == {0: 0, 2: 2, 3: 3, 4: 4, 5: 5}


def test_ten_workers_are_killed_and_the_bits_are_right(engine: Dask) -> None:
    parts, model = shards(12, 400), classifier(n_members=72)
    expected, chance, kills = dumps(fit(parts, model)), random.Random(0), 0

    def kill() -> None:
        nonlocal kills
        while kills < 10:
            time.sleep(chance.uniform(0.1, 1.0))
            pids = engine.worker_pids()
            if pids:
                os.kill(chance.choice(pids), 9)
                kills += 1

    killer = threading.Thread(target=kill, daemon=True)
    killer.start()
    while killer.is_alive():
        assert dumps(fit(parts, model, engine=engine, time_limit=300)) == expected
    assert kills == 10


@pytest.mark.parametrize(
    "address",
    ["tcp://10.0.0.1:8786", "node:8786", "ws://node:80", "tcp://0.0.0.0:8786", "tcp://127.0.0.1.evil.org:8786"],
)
def test_a_scheduler_that_others_could_reach_must_use_tls(address: str) -> None:
    with pytest.raises(ValueError, match=r"must be on this machine or use TLS.*insecure"):
        Dask(scheduler=address)
    assert Dask(scheduler=address, insecure=True).link is None


@pytest.mark.parametrize("address", ["tls://node:8786", "tcp://127.0.0.1:8786", "localhost:8786", "tcp://[::1]:8786"])
def test_tls_and_this_machine_are_safe(address: str) -> None:
    check_address(address, insecure=False)


def test_settings_that_exclude_each_other_are_refused() -> None:
    with pytest.raises(ValueError, match="must not be combined"):
        Dask(2, scheduler="tls://node:8786")
    with pytest.raises(ValueError, match="workers must be an integer"):
        Dask(0)
