"""Errors in the words of the command line, where parameters are options."""

import errno
import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager

from bayesvote.core.checks import Argument, InvalidInputError


class WrongUsageError(Exception):
    """The library refused the options; its error is the cause."""


class ClosedPipeError(Exception):
    """Nobody reads standard output any more; an error that Typer leaves alone."""


class InterruptionError(Exception):
    """Ctrl-C, as an error that Typer does not turn into a silent exit."""


@contextmanager
def usage() -> Iterator[None]:
    """Report what the library refuses as wrong usage of the options."""
    try:
        yield
    except (ValueError, TypeError) as error:
        raise WrongUsageError from error


def option(name: str) -> str:
    """Option of a parameter.

    >>> option("bad_lines")
    '--bad-lines'
    """
    return f"--{name.replace('_', '-')}"


# In Python they are columns={name: kind}.
_KINDS = "--category, --number, --boolean, --date, --day-first, --month-first and --drop"


def sentence(error: BaseException, options: Collection[str] = ()) -> str:
    """What to tell the user; parameters that the command has as options are written as such.

    >>> from bayesvote.core.checks import InputError
    >>> sentence(InputError("stream", "n_features", "must be given"), {"--n-features"})
    '--n-features must be given.'
    """
    if isinstance(error, InvalidInputError):
        error = InvalidInputError(error.who, error.subject, error.must, error.got, _advised(error.do), error.using)
        subject = _KINDS if error.subject == "columns" and "--category" in options else option(error.subject)
        if subject not in options and f"{subject}s" in options:  # a booster has one kind of member, named by --members
            subject += "s"
        if subject in options or subject == _KINDS:
            return error.sentence(subject, _written)
        # A class, such as a weighter, helps to find the fault; a Python function does not.
        who = f"{error.who}: " if error.who[:1].isupper() else ""
        return who + error.sentence(written=_written)
    if isinstance(error, OSError) and error.strerror:
        do = " Free some space, or write to another disk." if error.errno in _FULL else ""
        return (f"{error.filename}: {error.strerror}." if error.filename else f"{error.strerror}.") + do
    text = " ".join(str(error).split())
    if isinstance(error, MemoryError) or text.startswith(_TOO_LARGE):
        return _too_large(options)
    expected = isinstance(error, (ValueError, TypeError, ImportError, OSError))
    return text if expected and text else f"{type(error).__name__}: {text} (--debug shows where.)"


_FULL = (errno.ENOSPC, errno.EDQUOT)
# What NumPy says of an array that no machine could hold, for which it does not even try to find the memory.
_TOO_LARGE = ("array is too big", "Maximum allowed dimension exceeded", "Python int too large to convert to C")


def _too_large(options: Collection[str]) -> str:
    """What to do where memory is short.

    >>> _too_large({"--n-members", "--proba"})
    'The memory is not enough. Ask for fewer members with --n-members.'
    """
    ways = {"--n-members": "ask for fewer members with", "--chunk-size": "read fewer rows at a time with"}
    advice = " or ".join(f"{way} {name}" for name, way in ways.items() if name in options)
    advice = advice or "use a machine with more, or a smaller model"
    return f"The memory is not enough. {advice[0].upper()}{advice[1:]}."


def _advised(do: str) -> str:
    """Advice of the readers of files, with options for parameters.

    >>> _advised("Read it with columns={'zip': 'category'}, decimal=',' or target='NAME'.")
    "Read it with --category 'zip', --decimal , or --target NAME."
    """
    do = re.sub(r"columns=\{(.*): '(\w+)'\}", r"--\2 \1", do)
    do = do.replace("Read all labels as they are written with labels='text'", "Name all labels with --classes")
    return do.replace("decimal=','", "--decimal ,").replace("target='NAME'", "--target NAME")


def _written(argument: Argument) -> str:
    if argument.name == "header=False":
        return "--no-header"
    if isinstance(argument.value, dict):  # kinds of columns
        return " ".join(f"{option(kind)} {name!r}" for name, kind in argument.value.items())
    return option(argument.name) + ("" if argument.value is None else f" {argument.value}")
