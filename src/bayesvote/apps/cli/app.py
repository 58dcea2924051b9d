"""The application: its commands, and those of other packages."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import entry_points
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from bayesvote.apps.cli.commands.bench import bench
from bayesvote.apps.cli.commands.datasets import datasets
from bayesvote.apps.cli.commands.inspect import inspect
from bayesvote.apps.cli.commands.merge import merge
from bayesvote.apps.cli.commands.predict import predict
from bayesvote.apps.cli.commands.run import run
from bayesvote.apps.cli.commands.serve import serve
from bayesvote.apps.cli.errors import ClosedPipeError, InterruptionError


class _Commands(TyperGroup):
    """The group of all commands. It reports Ctrl-C and a closed pipe as errors; Typer would exit silently."""

    def make_context(self, *arguments: Any, **settings: Any) -> Any:
        with _reported():
            return super().make_context(*arguments, **settings)

    def invoke(self, ctx: Any) -> Any:
        with _reported():
            return super().invoke(ctx)


@contextmanager
def _reported() -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt as error:
        raise InterruptionError from error
    except BrokenPipeError as error:
        raise ClosedPipeError from error


app = typer.Typer(
    cls=_Commands,
    help="Online classifier ensembles with Bayesian weights.",
    epilog="Run bayesvote COMMAND --help for the options of a command. Add --debug to show the traceback of an error.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(requested: bool) -> None:
    if requested:
        from bayesvote import __version__

        print(f"bayesvote {__version__}")
        raise typer.Exit


@app.callback()
def _top(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    pass


for _command in (run, predict, inspect, merge, datasets, bench, serve):
    app.command()(_command)


def _add_commands() -> None:
    """Add the commands of other packages, such as ``reproduce`` of bayesvote-paper."""
    found = {point.name: point for point in entry_points(group="bayesvote.commands")}
    for name, point in found.items():
        app.command(name)(point.load())
    if "reproduce" not in found:

        @app.command(context_settings={"ignore_unknown_options": True})
        def reproduce(arguments: Annotated[list[str] | None, typer.Argument(hidden=True)] = None) -> None:  # noqa: ARG001
            """Reproduce the tables and figures of the paper. Requires the package bayesvote-paper."""
            do = "Run: pip install 'bayesvote[paper]', or in a clone of the repository: pip install ./paper"
            raise ImportError(f"bayesvote reproduce requires the package bayesvote-paper. {do}")


_add_commands()
