"""Errors as the command line prints them: parameters of the library are written as options."""

import errno
import shlex
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager

from bayesvote.core.checks import Argument, InvalidInputError


class WrongUsageError(Exception):
    """The library rejected the options; its error is the cause."""


class ClosedPipeError(Exception):
    """The reader of standard output has closed it. Typer would handle a BrokenPipeError itself."""


class InterruptionError(Exception):
    """Ctrl-C. Typer would exit silently on a KeyboardInterrupt."""


@contextmanager
def usage() -> Iterator[None]:
    """Report errors of the library as wrong usage of the options."""
    try:
        yield
    except (ValueError, TypeError) as error:
        raise WrongUsageError from error


def option(name: str) -> str:
    """Return the option for a parameter.

    >>> option("bad_lines"), option("columns")
    ('--bad-lines', '--column')
    """
    return "--column" if name == "columns" else f"--{name.replace('_', '-')}"


def written(argument: Argument) -> str:
    """Write an argument of the library as an option.

    >>> written(Argument("header", False)), written(Argument("columns", {"Date Egg": "date"}))
    ('--no-header', "--column 'Date Egg=date'")
    """
    name, value = argument
    if isinstance(value, dict):
        return written_kinds(value)
    if name == "labels":  # naming all labels reads them as text if one of them is a code
        return "--classes, which names all of them"
    if isinstance(value, bool):
        return option(name if value else f"no_{name}")
    return option(name) if value is None else f"{option(name)} {value}"


def written_kinds(kinds: Mapping[str, str]) -> str:
    """Write the kinds of columns as options, quoted for the shell."""
    return " ".join(f"--column {shlex.quote(f'{name}={kind}')}" for name, kind in kinds.items())


def sentence(error: BaseException, options: Collection[str] = ()) -> str:
    """Return the text of an error; parameters that are among the command's options are written as options.

    >>> from bayesvote.core.checks import InputError
    >>> sentence(InputError("stream", "n_features", "must be given"), {"--n-features"})
    '--n-features must be given.'
    """
    if isinstance(error, InvalidInputError):
        subject = option(error.subject)
        if subject not in options and f"{subject}s" in options:  # the parameter member of boosters is --members
            subject += "s"
        if subject in options:
            return error.sentence(subject, written)
        # A class, such as a weighter, helps to find the mistake; a Python function does not.
        who = f"{error.who}: " if error.who[:1].isupper() else ""
        return who + error.sentence(written=written)
    if isinstance(error, OSError) and error.strerror:
        do = " Free some space, or write to another disk." if error.errno in _FULL else ""
        return (f"{error.filename}: {error.strerror}." if error.filename else f"{error.strerror}.") + do
    text = " ".join(str(error).split())
    if isinstance(error, MemoryError) or text.startswith(_TOO_LARGE):
        return _out_of_memory(options)
    expected = isinstance(error, (ValueError, TypeError, ImportError, OSError))
    return text if expected and text else f"{type(error).__name__}: {text} (--debug shows the traceback.)"


_FULL = (errno.ENOSPC, errno.EDQUOT)
# NumPy raises these for an array that no machine could hold, without trying to allocate it.
_TOO_LARGE = ("array is too big", "Maximum allowed dimension exceeded", "Python int too large to convert to C")


def _out_of_memory(options: Collection[str]) -> str:
    """Return the error for a lack of memory.

    >>> _out_of_memory({"--n-members", "--proba"})
    'Out of memory. Use fewer members with --n-members.'
    """
    ways = {"--n-members": "use fewer members with", "--chunk-size": "read fewer rows at a time with"}
    advice = " or ".join(f"{way} {name}" for name, way in ways.items() if name in options)
    advice = advice or "use a machine with more memory, or a smaller model"
    return f"Out of memory. {advice[0].upper()}{advice[1:]}."
