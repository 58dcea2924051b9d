"""Load the paper's data sets from a folder, the user's cache, this package, or the LIBSVM site."""

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

from bayesvote.core.checks import Array, InputError, InputFileError, one_of
from bayesvote.datasets.registry import DATASETS, SITE, DatasetFacts
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
        True if rows of the paper's set are missing.
    source
        Where it was loaded from: "folder", "cache", "embedded" or "download".
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

    The file ``NAME.libsvm.xz`` is searched for in the folder named by the environment variable BAYESVOTE_DATA, in the
    user's cache, and in this package. Otherwise it is downloaded to the cache from the LIBSVM site, or from the address
    in BAYESVOTE_SITE. The numbers of rows, features and positives and, if known, the SHA-256 of the values are checked
    in every case.

    Parameters
    ----------
    name
        One of `DATASETS`.
    progress
        Whether to show the progress of a download on standard error.

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
    """Return the source of a data set and its file; for "download", the future file in the cache."""
    file = f"{name}.libsvm.xz"
    folder = os.environ.get("BAYESVOTE_DATA")
    places = {"folder": Path(folder) / file} if folder else {}
    places |= {"cache": cache_folder() / file, "embedded": _EMBEDDED / file}
    for source, path in places.items():
        if os.path.isfile(path):  # unlike Path.is_file, returns False in a folder without permission
            return source, path
    return "download", places["cache"]


def cache_folder() -> Path:
    """Return the user's cache folder of the operating system."""
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

    Sparse features are divided by their largest absolute value instead, so that zeros stay zeros. In a DataFrame of
    pandas or polars, number columns are mapped, and the others stay unchanged.

    All rows determine the scale. Do not scale test rows together with training rows; classifiers scale numbers
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
    """Return the SHA-256 of the shape, the labels and all non-zero values, independent of their text format."""
    X = X.copy()
    X.eliminate_zeros()
    parts = (np.array(X.shape), y, np.diff(X.indptr), X.indices)
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part.astype("<i4").tobytes())
    digest.update(X.data.astype("<f8").tobytes())
    return digest.hexdigest()


def _read(
    name: str, path: Path, part: DatasetFacts | None, remedy: str
) -> "tuple[Sparse, NDArray[np.intp], DatasetFacts]":
    """Read and check the file of a data set; also return whether it has all rows or ``part``."""
    from scipy.sparse import csr_array, vstack

    def require(what: str, expected: object, got: object) -> None:
        if expected is not None and expected != got:
            subject = f"{what} of {name!r}"
            raise InputError("load_dataset", subject, f"must be {expected}", f"{got} in {path}", remedy)

    entry = DATASETS[name]
    try:
        chunks = list(stream(path, "libsvm", n_features=entry.features, chunk_size=16384))
    except ValueError as error:
        must = f"must contain {name!r} as LIBSVM text"
        raise InputError("load_dataset", str(path), must, f"an error: {error}".removesuffix("."), remedy) from error
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


def _download(name: str, path: Path, progress: bool) -> "tuple[Sparse, NDArray[np.intp], DatasetFacts]":
    """Download the files of a data set, join and check them, and only then move them to the cache."""
    require_extra("load_dataset", "pooch", "data", f"to download {name!r}")
    if progress:
        require_extra("load_dataset", "tqdm", "data", "to show the progress of a download")
    import pooch

    site = os.environ.get("BAYESVOTE_SITE", SITE)
    log = pooch.get_logger()
    level = log.level
    with _temporary_folder(path, name) as folder:
        joined = Path(folder, path.name)
        log.setLevel("WARNING")  # it would tell the user to write down the hash of each file
        try:
            with lzma.open(joined, "wb", preset=1) as out:
                for piece in DATASETS[name].pieces:
                    address = f"{site.rstrip('/')}/{piece}"
                    fetched = pooch.retrieve(address, None, fname=piece, path=folder, progressbar=progress)
                    with open_bytes(fetched) as file:
                        shutil.copyfileobj(file, out)
                    out.write(b"\n")
        except (OSError, EOFError) as error:
            do = f"Try again, or set BAYESVOTE_DATA to a folder that contains {path.name}."
            raise InputFileError(
                "load_dataset", repr(name), f"must be downloaded from {address}", f"an error: {error}", do
            ) from error
        finally:
            log.setLevel(level)
        found = _read(name, joined, None, "Nothing was saved. Try again.")
        os.replace(joined, path)
    return found


def _temporary_folder(path: Path, name: str) -> tempfile.TemporaryDirectory[str]:
    """Make a temporary folder next to a file of the cache."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return tempfile.TemporaryDirectory(prefix=f"{name}-", dir=path.parent)
    except OSError as error:
        variable = {"win32": "LOCALAPPDATA", "darwin": "HOME"}.get(sys.platform, "XDG_CACHE_HOME")
        must = f"must be a writable folder, so that {name!r} can be saved"
        do = f"Set {variable} to a writable folder, or BAYESVOTE_DATA to a folder that contains {path.name}."
        raise InputFileError("load_dataset", f"the cache {path.parent}", must, f"an error: {error}", do) from error
