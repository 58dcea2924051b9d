"""Loading the paper's data sets: from a folder, the user's cache, this package, or the LIBSVM site."""

import hashlib
import lzma
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from bayesvote.core.checks import Array, InputError, one_of
from bayesvote.datasets.registry import DATASETS, SITE, Facts
from bayesvote.io.open_stream import open_bytes, require_extra, stream
from bayesvote.tables import is_table, read_table

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    Sparse = csr_array[np.float64, tuple[int, int]]

_EMBEDDED = Path(__file__).with_name("data")


class Dataset(NamedTuple):
    """A data set of the paper.

    Attributes
    ----------
    X
        The features, unscaled: CSR for the one-hot sets adult and mushrooms, dense otherwise.
    y
        The labels: 1 for LIBSVM's +1 (its larger label), 0 for the other.
    name
        The set's name.
    partial
        Whether rows of the paper's set are missing.
    source
        Where it was found: "folder", "cache", "embedded" or "download".
    provenance
        Where the rows come from, with their licence.
    """

    X: "Array | Sparse"
    y: NDArray[np.intp]
    name: str
    partial: bool
    source: str
    provenance: str

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return len(self.y)


def load_dataset(name: str, *, progress: bool = True) -> Dataset:
    """Load one of the paper's thirteen data sets.

    It is looked for as ``NAME.libsvm.xz`` in the folder that the environment variable BAYESVOTE_DATA names, in the
    user's cache, and in this package; else it is downloaded from the LIBSVM site, or from the address in
    BAYESVOTE_SITE, into the cache. Its rows, features, positives and, where known, the SHA-256 of its values are
    checked, wherever it comes from.

    Parameters
    ----------
    name
        One of `DATASETS`.
    progress
        Whether a download shows its progress on standard error.

    Examples
    --------
    >>> heart = load_dataset("heart")
    >>> heart.X.shape, int(heart.y.sum())
    ((270, 13), 120)
    """
    one_of("load_dataset", "name", name, DATASETS)
    entry = DATASETS[name]
    source, path = locate(name)
    if source == "download":
        X, y, facts = _download(name, path, progress)
    else:
        X, y, facts = _read(name, path, entry.part, "Replace or delete it.")
    if source == "embedded":
        provenance = path.with_name(f"{name}.txt").read_text(encoding="utf-8")
    else:
        provenance = f"{' + '.join(entry.pieces)} of {SITE}, read from {path}"
    return Dataset(X if entry.sparse else X.toarray(), y, name, facts is entry.part, source, provenance)


def locate(name: str) -> tuple[str, Path]:
    """Where a set is: its source and its file; for "download", the file in the cache that it would become."""
    file = f"{name}.libsvm.xz"
    folder = os.environ.get("BAYESVOTE_DATA")
    places = {"folder": Path(folder) / file} if folder else {}
    places |= {"cache": cache_folder() / file, "embedded": _EMBEDDED / file}
    for source, path in places.items():
        if os.path.isfile(path):  # unlike the method of Path, it takes a folder that is closed to us for an empty one
            return source, path
    return "download", places["cache"]


def cache_folder() -> Path:
    """The user's cache, as the operating system has it."""
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "bayesvote"


@overload
def scale(X: "Array | Sparse") -> "Array | Sparse": ...


@overload
def scale(X: Any) -> Any: ...


def scale(X: Any) -> Any:
    """Map every feature to [-1, 1] by its least and largest value; a constant one becomes 0.

    Sparse features are divided by their largest size instead, so that zeros stay zeros. Of a DataFrame, of pandas or
    polars, the columns of numbers are mapped, and the others stay as they are.

    All rows decide the scale. Do not scale test rows together with training rows; classifiers scale numbers by
    themselves.

    >>> scale(np.array([[1.0, 5.0, np.nan], [3.0, 5.0, 2.0], [2.0, 5.0, 4.0]]))
    array([[-1.,  0., nan],
           [ 1.,  0., -1.],
           [ 0.,  0.,  1.]])
    """
    if hasattr(X, "dtypes") and is_table(X):
        cells = read_table("scale", X).columns
        mapped = {name: scale(one.numbers[:, None])[:, 0] for name, one in cells.items() if one.kind == "number"}
        if hasattr(X, "with_columns"):
            return X.with_columns(**mapped)
        out = X.copy()
        for name in X.columns:
            if str(name) in mapped:
                out[name] = mapped[str(name)]
        return out
    if not hasattr(X, "indices"):
        X = np.asarray(X, dtype=np.float64)
    if not isinstance(X, np.ndarray):
        largest = np.zeros(X.shape[1])
        np.fmax.at(largest, X.indices, np.abs(X.data))
        scaled = X.copy()
        scaled.data /= np.where(largest > 0, largest, 1)[X.indices]
        return scaled
    low = np.fmin.reduce(X, axis=0)
    span = np.fmax.reduce(X, axis=0) - low
    return np.asarray(2 * (X - low) / np.where(span > 0, span, 1) - (span > 0))


