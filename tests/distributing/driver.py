"""A process that drives a run over shards and can be killed: what it is given to do, it notes down first.

``python driver.py ENGINE RECORD MODEL LOG FILE...`` fits the shards, and writes the model when it is done.
"""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bayesvote.apps.distributed import Dask, Engine, Loop, fit
from bayesvote.io.model_file import save
from distributing.rows import classifier


class Noting:
    """An engine that records its jobs, by stage and shard."""

    def __init__(self, engine: Engine, log: Path) -> None:
        self._engine = engine
        self._log = log
        self.link = None

    def __enter__(self) -> "Noting":
        self._engine.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._engine.__exit__(*error)

    def map(self, work: Any, items: Any, shared: Any = (), deadline: float | None = None) -> Iterator[tuple[int, Any]]:
        stage = getattr(work, "__name__", type(work).__name__).lower()
        with self._log.open("a") as log:
            log.writelines(f"{stage}/{item.place:06d}\n" for item in items)
        return self._engine.map(work, items, shared, deadline)


def main(name: str, record: str, model: str, log: str, *files: str) -> None:
    engine: Engine = Dask(workers=2) if name == "dask" else Loop()
    with engine:
        if isinstance(engine, Dask):
            Path(f"{log}.pids").write_text(" ".join(map(str, engine.worker_pids())))
        found = fit(files, classifier(n_members=36), engine=Noting(engine, Path(log)), record=record)
    save(found, f"{model}.{os.getpid()}")
    os.replace(f"{model}.{os.getpid()}", model)


if __name__ == "__main__":
    main(*sys.argv[1:])
