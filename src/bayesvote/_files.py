"""Writing files so that a crash never leaves half of one."""

import os
import secrets
from contextlib import suppress


def replace_file(path: str | os.PathLike[str], data: bytes) -> None:
    """Replace a file in one step: whatever happens, the old one or the new one is there."""
    target = os.path.realpath(path)  # what a link points to is replaced, not the link
    folder, name = os.path.split(target)
    temporary = os.path.join(folder, f".{name}.{secrets.token_hex(8)}.tmp")
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
    if os.name == "posix":  # elsewhere folders cannot be opened
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
