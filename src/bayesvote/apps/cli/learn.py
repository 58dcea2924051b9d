"""Work of ``run``: learn from a file, and show and save the results."""

from pathlib import Path
from typing import Any

from bayesvote.apps.cli import show
from bayesvote.apps.cli.interrupts import interrupts
from bayesvote.apps.cli.outputs import CheckpointOptions, OutputOptions
from bayesvote.apps.cli.settings import RunSettings
from bayesvote.apps.cli.training import Training
from bayesvote.core.files import naming
from bayesvote.evaluation import Tally
from bayesvote.io.model_file import save


def learn(file: str, settings: RunSettings, outputs: OutputOptions, interruptions: CheckpointOptions) -> int:
    """Learn from the file and show the result; return the exit code."""
    model_out, report = outputs.model_out, outputs.report
    if report is not None:
        show.require_report()
    training = Training(file, settings, outputs.predictions, interruptions)
    written: dict[str, Path | None] = {"model": None, "predictions": outputs.predictions, "report": None}
    try:
        with interrupts() as stop:
            if not training.complete(stop):
                with stop.finishing():
                    _print_saved(training, model_out)
                return stop.code
            if model_out is not None:
                _save(training, model_out)
                written["model"] = model_out
        if report is not None:
            _report(training, report)
            written["report"] = report
    except (OSError, MemoryError):  # usually a full disk
        if training.is_complete:
            _show(training, written, outputs.json)
        _print_remaining(training, written)
        raise
    _show(training, written, outputs.json)
    return 0


def _print_saved(training: Training, model_out: Path | None) -> None:
    """After an interruption: save the model, and print what is saved where."""
    if not training.rows:
        show.note("Stopped before the first row was learned: there is nothing to save.")
        return
    lines = [f"Stopped after {training.rows:,} rows."]
    if training.predictions is not None:
        lines.append(f"The predictions are in {training.predictions}.")
    if model_out is not None and training.whole:
        _save(training, model_out)
        lines.append(f"The model is in {model_out}.")
    if training.kept:
        if not training.whole:
            lines.append("The rows since the last checkpoint are lost.")
        lines.append(f"Run the same command with --resume to continue from {training.checkpoint}.")
        if not training.replayable:
            lines.append("If the rows cannot be read again, add --from-here.")
    elif not training.whole:
        lines.append("The model was not saved: it was stopped a second time, within a chunk of rows.")
    elif model_out is None:
        lines.append("The model was not saved. Pass --checkpoint FILE or -o MODEL to save it.")
    show.note(" ".join(lines))


def _print_remaining(training: Training, written: dict[str, Path | None]) -> None:
    """After a full disk or a lack of memory: print what is saved."""
    if written["model"] is not None:
        show.note(f"The model is in {written['model']}.")
    elif training.kept:
        show.note(
            f"The state after {training.kept:,} rows is saved in {training.checkpoint}: run the same command with "
            "--resume to continue."
        )
    elif training.rows:
        show.note("The model is lost. --checkpoint FILE would have saved it.")


def _show(training: Training, written: dict[str, Path | None], as_json: bool) -> None:
    if as_json:
        show.as_json(training.figures() | {name: path and str(path) for name, path in written.items()})
    else:
        _print(training, [str(path) for path in written.values() if path])


def _save(training: Training, path: Path) -> None:
    """Save the model with the names of its features, so that ``predict`` finds them in other files."""
    save(_named(training), path)


def _named(training: Training) -> Any:
    """Return the model, with the names of its features."""
    if training.columns is not None and not hasattr(training.model, "columns_"):
        training.model.name_features(training.columns[:-1])
    return training.model


def _report(training: Training, path: Path) -> None:
    from bayesvote.apps.report.html import write
    from bayesvote.apps.report.run import importances_of, run_report

    title, model = Path(training.source).name, _named(training)
    settings = {name: value for name, value in training.settings.stored().items() if value is not None}
    tallies = {type(model).__name__: training.tally or Tally()}
    with naming(path):
        write(run_report(title, tallies, getattr(model, "weights_", None), settings, importances_of(model)), path)


def _print(training: Training, written: list[str]) -> None:
    found = training.figures()
    speed, recent, window = found["rows_per_second"], found["windowed_error"], (training.tally or Tally()).window
    facts = {
        "rows": f"{found['rows']:,}"
        + (f", {training.resumed_at:,} of them before the interruption" if training.resumed_at else ""),
        "error": f"{found['error']:.4f}"
        + (f", of the last {window:,} rows {recent:.4f}" if training.rows > window else ""),
        "kappa": f"{found['kappa']:.4f}",
        "balanced accuracy": f"{found['balanced_accuracy']:.4f}",
        "Brier score": f"{found['brier']:.4f}",
        "time": f"{found['seconds']:.2f} s" + (f", {speed:,.0f} rows/s" if speed else ""),
        "memory": f"{found['memory'] / 1e6:.1f} MB",
    }
    if written:
        facts["written"] = ", ".join(written)
    show.console().print(show.facts(facts))
    show.skipped(training.stream.skipped, training.stream.reports)
