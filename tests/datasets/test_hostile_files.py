"""Files that were damaged or made to do harm: what is bad is skipped and counted, and memory stays small."""

import gzip
import io
import subprocess
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bayesvote.core.checks import InputError
from bayesvote.datasets import Stream, stream, stream_unlabelled, survey
from bayesvote.io.sources import _Zstandard


def save(folder: Path, name: str, content: bytes) -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


def read(path: Path, **options: Any) -> tuple[Stream, list[Any], list[int]]:
    rows = stream(path, bad_lines="skip", **options)
    chunks = list(rows)
    return (
        rows,
        [label for chunk in chunks for label in chunk.y.tolist()],
        [n for c in chunks for n in c.lines.tolist()],
    )


@pytest.mark.parametrize("chunk_size", [1, 7, 4096])
@pytest.mark.parametrize("stray", ['"1,2,cat', '1,"2,cat', '1,2,"cat', '"', '1,"2,3,4,5'])
def test_a_stray_quote_costs_its_own_line_only(tmp_path: Path, stray: str, chunk_size: int) -> None:
    lines = ["a,b,pet"] + [f"{i},{i},{'cat' if i % 2 else 'dog'}" for i in range(2000)]
    lines[500] = lines[900] = stray
    rows, labels, numbers = read(save(tmp_path, "x.csv", "\n".join(lines).encode()), chunk_size=chunk_size)
    assert len(labels) == 1998
    assert rows.skipped == 2
    assert [report.partition(":")[0] for report in rows.reports] == ["line 501", "line 901"]
    assert numbers == [n for n in range(2, 2002) if n not in (501, 901)]
    with pytest.raises(ValueError, match=r"line 501: .*quote.*bad_lines='skip'"):
        list(stream(tmp_path / "x.csv"))


def test_a_stray_quote_does_not_swallow_lines_that_have_quotes_themselves(tmp_path: Path) -> None:
    lines = ["a,b,pet"] + [f'{i},{i},"pet, {i % 3}"' for i in range(50)]
    lines[20] = '20,"20,"pet, 1"'
    lines[30] = '30,30,"pet, 1'
    rows, labels, _ = read(save(tmp_path, "x.csv", "\n".join(lines).encode()))
    assert (len(labels), rows.skipped) == (48, 2)
    assert set(labels) == {"pet, 0", "pet, 1", "pet, 2"}


def test_two_stray_quotes_that_look_like_one_field_are_counted_line_by_line(tmp_path: Path) -> None:
    lines = ["a,b,pet"] + [f"{i},{i},cat" for i in range(50)]
    lines[20], lines[30] = '1,"2,cat', '1,2",cat'  # together: 1, a text of eleven lines, cat
    rows, labels, _ = read(save(tmp_path, "x.csv", "\n".join(lines).encode()))
    assert (len(labels), rows.skipped) == (48, 2)


def test_lines_that_are_no_label_together_are_read_one_by_one(tmp_path: Path) -> None:
    lines = ["name,pet"] + [f"n{i},cat" for i in range(500)]
    lines[20], lines[400] = 'n,"cat', 'n,cat"'  # together a row whose label has thousands of characters
    rows, labels, _ = read(save(tmp_path, "x.csv", "\n".join(lines).encode()))
    assert (len(labels), rows.skipped) == (499, 1)
    assert set(labels) == {"cat", 'cat"'}


def test_fields_of_several_lines_are_read(tmp_path: Path) -> None:
    text = 'a,pet\r\n1,"big\r\ncat"\r\n2,"say ""hi""\n\n"\n3,cat\n'
    rows, labels, numbers = read(save(tmp_path, "x.csv", text.encode()))
    assert labels == ["big\r\ncat", 'say "hi"', "cat"]
    assert (numbers, rows.skipped) == ([2, 4, 7], 0)


