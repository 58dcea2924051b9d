"""The command ``run``."""

from pathlib import Path

from bayesvote.apps.cli.distributed import Sharding
from bayesvote.apps.cli.label_options import LabelOptions
from bayesvote.apps.cli.model_options import ModelOptions
from bayesvote.apps.cli.options import FileArgument, with_option_groups
from bayesvote.apps.cli.outputs import CheckpointOptions, OutputOptions, must_be_writable, must_differ, must_exist
from bayesvote.apps.cli.read_flags import ReadFlags


@with_option_groups
def run(
    file: FileArgument,
    model: ModelOptions,
    reading: ReadFlags,
    labels: LabelOptions,
    outputs: OutputOptions,
    interruptions: CheckpointOptions,
    sharding: Sharding,
) -> int:
    """Train a model on a file and report its error.

    Each row is predicted before it is learned, so the error is measured on unseen rows. With --engine, train on many
    files.
    """
    from bayesvote.apps.cli.learn import learn
    from bayesvote.apps.cli.settings import RunSettings

    sharding.check()
    settings = RunSettings(model, reading.read_options(), labels, reading.n_features)
    paths = {
        "--model-out": outputs.model_out,
        "--predictions": outputs.predictions,
        "--report": outputs.report,
        "--checkpoint": interruptions.checkpoint,
    }
    for option, path in paths.items():
        must_be_writable(option, path, terminal=option == "--predictions")
    if sharding.engine is not None:
        sharding.refuse(
            {
                "--predictions": outputs.predictions,
                "--report": outputs.report,
                "--checkpoint": interruptions.checkpoint,
                "--resume": interruptions.resume or None,
                "--from-here": interruptions.from_here or None,
                "--n-features": reading.n_features,
            }
        )
        return sharding.learn(file, settings, model_out=outputs.model_out, as_json=outputs.json)
    must_exist(file)
    must_differ({"FILE": None if file == "-" else Path(file)} | paths)
    interruptions.check()
    return learn(file, settings, outputs, interruptions)
