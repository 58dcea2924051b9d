"""The command ``bench``."""

from bayesvote.apps.cli.options import Json


def bench(json: Json = False) -> None:
    """Measure the speed of the models on this machine."""
    from bayesvote.apps.cli import bench as work

    work.bench(as_json=json)