def test_many_stray_quotes_take_no_longer_than_their_lines(tmp_path: Path) -> None:
    # Each of these lines closes a field, holds a quote inside another, and opens a third; each one looks ahead.
    hostile = b"a,b\n" + b'",x","\n' * 30_000 + b"1,cat\n"
    rows, labels, _ = read(save(tmp_path, "x.csv", hostile))
    assert labels == ["cat"]
    assert rows.skipped == 30_000


LONG = "9" * 5000
BAD = {
    "a numeral of many digits": (f"1 {LONG}:1", f"1,{LONG},1"),
    "many digits beside a wide index": (f"1 4:1 {LONG}:1", f"{LONG}.5e9,1,1"),
    "NUL": ("1 1:\0001 2:2", "1,\0,1"),
    "NUL as a blank": ("1\0001:1\0002:2\0004:4", "1\0,1,1"),
    "NUL in a label": ("1\0 1:1", "1,1,1\0"),
    "another control character": ("1 1:1\x1b[31m", "1,\x1b[31m,1"),
    "a vast number": ("1 1:1e150", "1,-1e150,1"),
    "a vast number of many digits": (f"1 1:{'9' * 120}", f"1,{'9' * 120},1"),
    "a vast label": (f"{LONG} 1:1", f"1,1,{LONG}"),
}


@pytest.mark.parametrize("case", BAD)
@pytest.mark.parametrize("kind", ["libsvm", "csv"])
def test_lines_that_stopped_a_run_are_skipped(tmp_path: Path, case: str, kind: str) -> None:
    good, head = ("1 1:1 2:2\n", "") if kind == "libsvm" else ("1,2,1\n", "a,b,y\n")
    bad = BAD[case][kind == "csv"]
    path = save(tmp_path, "rows", (head + good + bad + "\n" + good).encode())
    rows, labels, _ = read(path, format=kind, n_features=2)
    assert (labels, rows.skipped) == ([1, 1], 1)
    assert len(rows.reports[0]) < 200
    with pytest.raises(ValueError, match=r"line \d: ") as error:
        list(stream(path, kind, n_features=2))
    assert len(str(error.value)) < 400
    assert survey(path, kind, bad_lines="skip").n_rows == 2


def test_vast_numbers_of_parquet_are_bad_rows(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pa.table({"a": [1.0, 1e150, 2.0], "y": ["a", "b", "a\0"]}), tmp_path / "x.parquet")
    rows, labels, _ = read(tmp_path / "x.parquet")
    assert (labels, rows.skipped) == (["a"], 2)


def test_labels_that_differ_by_an_invisible_character_stay_two(tmp_path: Path) -> None:
    rows, labels, _ = read(save(tmp_path, "x.csv", b"a,y\n1,x\n2,x\0\n3,z\n"))
    assert (labels, rows.skipped) == (["x", "z"], 1)
    assert "must not contain a NUL" in rows.reports[0]


@pytest.mark.parametrize("kind", ["libsvm", "csv"])
@pytest.mark.parametrize("at", ["start", "middle", "end"])
def test_a_line_without_end_takes_little_memory(tmp_path: Path, kind: str, at: str) -> None:
    good, head = (b"1 1:1\n", b"") if kind == "libsvm" else (b"2,1\n", b"a,y\n")
    monster = (b"1 " if kind == "libsvm" else b"1,") + b"7" * 100_000_000
    parts = {
        "start": [monster + b"\n", good * 3],
        "middle": [good, monster + b"\n", good * 2],
        "end": [good * 3, monster],
    }
    path = tmp_path / "x.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        for part in (head, *parts[at]):
            file.write(part)
    del monster, parts
    tracemalloc.start()
    try:
        rows, labels, _ = read(path, format=kind, n_features=1)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (labels, rows.skipped) == ([1, 1, 1], 1)
    assert "characters" in rows.reports[0]
    assert peak < 60e6
    unlabelled = stream_unlabelled(path, kind, n_features=1, bad_lines="skip", target=None if kind == "libsvm" else "y")
    assert sum(chunk.X.shape[0] for chunk in unlabelled) == 3


