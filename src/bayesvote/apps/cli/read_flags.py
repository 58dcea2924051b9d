"""The options that say how a file is read."""

from dataclasses import dataclass
from typing import Annotated, Any

import typer

from bayesvote.apps.cli.lists import split
from bayesvote.apps.cli.options import one_of_names
from bayesvote.core.checks import did_you_mean
from bayesvote.io.read_options import BAD_LINES, FORMATS, ReadOptions
from bayesvote.tables.kinds import STATED


def _input(*names: str, **settings: Any) -> Any:
    return typer.Option(*names, rich_help_panel="Input", **settings)


def _columns(**settings: Any) -> Any:
    return typer.Option(rich_help_panel="Columns", **settings)


def _alias(kind: str) -> Any:
    return typer.Option(
        metavar="NAMES",
        help=f"Same as --column NAME={kind}, for several names a,b,c.",
        rich_help_panel="Deprecated: use --column instead. These will be removed in the next release",
    )


@dataclass(frozen=True)
class FileFlags:
    """Options of every command that reads rows."""

    file_format: Annotated[
        str, _input("--format", help=f"File format: {', '.join(FORMATS)}.", **one_of_names(lambda: FORMATS))
    ] = "auto"
    bad_lines: Annotated[
        str,
        _input(
            help="How to handle lines that cannot be read: error, or skip to leave them out and count them.",
            **one_of_names(lambda: BAD_LINES),
        ),
    ] = "error"
    header: Annotated[
        bool | None,
        _input(
            "--header/--no-header",
            help="Whether the first line of CSV names the columns. By default a header is required; a first line "
            "that looks like data is an error.",
        ),
    ] = None
    decimal: Annotated[
        str | None, _input(metavar="MARK", help="Decimal mark of CSV, . or , (inferred by default).")
    ] = None

    def read_options(self, target: str | None = None) -> ReadOptions:
        """Return the options of the reader."""
        return ReadOptions(self.file_format, as_position(target), self.bad_lines, header=self.header, decimal=self.mark)

    @property
    def mark(self) -> str | None:
        """The decimal mark."""
        if self.decimal not in (None, ".", ","):
            raise typer.BadParameter(f"it must be . or , got {self.decimal!r}.", param_hint="--decimal")
        return self.decimal


@dataclass(frozen=True)
class ReadFlags(FileFlags):
    """Options of commands that learn from a file."""

    target: Annotated[
        str | None, _input(help="Label column, by name or by position from 0. The last column by default.")
    ] = None
    n_features: Annotated[
        int | None, _input(min=1, metavar="N", help="Number of features of LIBSVM text on standard input.")
    ] = None
    chunk_size: Annotated[int, _input(min=1, metavar="N", help="Maximum number of rows read at a time.")] = 4096
    column: Annotated[
        list[str] | None,
        _columns(
            metavar="NAME=KIND",
            help=f"Kind of a column: {', '.join(STATED)}. Repeat for several columns. If NAME contains '=', the "
            "last one separates it from KIND.",
        ),
    ] = None
    features: Annotated[
        list[str] | None,
        _columns(metavar="NAMES", help="Comma-separated list of the only columns to learn from, such as a,b,c."),
    ] = None
    category: Annotated[list[str] | None, _alias("category")] = None
    number: Annotated[list[str] | None, _alias("number")] = None
    boolean: Annotated[list[str] | None, _alias("boolean")] = None
    date: Annotated[list[str] | None, _alias("date")] = None
    day_first: Annotated[list[str] | None, _alias("day_first")] = None
    month_first: Annotated[list[str] | None, _alias("month_first")] = None
    drop: Annotated[list[str] | None, _alias("drop")] = None

    def read_options(self, target: str | None = None) -> ReadOptions:
        """Return the options of the reader."""
        return ReadOptions(
            self.file_format,
            as_position(self.target if target is None else target),
            self.bad_lines,
            self.chunk_size,
            self.kinds,
            self.header,
            self.mark,
            names_of(self.features) or None,
        )

    @property
    def kinds(self) -> dict[str, str] | None:
        """The kinds of columns by name; None if none are given."""
        stated = [kind_of_column(given) for given in self.column or ()]
        for kind in STATED:
            stated += [(name, kind) for name in names_of(getattr(self, kind))]
        found: dict[str, str] = {}
        for name, kind in stated:
            if found.setdefault(name, kind) != kind:
                message = f"column {name!r} must be of one kind, got {found[name]} and {kind}."
                raise typer.BadParameter(message, param_hint="--column")
        return found or None


def kind_of_column(given: str) -> tuple[str, str]:
    """Split NAME=KIND at the last equals sign.

    >>> kind_of_column("zip=category"), kind_of_column("a=b=drop")
    (('zip', 'category'), ('a=b', 'drop'))
    """
    name, equals, kind = given.rpartition("=")
    if not equals:
        raise typer.BadParameter(f"it must be NAME=KIND, got {given!r}.", param_hint="--column")
    if kind not in STATED:
        message = f"the kind of column {name!r} must be one of {', '.join(STATED)}, got {kind!r}."
        raise typer.BadParameter(f"{message} {did_you_mean(kind, list(STATED))}".rstrip(), param_hint="--column")
    return name, kind


def names_of(given: list[str] | None) -> list[str]:
    """Return names of columns given as a,b,c; a name with a comma is in quotes."""
    return [name for text in given or [] for name in split(text)]


def as_position(column: str | None) -> str | int | None:
    """Return a column's position if it is a number, or else its name.

    >>> as_position("-1"), as_position("age")
    (-1, 'age')
    """
    return int(column) if column is not None and column.removeprefix("-").isdigit() else column