def fingerprint(X: "Sparse", y: NDArray[np.intp]) -> str:
    """SHA-256 of the values, however they were written: of the shape, labels, and every value that is not 0."""
    X = X.copy()
    X.eliminate_zeros()
    parts = (np.array(X.shape), y, np.diff(X.indptr), X.indices)
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part.astype("<i4").tobytes())
    digest.update(X.data.astype("<f8").tobytes())
    return digest.hexdigest()


def _read(name: str, path: Path, part: Facts | None, remedy: str) -> "tuple[Sparse, NDArray[np.intp], Facts]":
    """Read and check a set's file, which holds all rows or this part of them; also return which."""
    from scipy.sparse import csr_array, vstack

    def require(what: str, expected: object, got: object) -> None:
        if expected is not None and expected != got:
            subject = f"{what} of {name!r}"
            raise InputError("load_dataset", subject, f"must be {expected}", f"{got} in {path}", remedy)

    entry = DATASETS[name]
    try:
        chunks = list(stream(path, "libsvm", n_features=entry.features, chunk_size=16384))
    except ValueError as error:
        must = f"must hold {name!r} as LIBSVM text"
        raise InputError("load_dataset", str(path), must, f"this: {error}".removesuffix("."), remedy) from error
    n_rows = sum(len(chunk.y) for chunk in chunks)
    facts = part if part and n_rows == part.rows else entry.whole
    require("the number of rows", facts.rows, n_rows)
    labels = np.concatenate([chunk.y for chunk in chunks])
    require("the number of classes", 2, len(np.unique(labels)))
    y = (labels == labels.max()).astype(np.intp)
    require("the number of positives", facts.positives, int(y.sum()))
    X: Sparse = csr_array(vstack([csr_array(chunk.X) for chunk in chunks], format="csr"))
    X.eliminate_zeros()
    require("the SHA-256 of the values", facts.sha256, fingerprint(X, y))
    return X, y, facts


def _download(name: str, path: Path, progress: bool) -> "tuple[Sparse, NDArray[np.intp], Facts]":
    """Fetch a set's pieces, join and check them, and only then put them into the cache."""
    require_extra("load_dataset", "pooch", "data", f"to download {name!r}")
    if progress:
        require_extra("load_dataset", "tqdm", "data", "to show the progress of a download")
    import pooch

    site = os.environ.get("BAYESVOTE_SITE", SITE)
    log = pooch.get_logger()
    level = log.level
    with _beside(path, name) as folder:
        joined = Path(folder, path.name)
        log.setLevel("WARNING")  # it would ask the user to note down each file's hash
        try:
            with lzma.open(joined, "wb", preset=1) as out:
                for piece in DATASETS[name].pieces:
                    address = f"{site.rstrip('/')}/{piece}"
                    fetched = pooch.retrieve(address, None, fname=piece, path=folder, progressbar=progress)
                    with open_bytes(fetched) as file:
                        shutil.copyfileobj(file, out)
                    out.write(b"\n")
        except (OSError, EOFError) as error:
            raise OSError(
                f"load_dataset: {name!r} must be fetched from {address}, got this: {error}. Try again, or set "
                f"BAYESVOTE_DATA to a folder that has {path.name}."
            ) from error
        finally:
            log.setLevel(level)
        found = _read(name, joined, None, "Nothing was kept: try again.")
        os.replace(joined, path)
    return found


def _beside(path: Path, name: str) -> tempfile.TemporaryDirectory[str]:
    """Make a folder beside a file of the cache, for what becomes that file."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return tempfile.TemporaryDirectory(prefix=f"{name}-", dir=path.parent)
    except OSError as error:
        variable = {"win32": "LOCALAPPDATA", "darwin": "HOME"}.get(sys.platform, "XDG_CACHE_HOME")
        raise OSError(
            f"load_dataset: the cache {path.parent} must be a folder that can be written to, for {name!r} to be kept "
            f"there, got this: {error}. Set {variable} to a folder that can, or BAYESVOTE_DATA to one that has "
            f"{path.name}."
        ) from error
