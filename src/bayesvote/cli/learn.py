"""``run``: learn from a file, with progress, predictions, checkpoints and a report."""

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack
from dataclasses import asdict
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import typer
from numpy.typing import NDArray
from rich.progress import BarColumn, Progress, TextColumn

from bayesvote._checks import InputError, UnknownLabelError
from bayesvote.cli import show
from bayesvote.cli.checkpoint import Checkpoint, Fingerprint
from bayesvote.cli.errors import usage
from bayesvote.cli.interrupts import Interrupts, Stopped, interrupts
from bayesvote.cli.predictions import Predictions
from bayesvote.cli.settings import Settings, check_classes
from bayesvote.datasets import Chunk, Stream, Survey
from bayesvote.datasets.streams import source_name
from bayesvote.evaluate import Step, Tally, memory, steps
from bayesvote.persistence import save

_NAME = "model"
_UNEVEN = 100.0  # features whose sizes differ by more than this make Perceptrons slow to learn


def learn(
    file: str,
    settings: Settings,
    *,
    model_out: Path | None,
    predictions: Path | None,
    report: Path | None,
    as_json: bool,
    checkpoint: Path | None,
    every: int,
    resume: bool,
) -> int:
    """Learn from the file and show the result; return the exit code."""
    if report is not None:
        show.require_report()
    training = Training(file, settings, predictions, checkpoint, every, resume)
    if not training.complete():
        if checkpoint is not None and checkpoint.exists():
            rows = f"{training.rows:,} rows"
            show.note(f"Stopped after {rows}. The same command with --resume goes on from {checkpoint}.")
        return 130
    if model_out is not None:
        _save(training, model_out)
    if report is not None:
        _report(training, report)
    written = {"model": model_out, "predictions": predictions, "report": report}
    if as_json:
        show.as_json(training.figures() | {name: path and str(path) for name, path in written.items()})
    else:
        _print(training, [str(path) for path in written.values() if path])
    return 0


