"""``run``: learn from a stream, with progress, predictions, checkpoints and a report."""

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

from bayesvote.cli import show
from bayesvote.cli.checkpoint import Checkpoint, Fingerprint
from bayesvote.cli.interrupts import Interrupts, Stopped, interrupts
from bayesvote.cli.predictions import Predictions
from bayesvote.cli.settings import Settings, check_classes
from bayesvote.datasets import Chunk, Stream
from bayesvote.evaluate import Tally, memory, steps
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
    """Run over the stream and show the result; return the exit code."""
    if report is not None:
        show.require_report()
    run = _Run(file, settings, predictions, checkpoint, every, resume)
    if not run.go():
        if checkpoint is not None and checkpoint.exists():
            show.note(f"Stopped after {run.rows:,} rows. The same command with --resume goes on from {checkpoint}.")
        return 130
    if model_out is not None:
        _save(run, model_out)
    if report is not None:
        _report(run, report)
    written = {"model": model_out, "predictions": predictions, "report": report}
    if as_json:
        show.as_json(run.figures() | {name: path and str(path) for name, path in written.items()})
    else:
        _print(run, [str(path) for path in written.values() if path])
    return 0


class _Run:
    """One run: the stream, the model, and how it does."""

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
        self.source = "standard input" if file == "-" else file
        self.settings = settings
        self.checkpoint = checkpoint
        self.every = every
        self.predictions = predictions
        self.total: int | None = None
        self.print = Fingerprint()
        self.tally: Tally | None = None
        self.model: Any = None
        self.classes: NDArray[Any] = np.empty(0)
        self.saved = self._saved(checkpoint) if checkpoint is not None and checkpoint.exists() else None
        if self.saved is None:
            settings.classifier()  # wrong options are told before a long file is read
            if resume:
                show.note(f"There is no checkpoint {checkpoint} yet: starting with the first row.")
        self.resumed_at = self.rows

    @property
    def rows(self) -> int:
        """How many rows were predicted."""
        return 0 if self.tally is None else self.tally.rows

    def go(self) -> bool:
        """Go over the stream; return False if the user stopped it."""
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
        """Take up the state of an interrupted run of the same settings."""
        saved = Checkpoint.load(path)
        different = self.settings.differences(saved.settings)
        if (saved.predictions is None) != (self.predictions is None):
            different.append("--predictions was given only once")
        if different:
            raise typer.BadParameter(
                f"the run must be that of {path}, but {'; '.join(different)}.", param_hint="--resume"
            )
        self.model, self.tally, self.total = saved.model, Tally.from_json(saved.tally), saved.total
        self.classes = np.array(saved.classes)
        return saved

    def _opened(self, bar: Progress, stack: ExitStack) -> Iterator[Chunk]:
        """Open the stream, and find out what must be known before the first row is learned."""
        if self.saved is None and self.file != "-" and self.settings.classes is None:
            self.classes, self.total = _survey(self.file, self.settings, bar)
        self.stream: Stream = self.settings.open(self.file)
        stack.callback(self.stream.close)
        first = next(self.stream, None)
        if first is None:
            reports = self.stream.reports
            got = f"only bad lines; the first: {reports[0]}" if reports else "none"
            raise ValueError(f"{self.source} must have rows, got {got}.")
        if self.saved is None:
            if self.settings.classes is not None:
                self.classes = self.settings.known_classes(first)
            elif self.file == "-":
                self.classes = np.unique(first.y)
            if self.settings.classes is None:
                check_classes(self.source, self.classes)
            self.model = self.settings.started(self.stream.n_features, self.classes)
            self._advise(first)
        return chain([first], self.stream)

    def _learn(self, chunks: Iterator[Chunk], sink: Predictions | None, bar: Progress, stop: Interrupts) -> None:
        task = bar.add_task("Learning", total=self.total, completed=self.rows, figures="")
        due = self.rows + self.every
        started, before = time.perf_counter(), self.rows
        tallies = None if self.tally is None else {_NAME: self.tally}
        rows = self._rows(chunks, stop)
        for step in steps(
            {_NAME: self.model},
            rows,
            classes=self.classes,
            chunk_size=self.settings.chunk_size,
            delay=self.settings.delay,
            tallies=tallies,
        ):
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

    def _rows(self, chunks: Iterator[Chunk], stop: Interrupts) -> Iterator[tuple[Any, NDArray[Any]]]:
        """Rows to predict, before them those that still wait for their label; interruptible while they are read."""
        done = self.rows
        waiting = max(0, done - self.settings.delay)
        read = 0
        while True:
            with stop.reading():
                chunk = next(chunks, None)
            if chunk is None:
                break
            codes = self._codes(chunk)
            n = len(codes)
            old = min(max(done - read, 0), n)  # rows that were predicted before the interruption
            self.print.add(chunk.X[:old], codes[:old])
            if old and read + old == done:
                self._recognise()
            late = min(max(waiting - read, 0), old)
            if late < old:
                yield chunk.X[late:old], chunk.y[late:old]
            if old < n:
                self.print.add(chunk.X[old:], codes[old:])
                yield chunk.X[old:], chunk.y[old:]
            read += n
        if read < done:
            raise ValueError(f"{self.source} must go on after the {done:,} rows of the checkpoint, got only {read:,}.")

    def _recognise(self) -> None:
        if self.saved is not None and self.print.sums != self.saved.sums:
            raise ValueError(
                f"{self.source} must start with the rows of the checkpoint {self.checkpoint}, got others. "
                "Delete the checkpoint to start anew."
            )

    def _codes(self, chunk: Chunk) -> NDArray[np.intp]:
        unknown = ~np.isin(chunk.y, self.classes)
        if unknown.any():
            at = int(unknown.argmax())
            raise ValueError(
                f"{self.source}, line {chunk.lines[at]}: the label must be one "
                f"of {', '.join(map(str, self.classes.tolist()))}, got {chunk.y[at]}. Name all labels with --classes."
            )
        return np.searchsorted(self.classes, chunk.y)

    def _save_checkpoint(self, path: Path, sink: Predictions | None) -> None:
        Checkpoint(
            settings=asdict(self.settings),
            classes=self.classes.tolist(),
            total=self.total,
            sums=list(self.print.sums),
            predictions=None if sink is None else sink.safe_size(),
            tally=(self.tally or Tally()).to_json(),
            model=self.model,
        ).save(path)

    def _advise(self, first: Chunk) -> None:
        """Say that features should be scaled, if the members are Perceptrons and they are not."""
        members = self.settings.members or ("mixed" if self.settings.model == "bayesian" else "perceptron")
        if "perceptron" not in members or not isinstance(first.X, np.ndarray):
            return
        sizes = np.fmax.reduce(np.abs(first.X), axis=0)
        sizes = sizes[sizes > 0]
        if len(sizes) and sizes.max() > _UNEVEN * sizes.min():
            show.note(
                f"Features differ in size by a factor of {sizes.max() / sizes.min():,.0f}. Perceptrons learn better "
                "from features of like size: scale them, or use --members mixed."
            )


