"""Streams: every format and compression, bad lines, memory."""

import bz2
import gzip
import io
import lzma
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from bayesvote.core.checks import Array, InputError
from bayesvote.datasets import Chunk, Stream, stream, stream_unlabelled, survey
from bayesvote.io import open_stream as streams
from bayesvote.io import sources as _sources

COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": zstandard.ZstdCompressor(write_checksum=True).compress,
}
X = np.array([[1.5, 0.0, -2.0], [0.0, 0.0, 1e-3], [7.0, 1e22, 0.25], [0.0, np.nan, 0.0], [3.0, 2.0, 1.0]])
LIBSVM = b"# a comment\ncat 1:1.5 3:-2\r\ndog 3:1e-3 # why\n\n cat\t1:7 2:1e22 3:.25\nfish 2:nan\ncat 1:3 2:+2. 3:1.0e0"
CSV = b'a,b,"c",pet\n1.5,0,-2,cat\n0,0,1e-3,dog\n\n7,1e22,.25,cat\n0,NA,0,fish\n3,2,1,"cat"\n'
PETS = ["cat", "dog", "cat", "fish", "cat"]


def dense(chunk: Chunk) -> Array:
    return np.asarray(chunk.X if isinstance(chunk.X, np.ndarray) else chunk.X.toarray())


def gather(rows: Stream) -> tuple[Array, list[object], list[int]]:
    chunks = list(rows)
    if not chunks:
        return np.empty((0, rows.n_features)), [], []
    labels = [label for chunk in chunks for label in chunk.y.tolist()]
    return np.concatenate([dense(chunk) for chunk in chunks]), labels, [n for chunk in chunks for n in chunk.lines]


def save(folder: Path, name: str, content: bytes) -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("chunk_size", [1, 2, 4096])
@pytest.mark.parametrize("packing", COMPRESS)
@pytest.mark.parametrize(
    ("suffix", "content", "lines"), [("svm", LIBSVM, [2, 3, 5, 6, 7]), ("csv", CSV, [2, 3, 5, 6, 7])]
)
def test_text(tmp_path: Path, suffix: str, content: bytes, lines: list[int], packing: str, chunk_size: int) -> None:
    for name in (f"pets.{suffix}{packing}", "pets"):  # known by its name, and by its first row
        content = content.removeprefix(b"# a comment\n") if name == "pets" else content
        rows = stream(save(tmp_path, name, COMPRESS[packing](content)), chunk_size=chunk_size)
        got, labels, numbers = gather(rows)
        np.testing.assert_array_equal(got, X)
        assert labels == PETS
        assert numbers == [n - (suffix == "svm" and name == "pets") for n in lines]
        assert (rows.n_features, rows.skipped, rows.reports) == (3, 0, [])
        assert rows.feature_names == (["a", "b", "c"] if suffix == "csv" else None)


@pytest.mark.parametrize("chunk_size", [1, 2, 4096])
def test_parquet(tmp_path: Path, chunk_size: int) -> None:
    columns: dict[str, Any] = {
        "a": X[:, 0],
        "pet": PETS,
        "b": [0.0, 0.0, 1e22, None, 2.0],
        "c": X[:, 2],
        "d": [1, 2, None, 4, 5],
    }
    columns["e"] = [True, False, True, True, None]
    pa.parquet.write_table(pa.table(columns), tmp_path / "pets")
    rows = stream(tmp_path / "pets", chunk_size=chunk_size, target="pet")
    got, labels, numbers = gather(rows)
    extra = np.array([[1, 2, np.nan, 4, 5], [1, 0, 1, 1, np.nan]]).T
    np.testing.assert_array_equal(got, np.column_stack([X, extra]))
    assert (labels, numbers, rows.feature_names) == (PETS, [1, 2, 3, 4, 5], ["a", "b", "c", "d", "e"])


def test_parquet_faults(tmp_path: Path) -> None:
    path = tmp_path / "bad.parquet"
    pa.parquet.write_table(pa.table({"a": [1.0, np.inf, 3.0], "y": [1, 2, None]}), path)
    with pytest.raises(ValueError, match=r"row 2: column 'a' must be a finite .*Fix the row, or skip rows like it"):
        next(stream(path))
    rows = stream(path, bad_lines="skip")
    assert gather(rows)[1:] == ([1], [1])
    assert rows.skipped == 2
    pa.parquet.write_table(pa.table({"a": [[1, 2]], "y": [1]}), path)
    with pytest.raises(ValueError, match=r"column 'a' of .* must hold numbers, text, .*, got list"):
        stream(path)
    path.write_bytes(b"PAR1 and then nothing")
    with pytest.raises(ValueError, match="must be a complete file"):
        stream(path)


