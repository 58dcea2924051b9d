"""Kill the service at random moments under load, and check that no acknowledged row is lost.

``python -m benchmarks service_kills [--kills 5]``. Eight clients predict with ids, label late, repeat labels, and learn
in batches at the same time. The server is killed by SIGKILL at random moments and started again on the same folder. At
the end, the acknowledged rows are compared with the journal. The recovered model is compared with a model that learned
the journal's rows without interruption, in other chunks.
"""

import argparse
import asyncio
import json
import random
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from bayesvote.apps.service.folder import Folder, from_snapshot
from bayesvote.apps.service.forecasts import Forecasts
from bayesvote.apps.service.journal import Journal, JournalEntry
from bayesvote.apps.service.models import ServedModel
from bayesvote.core.checks import Array
from bayesvote.core.rows import as_rows
from bayesvote.io.model_file import dumps
from service_client import Connection, Forked, Lost, free_port, stream, tensor

CLIENTS, HANGS = 8, 120.0
CLASSES = ["no", "yes"]
MODEL = {"columns": 6, "classes": CLASSES, "members": "perceptron", "n_members": 20, "seed": 0}


@dataclass
class Sent:
    """Labels by id that the clients sent, and those that were acknowledged."""

    labelled: dict[str, int] = field(default_factory=dict)
    sent: dict[str, int] = field(default_factory=dict)
    predicted: dict[str, list[float]] = field(default_factory=dict)
    answers: int = 0
    lost: int = 0


@dataclass
class Outcome:
    """Figures of the whole run."""

    kills: int
    answers: int
    lost: int
    acknowledged: int
    journalled: int


async def client(number: int, port: int, sent: Sent, stop: asyncio.Event, seed: int) -> None:
    """Predict, label late, repeat labels, and learn in batches."""
    rng = random.Random(f"{seed}-{number}")
    X, y = stream(500, 6, seed=number)
    connection = Connection(port)
    waiting: list[tuple[str, int]] = []
    while not stop.is_set():
        try:
            async with asyncio.timeout(HANGS):
                await _step(connection, rng, X, y, f"{seed}-{number}", sent, waiting)
            sent.answers += 1
        except Lost:
            sent.lost += 1
            await asyncio.sleep(0.05)
    connection.close()


async def _step(
    connection: Connection, rng: random.Random, X: Any, y: Any, prefix: str, sent: Sent, waiting: list[tuple[str, int]]
) -> None:
    row = rng.randrange(len(X) - 8)
    what = rng.random()
    if what < 0.4 or not waiting:
        name = f"{prefix}-{rng.getrandbits(60)}"
        body = {"inputs": [tensor(X[row : row + 1])], "ids": [name], "outputs": [{"name": "probability"}]}
        answer = await connection.json("POST", "/v2/models/m/infer", body)
        sent.predicted[name] = answer["outputs"][0]["data"]
        waiting.append((name, int(y[row])))
    elif what < 0.8:
        name, code = rng.choice(waiting)  # repeat some labels
        sent.sent[name] = code
        await connection.json("POST", "/v2/models/m/label", {"ids": [name], "labels": [CLASSES[code]]})
        sent.labelled[name] = code
        if rng.random() < 0.8:
            waiting.remove((name, code))
    else:
        names = [f"{prefix}-{rng.getrandbits(60)}" for _ in range(8)]
        codes = y[row : row + 8].tolist()
        sent.sent |= dict(zip(names, codes, strict=True))
        labels = [CLASSES[code] for code in codes]
        body = {"inputs": [tensor(X[row : row + 8])], "labels": labels, "ids": names}
        await connection.json("POST", "/v2/models/m/learn", body)
        sent.labelled |= dict(zip(names, codes, strict=True))


