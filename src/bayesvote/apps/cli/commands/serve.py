"""The command ``serve``."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from bayesvote.apps.cli.options import with_option_groups
from bayesvote.core.checks import InputError


def _option(panel: str, *names: str, **settings: Any) -> Any:
    return typer.Option(*names, rich_help_panel=panel, **settings)


@dataclass(frozen=True)
class NetworkOptions:
    """The address, the token and the log of the service."""

    host: Annotated[
        str, _option("Network", help="Address to listen on. Non-local addresses require an access token.")
    ] = "127.0.0.1"
    port: Annotated[int, _option("Network", min=0, max=65535, metavar="N", help="Port; 0 for any free port.")] = 8000
    token_file: Annotated[
        Path | None,
        _option(
            "Network",
            exists=True,
            dir_okay=False,
            help="File that contains the access token; if omitted, the token is read from the environment variable "
            "BAYESVOTE_TOKEN.",
        ),
    ] = None
    log_json: Annotated[bool, _option("Network", "--log-json", help="Write the log as JSON lines.")] = False


@dataclass(frozen=True)
class StorageOptions:
    """Snapshots, journal and shutdown of the service."""

    snapshot_every: Annotated[
        int, _option("Storage", min=1, metavar="N", help="Learned rows between snapshots of a model.")
    ] = 10_000
    prune: Annotated[
        bool,
        _option(
            "Storage", "--prune", help="Delete rows and their ids from the journal once they are in two snapshots."
        ),
    ] = False
    shutdown_seconds: Annotated[
        float,
        _option(
            "Storage",
            min=1,
            metavar="SECONDS",
            help="Grace period on shutdown for finishing requests and saving snapshots.",
        ),
    ] = 10.0


@dataclass(frozen=True)
class LimitOptions:
    """Limits of the service."""

    pending_days: Annotated[
        float,
        _option("Limits", min=0, metavar="DAYS", help="Number of days after which a row without a label is deleted."),
    ] = 30.0
    max_pending: Annotated[
        int,
        _option(
            "Limits",
            min=1,
            metavar="N",
            help="Maximum number of rows per model that wait for labels; when exceeded, the oldest are deleted.",
        ),
    ] = 1_000_000
    max_body: Annotated[int, _option("Limits", min=1, metavar="BYTES", help="Maximum size of a request in bytes.")] = (
        8_000_000
    )
    max_rows: Annotated[int, _option("Limits", min=1, metavar="N", help="Maximum number of rows per request.")] = 10_000
    max_columns: Annotated[
        int, _option("Limits", min=1, metavar="N", help="Maximum number of columns of a new model.")
    ] = 10_000
    max_connections: Annotated[
        int, _option("Limits", min=1, metavar="N", help="Maximum number of simultaneous connections.")
    ] = 1_000
    request_seconds: Annotated[
        float,
        _option("Limits", min=0.1, metavar="SECONDS", help="Seconds within which a request must arrive completely."),
    ] = 30.0


@with_option_groups
def serve(
    network: NetworkOptions,
    storage: StorageOptions,
    limits: LimitOptions,
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="FOLDER",
            file_okay=False,
            help="Folder with the models, their journal and snapshots; created if it does not exist.",
        ),
    ] = Path("served"),
    check: Annotated[
        bool, typer.Option("--check", help="Verify the folder and exit. Safe while the service is running.")
    ] = False,
    backup: Annotated[
        Path | None,
        typer.Option(
            file_okay=False, help="Back up the folder to this directory and exit. Safe while the service is running."
        ),
    ] = None,
) -> int:
    """Serve models over HTTP: predict rows, and learn from labels that arrive later.

    No learned rows are lost in a crash.
    """
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
    options = service.Options(
        folder,
        network.host,
        network.port,
        network.token_file,
        snapshot_every=storage.snapshot_every,
        prune=storage.prune,
        shutdown_seconds=storage.shutdown_seconds,
        connections=limits.max_connections,
        log_json=network.log_json,
        limits=service.Limits(
            body=limits.max_body,
            rows=limits.max_rows,
            columns=limits.max_columns,
            pending=limits.max_pending,
            pending_seconds=limits.pending_days * 86_400,
            request_seconds=limits.request_seconds,
        ),
    )
    return service.serve(options)
