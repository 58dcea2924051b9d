"""Measure the service, and river behind FastAPI: requests per second, CPU time and latency.

The server has one core and the client another. There are 32 connections, 20 features and 100 members. Every connection
predicts a row with an id, and then labels it. The service writes both to disk (SQLite, synchronous=FULL) before it
responds; river keeps everything in memory. Rates per CPU time do not depend on the load of the machine. All models are
measured in turn, three times, and the medians are reported.

``--seconds 2`` is a short run. ``--paths`` compares the direct path of the service with uvicorn and Starlette instead.
"""

import argparse
import asyncio
import json
import os
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import results
from service_client import PAPER, Connection, Server, free_port, run, stream, tensor

CONNECTIONS, BATCH = 32, 256
BRIEF = ["label", "probability"]
Pair = Callable[[Connection, int], Awaitable[tuple[float, float]]]


async def timed(connection: Connection, path: str, body: bytes) -> float:
    start = time.perf_counter()
    status, found = await connection.request("POST", path, body)
    if status != 200:
        raise RuntimeError(f"{path}: {status} {found.decode()}")
    return time.perf_counter() - start


async def hammered(server: Server, pair: Pair, seconds: float) -> dict[str, float]:
    """Return rates and latencies of pairs of requests."""
    times: list[tuple[float, float]] = []
    end, counter = time.perf_counter() + seconds, iter(range(10**9))

    async def one() -> None:
        connection = Connection(server.port)
        while time.perf_counter() < end:
            times.append(await pair(connection, next(counter)))
        connection.close()

    before, start = server.seconds(), time.perf_counter()
    await asyncio.gather(*(one() for _ in range(CONNECTIONS)))
    wall, busy = time.perf_counter() - start, server.seconds() - before
    first, second = 1e3 * np.array(times).T
    n = 2 * len(times)
    return {
        "requests/s": n / wall,
        "requests/s of processor": n / busy,
        "predict p50 ms": float(np.median(first)),
        "predict p99 ms": float(np.quantile(first, 0.99)),
        "label p50 ms": float(np.median(second)),
        "label p99 ms": float(np.quantile(second, 0.99)),
    }


def service_pair(X: Any, y: Any, outputs: list[str], query: str = "") -> Pair:
    wanted = [{"name": name} for name in outputs]
    bodies = [json.dumps({"inputs": [tensor(row[None])], "outputs": wanted})[:-1] for row in X]

    async def pair(connection: Connection, k: int) -> tuple[float, float]:
        row = k % len(X)
        first = await timed(connection, f"/v2/models/m/infer{query}", f'{bodies[row]}, "ids": ["{k}"]}}'.encode())
        label = f'{{"ids": ["{k}"], "labels": [{y[row]}]}}'
        return first, await timed(connection, f"/v2/models/m/label{query}", label.encode())

    return pair


def river_pair(X: Any, y: Any) -> Pair:
    bodies = [json.dumps({f"x{k}": value for k, value in enumerate(row)}) for row in X.tolist()]

    async def pair(connection: Connection, k: int) -> tuple[float, float]:
        row = k % len(X)
        first = await timed(connection, "/predict", f'{{"id": "{k}", "x": {bodies[row]}}}'.encode())
        return first, await timed(connection, "/label", f'{{"id": "{k}", "y": {y[row]}}}'.encode())

    return pair


async def batches(server: Server, X: Any, y: Any, seconds: float) -> dict[str, float]:
    """Return the number of rows per second that are learned in batches and durable."""
    bodies = []
    for first in range(0, len(X), BATCH):
        part = slice(first, first + BATCH)
        bodies.append(json.dumps({"inputs": [tensor(X[part].round(6))], "labels": y[part].tolist()}).encode())
    times: list[float] = []
    end, counter = time.perf_counter() + seconds, iter(range(10**9))

    async def one() -> None:
        connection = Connection(server.port)
        while time.perf_counter() < end:
            times.append(await timed(connection, "/v2/models/m/learn", bodies[next(counter) % len(bodies)]))
        connection.close()

    before, start = server.seconds(), time.perf_counter()
    await asyncio.gather(*(one() for _ in range(8)))
    wall, busy = time.perf_counter() - start, server.seconds() - before
    n = BATCH * len(times)
    return {"rows/s": n / wall, "rows/s of processor": n / busy, "p99 ms": 1e3 * float(np.quantile(times, 0.99))}