numbers = st.one_of(
    st.floats(-1e100, 1e100).map(repr),
    st.floats(-1e6, 1e6).map(lambda v: f"{v:.6f}"),
    st.from_regex(r"[+-]?([0-9]{1,20}\.?[0-9]{0,20}|\.[0-9]{1,20})([eE][+-]?[0-9]{1,2})?", fullmatch=True),
)


@given(rows=st.lists(st.lists(numbers, max_size=4), min_size=1, max_size=8))
def test_numbers_are_those_of_python(tmp_path_factory: pytest.TempPathFactory, rows: list[list[str]]) -> None:
    text = "".join(" ".join(["1", *(f"{j}:{v}" for j, v in enumerate(row, start=1))]) + "\n" for row in rows)
    path = save(tmp_path_factory.mktemp("numbers"), "x", text.encode())
    got = gather(stream(path, "libsvm", n_features=4))[0]
    for values, row in zip(got, rows, strict=True):
        expected = np.array([float(value) for value in row] + [0.0] * (4 - len(row)))
        assert np.array_equal(values, expected)


def test_long_numbers_are_those_of_python(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    texts = [
        f"{value:.{digits}e}"
        for value, digits in zip(
            rng.random(20_000) * 10.0 ** rng.integers(-40, 40, 20_000), rng.integers(10, 19, 20_000), strict=True
        )
    ]
    path = save(tmp_path, "x", "".join(f"1 1:{text}\n" for text in texts).encode())
    assert gather(stream(path, "libsvm"))[0].ravel().tolist() == [float(text) for text in texts]


BAD_LIBSVM = {
    "1:2 3:4": "must start with a label, got an index:value pair",
    "1 2:3 4": "index:value pairs",
    "1 2:3:4 3:6": "feature 2 must be a finite number, got '3:4'",
    "1 x:3": "index:value pairs",
    "1 qid:3 1:2": "index:value pairs",
    "1 -1:3": "index:value pairs",
    "1 0:3": "feature indices must start at 1, got 0. Add 1 to every index",
    "1 2:3 2:4": "feature indices must differ, got 2 twice",
    "1 3:3 2:4 3:1": "feature indices must differ, got 3 twice",
    "1 3:3 2:four 3:1": "feature 2 must be a finite number, got 'four'",
    "1 4:1": "must be at most 3, got 4",
    "1 99999999999999999999:1": "index:value pairs",
    "1 1:inf": "feature 1 must be a finite number, got 'inf'",
    "1 1:1e999": "finite",
    "1 1:1_0": "finite",
    "1 1:2 2:two": "feature 2 must be a finite number, got 'two'",
    "1 1:\xff": "finite",
    "one 1:1": "label must be a whole number, as the first label is, got 'one'",
    "0.5 1:1": "label must be a whole number",
    "nan 1:1": "label is missing",
}
BAD_CSV = {
    "1,2,3": "must have 4 fields, like the header, got 3",
    "1,2,3,4,5": "must have 4 fields",
    "1,2,three,1": "column 'c' must be a finite number, got 'three'",
    "1,inf,3,1": "column 'b' must be a finite number",
    "1,1_0,3,1": "column 'b' must be a finite number",
    "1,2,3,": "label is missing",
    "1,2,3,one": "label must be a whole number",
    '1,"2"x,3,1': "must have a delimiter after the quote",
}


@pytest.mark.parametrize("chunk_size", [1, 3, 4096])
@pytest.mark.parametrize(
    ("format", "line", "reason"),
    [("libsvm", *item) for item in BAD_LIBSVM.items()] + [("csv", *item) for item in BAD_CSV.items()],
)
def test_bad_lines(tmp_path: Path, format: str, line: str, reason: str, chunk_size: int) -> None:  # noqa: A002
    good = "1 1:1 2:2 3:3\n" if format == "libsvm" else "1,2,3,1\n"
    first = "# nothing\n" if format == "libsvm" else "a,b,c,y\n"
    path = save(tmp_path, "rows", (first + good + line + "\n" + good + line + "\n").encode("latin-1"))
    with pytest.raises(ValueError, match=rf"stream: .*rows, line 3: .*{reason}.*bad_lines='skip'"):
        gather(stream(path, format, n_features=3, chunk_size=chunk_size))
    rows = stream(path, format, n_features=3, chunk_size=chunk_size, bad_lines="skip")
    got, labels, numbers = gather(rows)
    np.testing.assert_array_equal(got, [[1, 2, 3], [1, 2, 3]])
    assert (labels, numbers, rows.skipped) == ([1, 1], [2, 4], 2)
    assert [report.split(":")[0] for report in rows.reports] == ["line 3", "line 5"]


def test_values_of_a_bad_line_do_not_reach_the_next_one(tmp_path: Path) -> None:
    # A missing value and one of many digits, which are read apart from the others, on a line that turns out bad.
    content = b"1 1:1 2:2\n1 1:nan 2:0.12345678901234567890 1:3\n0 1:5 2:6\n"
    X, y, lines = gather(stream(save(tmp_path, "x.svm", content), n_features=2, bad_lines="skip"))
    assert X.tolist() == [[1, 2], [5, 6]]
    assert list(y) == [1, 0]
    assert lines == [1, 3]


@pytest.mark.parametrize("chunk_size", [1, 2, 4096])
def test_libsvm_indices_may_come_in_any_order(tmp_path: Path, chunk_size: int) -> None:
    rising = b"1 1:1.5 2:0.12345678901234567890 3:nan\n0 2:2\n1 1:3 3:4\n"
    other = b"1 3:nan 1:1.5 2:0.12345678901234567890\n0 2:2\n1 3:4 1:3\n"
    expected, found = (
        gather(stream(save(tmp_path, name, text), "libsvm", chunk_size=chunk_size))
        for name, text in (("rising", rising), ("other", other))
    )
    np.testing.assert_array_equal(found[0], expected[0])
    assert found[1:] == expected[1:]
    for chunk in stream(save(tmp_path, "other", other), "libsvm", chunk_size=chunk_size):
        assert chunk.X.has_sorted_indices
        chunk.X.check_format(full_check=True)


def test_a_bad_libsvm_line_is_described_even_beyond_the_width_of_the_others(tmp_path: Path) -> None:
    for line, reason in (
        ("0 7:1 7:2", "feature indices must differ, got 7 twice"),
        ("0 7:1 x", "the text after the label must be index:value pairs"),
        ("0 7:one", "feature 7 must be a finite number, got 'one'"),
        ("0 7:1 0:2", "feature indices must start at 1, got 0"),
        ("0 2000000:1", "feature indices must be at most 1048576, got 2000000. If there are more features"),
    ):
        path = save(tmp_path, "rows", f"1 1:1 2:2\n{line}\n".encode())
        with pytest.raises(ValueError, match=f"line 2: {reason}"):
            gather(stream(path, "libsvm"))
        rows = stream(path, "libsvm", bad_lines="skip")
        assert gather(rows)[0].tolist() == [[1, 2]]
        assert rows.n_features == 2


def test_a_libsvm_file_that_grows_wider_between_two_readings_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "_width", lambda _: 2)
    rows = stream(save(tmp_path, "rows", b"1 1:1 2:2\n0 3:1 1:1\n"), "libsvm")
    with pytest.raises(ValueError, match="line 2: feature indices must be at most 2, as when the file was first read"):
        gather(rows)


