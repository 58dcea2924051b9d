"""Writing files so that a crash never leaves half of one."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress


def replace_file(path: str | os.PathLike[str], data: bytes) -> None:
    """Replace a file in one step: whatever happens, the old one or the new one is there.

    A device or a pipe is written to, and stays what it is.
    """
    target = os.path.realpath(path)  # what a link points to is replaced, not the link
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
    """Put the names of a folder's files on the disk."""
    if os.name != "posix":  # elsewhere folders cannot be opened
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def naming(path: str | os.PathLike[str]) -> Iterator[None]:
    """Let errors of the operating system name this file; a full disk names none, and a temporary file means nothing."""
    try:
        yield
    except OSError as error:
        if error.errno is None or error.filename == os.fspath(path):
            raise
        raise OSError(error.errno, error.strerror, os.fspath(path)) from error