async def killed(folder: Path, kills: int, seed: int, longest: float = 0.6) -> tuple[Sent, int]:
    """Kill the server ``kills`` times; return what the clients sent, and ``kills``."""
    rng, sent, stop, port = random.Random(seed), Sent(), asyncio.Event(), free_port()

    server = Forked(folder, port, snapshot_every=100)
    await asyncio.to_thread(server.wait)
    connection = Connection(port)
    await connection.json("PUT", "/v2/models/m", MODEL)
    connection.close()
    clients = [asyncio.create_task(client(k, port, sent, stop, seed)) for k in range(CLIENTS)]
    for _ in range(kills):
        if rng.random() < 0.8:  # under load; without waiting, the server may be killed during recovery
            before, end = sent.answers, time.monotonic() + HANGS
            while sent.answers < before + CLIENTS:
                await asyncio.sleep(0.005)
                for task in clients:
                    if task.done():
                        task.result()  # raises the error of a client
                if time.monotonic() > end or not server.process.is_alive():
                    log = (folder.parent / "log").read_text()
                    raise AssertionError(f"no responses after a restart: {log[-2000:]}")
        await asyncio.sleep(rng.uniform(0, longest))
        await asyncio.to_thread(server.kill)
        server = Forked(folder, port, snapshot_every=100)
    await asyncio.to_thread(server.wait)
    await asyncio.sleep(longest)
    stop.set()
    await asyncio.wait_for(asyncio.gather(*clients), 2 * HANGS)
    await asyncio.to_thread(server.kill)
    return sent, kills


def uninterrupted(folder: Path) -> tuple[ServedModel, dict[str, int], int]:
    """Return a model that learned the whole journal in other chunks, the labels by id, and the number of rows."""
    journal = Journal(folder, read_only=True)
    row = journal.models()[0]
    first = journal.snapshots(row.number)[-1]
    served = from_snapshot(folder, row, first)
    entries = list(journal.entries(row.number))
    X = served.format.unpack(b"".join(entry.rows for entry in entries), sum(entry.n for entry in entries))
    codes = np.frombuffer(b"".join(entry.codes for entry in entries), dtype=np.int32).astype(np.intp)
    size, model = served.forecast_size, served.estimator.model_
    lines = [line for entry in entries for line in _forecasts(entry, size)]
    if not any(line is None for line in lines) or all(line is None for line in lines):
        raise AssertionError("some rows must have a forecast, and some must not")
    for k, line in enumerate(lines):
        forecast = None if line is None else model.unpacked(line[None])
        served.estimator.advance(as_rows("check", X[k : k + 1]), codes[k : k + 1], np.ones(1), forecast)
    found: dict[str, int] = {}
    for entry in entries:
        ids = json.loads(entry.ids or "[]")
        if len(ids) != entry.n or {*ids} & found.keys():
            raise AssertionError("a row is in the journal twice")
        found |= dict(zip(ids, np.frombuffer(entry.codes, dtype=np.int32).tolist(), strict=True))
    journal.close()
    if first.rows != 0:
        raise AssertionError("the first snapshot must have no learned rows")
    return served, found, len(codes)


def _forecasts(entry: JournalEntry, size: int) -> list[Array | None]:
    """Return the forecast of each row of an entry, or None."""
    found = Forecasts.from_bytes([(entry.n, entry.forecasts)], size)
    if found is None:
        return [None] * entry.n
    lines = iter(found.packed)
    return [next(lines) if flag else None for flag in found.flags]


def trial(folder: Path, kills: int, seed: int = 0, longest: float = 0.6) -> Outcome:
    """Kill, recover and compare; raise AssertionError if a row is lost, duplicated or different."""
    sent, kills = asyncio.run(killed(folder, kills, seed, longest))
    expected, journalled, rows = uninterrupted(folder)
    opened = Folder(folder)
    try:
        recovered = opened.open_models()[0]
    finally:
        opened.close()
    for name, code in sent.labelled.items():
        if journalled.get(name) != code:
            raise AssertionError(
                f"{name} was acknowledged with label {code}, but is {journalled.get(name)} in the journal"
            )
    for name, code in journalled.items():
        if sent.sent.get(name) != code:
            raise AssertionError(f"{name} is in the journal with {code}, which no client sent")
    if recovered.rows != rows or dumps(recovered.estimator) != dumps(expected.estimator):
        raise AssertionError("the recovered model differs from that of the uninterrupted run")
    if recovered.scores.tally.rows != rows:
        raise AssertionError("the figures of the service do not count all rows")
    return Outcome(kills, sent.answers, sent.lost, len(sent.labelled), rows)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    start = time.time()
    with tempfile.TemporaryDirectory() as place:
        found = trial(Path(place) / "folder", given.kills, given.seed)
    print(
        f"{found.kills} kills in {time.time() - start:.0f} s: {found.answers:,} requests answered, {found.lost:,} cut "
        "off; "
        f"{found.acknowledged:,} rows acknowledged, {found.journalled:,} journalled, each once; "
        "the recovered model equals that of the uninterrupted run, bit for bit; no request hung."
    )


if __name__ == "__main__":
    main()