def test_reports_are_bounded(tmp_path: Path) -> None:
    rows = stream(save(tmp_path, "x.svm", b"1 1:1\n" + b"nonsense here\n" * 1000), bad_lines="skip")
    assert gather(rows)[2] == [1]
    assert (rows.skipped, len(rows.reports)) == (1000, 20)


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (["+1", "-1.0", "2e0"], [1, -1, 2]),
        (["0.5", "2", "-1"], [0.5, 2.0, -1.0]),
        (["one", "2", "0.5"], ["one", "2", "0.5"]),
        (["é", "ß", "é"], ["é", "ß", "é"]),
        (["1_0", "1", "2"], ["1_0", "1", "2"]),
        ([f"{2**60}", f"{2**60 + 1}", "1"], [2**60, 2**60 + 1, 1]),
        (["9007199254740993", "9007199254740992", f"{-(2**63)}"], [2**53 + 1, 2**53, -(2**63)]),
        ([f"{2**63}", f"{2**63 + 1}", "1"], [f"{2**63}", f"{2**63 + 1}", "1"]),
        (["01", "1", "001"], ["01", "1", "001"]),
        (["9007199254740993.0", "9007199254740992", "1"], ["9007199254740993.0", "9007199254740992", "1"]),
    ],
)
def test_labels_are_what_the_first_is(tmp_path: Path, labels: list[str], expected: list[object]) -> None:
    text = "".join(f"{label} 1:1\n" for label in labels)
    for chunk_size in (1, 10):
        got = gather(stream(save(tmp_path, "x.svm", text.encode()), chunk_size=chunk_size))[1]
        assert got == expected
        assert {type(label) for label in got} == {type(expected[0])}


