"""Files that are written in one step."""

import os
import threading
from pathlib import Path

import pytest

from bayesvote.core.files import replace_file


def test_a_link_stays_and_what_it_points_to_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"old")
    (tmp_path / "link").symlink_to("file")
    replace_file(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_bytes() == b"new"
    assert len([*tmp_path.iterdir()]) == 2


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names")
def test_a_pipe_or_a_device_is_written_to_and_stays_one(tmp_path: Path) -> None:
    pipe, found = tmp_path / "pipe", list[bytes]()
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: found.append(pipe.read_bytes()))
    reader.start()
    replace_file(pipe, b"model")
    reader.join(30)
    assert pipe.is_fifo()
    assert found == [b"model"]
    replace_file(os.devnull, b"model")
    assert Path(os.devnull).is_char_device()
    with pytest.raises(IsADirectoryError):
        replace_file(tmp_path, b"model")