def test_a_line_of_millions_of_fields_takes_little_more_than_itself(tmp_path: Path) -> None:
    path = save(tmp_path, "x.csv", b"a,y\n2,1\n" + b"," * (2**24 - 1) + b"\n2,1\n")
    tracemalloc.start()
    try:
        rows, labels, _ = read(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (labels, rows.skipped) == ([1, 1], 1)
    assert "must have 2 fields, like the header, got 16777216" in rows.reports[0]
    assert peak < 6 * 2**24


def test_a_header_without_end_is_refused(tmp_path: Path) -> None:
    path = save(tmp_path, "x.csv.gz", gzip.compress(b"a," * 50_000_000, 1))
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match="first line"):
            stream(path)
        assert tracemalloc.get_traced_memory()[1] < 60e6
    finally:
        tracemalloc.stop()
    with pytest.raises(ValueError, match=r"at most 1,048,576 columns"):
        stream(save(tmp_path, "wide.csv", b"a," * 1_100_000 + b"y\n"))


def test_few_rows_of_many_columns_come_in_small_chunks(tmp_path: Path) -> None:
    width = 100_000
    with open(tmp_path / "x.csv", "w") as file:
        file.write(",".join(f"c{j}" for j in range(width)) + ",y\n")
        for i in range(150):
            file.write("0," * width + f"{i % 2}\n")
    sizes = [len(chunk.y) for chunk in stream(tmp_path / "x.csv", chunk_size=1000)]
    assert sum(sizes) == 150
    assert max(sizes) <= 90


def test_texts_that_come_again_take_their_memory_once(tmp_path: Path) -> None:
    width, n = 10_000, 15
    header = ",".join(f"c{j}" for j in range(width)) + ",y\n"
    path = save(tmp_path, "x.csv", header.encode() + b"".join(b"ab," * width + b"%d\n" % (i % 2) for i in range(n)))
    tracemalloc.start()
    try:
        chunks = list(stream(path))
        held = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert [chunk.n for chunk in chunks] == [n]
    assert set(chunks[0].X["c7"]) == {"ab"}
    assert held < 50 * width * n  # bytes for a cell; a string of its own takes 51


def test_more_texts_than_are_remembered_are_read(tmp_path: Path) -> None:
    lines = [f"n{i}, n{i} ,{'?' if i % 3 else ''},{'é' * (i % 100)},{i % 2}" for i in range(10_000)]
    (tmp_path / "x.csv").write_text("a,b,c,d,y\n" + "\n".join(lines))
    for chunk_size in (7, 4096):
        chunks = list(stream(tmp_path / "x.csv", chunk_size=chunk_size))
        found = {name: [text for chunk in chunks for text in chunk.X[name]] for name in "abcd"}
        assert found["a"] == found["b"] == [f"n{i}" for i in range(10_000)]
        assert set(found["c"]) == {""}
        assert found["d"] == ["é" * (i % 100) for i in range(10_000)]


def test_one_index_does_not_decide_how_much_memory_a_model_takes(tmp_path: Path) -> None:
    path = save(tmp_path, "x.svm", b"1 1:1 3:1\n1 2147483647:1\n0 2:1\n")
    with pytest.raises(
        ValueError,
        match=r"line 2: feature indices must be at most 1048576, got 2147483647. If there are more features",
    ):
        list(stream(path))
    rows, labels, _ = read(path)
    assert (rows.n_features, labels, rows.skipped) == (3, [1, 0], 1)
    assert survey(path, bad_lines="skip").n_features == 3
    # Whoever says so can have more.
    assert stream(path, n_features=2**31 - 1).n_features == 2**31 - 1


def test_lines_that_end_as_on_an_old_macintosh_are_told(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="carriage return"):
        stream(save(tmp_path, "x.csv", b"a,y\r1,0\r2,1\r"))


