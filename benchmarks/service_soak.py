"""Run the service under mixed load for an hour, and check that memory does not grow.

``python -m benchmarks service_soak [--minutes 3]`` sends some hundreds of requests per second: predictions with and
without ids, late and repeated labels, batches, invalid requests, new and retired models, and metrics. A live page is
open. Memory must not grow, no request may cause a server error or a lost connection, and every label must be learned
once.
"""

import argparse
import asyncio
import json
import random
import tempfile
import time
from pathlib import Path

import numpy as np

from service_client import PAPER, Connection, Server, stream, tensor

CLIENTS, PAUSE = 8, 0.02
LATE, MOST_LATE = (
    20,
    60,
)  # rows of a client without a label; those of all clients are fewer than --max-pending
ALLOWED = 1.10  # largest memory of the last quarter, relative to the second one


class Trouble(Exception):  # noqa: N818 - the finding of this benchmark
    """The service did something that must not happen."""


async def client(number: int, port: int, end: float, counts: dict[str, int]) -> None:
    """Send random requests of all kinds."""
    rng, connection = random.Random(number), Connection(port)
    X, y = stream(1000, seed=number)
    waiting: list[tuple[str, int]] = []
    serial = 0

    async def ask(what: str, path: str, body: object, expected: tuple[int, ...] = (200,)) -> None:
        status, found = await connection.request("POST", f"/v2/models/{path}", json.dumps(body).encode())
        if status not in expected:
            raise Trouble(f"{what}: {status} {found.decode()}")
        counts[what] = counts.get(what, 0) + 1

    while time.monotonic() < end:
        row, model = rng.randrange(900), rng.choice(("paper", "usual"))
        rows = {"inputs": [tensor(X[row : row + 1])]}
        what = rng.random()
        if what < 0.45 and len(waiting) < MOST_LATE:
            serial += 1
            name = f"{model} {number} {serial}"
            outputs = [{"name": "label"}] if rng.random() < 0.95 else []
            await ask("predict", f"{model}/infer", rows | {"ids": [name], "outputs": outputs})
            if rng.random() < 0.95:  # the others never get a label
                waiting.append((name, int(y[row])))
        elif what < 0.85 and len(waiting) > LATE:
            name, code = waiting.pop(0)
            for _ in range(1 + (rng.random() < 0.1)):
                await ask("label", f"{name.split()[0]}/label", {"ids": [name], "labels": [code]})
        elif what < 0.9:
            labels = y[row : row + 50].tolist()
            await ask("learn", f"{model}/learn", {"inputs": [tensor(X[row : row + 50])], "labels": labels})
        elif what < 0.95:
            await ask("plain predict", f"{model}/infer", rows | {"outputs": [{"name": "probability"}]})
        elif what < 0.99:
            await ask("refused", f"{model}/label", {"ids": ["never"], "labels": [1]}, (404,))
        else:
            path = f"/v2/models/new-{number}"
            await connection.json("PUT", path, {"columns": 20, "classes": [0, 1], "n_members": 10})
            await connection.json("DELETE", path)
            await connection.request("GET", "/metrics")
            counts["models"] = counts.get("models", 0) + 1
        await asyncio.sleep(PAUSE * rng.random())
    connection.close()


async def watcher(port: int, end: float, counts: dict[str, int]) -> None:
    """Read the events of the live page, and open it again from time to time."""
    while time.monotonic() < end:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /events?model=usual HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        until = min(end, time.monotonic() + 20)
        while time.monotonic() < until:
            line = await asyncio.wait_for(reader.readline(), 60)
            counts["events"] = counts.get("events", 0) + line.startswith(b"data: ")
        writer.transport.abort()


async def soak(server: Server, minutes: float) -> tuple[dict[str, int], list[int]]:
    """Count the requests, and record the memory every few seconds."""
    connection = Connection(server.port)
    for name, options in (("paper", PAPER), ("usual", {})):
        await connection.json("PUT", f"/v2/models/{name}", {"columns": 20, "classes": [0, 1], **options})
    connection.close()
    counts: dict[str, int] = {}
    memory: list[int] = []
    end = time.monotonic() + 60 * minutes
    tasks = [asyncio.create_task(client(k, server.port, end, counts)) for k in range(CLIENTS)]
    tasks.append(asyncio.create_task(watcher(server.port, end, counts)))
    while time.monotonic() < end and not any(task.done() for task in tasks):
        memory.append(server.memory())
        await asyncio.sleep(min(5.0, minutes))
    await asyncio.gather(*tasks)
    return counts, memory


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--minutes", type=float, default=60.0)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        log = Path(place) / "log"
        server = Server.of(
            Path(place) / "folder", "--prune", "--snapshot-every", "5000", "--max-pending", "2000", log=log
        )
        try:
            server.wait()
            counts, memory = asyncio.run(soak(server, given.minutes))
            code = server.stop()
        finally:
            server.kill()
        wrong = [line for line in log.read_text().splitlines() if " error: " in line or "Traceback" in line]
    quarter = len(memory) // 4
    before, after = (float(np.median(part)) for part in (memory[quarter : 2 * quarter], memory[3 * quarter :]))
    print(f"{given.minutes:g} minutes:", ", ".join(f"{count:,} {what}" for what, count in sorted(counts.items())))
    print(
        f"memory: {before / 1e6:.1f} MB in the second quarter, {after / 1e6:.1f} MB in the last ({after / before:.3f})"
    )
    if wrong or code or after > ALLOWED * before:
        raise SystemExit(f"exit code {code}, memory {after / before:.3f}, in the log: {wrong[:5]}")
    print("no error, and memory does not grow")


if __name__ == "__main__":
    main()