async def service(folder: Path, options: dict[str, Any], outputs: list[str], seconds: float, core: int) -> list[Any]:
    server = Server.of(folder, core=core)
    try:
        server.wait()
        connection = Connection(server.port)
        await connection.json("PUT", "/v2/models/m", {"columns": 20, "classes": [0, 1], "seed": 0, **options})
        X, y = stream(4096)
        pair = service_pair(X, y, outputs)
        await hammered(server, pair, seconds / 4)  # warm
        await connection.json("DELETE", "/v2/models/m")
        await connection.json("PUT", "/v2/models/m", {"columns": 20, "classes": [0, 1], "seed": 0, **options})
        connection.close()
        pairs = await hammered(server, pair, seconds)
        return [pairs, await batches(server, X, y, seconds)]
    finally:
        server.kill()


async def compare_paths(folder: Path, seconds: float, rounds: int, core: int) -> None:
    """Measure the CPU time of a request on the direct path of the service, and on that of uvicorn and Starlette.

    A URL with a query is never handled on the direct path. So one server is measured on both paths, in turn.
    """
    server = Server.of(folder, core=core)
    X, y = stream(4096)
    paths = {"direct": service_pair(X, y, BRIEF), "uvicorn and Starlette": service_pair(X, y, BRIEF, "?path=asgi")}
    try:
        server.wait()
        connection = Connection(server.port)
        saved = dict[str, dict[str, float]]()
        for name, options in {"Perceptrons with (11)": PAPER, "default model": {}}.items():
            found: dict[str, list[float]] = {path: [] for path in paths}
            for number in range(rounds + 1):
                for path, pair in paths.items():
                    body = {"columns": 20, "classes": [0, 1], "seed": 0, **options}
                    await connection.json("PUT", "/v2/models/m", body)
                    rates = await hammered(server, pair, seconds)
                    await connection.json("DELETE", "/v2/models/m")
                    if number:  # the first round warms up
                        found[path].append(1e6 / rates["requests/s of processor"])
            times = {path: float(np.median(each)) for path, each in found.items()}
            direct, other = times.values()
            figures = ", ".join(f"{path} {value:.0f} us" for path, value in times.items())
            print(f"{name}: {figures} of CPU time per request; saved {1 - direct / other:.0%}", flush=True)
            saved[name] = times | {"saved": 1 - direct / other}
        connection.close()
        results.write("service_paths", saved, ["uvicorn", "starlette"])
    finally:
        server.kill()


