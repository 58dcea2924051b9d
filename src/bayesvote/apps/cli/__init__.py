"""The command line: ``bayesvote``, or ``python -m bayesvote``."""

import os
import sys
import traceback
import warnings
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return the exit code: 0, 1 for a failure, 2 for wrong usage, 130 for an interruption.

    Errors are one sentence on standard error. ``--debug`` or the environment variable BAYESVOTE_DEBUG adds the
    traceback.
    """
    try:
        return _main(list(sys.argv[1:] if arguments is None else arguments))
    except KeyboardInterrupt:  # while the library is imported
        return _stopped()


def _main(given: list[str]) -> int:
    missing = [name for name in ("typer", "rich") if find_spec(name) is None]
    if missing:
        print(
            f"bayesvote: {' and '.join(missing)} must be installed for the command line. "
            "Run: pip install 'bayesvote[cli]'",
            file=sys.stderr,
        )
        return 1
    debug = "--debug" in given or bool(os.environ.get("BAYESVOTE_DEBUG"))
    return _call([argument for argument in given if argument != "--debug"], debug)


def _call(arguments: list[str], debug: bool) -> int:
    import typer

    from bayesvote.apps.cli.app import app
    from bayesvote.apps.cli.errors import ClosedPipeError, InterruptionError, WrongUsageError, sentence
    from bayesvote.apps.cli.show import OUTPUT, output

    try:
        with warnings.catch_warnings(), output():
            warnings.showwarning = _warn
            code = app(arguments, prog_name="bayesvote", standalone_mode=False)
            sys.stdout.flush()  # here, where an error of a closed pipe is still handled
        return code if isinstance(code, int) else 0
    except typer.TyperException as error:
        if type(error).__name__ == "NoArgsIsHelpError":  # without arguments, show the help
            print(error.format_message())
            return 0
        context = getattr(error, "ctx", None)
        help_of = getattr(context, "command_path", "bayesvote")
        near = getattr(error, "possibilities", None)
        message = f"{error.message}. Did you mean {' or '.join(sorted(near))}?" if near else _message(error)
        stop = "" if message.endswith((".", "?")) else "."
        return _fail(error, f"{message}{stop} See {help_of} --help.", error.exit_code, debug)
    except WrongUsageError as error:
        cause = error.__cause__ or error
        text = f"{sentence(cause, _options(arguments))} See bayesvote {arguments[0]} --help."
        return _fail(cause, text, 2, debug)
    except (KeyboardInterrupt, InterruptionError, typer.Abort):
        return _stopped()
    except (BrokenPipeError, ClosedPipeError):  # the reader, such as head, has exited
        _close_output()
        return 1
    except Exception as error:
        if getattr(error, "filename", None) == OUTPUT:
            _close_output()
        return _fail(error, sentence(error, _options(arguments)), 1, debug)


def _stopped() -> int:
    print("bayesvote: stopped.", file=sys.stderr)
    return 130


def _close_output() -> None:
    """Discard further output, or Python would report another error when it closes standard output."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _message(error: Any) -> str:
    """Return the message of Typer, with the invalid value."""
    message = str(error.format_message())
    reasons = getattr(error.__cause__, "errors", None)  # of pydantic, which parses numbers for Typer
    if reasons is None:
        return message
    return f"{message.removesuffix('.')}, got {str(reasons()[0]['input'])!r}."


def _options(arguments: list[str]) -> set[str]:
    """Return the options of the command that was called."""
    from typer.main import get_command

    from bayesvote.apps.cli.app import app

    commands = getattr(get_command(app), "commands", {})
    command = commands.get(arguments[0] if arguments else "")
    return {name for parameter in getattr(command, "params", ()) for name in parameter.opts}


def _fail(error: BaseException, text: str, code: int, debug: bool) -> int:
    if debug:
        traceback.print_exception(error)
    from bayesvote.apps.cli.show import plain

    print(f"bayesvote: {plain(text)}", file=sys.stderr)
    return code


def _warn(message: Warning | str, *_: object, **__: object) -> None:
    """Print a warning as a sentence, without the line of code that raised it."""
    from bayesvote.apps.cli.errors import written
    from bayesvote.apps.cli.show import note
    from bayesvote.core.checks import InputWarning

    note(message.sentence(written) if isinstance(message, InputWarning) else str(message))