def test_csv_details(tmp_path: Path) -> None:
    text = '\ufefflabel;"a b";c\r\n"two\nlines";1;?\r\nb;null;2\r\n'.encode() + b"\xff;1;2\r\n"
    rows = stream(save(tmp_path, "x.csv", text), target=0, bad_lines="skip")
    got, labels, numbers = gather(rows)
    np.testing.assert_array_equal(got, [[1, np.nan], [np.nan, 2]])
    assert (labels, numbers, rows.feature_names) == (["two\nlines", "b"], [2, 4], ["a b", "c"])
    assert rows.reports == ["line 5: the label is not UTF-8 text"]
    # A quote that never ends must not swallow the file into memory.
    long = b"a,y\n" + b'"1,1\n' + b"1,1\n" * 100_000
    rows = stream(save(tmp_path, "x.csv", long), bad_lines="skip")
    assert len(gather(rows)[1]) == 100_000
    assert "must close the quote" in rows.reports[0]


@pytest.mark.parametrize("packing", [name for name in COMPRESS if name])
def test_damaged_files(tmp_path: Path, packing: str) -> None:
    rng = np.random.default_rng(0)
    text = "".join(f"1 1:{value}\n" for value in rng.random(20_000)).encode()
    packed = COMPRESS[packing](text)
    for damaged in (packed[: len(packed) // 2], packed[:-6], packed[:5000] + b"damage" * 10 + packed[5060:]):
        with pytest.raises(ValueError, match="must be a complete"):
            gather(stream(save(tmp_path, "x", damaged), "libsvm", n_features=1, bad_lines="skip"))
    twice = save(tmp_path, "x", packed + packed)  # parts that were compressed one by one
    assert len(gather(stream(twice, "libsvm", n_features=1))[1]) == 40_000


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    for content in (CSV, gzip.compress(CSV)):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
        np.testing.assert_array_equal(gather(stream("-"))[0], X)
        assert not sys.stdin.buffer.closed
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(LIBSVM)))
    with pytest.raises(ValueError, match="n_features must be given"):
        stream("-", "libsvm")
    with pytest.raises(ValueError, match="must be read from a file"):
        stream("-", "parquet")
    code = "from bayesvote.datasets import stream; print(sum(len(c.y) for c in stream('-', 'libsvm', n_features=3)))"
    done = subprocess.run([sys.executable, "-c", code], input=LIBSVM, capture_output=True, check=True)
    assert done.stdout.strip() == b"5"


def test_bad_arguments(tmp_path: Path) -> None:
    path = save(tmp_path, "pets.csv", CSV)
    with pytest.raises(ValueError, match="Did you mean 'csv'"):
        stream(path, "cvs")
    with pytest.raises(ValueError, match="bad_lines must be one of"):
        stream(path, bad_lines="ignore")
    with pytest.raises(ValueError, match="chunk_size"):
        stream(path, chunk_size=0)
    with pytest.raises(ValueError, match="n_features"):
        stream(path, n_features=0)
    with pytest.raises(ValueError, match="must have 7 features, as requested, got 3"):
        stream(path, n_features=7)
    for target in ("dog", 4, -5):
        with pytest.raises(ValueError, match=r"target must be a column of .*, a, b, c, pet, got"):
            stream(path, target=target)
    with pytest.raises(ValueError, match="must name the columns, got '1,2'"):
        stream(save(tmp_path, "x.csv", b"1,2\n3,4\n"))
    with pytest.raises(ValueError, match="must name the columns, got ''"):
        stream(save(tmp_path, "x.csv", b""))
    with pytest.raises(ValueError, match="at least one feature"):
        stream(save(tmp_path, "x.csv", b"y\n1\n"))
    with pytest.raises(ValueError, match="target must be None for LIBSVM"):
        stream(save(tmp_path, "x.svm", LIBSVM), target="y")
    with pytest.raises(FileNotFoundError):
        stream(tmp_path / "nowhere.csv")
    assert gather(stream(save(tmp_path, "x.svm", b"")))[1] == []


