"""Training on a stream, with progress, predictions and checkpoints."""

import time
from collections import deque
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack
from itertools import chain
from pathlib import Path
from threading import Timer
from typing import Any

import numpy as np
import typer
from numpy.typing import NDArray
from rich.progress import BarColumn, Progress, TextColumn

from bayesvote.apps.cli import show
from bayesvote.apps.cli.advice import advise
from bayesvote.apps.cli.checkpoint import (
    Checkpoint,
    Fingerprint,
    joined,
    packed,
    packed_forecasts,
    unpacked,
    unpacked_forecasts,
)
from bayesvote.apps.cli.errors import usage, written_kinds
from bayesvote.apps.cli.interrupts import Interrupts, Stopped
from bayesvote.apps.cli.outputs import CheckpointOptions
from bayesvote.apps.cli.predictions import PredictionFile
from bayesvote.apps.cli.settings import RunSettings, check_classes
from bayesvote.core.checks import InputError, UnknownLabelError
from bayesvote.core.rollback import Forecast
from bayesvote.datasets import Chunk, Stream, Survey
from bayesvote.evaluation import Step, Tally, memory, steps
from bayesvote.io.open_stream import is_replayable, listed, source_name
from bayesvote.tables import read_table

_NAME = "model"
_FLUSH = 0.5  # seconds after which the rows of a pipe are learned, even if the chunk is not full
_TO_FIND = " to find the labels in them. Pass --classes to avoid this"
_SLOW = 3.0  # seconds after which a user wonders why nothing happens


