"""CSV is read by blocks of plain lines; whatever the lines hold, that gives what line by line does."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayesvote.datasets import stream
from bayesvote.io import csv as _csv

PLAIN = st.sampled_from([b"1", b"2.5", b"-3e2", b" 4 ", b"", b"0"])
ODD = st.sampled_from(
    [
        b"1_0", b"inf", b"-nan", b"nan", b"NA", b"?", b"true", b"1e101", b"1e100", b"-1e100", b'"5"', b'"6', b"x",
        b"7\r", b"1,5", b"\xff", b"\xd9\xa1", b" ", b"\x1c1", b"a_b", b"1\x00",
    ]
)  # fmt: skip
FIELDS = st.one_of(PLAIN, PLAIN, PLAIN, PLAIN, PLAIN, PLAIN, ODD)
LINES = st.one_of(
    st.tuples(FIELDS, FIELDS, st.sampled_from([b"a", b"b", b"c_d", b"", b"\xff"])),
    st.sampled_from([(), (b"1",), (b"1", b"2", b"a", b"b")]),
)


def contents(path: Any, chunk_size: int, **options: Any) -> Any:
    try:
        rows = stream(path, "csv", bad_lines="skip", chunk_size=chunk_size, **options)
        parts = list(rows)
    except ValueError as error:
        return str(error)
    cells: list[Any] = []
    for part in parts:
        assert part.n <= chunk_size
        values = part.X.values() if isinstance(part.X, dict) else part.X.T
        cells += zip(part.lines.tolist(), part.y.tolist(), *(list(map(repr, value)) for value in values), strict=True)
    return cells, rows.skipped, rows.reports


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return tmp_path_factory.mktemp("csv") / "rows.csv"


@settings(max_examples=300, deadline=None)
@given(
    st.lists(LINES, max_size=40),
    st.sampled_from([b",", b";"]),
    st.sampled_from([b"\n", b"\r\n"]),
    st.sampled_from([1, 3, 16, 100]),
    st.sampled_from(
        [{}, {"columns": {"u": "category"}}, {"features": ["v"]}, {"target": "u", "columns": {"y": "drop"}}]
    ),
)
def test_blocks_are_lines(path: Any, lines: Any, mark: bytes, end: bytes, chunk_size: int, options: Any) -> None:
    path.write_bytes(end.join(mark.join(line) for line in [(b"u", b"v", b"y"), *lines]))
    by_blocks = contents(path, chunk_size, **options)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_csv._ChunkBuilder, "_read_block", lambda *_: False)
        assert contents(path, chunk_size, **options) == by_blocks


def test_plain_lines_come_in_blocks(path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    X = np.random.default_rng(0).normal(size=(500, 3))
    path.write_text("a,b,c,y\n" + "".join(f"{','.join(map(repr, x.tolist()))},{k % 2}\n" for k, x in enumerate(X)))
    rows: list[Any] = []
    read_row = _csv._ChunkBuilder._read_row

    def noted(*given: Any) -> bool:
        rows.append(given)
        return read_row(*given)

    monkeypatch.setattr(_csv._ChunkBuilder, "_read_row", noted)
    found = [chunk.X for chunk in stream(path, "csv", chunk_size=64)]
    np.testing.assert_array_equal(np.concatenate(found), X)
    assert len(rows) < 10
