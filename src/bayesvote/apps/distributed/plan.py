"""Distributed runs: shards train members, all shards weight all members, results are merged in shard order."""

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from bayesvote.apps.distributed.contents import WHO, Contents, ShardSchema, agreed
from bayesvote.apps.distributed.engines import Engine, Failure, Loop
from bayesvote.apps.distributed.inputs import Reading, Shard, shards_of, without_duplicates
from bayesvote.apps.distributed.members import shard_members, spread
from bayesvote.apps.distributed.order import InOrder
from bayesvote.apps.distributed.record import Record, digest
from bayesvote.apps.distributed.stages import (
    Check,
    Checked,
    Encode,
    Task,
    Train,
    Weigh,
    checked,
    encoding,
    survey,
    together,
    trained,
    unpacked,
)
from bayesvote.core.checks import Argument, InputError, InputTypeError, one_of, positive
from bayesvote.core.state import Shape
from bayesvote.core.version import versions
from bayesvote.ensemble import Ensemble
from bayesvote.estimators import BayesianEnsembleClassifier
from bayesvote.estimators.fitted import Fitted
from bayesvote.io.model_file import ModelFileError, dumps, loads
from bayesvote.io.read_options import ReadOptions
from bayesvote.members import Bank, Union
from bayesvote.tables import Columns, conflict, merged, usual_kinds


class Progress(NamedTuple):
    """Progress of a stage: shards done, all shards, and shards that failed so far in the run."""

    stage: str
    done: int
    total: int
    failed: int


class MemberGroup(NamedTuple):
    """Members that were trained together: the index of their shard or -1, the bank, and its digest."""

    owner: int
    bank: Bank[Any]
    fingerprint: str | None


