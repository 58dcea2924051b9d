"""Atomic replacement of files."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress


def replace_file(path: str | os.PathLike[str], data: bytes) -> None:
    """Replace a file atomically: after a crash, either the old file or the new one exists.

    A device or a pipe is not replaced, but written to.
    """
    target = os.path.realpath(path)  # replace the target of a link, not the link
    if os.path.exists(target) and not os.path.isfile(target):
        with naming(path), open(target, "wb") as stream:
            stream.write(data)
        return
    folder, name = os.path.split(target)
    temporary = os.path.join(folder, f".{name}.{secrets.token_hex(8)}.tmp")
    with naming(path):
        try:
            with open(temporary, "xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, target)
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary)
            raise
        sync_folder(folder)


def sync_folder(folder: str | os.PathLike[str]) -> None:
    """Flush the directory entries of a folder to disk."""
    if os.name != "posix":  # elsewhere folders cannot be opened
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def naming(path: str | os.PathLike[str]) -> Iterator[None]:
    """Put this path into operating system errors that name no file, or a temporary one."""
    try:
        yield
    except OSError as error:
        if error.errno is None or error.filename == os.fspath(path):
            raise
        raise OSError(error.errno, error.strerror, os.fspath(path)) from error