class Training:
    """One pass over a file: its rows, the model, and its results."""

    def __init__(
        self,
        file: str,
        settings: RunSettings,
        predictions: Path | None,
        interruptions: CheckpointOptions,
    ) -> None:
        checkpoint = interruptions.checkpoint
        self.file = file
        self.source = source_name(file)
        self.replayable = is_replayable(file)
        self.settings = settings
        self.checkpoint = checkpoint
        self.every = interruptions.checkpoint_every
        self.predictions = predictions
        self.from_here = interruptions.from_here
        self.whole = True  # True while the model has learned exactly the rows of the tally
        self.is_complete = False  # True once there are no more rows
        self.total: int | None = None
        self.columns: list[str] | None = None
        self.fingerprint = Fingerprint()
        self.waiting: deque[Chunk] = deque()  # the last rows, one by one, that wait for their labels
        self.before = self.fingerprint, self.waiting  # without the rows that are being learned
        self.lines: NDArray[np.int64] = np.empty(0, dtype=np.int64)  # line numbers of the rows that are being learned
        self.tally: Tally | None = None
        self.forecasts: Forecast | None = None  # of the rows that wait for their labels
        self.last_step: Step | None = None
        self.model: Any = None
        self.classes: NDArray[Any] = np.empty(0)
        self.saved = self._saved(checkpoint) if checkpoint is not None and checkpoint.exists() else None
        if self.saved is None:
            self.model = settings.classifier()  # checks the options before anything is read
            if interruptions.resume:
                show.note(f"Checkpoint {checkpoint} does not exist yet: starting with the first row.")
        self.resumed_at = self.kept = self.rows  # kept: rows in the checkpoint

    @property
    def rows(self) -> int:
        """Number of rows predicted so far."""
        return 0 if self.tally is None else self.tally.rows

    def complete(self, stop: Interrupts) -> bool:
        """Learn all rows; return False if the user stopped it."""
        sink = None
        with ExitStack() as stack:
            bar = stack.enter_context(_bar())
            try:
                chunks = self._opened(bar, stack)
                if self.predictions is not None:
                    kept = self.saved.predictions if self.saved else None
                    sink = stack.enter_context(PredictionFile(self.predictions, kept))
                self._learn(chunks, sink, bar, stop)
                with stop.finishing():
                    self._save_checkpoint(sink)
                stop.obey()
            except Stopped:
                with stop.finishing():
                    self._save_checkpoint(sink)
                return False
            except KeyboardInterrupt:
                self.whole = False
                return False
            except InputError:
                # A bad row is rejected before it is learned.
                if self.rows > self.resumed_at and self.checkpoint is not None:
                    learned = self.rows - (self.resumed_at if self.from_here else 0)
                    if self.fingerprint.rows > learned:  # it includes the rejected rows
                        self.fingerprint, self.waiting = self.before
                    self._save_checkpoint(sink)
                    show.note(f"The state after {self.rows:,} rows is saved in {self.checkpoint}.")
                raise
            self.is_complete = True
        if self.saved is not None and self.rows == self.resumed_at:
            show.note(f"{self.source} has no rows after the {self.rows:,} of the checkpoint: nothing was learned.")
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
            "settings": self.settings.stored(),
        }

    def _saved(self, path: Path) -> Checkpoint:
        """Load the state of an interrupted run with the same settings."""
        saved = Checkpoint.load(path)
        different = self.settings.differences(saved.settings)
        self._check_labels(path, saved)
        # Checksums verify the rows that are passed again, so that the same lines are skipped. With --from-here, rows
        # are not passed again, and some may have been skipped.
        if self.from_here and (saved.settings.get("bad_lines"), self.settings.reading.bad_lines) == ("skip", "error"):
            different.append("--bad-lines was 'skip' and is 'error'")
        if (saved.predictions is None) != (self.predictions is None):
            different.append("--predictions was given only once")
        if different:
            do = f"Pass the same options, or delete {path} to start again."
            message = f"the options must be those of {path}, but {'; '.join(different)}. {do}"
            raise typer.BadParameter(message, param_hint="--resume")
        if saved.sums is None and not self.from_here:
            message = f"the run of {path} was resumed with --from-here. Pass --from-here again."
            raise typer.BadParameter(message, param_hint="--resume")
        self.model, self.tally, self.total = saved.model, Tally.from_json(saved.tally), saved.total
        self.columns = saved.columns
        if saved.forecasts is not None:
            self.forecasts = unpacked_forecasts(saved.forecasts, saved.model.model_.empty_forecast(0))
        self.classes = np.array(saved.classes)
        if self.from_here:
            self.total = None
        return saved

    def _check_labels(self, path: Path, saved: Checkpoint) -> None:
        """Raise an error for other labels than those of the checkpoint."""
        given = self.settings.labels.classes
        named, before = self.settings.labels.named(), [str(label) for label in saved.classes]
        if given == saved.settings.get("classes"):  # 1 and 1.0 are texts of one label
            return
        if named and set(named) != set(before):
            message = (
                f"it must name the labels that the model of {path} has, {', '.join(before)}, got "
                f"{given!r}. The labels of a model cannot change: delete {path} and start again, without --resume."
            )
            raise typer.BadParameter(message, param_hint="--classes")

    def _opened(self, bar: Progress, stack: ExitStack) -> Iterator[Chunk]:
        """Open the file, find the labels and the width, and start the model."""
        n_features = self.settings.n_features
        unnamed = self.settings.labels.classes is None
        survey = self.saved is None and self.replayable and unnamed
        if self.saved is not None:
            if self.saved.columns is None:  # LIBSVM text; the columns of tables are compared by their names
                n_features = self.model.n_features_in_
        elif survey:
            found = _survey(self.file, self.settings, bar)
            self.classes, self.total = found.labels, found.n_rows
            check_classes(self.source, self.classes, found.columns, self.settings.reading.target)
            n_features = n_features or found.n_features or None
        # Labels are searched for in a whole chunk, however slowly its rows arrive.
        search = self.saved is None and unnamed and not survey
        waiting = Timer(_SLOW, show.note, [f"Waiting for the first rows{_TO_FIND if search else ''}."])
        waiting.daemon = True
        if not self.replayable:
            waiting.start()
            stack.callback(waiting.cancel)
        self.stream: Stream = self.settings.open(self.file, n_features, None if search else _FLUSH, self.classes)
        stack.callback(self.stream.close)
        names = self.stream.feature_names
        self.columns = None if names is None else [*names, self.stream.label_name or ""]
        if self.saved is not None:
            self._check_columns(self.saved)
        if n_features is None and names is None:  # LIBSVM text, which does not declare its width
            show.note(f"Read {self.file} once more to count its features. Pass --n-features to avoid this.")
        first = next(self.stream, None)
        waiting.cancel()
        self.stream.flush_after = _FLUSH
        if first is None:
            if self.from_here and self.saved is not None:
                return iter(())
            reports = self.stream.reports
            got = f"only bad lines; the first: {reports[0]}" if reports else "none"
            raise InputError("", self.source, "must have rows", got)
        if self.saved is None:
            if not unnamed:
                self.classes = self.settings.labels.known(first)
            elif not survey:
                self.classes = np.unique(first.y)
                check_classes(self.source, self.classes, self.columns, self.settings.reading.target)
            self.model.set_params(class_weight=self.settings.model.class_weights(self.classes))
            with usage():
                self.model.start(self._start(first.X), self.classes)
            advise(first, self.stream.feature_names, self.settings.model)
        return chain([first], self.stream)

    def _start(self, X: Any) -> Any:
        """Return what the model needs to start: the first rows of a table, or the number of features."""
        return read_table("run", X) if isinstance(X, dict) else self.stream.n_features

    def _learn(self, chunks: Iterator[Chunk], sink: PredictionFile | None, bar: Progress, stop: Interrupts) -> None:
        task = bar.add_task("Learning", total=self.total, completed=self.rows, figures="")
        due = self.rows + self.every
        started, before = time.perf_counter(), self.rows
        for step in self._steps(chunks, stop):
            self.tally, self.last_step = step.tallies[_NAME], step
            if sink is not None:
                first = self.rows - len(step.labels) + 1
                sink.add(first, step.labels, step.predictions[_NAME], step.probabilities[_NAME])
                if self.stream.live:
                    sink.show()
            if self.rows >= due:
                self._save_checkpoint(sink)
                due = self.rows + self.every
            stop.obey()
            speed = (self.rows - before) / (time.perf_counter() - started)
            figures = f"{self.rows:,} rows  error {self.tally.error:.4f}  last {self.tally.window:,}: "
            figures += f"{self.tally.windowed_error:.4f}  {speed:,.0f} rows/s"
            bar.update(task, completed=self.rows, figures=figures)

    def _steps(self, chunks: Iterator[Chunk], stop: Interrupts) -> Iterator[Step]:
        """Learn chunk by chunk; the error for an unknown label names its line."""
        try:
            yield from steps(
                {_NAME: self.model},
                self._rows(chunks, stop),
                classes=self.classes,
                chunk_size=self.settings.reading.chunk_size,
                delay=self.settings.labels.delay,
                tallies=None if self.tally is None else {_NAME: self.tally},
                forecasts={_NAME: self.forecasts},
            )
        except UnknownLabelError as error:
            subject = f"{self.source}, {self.stream.unit} {self.lines[error.row]}: the label"
            must = f"must be one of {', '.join(map(str, self.classes.tolist()))}"
            do = "Name all labels with --classes."
            if self.checkpoint is not None:
                do = (
                    "The labels of a model cannot change: name all labels with --classes, delete "
                    f"{self.checkpoint} and start again, without --resume."
                )
            raise InputError("", subject, must, error.got, do) from error

    def _rows(self, chunks: Iterator[Chunk], stop: Interrupts) -> Iterator[tuple[Any, NDArray[Any]]]:
        """Yield the rows to learn, first those that still wait for their labels. Ctrl-C stops while rows are read."""
        done = 0 if self.from_here else self.rows
        learned = max(0, done - self.settings.labels.delay)
        read = 0
        if self.from_here and self.saved is not None and self.saved.waiting is not None:
            yield self._noted(unpacked(self.saved.waiting))
        while True:
            with stop.reading():
                chunk = next(chunks, None)
            if chunk is None:
                break
            if self.checkpoint is not None:
                self.before = self.fingerprint.copy(), self.waiting.copy()
            old = min(max(done - read, 0), chunk.n)  # rows that were predicted before the interruption
            if old:
                before = chunk.part(slice(0, old))
                self.fingerprint.add(before.X, before.y)
                if read + old == done:
                    self._check_fingerprint()
            waiting = slice(min(max(learned - read, 0), old), old)
            for part in (waiting, slice(old, chunk.n)):
                if part.start == part.stop:
                    continue
                rows = chunk.part(part)
                if part is not waiting:
                    self.fingerprint.add(rows.X, rows.y)
                self.lines = rows.lines
                yield self._noted(rows)
            read += chunk.n
        if read < done:
            must = f"must have more than the {done:,} rows of the checkpoint"
            do = (
                "Pass all rows again from the first one. If these follow the rows of the checkpoint, add --from-here; "
                f"to start again, delete {self.checkpoint}."
            )
            raise InputError("", self.source, must, f"only {read:,}", do)

    def _noted(self, rows: Chunk) -> tuple[Any, NDArray[Any]]:
        """Return rows to learn; keep the last ones if their labels are late and the stream cannot be read again."""
        delay = self.settings.labels.delay
        if delay and not self.replayable and self.checkpoint is not None:
            parts = (rows.part(slice(i, i + 1)) for i in range(max(0, rows.n - delay), rows.n))
            self.waiting = deque([*self.waiting, *parts], maxlen=delay)
        return rows.X, rows.y

    def _check_columns(self, saved: Checkpoint) -> None:
        """Raise an error if the columns are not those of the checkpoint."""
        before, now = saved.columns or [], self.columns or []
        if before == now:
            return
        missing, new = ([name for name in a if name not in b] for a, b in ((before, now), (now, before)))
        faults = [f"without {listed(missing)}"] * bool(missing) + [f"with {listed(new)}, which is new"] * bool(new)
        must = f"must have the columns of the checkpoint {self.checkpoint}, {listed(before or ['none'])}"
        drop = written_kinds(dict.fromkeys(new, "drop"))
        do = [f"Leave out new columns with {drop}."] if new and before and not missing else []
        do += [f"Pass the file with its former columns, or delete {self.checkpoint} to start again."]
        got = f"a file {' and '.join(faults)}" if faults else f"them in another order, {listed(now)}"
        raise InputError("", self.source, must, got, " ".join(do))

    def _check_fingerprint(self) -> None:
        """Raise an error if the file does not start with the rows of the checkpoint."""
        if self.saved is not None and self.fingerprint.sums != self.saved.sums:
            must = f"must start with the rows of the checkpoint {self.checkpoint}"
            do = "Delete the checkpoint to start again, or pass --from-here to learn these rows after those."
            raise InputError("", self.source, must, "other rows", do)

    def _save_checkpoint(self, sink: PredictionFile | None) -> None:
        """Save the state, if there is a file for it and rows were learned since the last time."""
        if self.checkpoint is None or not self.rows or (self.saved is not None and self.rows == self.resumed_at):
            return
        waiting = None
        if self.waiting:
            waiting = packed(*joined(list(self.waiting)))
        Checkpoint(
            settings=self.settings.stored(),
            classes=self.classes.tolist(),
            columns=self.columns,
            total=self.total,
            sums=None if self.from_here else self.fingerprint.sums,
            predictions=None if sink is None else sink.sync(),
            tally=(self.tally or Tally()).to_json(),
            waiting=waiting,
            forecasts=packed_forecasts(self.forecasts if self.last_step is None else self.last_step.forecasts[_NAME]),
            model=self.model,
        ).save(self.checkpoint)
        self.kept = self.rows


def _bar() -> AbstractContextManager[Progress]:
    return show.progress(
        TextColumn("{task.description}"), BarColumn(bar_width=16), TextColumn("{task.fields[figures]}")
    )


def _survey(file: str, settings: RunSettings, bar: Progress) -> Survey:
    """Find the labels of a file; print a note if the whole file must be read for that."""
    task = bar.add_task("Finding the labels", total=None, figures="")

    def on_rows(n: int) -> None:
        if not n:
            show.note(f"Reading {file} once more to find its labels first. Pass --classes to avoid this.")
        bar.update(task, figures=f"{n:,} rows")

    found = settings.survey(file, on_rows)
    bar.remove_task(task)
    return found
