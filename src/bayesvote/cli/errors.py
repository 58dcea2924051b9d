"""Errors in the words of the command line, where parameters are options."""

import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager

from bayesvote._checks import Argument, RefusalError


class WrongUsageError(Exception):
    """The library refused the options; its error is the cause."""


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


_KINDS = "--category, --number, --boolean, --date and --drop"  # what Python takes as columns={name: kind}


def sentence(error: BaseException, options: Collection[str] = ()) -> str:
    """What to tell the user; parameters that the command has as options are written as such.

    >>> from bayesvote._checks import InputError
    >>> sentence(InputError("stream", "n_features", "must be given"), {"--n-features"})
    '--n-features must be given.'
    """
    if isinstance(error, RefusalError):
        error = RefusalError(error.who, error.subject, error.must, error.got, _advised(error.do), error.using)
        subject = _KINDS if error.subject == "columns" and "--category" in options else option(error.subject)
        if subject in options or subject == _KINDS:
            return error.sentence(subject, _written)
        # A class, such as a weighter, helps to find the fault; a Python function does not.
        who = f"{error.who}: " if error.who[:1].isupper() else ""
        return who + error.sentence(written=_written)
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}." if error.filename else f"{error.strerror}."
    text = str(error)
    expected = isinstance(error, (ValueError, TypeError, ImportError, OSError))
    return text if expected and text else f"{type(error).__name__}: {text} (--debug shows where.)"


def _advised(do: str) -> str:
    """Advice of the readers of files, with options for parameters.

    >>> _advised("Read it with columns={'zip': 'category'}, decimal=',' or target='NAME'.")
    "Read it with --category 'zip', --decimal , or --target NAME."
    """
    do = re.sub(r"columns=\{(.*): '(\w+)'\}", r"--\2 \1", do)
    return do.replace("decimal=','", "--decimal ,").replace("target='NAME'", "--target NAME")


def _written(argument: Argument) -> str:
    if argument.name == "header=False":
        return "--no-header"
    if isinstance(argument.value, dict):  # kinds of columns
        return " ".join(f"--{kind} {name!r}" for name, kind in argument.value.items())
    return option(argument.name) + ("" if argument.value is None else f" {argument.value}")