def test_a_pipe_that_gives_byte_after_byte_is_recognised() -> None:
    code = "from bayesvote.datasets import stream; print([c.y.tolist() for c in stream('-', n_features=2)])"
    for content in (b"1 1:5 2:6\n0 2:7\n", gzip.compress(b"a,b,y\n1,2,1\n3,4,0\n")):
        with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as run:
            assert run.stdin is not None
            for byte in content[:12]:
                run.stdin.write(bytes([byte]))
                run.stdin.flush()
            out, _ = run.communicate(content[12:])
        assert out.strip() == b"[[1, 0]]"


def test_random_damage_never_stops_a_reading(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    tables = {
        "csv": b"a,b,y\n" + b'1.5,2,"cat"\n-3,,dog\n"4",5e3,"a\nb"\n' * 20,
        "libsvm": b"1 1:2 3:4.5\n-1 2:nan # why\n1 1:-1e-3\n" * 20,
    }
    special = [b'"', b"\0", b"\n", b"\r", b",", b":", b"\xff", b"9" * 400, b"\x1b", b"1e999", b"-", b"#", b";"]
    for trial in range(300):
        kind = ("csv", "libsvm")[trial % 2]
        content = bytearray(tables[kind])
        for _ in range(rng.integers(1, 6)):
            at = int(rng.integers(8, len(content)))
            content[at : at + int(rng.integers(0, 3))] = special[int(rng.integers(len(special)))]
        path = save(tmp_path, "x", bytes(content))
        rows, labels, numbers = read(path, format=kind, n_features=3 if kind == "libsvm" else None, chunk_size=11)
        assert numbers == sorted(numbers)
        assert all("\0" not in str(label) for label in labels)
        # A line is read or counted: a field of two lines takes two.
        lines = [line for line in bytes(content).split(b"\n")[kind == "csv" :] if line.strip() and line[:1] != b"#"]
        assert len(lines) - 60 <= len(labels) + rows.skipped <= len(lines)
        for chunk in stream(path, kind, bad_lines="skip", n_features=3 if kind == "libsvm" else None):
            X = chunk.X if isinstance(chunk.X, np.ndarray) else chunk.X.toarray()
            assert not np.any(np.abs(X) > 1e100)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("a,b\rc,pet\n1,2,cat\n", "the first line .* must end with a newline, not with a carriage return only"),
        ("a," + "b" * 200_000 + ",pet\n1,2,cat\n", "the first line .* must have names of at most 131,072 characters"),
        ('a,"' + "b" * 200_000 + '",pet\n1,2,cat\n', "the first line .* must have names of at most 131,072 characters"),
        ('a,b,pet\n1,2,"' + "x" * 200_000 + '"\n', "line 2: it must have fields of at most 131,072 characters"),
        ('a,b,pet\n1,2,"cat"s\n', "line 2: it must have a delimiter after the quote that closes a field"),
        ('a,b,pet\n1\r,2,"cat"\n', "line 2: it must not contain a carriage return outside quotes"),
    ],
)
def test_what_python_says_of_csv_is_told_in_our_words(tmp_path: Path, content: str, words: str) -> None:
    with pytest.raises(InputError, match=words) as caught:
        list(stream(save(tmp_path, "x.csv", content.encode())))
    assert "field limit" not in str(caught.value)
    assert "new-line" not in str(caught.value)


@pytest.mark.parametrize("at", [1, 50, 150])
@pytest.mark.parametrize(
    "bad", [b'1,"re,0', b"1,re\rd,0", b'1,"' + b"x" * 200_000 + b'",0'], ids=["quote", "CR", "long"]
)
def test_a_bad_line_among_the_first_does_not_make_numbers_of_texts(tmp_path: Path, bad: bytes, at: int) -> None:
    lines = [b"a,colour,y", *(b"%d,%s,%d" % (i, (b"red", b"blue")[i % 2], i % 2) for i in range(2000))]
    lines.insert(at, bad)
    rows, labels, _ = read(save(tmp_path, "x.csv", b"\n".join(lines)))
    assert (len(labels), rows.skipped) == (2000, 1)


