"""Output files and checkpoints of commands: their options, and checks before any work is done."""

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer


def _output(*names: str, **settings: Any) -> Any:
    return typer.Option(*names, rich_help_panel="Output", **settings)


def _interruption(*names: str, **settings: Any) -> Any:
    return typer.Option(*names, rich_help_panel="Interruptions", **settings)


@dataclass(frozen=True)
class OutputOptions:
    """Output of ``run``."""

    model_out: Annotated[Path | None, _output("--model-out", "-o", help="Save the model to this file.")] = None
    predictions: Annotated[
        Path | None, _output(help="Write the label, prediction and probability of every row to this CSV file.")
    ] = None
    report: Annotated[Path | None, _output(help="Write an HTML report to this file.")] = None
    json: Annotated[bool, _output("--json", help="Print the result as JSON.")] = False


@dataclass(frozen=True)
class CheckpointOptions:
    """Checkpoints of a run, and resuming from them."""

    checkpoint: Annotated[
        Path | None, _interruption(help="Save the state of the run to this file, regularly and on Ctrl-C.")
    ] = None
    checkpoint_every: Annotated[int, _interruption(min=1, metavar="N", help="Rows between checkpoints.")] = 100_000
    resume: Annotated[bool, _interruption("--resume", help="Resume from the checkpoint, if it exists.")] = False
    from_here: Annotated[
        bool,
        _interruption("--from-here", help="With --resume: FILE contains only the rows after the checkpoint."),
    ] = False

    def check(self) -> None:
        """Raise an error for options that do not go together, or a checkpoint that would be overwritten."""
        path = self.checkpoint
        if path is not None and path.exists() and not path.is_file():
            raise typer.BadParameter(f"it must be a file, got the device {str(path)!r}.", param_hint="--checkpoint")
        if self.resume and path is None:
            raise typer.BadParameter("it needs --checkpoint FILE.", param_hint="--resume")
        if self.from_here and not self.resume:
            raise typer.BadParameter("it needs --resume.", param_hint="--from-here")
        if path is not None and path.exists() and not self.resume:
            raise typer.BadParameter(
                f"{path} exists already. Pass --resume to continue from it, or delete it to start again.",
                param_hint="--checkpoint",
            )


def must_exist(file: str) -> None:
    """Raise an error if the input file does not exist."""
    if file == "-":
        return
    if Path(file).is_dir():
        raise typer.BadParameter(f"it must be a file, got the folder {file!r}.", param_hint="FILE")
    if not Path(file).exists():
        raise typer.BadParameter(f"file {file!r} does not exist.", param_hint="FILE")


def must_be_writable(option: str, path: Path | None, *, terminal: bool = False) -> None:
    """Raise an error for an output file that cannot be written, or is a terminal unless that is allowed."""
    if path is None:
        return
    folder = path.resolve().parent
    if path.is_dir():
        do = f"Name a file in it, such as {str(path / 'NAME')!r}."
        raise typer.BadParameter(f"it must be a file, got the folder {str(path)!r}. {do}", param_hint=option)
    if not folder.is_dir():
        raise typer.BadParameter(f"it must be a file in a folder that exists, got {str(path)!r}.", param_hint=option)
    device = path.exists() and not path.is_file()  # a device is opened, not replaced, so its folder does not matter
    if not (device or os.access(folder, os.W_OK)) or (path.exists() and not os.access(path, os.W_OK)):
        raise typer.BadParameter(f"it must be a file that can be written, got {str(path)!r}.", param_hint=option)
    if not terminal and _is_terminal(path):
        raise typer.BadParameter(f"it must be a file, got the terminal {str(path)!r}.", param_hint=option)


def must_differ(paths: Mapping[str, Path | None]) -> None:
    """Raise an error if a command would overwrite its input, or write two outputs to one file."""
    seen: dict[Path, str] = {}
    for option, path in paths.items():
        if path is not None and seen.setdefault(path.resolve(), option) != option:
            other = seen[path.resolve()]
            raise typer.BadParameter(f"it must be another file than {other}, got {str(path)!r}.", param_hint=option)


def _is_terminal(path: Path) -> bool:
    if not path.exists() or not stat.S_ISCHR(path.stat().st_mode):
        return False
    with path.open("rb", buffering=0) as device:
        return device.isatty()