class Job:
    """A run over shards.

    Parameters
    ----------
    engine : Engine
        Runs the work; a :class:`Loop` by default.
    record : path
        Folder for the results of finished shards. A second run with the same folder resumes from them.
    bad_shards : "error" or "skip"
        "error" stops at a shard that fails; "skip" leaves it out.
    time_limit : float
        Seconds after which a TimeoutError is raised.
    on_progress : callable
        Called with a :class:`Progress` after every shard.

    Attributes
    ----------
    skipped : dict
        Errors of the shards that were left out, by name.
    duplicates : list
        Names of shards that were passed twice; each is used once.
    n_rows : int
        Number of rows of the shards that were used.
    """

    def __init__(
        self,
        engine: Engine | None = None,
        *,
        record: str | os.PathLike[str] | None = None,
        bad_shards: str = "error",
        time_limit: float | None = None,
        on_progress: Callable[[Progress], None] | None = None,
    ) -> None:
        one_of(WHO, "bad_shards", bad_shards, ("error", "skip"))
        if time_limit is not None:
            positive(WHO, "time_limit", time_limit)
        self._engine = Loop() if engine is None else engine
        self._record = Record(record)
        self._bad_shards = bad_shards
        self._time_limit = time_limit
        self._on_progress = on_progress
        self._last: tuple[Weigh, list[MemberGroup]] | None = None
        self._weighed: str | None = None  # digest of the inputs of the sums
        self._found: Checked | None = None
        self._begin([])

    def fit(
        self,
        data: Any,
        classifier: BayesianEnsembleClassifier | None = None,
        *,
        reading: ReadOptions | None = None,
        classes: ArrayLike | None = None,
    ) -> BayesianEnsembleClassifier:
        """Train members on the shards, weight them on all shards, and return the model."""
        _check_classifier(classifier)
        stated = None if classifier is None else classifier.columns
        self._begin(shards_of(data, _as_stated(reading or Reading(), stated)))
        with self._engine:
            table, n_rows = self._surveyed(classes, stated)
            model, spec = prepared(classifier, table)
            groups = self._train(spec, table, n_rows)
            owners = tuple(group.owner for group in groups)
            weigh = Weigh(table, model.model_.weighter, model.model_.loss, owners, model.class_weight)
            state = self._weigh(weigh, groups)
            self._last = (weigh, groups)
            ensemble = Ensemble(Union([group.bank for group in groups]), weigh.weighter, weigh.loss)
            ensemble.install(state, Shape(table.n_features, len(table.classes)))
            names = None if table.names is None else np.array(table.names, dtype=object)
            fitted = Fitted.of(ensemble, model.classes_, names=names, columns=table.columns)
            if model.calibrates:
                fitted = fitted.replace(calibration=self._checked(state, weigh, groups).calibration)
        self._check_unchanged()
        return type(model).from_fitted(fitted, **model.get_params(deep=False))

    def weigh(
        self, data: Any, classifier: BayesianEnsembleClassifier, *, reading: ReadOptions | None = None
    ) -> BayesianEnsembleClassifier:
        """Update the weights of a classifier with frozen members from further shards, in place."""
        _check_classifier(classifier)
        check_is_fitted(classifier)
        model = classifier.model_
        if model.bank.learns:
            raise InputTypeError(
                WHO,
                "the members",
                "must be frozen: members that learn depend on the order of the rows, and would differ between shards",
                model.bank.who,
                "Train members on the shards with distributed.fit, or freeze them with Frozen(bank).",
            )
        self._begin(shards_of(data, _as_stated(reading or Reading(), classifier.columns)))
        names, columns = getattr(classifier, "feature_names_in_", None), getattr(classifier, "columns_", None)
        width = classifier.n_features_in_ if columns is None else columns.width
        table = ShardSchema(width, None if names is None else [*names], classifier.classes_, columns)
        with self._engine:
            self._surveyed(table.classes, None, table)
            weigh = Weigh(table, model.weighter, model.loss, (-1,), classifier.class_weight)
            state = self._weigh(weigh, [MemberGroup(-1, model.bank, _fingerprint(classifier))])
        self._check_unchanged()
        classifier.model_.install(model.weighter.merge(model.state, state), Shape(table.n_features, len(table.classes)))
        return classifier

    def error(self, model: BayesianEnsembleClassifier) -> float:
        """Return the error rate of the model of the last ``fit`` on the first rows of every shard.

        Members abstain on the shard that trained them, so no member predicts a row that it learned. The weights have
        learned all rows.
        """
        if self._last is None:
            raise InputError(WHO, "Job.error", "must be called after fit")
        with self._engine:
            found = self._checked(model.model_.state, *self._last)
        return found.mistakes / max(found.rows, 1)

    @property
    def n_shards(self) -> int:
        """Number of shards, including skipped ones."""
        return len(self._shards)

    @property
    def skipped(self) -> dict[str, str]:
        """Errors of the shards that were left out, by name."""
        return {self._shards[place].name: str(failure) for place, failure in sorted(self._bad.items())}

    # The stages.

    def _surveyed(
        self, classes: ArrayLike | None, stated: Mapping[str, str] | None, known: ShardSchema | None = None
    ) -> tuple[ShardSchema, list[int]]:
        """Return the schema of all shards and the number of rows of each. Shards that do not fit have failed."""
        found = {place: Contents.from_json(data) for place, data in self._stage("survey", survey, self._tasks())}
        table, faults = agreed(found, classes, known)
        for place, fault in faults.items():
            self._failed(place, "survey", fault)
        raw = stated is not None or any(one.has_text for place, one in found.items() if place not in self._bad)
        if raw and known is None and table.names is not None:
            columns = self._encoded(table, stated)
            table = ShardSchema(columns.width, columns.names, table.classes, columns)
        rows = [0 if place in self._bad else found[place].n_rows for place in range(len(self._shards))]
        self.n_rows = sum(rows)
        return table, rows

    def _encoded(self, table: ShardSchema, stated: Mapping[str, str] | None) -> Columns:
        """Return the encoding of columns, merged from those of all shards in their order."""
        source = digest(table.names, stated)
        work = Encode(table, stated)
        found = {
            place: encoding(data, stated) for place, data in self._stage("columns", work, self._tasks(), (), source)
        }
        good: list[Columns] = []
        parts = [(place, part) for place, part in sorted(found.items()) if part is not None]
        kinds = usual_kinds([part for _, part in parts])
        for place, part in parts:
            fault = conflict(kinds, part)
            if fault is not None:
                self._failed(place, "columns", Failure(type(fault).__name__, fault.sentence()))
            else:
                good.append(part)
        if not good:
            raise InputError(WHO, "data", "must have at least one shard with rows", "none")
        return merged(good)

    def _train(self, spec: BayesianEnsembleClassifier, table: ShardSchema, n_rows: Sequence[int]) -> list[MemberGroup]:
        """Train members on shards, and return them in the order of the shards."""
        if sum(n > 0 for n in n_rows) < 3:
            raise InputError(
                WHO,
                "data",
                "must have at least three shards with rows, as two members are compared on shards that trained neither",
                str(sum(n > 0 for n in n_rows)),
                "Split the rows into several files, or call the classifier's fit.",
            )
        given = spec.members if isinstance(spec.members, Bank) else None
        shares = spread(n_rows, spec.n_members, given)
        tasks = [Task(place, self._shards[place], n) for place, n in shares.items()]
        work = Train(spec, table, int(spec.random_state))
        settings = {name: value for name, value in spec.get_params().items() if name not in _OF_WEIGHTS}
        source = digest(settings, _told(table))
        groups = [
            MemberGroup(place, trained(data), digest(data))
            for place, data in self._stage("train", work, tasks, (), source)
        ]
        if not groups:
            raise InputError(WHO, "data", "must have at least one shard on which members can be trained", "none")
        return sorted(groups, key=lambda group: group.owner)

    def _weigh(self, weigh: Weigh, groups: Sequence[MemberGroup]) -> Any:
        """Return the weighter's state after all shards."""
        weighter = weigh.weighter
        blank = weighter.sums(sum(group.bank.n_members for group in groups))
        parts = InOrder(len(self._shards), weighter.added)
        told = [(group.owner, group.fingerprint) for group in groups]
        source: str | None = digest(weighter, weigh.loss, weigh.class_weight, _told(weigh.table), told)
        if callable(weigh.loss) or None in [group.fingerprint for group in groups]:
            source = None  # a function has no digest
        self._weighed = source
        n_rows, weights = np.zeros(len(self._shards), dtype=np.int64), np.zeros(len(self._shards))
        banks = [group.bank for group in groups]
        for place, data in self._stage("weigh", weigh, self._tasks(), banks, source):
            n_rows[place], weights[place], sums = unpacked(data, blank)
            parts.add(place, sums)
        for place in self._bad:
            parts.add(place, None)
        if not n_rows.any():
            raise InputError(WHO, "data", "must have at least one shard on which members can be weighted", "none")
        self.n_rows = int(n_rows.sum())
        shares = np.repeat(
            [weights[group.owner] / weights.sum() if group.owner >= 0 else 0.0 for group in groups],
            [group.bank.n_members for group in groups],
        )
        owners = np.repeat([group.owner for group in groups], [group.bank.n_members for group in groups])
        heard = 1 - shares - np.where(owners[:, None] == owners, 0.0, shares[:, None])
        return weighter.from_sums(weighter.completed(parts.result, heard) if shares.any() else parts.result)

    def _checked(self, state: Any, weigh: Weigh, groups: Sequence[MemberGroup]) -> Checked:
        """Return the mistakes and the calibration on the first rows of every shard, computed once per fit."""
        if self._found is not None:
            return self._found
        parts = InOrder(len(self._shards), together)
        source = digest(self._weighed, ROWS_CHECKED, *(array.tobytes() for array in state))
        shared, check = [*(group.bank for group in groups), state], Check(weigh, ROWS_CHECKED)
        for place, data in self._stage("check", check, self._tasks(), shared, self._weighed and source):
            parts.add(place, checked(data))
        for place in self._bad:
            parts.add(place, None)
        found: Checked = parts.result
        self._found = found
        return found

    def _stage(
        self, stage: str, work: Any, tasks: Sequence[Task], shared: Sequence[Any] = (), source: str | None = ""
    ) -> Iterator[tuple[int, bytes]]:
        """Yield the index and the result of each shard once: saved results first, others as they arrive.

        Results with a source of None are not saved.
        """
        tasks = [task for task in tasks if task.place not in self._bad]
        sources = {
            task.place: digest(stage, source, self._versions[task.place], task.place, task.n_members, versions())
            for task in tasks
        }
        done, todo = set(), []
        for task in tasks:
            kept = None if source is None else self._record.get(stage, task.place, sources[task.place])
            if kept is None:
                todo.append(task)
            else:
                done.add(task.place)
                yield task.place, kept
        self._tell(stage, len(done), len(tasks))
        try:
            for k, answer in self._engine.map(work, todo, shared, self._deadline) if todo else ():
                place = todo[k].place
                if place in done:
                    continue
                done.add(place)
                if isinstance(answer, Failure):
                    self._failed(place, stage, answer)
                else:
                    if source is not None:
                        self._record.put(stage, place, sources[place], answer)
                    yield place, answer
                self._tell(stage, len(done), len(tasks))
        except TimeoutError:
            raise TimeoutError(
                f"{WHO}: the time limit of {self._time_limit:g} s has passed; {len(done)} of {len(tasks)} shards "
                f"finished {_STAGES[stage]}. Increase time_limit. With a record, a second run resumes from there."
            ) from None

    # Failed and changed shards.

    def _begin(self, shards: Sequence[Shard]) -> None:
        self._shards, self.duplicates = without_duplicates(shards)
        self._versions = [shard.version for shard in self._shards]
        self._bad: dict[int, Failure] = {}
        self._last = self._weighed = self._found = None
        self._deadline = None if self._time_limit is None else time.monotonic() + self._time_limit
        self.n_rows = 0

    def _tasks(self) -> list[Task]:
        return [Task(place, shard) for place, shard in enumerate(self._shards)]

    def _tell(self, stage: str, done: int, total: int) -> None:
        if self._on_progress is not None:
            self._on_progress(Progress(stage, done, total, len(self._bad)))

    def _failed(self, place: int, stage: str, failure: Failure) -> None:
        """Raise the failure of a shard, or leave the shard out of later stages."""
        if self._bad_shards == "error":
            raise InputError(
                WHO,
                self._shards[place].name,
                f"must pass {_STAGES[stage]}",
                str(failure).rstrip("."),
                "Fix it, or skip such shards with",
                Argument("bad_shards", "skip"),
            )
        self._bad[place] = failure

    def _check_unchanged(self) -> None:
        """Raise an error if a shard changed during the run."""
        for shard, before in zip(self._shards, self._versions, strict=True):
            if shard.version != before:
                raise InputError(WHO, shard.name, "must not change during the run", "another version", "Start again.")


