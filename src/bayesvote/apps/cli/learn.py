"""``run``: learn from a file, with progress, predictions, checkpoints and a report."""

import time
from collections import deque
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack
from dataclasses import asdict
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
    packed,
    packed_forecasts,
    unpacked,
    unpacked_forecasts,
)
from bayesvote.apps.cli.errors import usage
from bayesvote.apps.cli.interrupts import Interrupts, Stopped, interrupts
from bayesvote.apps.cli.predictions import Predictions
from bayesvote.apps.cli.settings import Settings, check_classes
from bayesvote.core.checks import InputError, UnknownLabelError
from bayesvote.core.files import naming
from bayesvote.core.rollback import Forecast
from bayesvote.datasets import Chunk, Stream, Survey
from bayesvote.evaluation import Step, Tally, memory, steps
from bayesvote.io.model_file import save
from bayesvote.io.open_stream import is_replayable, listed, source_name
from bayesvote.tables import read_table

_NAME = "model"
_FLUSH = 0.5  # seconds after which rows of a pipe are learned, however few have come
_TO_FIND = ", to find the labels in them. --classes avoids this"
_SLOW = 3.0  # seconds after which a user wonders what is going on


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
    from_here: bool,
) -> int:
    """Learn from the file and show the result; return the exit code."""
    if report is not None:
        show.require_report()
    training = Training(file, settings, predictions, checkpoint, every, resume, from_here)
    written: dict[str, Path | None] = {"model": None, "predictions": predictions, "report": None}
    try:
        with interrupts() as stop:
            if not training.complete(stop):
                with stop.finishing():
                    _tell_what_was_kept(training, model_out)
                return stop.code
            if model_out is not None:
                _save(training, model_out)
                written["model"] = model_out
        if report is not None:
            _report(training, report)
            written["report"] = report
    except (OSError, MemoryError):  # a full disk, mostly
        if training.is_complete:
            _show(training, written, as_json)
        _tell_what_is_left(training, written)
        raise
    _show(training, written, as_json)
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
        from_here: bool,
    ) -> None:
        self.file = file
        self.source = source_name(file)
        self.replayable = is_replayable(file)
        self.settings = settings
        self.checkpoint = checkpoint
        self.every = every
        self.predictions = predictions
        self.from_here = from_here
        self.whole = True  # whether the model has learned the rows of the tally and nothing else
        self.is_complete = False  # whether there are no more rows
        self.total: int | None = None
        self.columns: list[str] | None = None
        self.fingerprint = Fingerprint()
        self.waiting: deque[Chunk] = deque()  # the last rows, one by one, whose labels are awaited
        self.before = self.fingerprint, self.waiting  # the rows that are being learned
        self.lines: NDArray[np.int64] = np.empty(0, dtype=np.int64)  # of the rows that are being learned
        self.tally: Tally | None = None
        self.forecasts: Forecast | None = None  # of the rows that wait for their labels
        self.last_step: Step | None = None
        self.model: Any = None
        self.classes: NDArray[Any] = np.empty(0)
        self.saved = self._saved(checkpoint) if checkpoint is not None and checkpoint.exists() else None
        if self.saved is None:
            self.model = settings.classifier()  # before any reading: it refuses options that it does not have
            if resume:
                show.note(f"There is no checkpoint {checkpoint} yet: starting with the first row.")
        self.resumed_at = self.kept = self.rows  # kept: in the checkpoint

    @property
    def rows(self) -> int:
        """How many rows were predicted."""
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
                    sink = stack.enter_context(Predictions(self.predictions, kept))
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
                # A row that is refused is refused before it is learned.
                if self.rows > self.resumed_at and self.checkpoint is not None:
                    learned = self.rows - (self.resumed_at if self.from_here else 0)
                    if self.fingerprint.rows > learned:  # the refused rows are in it
                        self.fingerprint, self.waiting = self.before
                    self._save_checkpoint(sink)
                    show.note(f"The state after {self.rows:,} rows is kept in {self.checkpoint}.")
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
            "settings": asdict(self.settings),
        }

    def _saved(self, path: Path) -> Checkpoint:
        """Take up the state of an interrupted run with the same settings."""
        saved = Checkpoint.load(path)
        different = self.settings.differences(saved.settings)
        self._check_labels(path, saved)
        # Where rows are given again, each has to be as before: then no line is skipped that was learned, or learned
        # that was skipped. Of rows that came once nobody knows whether some were skipped.
        if self.from_here and (saved.settings.get("bad_lines"), self.settings.bad_lines) == ("skip", "error"):
            different.append("--bad-lines was 'skip' and is 'error'")
        if (saved.predictions is None) != (self.predictions is None):
            different.append("--predictions was given only once")
        if different:
            do = f"Give the same options again, or delete {path} to start again."
            message = f"the options must be those of {path}, but {'; '.join(different)}. {do}"
            raise typer.BadParameter(message, param_hint="--resume")
        if saved.sums is None and not self.from_here:
            message = (
                f"the run of {path} went on with --from-here, so that its rows cannot be given again. Pass it again."
            )
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
        """Refuse other labels than those of the checkpoint, however they became known."""
        named, before = self.settings.named_classes(), [str(label) for label in saved.classes]
        if self.settings.classes == saved.settings.get("classes"):  # 1 and 1.0 are texts of one label
            return
        if named and set(named) != set(before):
            message = (
                f"it must name the labels that the model of {path} has, {', '.join(before)}, got "
                f"{self.settings.classes!r}. A model cannot be given other labels later: delete {path} and start "
                "again, without --resume."
            )
            raise typer.BadParameter(message, param_hint="--classes")

    def _opened(self, bar: Progress, stack: ExitStack) -> Iterator[Chunk]:
        """Open the file, find what must be known before the first row is learned, and start the model."""
        n_features = self.settings.n_features
        survey = self.saved is None and self.replayable and self.settings.classes is None
        if self.saved is not None:
            if self.saved.columns is None:  # LIBSVM text; the columns of tables are compared by their names
                n_features = self.model.n_features_in_
        elif survey:
            found = _survey(self.file, self.settings, bar)
            self.classes, self.total = found.labels, found.n_rows
            check_classes(self.source, self.classes, found.columns, self.settings.target)
            n_features = n_features or found.n_features or None
        # Labels are searched for in a whole chunk, however slowly its rows come.
        search = self.saved is None and self.settings.classes is None and not survey
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
        if n_features is None and names is None:  # LIBSVM text, which does not tell its width
            show.note(f"Read {self.file} once more, to count its features. --n-features avoids this.")
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
            if self.settings.classes is not None:
                self.classes = self.settings.known_classes(first)
            elif not survey:
                self.classes = np.unique(first.y)
                check_classes(self.source, self.classes, self.columns, self.settings.target)
            self.model.set_params(class_weight=self.settings.class_weights(self.classes))
            with usage():
                self.model.start(self._start(first.X), self.classes)
            advise(first, self.stream.feature_names, self.settings)
        return chain([first], self.stream)

    def _start(self, X: Any) -> Any:
        """What a model must know of the features: the first rows of a table, or how many there are."""
        return read_table("run", X) if isinstance(X, dict) else self.stream.n_features

    def _learn(self, chunks: Iterator[Chunk], sink: Predictions | None, bar: Progress, stop: Interrupts) -> None:
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
        """Learn chunk by chunk; a label that is not among the classes is an error that names its line."""
        try:
            yield from steps(
                {_NAME: self.model},
                self._rows(chunks, stop),
                classes=self.classes,
                chunk_size=self.settings.chunk_size,
                delay=self.settings.delay,
                tallies=None if self.tally is None else {_NAME: self.tally},
                forecasts={_NAME: self.forecasts},
            )
        except UnknownLabelError as error:
            subject = f"{self.source}, {self.stream.unit} {self.lines[error.row]}: the label"
            must = f"must be one of {', '.join(map(str, self.classes.tolist()))}"
            do = "Name all labels with --classes."
            if self.checkpoint is not None:
                do = (
                    "A model cannot be given other labels later: name all of them with --classes, delete "
                    f"{self.checkpoint} and start again, without --resume."
                )
            raise InputError("", subject, must, error.got, do) from error

    def _rows(self, chunks: Iterator[Chunk], stop: Interrupts) -> Iterator[tuple[Any, NDArray[Any]]]:
        """Rows to learn: first those that were still waiting for their label. Ctrl-C stops while they are read."""
        done = 0 if self.from_here else self.rows
        learned = max(0, done - self.settings.delay)
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
            must = f"must go on after the {done:,} rows of the checkpoint"
            do = (
                "Give all rows again from the first one. If these follow the rows of the checkpoint, add --from-here; "
                f"to start again, delete {self.checkpoint}."
            )
            raise InputError("", self.source, must, f"only {read:,}", do)

    def _noted(self, rows: Chunk) -> tuple[Any, NDArray[Any]]:
        """Rows to learn, of which the last are kept if their labels come late and they themselves come only once."""
        delay = self.settings.delay
        if delay and not self.replayable and self.checkpoint is not None:
            parts = (rows.part(slice(i, i + 1)) for i in range(max(0, rows.n - delay), rows.n))
            self.waiting = deque([*self.waiting, *parts], maxlen=delay)
        return rows.X, rows.y

    def _check_columns(self, saved: Checkpoint) -> None:
        """Refuse a file whose columns are not those of the checkpoint."""
        before, now = saved.columns or [], self.columns or []
        if before == now:
            return
        missing, new = ([name for name in a if name not in b] for a, b in ((before, now), (now, before)))
        faults = [f"without {listed(missing)}"] * bool(missing) + [f"with {listed(new)}, which is new"] * bool(new)
        must = f"must have the columns of the checkpoint {self.checkpoint}, {listed(before or ['none'])}"
        do = [f"Leave out new columns with --drop '{','.join(new)}'."] if new and before and not missing else []
        do += [f"Give the file with the columns that it had, or delete {self.checkpoint} to start again."]
        got = f"one {' and '.join(faults)}" if faults else f"them in another order, {listed(now)}"
        raise InputError("", self.source, must, got, " ".join(do))

    def _check_fingerprint(self) -> None:
        """Refuse a file that does not start with the rows of the checkpoint."""
        if self.saved is not None and self.fingerprint.sums != self.saved.sums:
            must = f"must start with the rows of the checkpoint {self.checkpoint}"
            do = "Delete the checkpoint to start again, or learn these rows after those with --from-here."
            raise InputError("", self.source, must, "others", do)

    def _save_checkpoint(self, sink: Predictions | None) -> None:
        """Keep the state, if there is a file for it and something was learned since."""
        if self.checkpoint is None or not self.rows or (self.saved is not None and self.rows == self.resumed_at):
            return
        waiting = None
        if self.waiting:
            waiting = packed(*_joined(list(self.waiting)))
        Checkpoint(
            settings=asdict(self.settings),
            classes=self.classes.tolist(),
            columns=self.columns,
            total=self.total,
            sums=None if self.from_here else self.fingerprint.sums,
            predictions=None if sink is None else sink.safe(),
            tally=(self.tally or Tally()).to_json(),
            waiting=waiting,
            forecasts=packed_forecasts(self.forecasts if self.last_step is None else self.last_step.forecasts[_NAME]),
            model=self.model,
        ).save(self.checkpoint)
        self.kept = self.rows