def _bar() -> AbstractContextManager[Progress]:
    return show.progress(
        TextColumn("{task.description}"), BarColumn(bar_width=16), TextColumn("{task.fields[figures]}")
    )


def _survey(file: str, settings: Settings, bar: Progress) -> tuple[NDArray[Any], int]:
    """Find the labels of a file, and how many rows it has."""
    task = bar.add_task("Finding the labels", total=None, figures="")
    labels: set[Any] = set()
    rows = 0
    for chunk in settings.open(file):
        labels.update(np.unique(chunk.y).tolist())
        rows += len(chunk.y)
        bar.update(task, figures=f"{rows:,} rows")
    bar.remove_task(task)
    return np.array(sorted(labels)), rows


def _save(run: _Run, path: Path) -> None:
    """Save the model, with the names of the features, which while learning it need not check."""
    if run.stream.feature_names is not None:
        run.model.feature_names_in_ = np.array(run.stream.feature_names, dtype=object)
    save(run.model, path)


def _report(run: _Run, path: Path) -> None:
    from bayesvote.report.html import write
    from bayesvote.report.run import run_report

    title = Path(run.source).name
    settings = {name: value for name, value in asdict(run.settings).items() if value is not None}
    name = type(run.model).__name__
    write(run_report(title, {name: run.tally or Tally()}, getattr(run.model, "weights_", None), settings), path)


def _print(run: _Run, written: list[str]) -> None:
    found = run.figures()
    speed, recent, window = found["rows_per_second"], found["windowed_error"], (run.tally or Tally()).window
    shown = {
        "rows": f"{found['rows']:,}"
        + (f", {run.resumed_at:,} of them before the interruption" if run.resumed_at else ""),
        "error": f"{found['error']:.4f}" + (f", of the last {window:,} rows {recent:.4f}" if run.rows > window else ""),
        "kappa": f"{found['kappa']:.4f}",
        "balanced accuracy": f"{found['balanced_accuracy']:.4f}",
        "Brier score": f"{found['brier']:.4f}",
        "time": f"{found['seconds']:.2f} s" + (f", {speed:,.0f} rows/s" if speed else ""),
        "memory": f"{found['memory'] / 1e6:.1f} MB",
    }
    if written:
        shown["written"] = ", ".join(written)
    show.console().print(show.facts(shown))
    show.skipped(run.stream.skipped, run.stream.reports)
