"""Finished shards on disk, so that a second start goes on where the first was stopped."""

import hashlib
import os
from pathlib import Path

from bayesvote.core.files import replace_file


class Record:
    """A folder with a file for every stage and shard; without a folder, nothing is kept.

    Each file says what it was made from. What was made from something else is not used, and made again: a shard that
    has changed, other settings, other members.
    """

    def __init__(self, folder: str | os.PathLike[str] | None) -> None:
        self._folder = None if folder is None else Path(folder)

    def get(self, stage: str, place: int, source: str) -> bytes | None:
        """Return what was kept of a shard, if it is whole and was made from that source."""
        if self._folder is None:
            return None
        try:
            head, _, data = self._path(stage, place).read_bytes().partition(b"\n")
        except OSError:
            return None
        return data if head == _head(source, data) else None

    def put(self, stage: str, place: int, source: str, data: bytes) -> None:
        """Keep what was found of a shard, in one step."""
        if self._folder is not None:
            path = self._path(stage, place)
            path.parent.mkdir(parents=True, exist_ok=True)
            replace_file(path, _head(source, data) + b"\n" + data)

    def _path(self, stage: str, place: int) -> Path:
        assert self._folder is not None
        return self._folder / stage / f"{place:06d}"


def digest(*parts: object) -> str:
    """A short name for what something is made from."""
    return hashlib.sha256("\0".join(map(str, parts)).encode()).hexdigest()


def _head(source: str, data: bytes) -> bytes:
    return f"bayesvote shard 1 {source} {hashlib.sha256(data).hexdigest()}".encode()
