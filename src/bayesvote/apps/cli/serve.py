"""The command ``serve``: its options, and what is printed of a check or a copy."""

from pathlib import Path
from typing import Annotated

import typer

from bayesvote.core.checks import InputError

_Panel = "Limits"


def serve(
    folder: Annotated[
        Path, typer.Argument(file_okay=False, help="Holds the models, their journal and snapshots; made if need be.")
    ] = Path("served"),
    host: Annotated[
        str, typer.Option(help="Where to listen. Other than on this machine, a token is needed.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 for any that is free.")] = 8000,
    token_file: Annotated[
        Path | None,
        typer.Option(exists=True, dir_okay=False, help="File with the token; or the environment's BAYESVOTE_TOKEN."),
    ] = None,
    check: Annotated[bool, typer.Option("--check", help="Verify the folder and exit; it may be in use.")] = False,
    backup: Annotated[
        Path | None, typer.Option(file_okay=False, help="Copy the folder to this one and exit; it may be in use.")
    ] = None,
    snapshot_every: Annotated[int, typer.Option(min=1, metavar="N", help="Rows between two snapshots.")] = 10_000,
    prune: Annotated[
        bool, typer.Option("--prune", help="Forget rows of the journal that are in two snapshots, and their ids.")
    ] = False,
    shutdown_seconds: Annotated[
        float, typer.Option(min=1, help="Until requests must have ended and snapshots be taken after a signal.")
    ] = 10.0,
    log_json: Annotated[bool, typer.Option("--log-json", help="Log lines as JSON.")] = False,
    pending_days: Annotated[
        float, typer.Option(min=0, help="How long a row waits for its label.", rich_help_panel=_Panel)
    ] = 30.0,
    max_pending: Annotated[
        int, typer.Option(min=1, help="Rows of a model that may wait; the oldest go.", rich_help_panel=_Panel)
    ] = 1_000_000,
    max_body: Annotated[int, typer.Option(min=1, help="Bytes of a request.", rich_help_panel=_Panel)] = 8_000_000,
    max_rows: Annotated[int, typer.Option(min=1, help="Rows of a request.", rich_help_panel=_Panel)] = 10_000,
    max_columns: Annotated[int, typer.Option(min=1, help="Columns of a new model.", rich_help_panel=_Panel)] = 10_000,
    max_connections: Annotated[int, typer.Option(min=1, help="Connections at a time.", rich_help_panel=_Panel)] = 1_000,
    request_seconds: Annotated[
        float, typer.Option(min=0.1, help="Until a request must have come whole.", rich_help_panel=_Panel)
    ] = 30.0,
) -> int:
    """Serve models over HTTP: predict now, label later, learn on, lose nothing."""
    try:
        from bayesvote.apps import service
    except ImportError as error:
        do = "Run: pip install 'bayesvote[serve]'"
        raise InputError("", f"the package {error.name}", "must be installed to serve models", do=do) from error

    if check:
        report = service.check(folder)
        for line in report.good:
            print(f"good: {line}")
        for line in report.bad:
            print(f"BAD:  {line}")
        return 1 if report.bad else 0
    if backup is not None:
        service.copy(folder, backup)
        print(f"{folder} was copied to {backup}.")
        return 0
    limits = service.Limits(
        body=max_body,
        rows=max_rows,
        columns=max_columns,
        pending=max_pending,
        pending_seconds=pending_days * 86_400,
        request_seconds=request_seconds,
    )
    options = service.Options(
        folder,
        host,
        port,
        token_file,
        snapshot_every=snapshot_every,
        prune=prune,
        shutdown_seconds=shutdown_seconds,
        connections=max_connections,
        log_json=log_json,
        limits=limits,
    )
    return service.serve(options)