def test_texts_are_found_where_every_row_has_several_lines(tmp_path: Path) -> None:
    lines = ["colour,note,y", *(f'red,"a\nb",{i % 2}' for i in range(200))]
    rows, labels, _ = read(save(tmp_path, "x.csv", "\n".join(lines).encode()))
    assert (len(labels), rows.skipped) == (200, 0)


def test_libsvm_lines_that_end_with_carriage_returns_are_not_lost(tmp_path: Path) -> None:
    text = b"1 1:0.5 # first\r-1 1:0.3\r1 1:0.2\r"
    with pytest.raises(ValueError, match=r"line 1: it must end with a newline.* carriage return"):
        list(stream(save(tmp_path, "x.libsvm", text)))
    with pytest.raises(ValueError, match=r"line 1: it must end with a newline.* carriage return"):
        list(stream_unlabelled(tmp_path / "x.libsvm", n_features=1))
    rows, labels, _ = read(save(tmp_path, "y.libsvm", text + b"\n1 1:0.5 # as on Windows\r\n-1 1:0.1\r\n"))
    assert (labels, rows.skipped) == ([1, -1], 1)


@pytest.mark.parametrize("chunk_size", [1, 4096])
@pytest.mark.parametrize(
    ("first", "mark"),
    [("n.a.;1;0", ","), (".;1;0", ","), ("1.5;x;0", ","), ("1,5;2;", "."), ("1,5;x;0", "."), ("1.5;2;", ",")],
)
def test_a_refused_row_does_not_decide_the_decimal_mark(tmp_path: Path, first: str, mark: str, chunk_size: int) -> None:
    lines = ["a;b;y", first, *(f"{i}{mark}5;{i}{mark}25;{i % 2}" for i in range(300))]
    path = save(tmp_path, "x.csv", "\n".join(lines).encode())
    rows = stream(path, bad_lines="skip", chunk_size=chunk_size)
    X = np.concatenate([chunk.X for chunk in rows])
    assert rows.skipped == 1
    assert X[3].tolist() == [3.5, 3.25]
    assert len(X) == 300