class Training:
    """One pass over a file: the rows, the model, and how it does."""

    def __init__(
        self,
        file: str,
        settings: Settings,
        predictions: Path | None,
        checkpoint: Path | None,
        every: int,
        resume: bool,
    ) -> None:
        self.file = file
        self.source = source_name(file)
        self.settings = settings
        self.checkpoint = checkpoint
        self.every = every
        self.predictions = predictions
        self.total: int | None = None
        self.fingerprint = Fingerprint()
        self.lines: NDArray[np.int64] = np.empty(0, dtype=np.int64)  # of the rows that are being learned
        self.tally: Tally | None = None
        self.model: Any = None
        self.classes: NDArray[Any] = np.empty(0)
        self.saved = self._saved(checkpoint) if checkpoint is not None and checkpoint.exists() else None
        if self.saved is None:
            self.model = settings.classifier()  # before any reading: it refuses options that it does not have
            if resume:
                show.note(f"There is no checkpoint {checkpoint} yet: starting with the first row.")
        self.resumed_at = self.rows

    @property
    def rows(self) -> int:
        """How many rows were predicted."""
        return 0 if self.tally is None else self.tally.rows

    def complete(self) -> bool:
        """Learn all rows; return False if the user stopped it."""
        sink = None
        with ExitStack() as stack:
            stop = stack.enter_context(interrupts())
            bar = stack.enter_context(_bar())
            try:
                chunks = self._opened(bar, stack)
                if self.predictions is not None:
                    kept = self.saved.predictions if self.saved else None
                    sink = stack.enter_context(Predictions(self.predictions, kept))
                self._learn(chunks, sink, bar, stop)
            except Stopped:
                if self.checkpoint is not None and self.rows > self.resumed_at:
                    self._save_checkpoint(self.checkpoint, sink)
                return False
            except KeyboardInterrupt:
                return False
        return True

    def figures(self) -> dict[str, Any]:
        """The result."""
        tally = self.tally or Tally()
        return {
            "file": self.file,
            "rows": tally.rows,
            "error": tally.error,
            "windowed_error": tally.windowed_error,
            "kappa": tally.kappa,
            "balanced_accuracy": tally.balanced_accuracy,
            "brier": tally.brier,
            "seconds": tally.seconds,
            "rows_per_second": tally.rows / tally.seconds if tally.seconds else None,
            "memory": memory(self.model),
            "skipped_lines": self.stream.skipped,
            "resumed_at": self.resumed_at,
            "classes": self.classes.tolist(),
            "features": self.stream.n_features,
            "settings": asdict(self.settings),
        }

    def _saved(self, path: Path) -> Checkpoint:
        """Take up the state of an interrupted run with the same settings."""
        saved = Checkpoint.load(path)
        different = self.settings.differences(saved.settings)
        if (saved.predictions is None) != (self.predictions is None):
            different.append("--predictions was given only once")
        if different:
            message = f"the options must be those of {path}, but {'; '.join(different)}."
            raise typer.BadParameter(message, param_hint="--resume")
        self.model, self.tally, self.total = saved.model, Tally.from_json(saved.tally), saved.total
        self.classes = np.array(saved.classes)
        return saved

    def _opened(self, bar: Progress, stack: ExitStack) -> Iterator[Chunk]:
        """Open the file, find what must be known before the first row is learned, and start the model."""
        n_features = self.settings.n_features
        if self.saved is not None:
            n_features = self.model.n_features_in_
        elif self.file != "-" and self.settings.classes is None:
            found = _survey(self.file, self.settings, bar)
            self.classes, self.total = found.labels, found.n_rows
            n_features = n_features or found.n_features or None
        self.stream: Stream = self.settings.open(self.file, n_features)
        stack.callback(self.stream.close)
        if n_features is None and self.stream.feature_names is None:  # LIBSVM text, which does not tell its width
            show.note(f"Read {self.file} once more, to count its features. --n-features avoids this.")
        first = next(self.stream, None)
        if first is None:
            reports = self.stream.reports
            got = f"only bad lines; the first: {reports[0]}" if reports else "none"
            raise InputError("", self.source, "must have rows", got)
        if self.saved is None:
            if self.settings.classes is not None:
                self.classes = self.settings.known_classes(first)
            elif self.file == "-":
                self.classes = np.unique(first.y)
            if self.settings.classes is None:
                check_classes(self.source, self.classes)
            with usage():
                self.model.start(self.stream.n_features, self.classes)
            self._advise(first)
        return chain([first], self.stream)

    def _learn(self, chunks: Iterator[Chunk], sink: Predictions | None, bar: Progress, stop: Interrupts) -> None:
        task = bar.add_task("Learning", total=self.total, completed=self.rows, figures="")
        due = self.rows + self.every
        started, before = time.perf_counter(), self.rows
        for step in self._steps(chunks, stop):
            self.tally = step.tallies[_NAME]
            if sink is not None:
                first = self.rows - len(step.labels) + 1
                sink.add(first, step.labels, step.predictions[_NAME], step.probabilities[_NAME])
            if self.checkpoint is not None and self.rows >= due:
                self._save_checkpoint(self.checkpoint, sink)
                due = self.rows + self.every
            stop.obey()
            speed = (self.rows - before) / (time.perf_counter() - started)
            figures = f"{self.rows:,} rows  error {self.tally.error:.4f}  last {self.tally.window:,}: "
            figures += f"{self.tally.windowed_error:.4f}  {speed:,.0f} rows/s"
            bar.update(task, completed=self.rows, figures=figures)

    def _steps(self, chunks: Iterator[Chunk], stop: Interrupts) -> Iterator[Step]:
        """Learn chunk by chunk; a label that is not among the classes is an error that names its line."""
        try:
            yield from steps(
                {_NAME: self.model},
                self._rows(chunks, stop),
                classes=self.classes,
                chunk_size=self.settings.chunk_size,
                delay=self.settings.delay,
                tallies=None if self.tally is None else {_NAME: self.tally},
            )
        except UnknownLabelError as error:
            subject = f"{self.source}, line {self.lines[error.row]}: the label"
            must = f"must be one of {', '.join(map(str, self.classes.tolist()))}"
            raise InputError("", subject, must, error.got, "Name all labels with --classes.") from error

    def _rows(self, chunks: Iterator[Chunk], stop: Interrupts) -> Iterator[tuple[Any, NDArray[Any]]]:
        """Rows to learn: first those that were still waiting for their label. Ctrl-C stops while they are read."""
        done = self.rows
        learned = max(0, done - self.settings.delay)
        read = 0
        while True:
            with stop.reading():
                chunk = next(chunks, None)
            if chunk is None:
                break
            n = len(chunk.y)
            old = min(max(done - read, 0), n)  # rows that were predicted before the interruption
            if old:
                self.fingerprint.add(chunk.X[:old], chunk.y[:old])
                if read + old == done:
                    self._check_fingerprint()
            waiting = slice(min(max(learned - read, 0), old), old)
            for part in (waiting, slice(old, n)):
                if part.start == part.stop:
                    continue
                if part is not waiting:
                    self.fingerprint.add(chunk.X[part], chunk.y[part])
                self.lines = chunk.lines[part]
                yield chunk.X[part], chunk.y[part]
            read += n
        if read < done:
            must = f"must go on after the {done:,} rows of the checkpoint"
            raise InputError("", self.source, must, f"only {read:,}")

    def _check_fingerprint(self) -> None:
        """Refuse a file that does not start with the rows of the checkpoint."""
        if self.saved is not None and self.fingerprint.sums != self.saved.sums:
            must = f"must start with the rows of the checkpoint {self.checkpoint}"
            raise InputError("", self.source, must, "others", "Delete the checkpoint to start again.")

    def _save_checkpoint(self, path: Path, sink: Predictions | None) -> None:
        Checkpoint(
            settings=asdict(self.settings),
            classes=self.classes.tolist(),
            total=self.total,
            sums=list(self.fingerprint.sums),
            predictions=None if sink is None else sink.safe_size(),
            tally=(self.tally or Tally()).to_json(),
            model=self.model,
        ).save(path)

    def _advise(self, first: Chunk) -> None:
        """Advise to scale the features, if the members are Perceptrons and the features differ much in size."""
        members = self.settings.members or ("mixed" if self.settings.model == "bayesian" else "perceptron")
        if "perceptron" not in members or not isinstance(first.X, np.ndarray):
            return
        sizes = np.fmax.reduce(np.abs(first.X), axis=0)
        sizes = sizes[sizes > 0]
        if len(sizes) and sizes.max() > _UNEVEN * sizes.min():
            show.note(
                f"Features differ in size by a factor of {sizes.max() / sizes.min():,.0f}. Perceptrons learn better "
                "from features of similar size: scale them, or use --members mixed."
            )