ROWS_CHECKED = 4096  # of every shard, to calibrate probabilities and to count mistakes
_OF_WEIGHTS = {"weighter", "loss", "calibrated", "forgetting"}  # settings that members do not depend on
_STAGES = {
    "survey": "the reading of labels",
    "columns": "the encoding of columns",
    "train": "the training of members",
    "weigh": "the weighting of members",
    "check": "the calibration of probabilities",
}


def prepared(
    classifier: BayesianEnsembleClassifier | None, table: ShardSchema
) -> tuple[BayesianEnsembleClassifier, BayesianEnsembleClassifier]:
    """Return a started copy of a classifier and the configuration for the shards, after checking them."""
    spec = clone(
        BayesianEnsembleClassifier(n_members=128).set_params(members=None) if classifier is None else classifier
    )
    if spec.random_state is None:
        spec.set_params(random_state=0)
    elif not isinstance(spec.random_state, int | np.integer):
        spec.set_params(random_state=int(check_random_state(spec.random_state).randint(2**31 - 1)))
    # The defaults suit a stream: some members follow the last rows, and the weights depend on the order of rows.
    if isinstance(spec.members, str) and spec.members == "adaptive":
        spec.set_params(members=None)
    if isinstance(spec.weighter, str) and spec.weighter == "drifting":
        spec.set_params(weighter="joint_gaussian")
    model = clone(spec)
    if spec.members is None:
        model.set_params(members=shard_members(table.n_features, spec.n_members))
    model.start(table.n_features, table.classes)
    model.model_.weighter.sums(1)  # raises an error if the weights depend on the order of the rows
    bank = model.model_.bank
    if not bank.learns or any(part.reference is not None for part in (bank, *bank.parts)):
        raise InputTypeError(
            WHO,
            "members",
            "must be of this library and not frozen, as each shard trains its own members",
            bank.who,
            "Pass the name of a kind, such as 'mixed', or a bank. Use distributed.weigh for fitted members.",
        )
    return model, spec