def odd_parquet(folder: Path, column: Any, labels: Any = None) -> Path:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path = folder / "x.parquet"
    pq.write_table(pa.table({"a": column, "y": [0, 1] * (len(column) // 2) if labels is None else labels}), path)
    return path


@pytest.mark.parametrize("case", ["seconds", "days", "texts"])
def test_parquet_values_that_python_cannot_hold_are_bad_rows(tmp_path: Path, case: str) -> None:
    pa = pytest.importorskip("pyarrow")
    texts = pa.StringArray.from_buffers(4, pa.py_buffer(np.arange(5, dtype=np.int32)), pa.py_buffer(b"a\xffbc"))
    column, words = {
        "seconds": (pa.array([1, 2**52, 2, 3], pa.timestamp("s")), "must be a date from year 1 to 9999"),
        "days": (pa.array([1, 2**31 - 1, 2, 3], pa.int32()).view(pa.date32()), "must be a date from year 1 to 9999"),
        "texts": (texts, "is not UTF-8 text"),
    }[case]
    path = odd_parquet(tmp_path, column)
    with pytest.raises(InputError, match=f"row 2: column 'a' {words}"):
        list(stream(path))
    rows, labels, numbers = read(path)
    assert (labels, numbers, rows.skipped) == ([0, 0, 1], [1, 3, 4], 1)
    path = odd_parquet(tmp_path, [1.0, 2.0, 3.0, 4.0], column)
    assert read(path)[2] == [1, 3, 4]
    if case == "texts":
        assert survey(path, bad_lines="skip").labels.tolist() == ["a", "b", "c"]
        # Arrow reads the values of a categorical column all or none.
        codes = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, 3]), texts)
        with pytest.raises(InputError, match=r"must be a complete file.*UTF8"):
            read(odd_parquet(tmp_path, codes))
        with pytest.raises(InputError, match=r"must be a complete file.*UTF8"):
            survey(odd_parquet(tmp_path, [1.0, 2.0, 3.0, 4.0], codes))


@pytest.mark.parametrize("name", ["x.csv", "x.svm"])
def test_one_vast_label_does_not_decide_what_the_others_take(tmp_path: Path, name: str) -> None:
    row = "{},1\n" if name == "x.csv" else "{} 1:1\n"
    labels = ["dog"] * 2000 + ["cat" * 100_000] + ["c" * 1024]
    path = save(tmp_path, name, b"y,a\n" * (name == "x.csv") + "".join(map(row.format, labels)).encode())
    tracemalloc.start()
    try:
        rows, found, _ = read(path, **({"target": "y"} if name == "x.csv" else {}))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert found == [label for label in labels if len(label) <= 1024]
    assert "the label must have at most 1,024 characters, got 300,000" in rows.reports[0]
    assert peak < 40_000_000


@pytest.mark.parametrize("kind", ["text", "category"])
@pytest.mark.parametrize("place", ["feature", "label"])
def test_a_text_that_parquet_says_once_takes_its_memory_once(tmp_path: Path, kind: str, place: str) -> None:
    pa = pytest.importorskip("pyarrow")
    column = pa.array(["a" * 2_000_000, "b", None, "b"] * 100)
    column = column if kind == "text" else column.dictionary_encode()
    path = odd_parquet(tmp_path, *([column] if place == "feature" else [[1.0] * 400, column]))
    tracemalloc.start()
    try:
        rows = stream(path, bad_lines="skip")
        chunks = list(rows)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    if place == "feature":
        values = [value and (value[0], len(value)) for chunk in chunks for value in chunk.X["a"]]
        assert values == [("a", 2_000_000), ("b", 1), None, ("b", 1)] * 100
    else:
        assert [label for chunk in chunks for label in chunk.y.tolist()] == ["b", "b"] * 100
        assert rows.skipped == 200
    assert peak < 30_000_000


def test_codes_of_parquet_that_stand_for_nothing_are_refused(tmp_path: Path) -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"a": ["p", "q"] * 8, "y": [0, 1] * 8}), path, compression="none")
    # One group of eight codes of a bit each, p and q by turns, becomes one of eight codes of seven bits.
    content = path.read_bytes()
    forged = 0
    for at in range(len(content) - 4):
        if content[at : at + 4] == b"\x01\x05\xaa\xaa":
            forged += 1
            save(tmp_path, "y.parquet", content[:at] + b"\x07\x03" + content[at + 2 :])
            with pytest.raises(InputError, match="must be a complete file"):
                read(tmp_path / "y.parquet")
    assert forged


def test_an_unknown_time_zone_of_parquet_is_told(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    path = odd_parquet(tmp_path, pa.array([1, 2], pa.timestamp("us", tz="Mars/Phobos")))
    with pytest.raises(InputError, match=r"column 'a' of .* must be in a known time zone, got 'Mars/Phobos'"):
        stream(path)
    assert len(read(odd_parquet(tmp_path, pa.array([1, 2], pa.timestamp("us", tz="Europe/Paris"))))[1]) == 2


def test_many_small_zstandard_frames_are_read_piece_by_piece(tmp_path: Path) -> None:
    zstandard = pytest.importorskip("zstandard")
    frame = zstandard.ZstdCompressor(write_content_size=False).compress(b"1 1:0.5\n")
    raw = io.BytesIO(frame * 1000)
    text = _Zstandard(io.BufferedReader(raw, 1))
    assert b"".join(text.read(8) for _ in range(50)) == b"1 1:0.5\n" * 50
    assert raw.tell() <= 2048  # 50 frames of 17 bytes; what is read ahead would be copied for every frame
    assert b"".join(iter(lambda: text.read(8), b"")) == b"1 1:0.5\n" * 950
    with pytest.raises(InputError, match="the last Zstandard frame is not complete"):
        list(stream(save(tmp_path, "x.libsvm.zst", (frame * 1000)[:-3]), n_features=1))
