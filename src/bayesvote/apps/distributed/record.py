"""Results of finished shards on disk, from which a second run resumes."""

import hashlib
import os
from pathlib import Path

from bayesvote.core.files import replace_file


class Record:
    """A folder with a file per stage and shard. Without a folder, nothing is saved.

    Each file holds a digest of its inputs: the shard, the settings and the members. A file with another digest is not
    used, and the result is computed again.
    """

    def __init__(self, folder: str | os.PathLike[str] | None) -> None:
        self._folder = None if folder is None else Path(folder)

    def get(self, stage: str, place: int, source: str) -> bytes | None:
        """Return the saved result of a shard if it is intact and has the same inputs."""
        if self._folder is None:
            return None
        try:
            head, _, data = self._path(stage, place).read_bytes().partition(b"\n")
        except OSError:
            return None
        return data if head == _head(source, data) else None

    def put(self, stage: str, place: int, source: str, data: bytes) -> None:
        """Save the result of a shard atomically."""
        if self._folder is not None:
            path = self._path(stage, place)
            path.parent.mkdir(parents=True, exist_ok=True)
            replace_file(path, _head(source, data) + b"\n" + data)

    def _path(self, stage: str, place: int) -> Path:
        assert self._folder is not None
        return self._folder / stage / f"{place:06d}"


def digest(*parts: object) -> str:
    """Return a digest of the inputs of a result."""
    return hashlib.sha256("\0".join(map(str, parts)).encode()).hexdigest()


def _head(source: str, data: bytes) -> bytes:
    return f"bayesvote shard 1 {source} {hashlib.sha256(data).hexdigest()}".encode()
