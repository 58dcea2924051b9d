"""The command line: ``bayesvote``, or ``python -m bayesvote``."""

import os
import re
import sys
import traceback
from collections.abc import Sequence
from importlib.util import find_spec

# What the library's sentences call by its name in Python, as it is called here.
_SPOKEN = (
    (re.compile(r"pass bad_lines='skip'"), "pass --bad-lines skip"),
    (re.compile(r"n_features must be given"), "--n-features must be given"),
    (re.compile(r"^stream: target must be"), "--target must be"),
    (re.compile(r"^stream: "), ""),
)
_POSSIBLE = re.compile(r" \(Possible options: (.*)\)$")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return the exit code: 0, 1 for a failure, 2 for wrong usage, 130 for an interruption.

    Errors are one sentence on standard error; with ``--debug`` or the environment variable BAYESVOTE_DEBUG, the
    traceback as well.
    """
    missing = [name for name in ("typer", "rich") if find_spec(name) is None]
    if missing:
        print(
            f"bayesvote: {' and '.join(missing)} must be installed for the command line. "
            "Run: pip install 'bayesvote[cli]'",
            file=sys.stderr,
        )
        return 1
    given = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in given or bool(os.environ.get("BAYESVOTE_DEBUG"))
    return _run([argument for argument in given if argument != "--debug"], debug)


def _run(arguments: list[str], debug: bool) -> int:
    import typer

    from bayesvote.cli.app import app

    try:
        code = app(arguments, prog_name="bayesvote", standalone_mode=False)
        sys.stdout.flush()  # here, where a closed pipe is still caught
        return code if isinstance(code, int) else 0
    except typer.TyperException as error:
        if type(error).__name__ == "NoArgsIsHelpError":  # the help was asked for by saying nothing
            print(error.format_message())
            return 0
        context = getattr(error, "ctx", None)
        help_of = getattr(context, "command_path", "bayesvote")
        said = _POSSIBLE.sub(lambda found: f". Did you mean {found[1].replace(', ', ' or ')}?", error.format_message())
        stop = "" if said.endswith((".", "?")) else "."
        return _fail(error, f"{said}{stop} See {help_of} --help.", error.exit_code, debug)
    except (KeyboardInterrupt, typer.Abort):
        return 130
    except BrokenPipeError:
        # Whoever read has gone, like head; Python would complain again when it closes standard output.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception as error:
        return _fail(error, _sentence(error), 1, debug)


def _fail(error: BaseException, sentence: str, code: int, debug: bool) -> int:
    if debug:
        traceback.print_exception(error)
    print(f"bayesvote: {sentence}", file=sys.stderr)
    return code


def _sentence(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}." if error.filename else f"{error.strerror}."
    said = str(error)
    for pattern, instead in _SPOKEN:
        said = pattern.sub(instead, said)
    known = isinstance(error, (ValueError, TypeError, ImportError, OSError))
    return said if known and said else f"{type(error).__name__}: {said} (--debug shows where.)"