def _joined(rows: list[Chunk]) -> tuple[Any, NDArray[Any]]:
    """Rows of one kind, one after the other."""
    X: Any = [row.X for row in rows]
    if isinstance(X[0], dict):
        joined: Any = {
            name: np.concatenate([x[name] for x in X])
            if isinstance(values, np.ndarray)
            else [value for x in X for value in x[name]]
            for name, values in X[0].items()
        }
    elif isinstance(X[0], np.ndarray):
        joined = np.concatenate(X)
    else:
        from scipy.sparse import csr_array, vstack

        joined = csr_array(vstack(X, format="csr"))
    return joined, np.concatenate([row.y for row in rows])


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


def _tell_what_was_kept(training: Training, model_out: Path | None) -> None:
    """After a stop: save the model, and say what is where."""
    if not training.rows:
        show.note("Stopped before the first row was learned: there is nothing to keep yet.")
        return
    said = [f"Stopped after {training.rows:,} rows."]
    if training.predictions is not None:
        said.append(f"Their predictions are in {training.predictions}.")
    if model_out is not None and training.whole:
        _save(training, model_out)
        said.append(f"The model that learned them is in {model_out}.")
    if training.kept:
        if not training.whole:
            said.append("The rows since the last checkpoint are lost.")
        said.append(f"The same command with --resume goes on from {training.checkpoint}.")
        if not training.replayable:
            said.append("If the rows come only once, add --from-here.")
    elif not training.whole:
        said.append("The model was not kept: it was stopped a second time, within a chunk of rows.")
    elif model_out is None:
        said.append("The model was not kept: --checkpoint FILE or -o MODEL would.")
    show.note(" ".join(said))


