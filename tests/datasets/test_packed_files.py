"""Compressed files of several streams: nothing that follows the first one is lost, and memory is bounded."""

import bz2
import io
import lzma
import tracemalloc
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from bayesvote.core.checks import InputError
from bayesvote.datasets import stream
from bayesvote.io.sources import open_bytes

PACKERS: dict[str, Callable[[bytes], bytes]] = {"bz2": bz2.compress, "xz": lzma.compress}


def rows(first: int, last: int) -> bytes:
    return b"".join(b"%d,%d,%d\n" % (i, i % 7, i % 2) for i in range(first, last))


def count(folder: Path, content: bytes) -> int:
    path = folder / "x.csv"
    path.write_bytes(content)
    return sum(chunk.n for chunk in stream(path, chunk_size=100))


@pytest.mark.parametrize("packing", PACKERS)
def test_streams_follow_each_other(tmp_path: Path, packing: str) -> None:
    pack = PACKERS[packing]
    first, second = pack(b"a,b,y\n" + rows(0, 1000)), pack(rows(1000, 2000))
    assert count(tmp_path, first + second) == 2000
    assert count(tmp_path, pack(b"") + first + pack(b"") * 5 + second + pack(b"")) == 2000


@pytest.mark.parametrize("packing", PACKERS)
@pytest.mark.parametrize("damage", ["header", "body", "cut", "junk", "one byte"])
def test_what_follows_a_stream_is_not_dropped_in_silence(tmp_path: Path, packing: str, damage: str) -> None:
    pack = PACKERS[packing]
    first, second = pack(b"a,b,y\n" + rows(0, 1000)), bytearray(pack(rows(1000, 2000)))
    if damage in ("header", "body"):
        second[1 if damage == "header" else 200] ^= 1
    content = {"cut": first + second[:-5], "junk": first + b"0,0,1\n" * 9, "one byte": first + bytes(second[:1])}
    with pytest.raises(
        InputError, match=r"x.csv must be a complete file, got a damaged or truncated one: .*(bzip2|xz) stream"
    ):
        count(tmp_path, content.get(damage, first + second))


@pytest.mark.parametrize("zeros", [4, 8, 2**14, 2**14 + 4])
def test_zeros_may_stand_between_streams_of_xz(tmp_path: Path, zeros: int) -> None:
    first, second = lzma.compress(b"a,b,y\n" + rows(0, 1000)), lzma.compress(rows(1000, 2000))
    padding = b"\0" * zeros
    assert count(tmp_path, first + padding + second) == 2000
    assert count(tmp_path, first + second + padding) == 2000
    for content in (first + padding + b"\0" + second, first + second + padding + b"\0\0"):
        with pytest.raises(InputError, match=r"zero bytes follow an xz stream, not a multiple of 4"):
            count(tmp_path, content)
    with pytest.raises(InputError, match="bzip2 stream 2 is damaged or invalid"):
        count(tmp_path, bz2.compress(b"a,b,y\n" + rows(0, 10)) + padding)


@pytest.mark.parametrize("packing", PACKERS)
def test_the_end_of_a_file_stays_its_end(tmp_path: Path, packing: str) -> None:
    path = tmp_path / "x"
    # The padding is longer than what is read at a time, so that only its end would be seen by a second look.
    path.write_bytes(PACKERS[packing](b"text") + (b"\0" * (2**13 + 4) if packing == "xz" else b""))
    with open_bytes(str(path)) as file:
        assert file.read() == b"text"
        assert [file.read(), file.read1(9)] == [b"", b""]


def test_a_file_cannot_ask_for_memory(tmp_path: Path) -> None:
    def packed(size: int) -> bytes:
        filters = [{"id": lzma.FILTER_LZMA2, "dict_size": size}]
        return lzma.compress(b"a,b,y\n" + rows(0, 10), filters=filters)

    assert count(tmp_path, packed(2**26)) == 10  # that of xz -9
    # The dictionary's size is byte 17 of the header, which has a checksum; 40 stands for 4 GiB.
    forged = bytearray(packed(2**20))
    assert forged[12:15] == b"\x02\x00\x21"
    forged[16] = 40
    forged[20:24] = zlib.crc32(bytes(forged[12:20])).to_bytes(4, "little")
    for content in (bytes(forged), packed(2**20) + bytes(forged), packed(2**28)):
        with pytest.raises(InputError, match=r"x.csv must need at most 128 MiB of memory to be decompressed, got more"):
            count(tmp_path, content)
    zstandard = pytest.importorskip("zstandard")
    wide = zstandard.ZstdCompressor(compression_params=zstandard.ZstdCompressionParameters(window_log=30)).compressobj()
    with pytest.raises(InputError, match="must need at most 128 MiB of memory"):
        count(tmp_path, wide.compress(b"a,b,y\n" + rows(0, 10)) + wide.flush())


@pytest.mark.parametrize("packing", PACKERS)
def test_a_small_file_of_much_text_takes_little_memory(tmp_path: Path, packing: str) -> None:
    (tmp_path / "x").write_bytes(PACKERS[packing](b"0" * 2**26))
    tracemalloc.start()
    try:
        with open_bytes(str(tmp_path / "x")) as file:
            size = 0
            while data := file.read1(2**16):
                size += len(data)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert size == 2**26
    assert peak < 2**24  # the dictionary of xz has 8 MiB


@pytest.mark.parametrize("packing", PACKERS)
def test_parquet_can_be_read_while_compressed(tmp_path: Path, packing: str) -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    plain = io.BytesIO()
    pq.write_table(pa.table({"a": range(1000), "b": range(1000), "y": ["u", "v"] * 500}), plain, row_group_size=100)
    content, pack = plain.getvalue(), PACKERS[packing]
    path = tmp_path / "x.parquet"
    path.write_bytes(pack(content[:900]) + pack(content[900:]))
    assert [int(chunk.X[-1, 0]) for chunk in stream(path, chunk_size=300)][-1] == 999
    path.write_bytes(pack(content) + b"junk")
    with pytest.raises(InputError, match="must be a complete file"):
        list(stream(path))


def test_a_zstandard_file_may_begin_with_a_frame_to_be_skipped(tmp_path: Path) -> None:
    zstandard = pytest.importorskip("zstandard")
    skipped = b"\x5a\x2a\x4d\x18" + (4).to_bytes(4, "little") + b"abcd"
    path = tmp_path / "x.csv.zst"
    path.write_bytes(skipped + zstandard.compress(b"a,y\n1,0\n") + skipped + zstandard.compress(b"2,1\n"))
    assert [label for chunk in stream(path) for label in chunk.y.tolist()] == [0, 1]