def test_missing_libraries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pa.parquet.write_table(pa.table({"a": [1.0], "y": [1]}), tmp_path / "x.parquet")
    zst = save(tmp_path, "x.csv.zst", COMPRESS[".zst"](CSV))
    monkeypatch.setattr(_sources, "find_spec", lambda _: None)
    with pytest.raises(ImportError, match=r"pip install 'bayesvote\[parquet\]'"):
        stream(tmp_path / "x.parquet")
    with pytest.raises(ImportError, match=r"pip install 'bayesvote\[zstd\]'"):
        stream(zst)


@pytest.mark.parametrize("packing", COMPRESS)
@pytest.mark.parametrize("format", ["libsvm", "csv"])
def test_memory_does_not_grow(tmp_path: Path, format: str, packing: str) -> None:  # noqa: A002
    header, row = (b"", b"1 2:0.5 3:17 8:1\n") if format == "libsvm" else (b"a,b,c,y\n", b"0.5,17,1,1\n")

    def peak(n_rows: int) -> int:
        path = save(tmp_path, "long", COMPRESS[packing](header + row * n_rows))
        rows = stream(path, format, chunk_size=500, n_features=8 if format == "libsvm" else None)
        next(rows)
        tracemalloc.start()
        try:
            assert sum(len(chunk.y) for chunk in rows) == n_rows - 500
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    peak(1000)
    assert peak(60_000) < 1.5 * peak(15_000)


def test_parquet_memory_does_not_grow(tmp_path: Path) -> None:
    def peak(n_rows: int) -> int:
        columns = {"a": np.random.default_rng(0).random(n_rows), "y": np.zeros(n_rows, dtype=int)}
        pa.parquet.write_table(pa.table(columns), tmp_path / "long", row_group_size=10_000)
        del columns
        before = pa.total_allocated_bytes()
        return max(pa.total_allocated_bytes() - before for _ in stream(tmp_path / "long", chunk_size=1000))

    assert peak(400_000) < 1.5 * peak(40_000)


def test_unlabelled_rows_of_a_csv(tmp_path: Path) -> None:
    path = save(tmp_path, "pets.csv", CSV)
    expected = [[-2.0, 1.5], [1e-3, 0.0], [0.25, 7.0], [0.0, 0.0], [1.0, 3.0]]
    for chunk_size in (1, 3, 4096):
        rows = stream_unlabelled(path, n_features=2, feature_names=["c", "a"], chunk_size=chunk_size)
        got, labels, numbers = gather(rows)
        assert (got.tolist(), labels, numbers) == (expected, [], [2, 3, 5, 6, 7])
    for options in ({}, {"target": "pet"}, {"target": -1}):
        np.testing.assert_array_equal(gather(stream_unlabelled(path, n_features=3, **options))[0], X)
    bare = save(tmp_path, "bare.csv", b"a,b\n1,2\n3,x\n4\n")
    with pytest.raises(
        ValueError, match=r"stream_unlabelled: .*line 3: column 'b' must be a finite .*bad_lines='skip'"
    ):
        gather(stream_unlabelled(bare, n_features=2))
    rows = stream_unlabelled(bare, n_features=2, bad_lines="skip")
    assert gather(rows)[0].tolist() == [[1, 2]]
    assert rows.skipped == 2
    with pytest.raises(ValueError, match=r"must have the column 'colour' of the model"):
        stream_unlabelled(path, n_features=1, feature_names=["colour"])
    with pytest.raises(ValueError, match=r"must have the model's 7 features, with or without a label, got 4 columns"):
        stream_unlabelled(path, n_features=7)
    with pytest.raises(ValueError, match=r"target must be a column of .* Did you mean 'pet'"):
        stream_unlabelled(path, n_features=3, target="pett")