def _tell_what_is_left(training: Training, written: dict[str, Path | None]) -> None:
    """After the disk or the memory failed: say what is kept, if anything is."""
    if written["model"] is not None:
        show.note(f"The model is in {written['model']}.")
    elif training.kept:
        show.note(
            f"The state after {training.kept:,} rows is kept in {training.checkpoint}: the same command with --resume "
            "goes on from it."
        )
    elif training.rows:
        show.note("The model is lost: --checkpoint FILE would have kept it.")


def _show(training: Training, written: dict[str, Path | None], as_json: bool) -> None:
    if as_json:
        show.as_json(training.figures() | {name: path and str(path) for name, path in written.items()})
    else:
        _print(training, [str(path) for path in written.values() if path])


def _save(training: Training, path: Path) -> None:
    """Save the model with the names of its features, so that ``predict`` finds them in other files."""
    save(_named(training), path)


def _named(training: Training) -> Any:
    """The model, with the names of its features."""
    if training.columns is not None and not hasattr(training.model, "columns_"):
        training.model.name_features(training.columns[:-1])
    return training.model


def _report(training: Training, path: Path) -> None:
    from bayesvote.apps.report.html import write
    from bayesvote.apps.report.run import importances_of, run_report

    title, model = Path(training.source).name, _named(training)
    settings = {name: value for name, value in asdict(training.settings).items() if value is not None}
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