def _bar() -> AbstractContextManager[Progress]:
    return show.progress(
        TextColumn("{task.description}"), BarColumn(bar_width=16), TextColumn("{task.fields[figures]}")
    )


def _survey(file: str, settings: Settings, bar: Progress) -> Survey:
    """Find the labels of a file; tell the user if it must be read for that."""
    task = bar.add_task("Finding the labels", total=None, figures="")

    def on_rows(n: int) -> None:
        if not n:
            show.note(f"Reading {file} once more, to find its labels first. --classes avoids this.")
        bar.update(task, figures=f"{n:,} rows")

    found = settings.survey(file, on_rows)
    bar.remove_task(task)
    return found


def _save(training: Training, path: Path) -> None:
    """Save the model with the names of its features, so that ``predict`` finds them in other files."""
    if training.stream.feature_names is not None:
        training.model.feature_names_in_ = np.array(training.stream.feature_names, dtype=object)
    save(training.model, path)


def _report(training: Training, path: Path) -> None:
    from bayesvote.report.html import write
    from bayesvote.report.run import run_report

    title = Path(training.source).name
    settings = {name: value for name, value in asdict(training.settings).items() if value is not None}
    name = type(training.model).__name__
    write(
        run_report(title, {name: training.tally or Tally()}, getattr(training.model, "weights_", None), settings), path
    )


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