async def peer(name: str, seconds: float, core: int) -> dict[str, float]:
    port = free_port()
    server = Server(
        [sys.executable, str(Path(__file__).with_name("service_river.py")), str(port), name], port, core=core
    )
    try:
        server.wait()
        X, y = stream(4096)
        pair = river_pair(X, y)
        await hammered(server, pair, seconds / 4)
        return await hammered(server, pair, seconds)
    finally:
        server.kill()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--rounds", type=int, default=3, help="number of repetitions, whose medians are shown")
    parser.add_argument("--folder", type=Path, default=None, help="folder of the journals")
    parser.add_argument("--paths", action="store_true", help="compare the direct path with uvicorn and Starlette only")
    given = parser.parse_args()
    cores = sorted(os.sched_getaffinity(0))
    core, own = (cores[0], cores[-1])
    os.sched_setaffinity(0, {own})
    if given.paths:
        with tempfile.TemporaryDirectory(dir=given.folder) as place:
            run(compare_paths(Path(place) / "folder", given.seconds, given.rounds, core))
        return
    trials = {
        "Perceptrons with (11), durable": (PAPER, BRIEF),
        "default model, durable": ({}, BRIEF),
        "Perceptrons with (11), durable, with certainty": (PAPER, [*BRIEF, "certainty"]),
        "default model, durable, with certainty": ({}, [*BRIEF, "certainty"]),
    }
    peers = {"river, bag of 100 Perceptrons": "hundred", "river, one logistic regression": "one"}
    found: dict[str, list[dict[str, float]]] = {}
    with tempfile.TemporaryDirectory(dir=given.folder) as place:
        for number in range(given.rounds):  # in turn, because the load of the machine may change
            for name, kind in peers.items():
                found.setdefault(name, []).append(run(peer(kind, given.seconds, core)))
            for name, (options, outputs) in trials.items():
                folder = Path(place) / f"{number} {name.replace('/', ' ')}"
                pairs, many = run(service(folder, options, outputs, given.seconds, core))
                found.setdefault(name, []).append(pairs)
                if outputs is BRIEF:
                    found.setdefault(f"{name}, learn in batches of {BATCH}", []).append(many)
    rows = {
        name: {key: float(np.median([each[key] for each in all_rounds])) for key in all_rounds[0]}
        for name, all_rounds in found.items()
    }
    for name, figures in rows.items():
        show(f"{name}, FastAPI, not durable" if name in peers else name, figures)
    times: dict[str, dict[str, list[float]]] = {name: {} for name in trials}
    for name in trials:
        for other in peers:
            ratios = [
                float(np.median([own[key] / its[key] for own, its in zip(found[name], found[other], strict=True)]))
                for key in ("requests/s", "requests/s of processor")
            ]
            times[name][other] = ratios
            print(f"{name} compared with {other}: {ratios[0]:.2f} times as fast, by CPU time {ratios[1]:.2f} times")
    results.write("service_load", {"rates": rows, "times": times}, ["river", "fastapi"])


def paths(result: results.Result) -> Iterator[str]:
    """Yield the table of the paths of a request, of docs/service.md."""
    yield "| model | direct | uvicorn and Starlette | saved |"
    yield "|---|---:|---:|---:|"
    for name, of in result.figures.items():
        yield f"| {name} | {of['direct']:.0f} µs | {of['uvicorn and Starlette']:.0f} µs | {of['saved']:.0%} |"


def rates(result: results.Result) -> Iterator[str]:
    """Yield the table of pairs of requests of docs/service.md."""
    yield "| model | requests/s | per second of CPU time | predict p50, p99 | label p50, p99 |"
    yield "|---|---:|---:|---:|---:|"
    for name, of in result.figures["rates"].items():
        if "requests/s" in of:
            pairs = [f"{of[f'{what} p50 ms']:.1f}, {of[f'{what} p99 ms']:.1f} ms" for what in ("predict", "label")]
            yield f"| {name} | {of['requests/s']:,.0f} | {of['requests/s of processor']:,.0f} | {' | '.join(pairs)} |"


def times_as_fast(result: results.Result) -> Iterator[str]:
    """Yield the ratios of the service's rates to river's."""
    others = list(next(iter(result.figures["times"].values())))
    yield "| times as many requests as | " + " | ".join(f"{other} | by CPU time" for other in others) + " |"
    yield "|---|" + "---:|" * 2 * len(others)
    for name, of in result.figures["times"].items():
        cells = [f"{value:.1f}" for other in others for value in of[other]]
        yield f"| {name} | " + " | ".join(cells) + " |"


def learned(result: results.Result) -> Iterator[str]:
    """Yield the rates of rows learned in batches."""
    yield "| model | rows/s | p99 |"
    yield "|---|---:|---:|"
    for name, of in result.figures["rates"].items():
        if "rows/s" in of:
            yield f"| {name} | {of['rows/s']:,.0f} | {of['p99 ms']:.0f} ms |"


def show(name: str, found: dict[str, float]) -> None:
    figures = ", ".join(f"{key} {value:,.1f}" if value < 100 else f"{key} {value:,.0f}" for key, value in found.items())
    print(f"{name}: {figures}", flush=True)


if __name__ == "__main__":
    main()