def _check_classifier(classifier: BayesianEnsembleClassifier | None) -> None:
    """Reject other models, and class weights that depend on the order of rows."""
    if classifier is None:
        return
    if not isinstance(classifier, BayesianEnsembleClassifier):
        must = "must be a BayesianEnsembleClassifier"
        raise InputTypeError(WHO, "classifier", must, repr(classifier)[:200])
    if isinstance(classifier.class_weight, str):
        raise InputError(
            WHO,
            "class_weight",
            "must be None or a dict",
            repr(classifier.class_weight),
            "Balanced weights depend on the rows before. Pass the class weights as a dict.",
        )


def _as_stated(reading: ReadOptions, stated: Mapping[str, str] | None) -> ReadOptions:
    """Return reading options with the stated kinds. Dropped columns are read, so that the model knows their names."""
    if stated is None:
        return reading
    kinds = {str(name): "category" if kind == "drop" else kind for name, kind in stated.items()}
    return replace(reading, columns={**(reading.columns or {}), **kinds})


def _told(table: ShardSchema) -> str:
    """Return a digest of the schema."""
    learned = None if table.columns is None else table.columns.learned()
    arrays = [] if learned is None else [array.tolist() for array in learned.arrays.values()]
    return digest(table.n_features, table.names, table.classes.tolist(), learned and learned.facts, arrays)


def _fingerprint(classifier: BayesianEnsembleClassifier) -> str | None:
    """Return a digest of fitted members, or None for members of other libraries."""
    try:
        data = dumps(classifier)
        loads(data)
    except ModelFileError:
        return None
    return digest(data)