def test_unlabelled_rows_of_other_formats(tmp_path: Path) -> None:
    for text in (LIBSVM, b"1:1.5 3:-2\n3:1e-3\n# none\n1:7 2:1e22 3:.25\n2:nan\n1:3 2:2 3:1"):
        for name in ("x.svm", "x"):
            got, labels, _ = gather(stream_unlabelled(save(tmp_path, name, text), n_features=3))
            np.testing.assert_array_equal(got, X)
            assert labels == []
    columns: dict[str, Any] = {"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "pet": PETS}
    pa.parquet.write_table(pa.table(columns), tmp_path / "x.parquet")
    for options in ({}, {"target": "pet"}, {"feature_names": ["a", "b", "c"]}):
        got, labels, _ = gather(stream_unlabelled(tmp_path / "x.parquet", n_features=3, **options))
        np.testing.assert_array_equal(got, X)
        assert labels == []


def survey_and_rows(path: Path, **options: Any) -> tuple[list[object], int, int | None, list[int]]:
    told: list[int] = []
    found = survey(path, on_rows=told.append, **options)
    return found.labels.tolist(), found.n_rows, found.n_features, told


def test_survey(tmp_path: Path) -> None:
    table, text = save(tmp_path, "x.csv", CSV), save(tmp_path, "x.svm", LIBSVM)
    kinds = sorted(set(PETS))
    assert survey_and_rows(table, chunk_size=3) == (kinds, 5, None, [0, 3, 5])
    assert survey_and_rows(text) == (kinds, 5, 3, [0, 5])
    bad = save(tmp_path, "bad.csv", b"a,y\n1,no\nx,perhaps\n2,yes\n")
    with pytest.raises(ValueError, match="line 3"):
        survey(bad)
    assert survey(bad, bad_lines="skip").labels.tolist() == ["no", "yes"]
    assert survey(save(tmp_path, "x.svm", b"")).labels.tolist() == []
    with pytest.raises(ValueError, match="target must be a column"):
        survey(table, target="dog")


def test_survey_of_parquet_asks_for_categories_first(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    texts: Any = pa
    for labels, expected in (
        (["b", "c", None, "b"], ["b", "c"]),
        (["2", "10", "2", "1"], [1, 2, 10]),
        (["x", "10", "2", "1"], ["1", "10", "2", "x"]),
    ):
        column = texts.array(labels).dictionary_encode()
        pa.parquet.write_table(pa.table({"a": np.zeros(4), "y": column}), path, row_group_size=2)
        assert survey_and_rows(path) == (expected, 4, None, [])
        plain = pa.table({"a": np.zeros(4), "y": labels})
        pa.parquet.write_table(plain, path, row_group_size=2)
        assert survey_and_rows(path, bad_lines="skip")[0] == expected
        assert survey_and_rows(path, bad_lines="skip")[3][0] == 0
    # Categories of which some are no numbers, as the first label is: the rows themselves tell.
    column = texts.array(["1", "x"]).dictionary_encode()
    pa.parquet.write_table(pa.table({"a": np.zeros(2), "y": column}), path)
    with pytest.raises(ValueError, match="row 2: the label must be a whole number"):
        survey(path)


def test_only_the_columns_that_are_needed_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    read = pa.parquet.ParquetFile.iter_batches

    def recorded(self: Any, *args: Any, **options: Any) -> Any:
        asked.append(options["columns"])
        return read(self, *args, **options)

    monkeypatch.setattr(pa.parquet.ParquetFile, "iter_batches", recorded)
    columns: dict[str, Any] = {"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "pet": PETS}
    pa.parquet.write_table(pa.table(columns), tmp_path / "x.parquet")
    survey(tmp_path / "x.parquet")
    gather(stream_unlabelled(tmp_path / "x.parquet", n_features=2, feature_names=["c", "a"]))
    assert asked == [["pet"], ["a", "c"]]


def test_a_label_that_is_named_must_be_there_even_if_the_model_knows_its_columns(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("a,b,c\n1,2,3\n")
    with pytest.raises(InputError, match=r"target must be a column of .*, a, b, c, got 'nope'"):
        stream_unlabelled(path, n_features=2, feature_names=["a", "b"], target="nope")
    with pytest.raises(
        InputError, match="3 features, with or without a label, got 3 columns, of which target='c' leaves 2"
    ):
        stream_unlabelled(path, n_features=3, target="c")
    (chunk,) = stream_unlabelled(path, n_features=2, feature_names=["b", "a"], target="c")
    assert chunk.X.tolist() == [[2.0, 1.0]]
