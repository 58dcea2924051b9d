"""Past one machine: members trained apart, on shards of the data, and weighed together.

Shards train members, which are frozen; all shards pass their rows through all members; what they found is merged in
order of shard. An engine does the work: the plain :class:`Loop`, or :class:`Dask` on many processes or machines. The
model does not depend on it, bit for bit.
"""

import os
from collections.abc import Callable, Sequence
from typing import Any

from numpy.typing import ArrayLike

from bayesvote.apps.distributed.dask import Dask
from bayesvote.apps.distributed.engines import Engine, Failure, Loop
from bayesvote.apps.distributed.inputs import Reading
from bayesvote.apps.distributed.members import shard_members
from bayesvote.apps.distributed.partitions import predict, predict_proba
from bayesvote.apps.distributed.plan import Job, Progress
from bayesvote.core.warn import warn
from bayesvote.estimators import BayesianEnsembleClassifier

__all__ = [
    "Dask",
    "Engine",
    "Failure",
    "Job",
    "Loop",
    "Progress",
    "Reading",
    "fit",
    "predict",
    "predict_proba",
    "shard_members",
    "weigh",
]


def fit(
    data: Any,
    classifier: BayesianEnsembleClassifier | None = None,
    *,
    target: str | int | None = None,
    classes: ArrayLike | None = None,
    format: str = "auto",  # noqa: A002 - as in datasets.stream
    bad_lines: str = "error",
    header: bool | None = None,
    decimal: str | None = None,
    features: Sequence[str] | None = None,
    engine: Engine | None = None,
    record: str | os.PathLike[str] | None = None,
    bad_shards: str = "error",
    time_limit: float | None = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> BayesianEnsembleClassifier:
    """Train members on shards, each on its own, and weigh all of them on all shards.

    Each shard trains a few members, which are then frozen. Then every shard passes its rows through all members, but
    for those that it trained, and what the weights learn from that is added up in the order of the shards. The model
    does not depend on the engine, on the number of workers, or on which of them were lost meanwhile.

    Parameters
    ----------
    data
        The shards: paths and globs of LIBSVM, CSV or Parquet files, a shard each; a dask.dataframe, whose partitions
        they are; a pair (X, y) of dask.arrays, cut into the same blocks of rows; or a list of pairs (X, y) in memory.
    classifier
        What to train; it stays as it is. Its ``n_members`` are those of all shards together, 128 if no classifier is
        given. Members are a name; or a bank, of which a copy is trained by each of as many shards as make up that
        number. Its defaults are made for a stream. In the place of the members "adaptive" shards train
        :func:`shard_members`, and in the place of the weights "drifting", which depend on the order of the rows, are
        those of "joint_gaussian". A ``random_state`` of None means 0.
    target
        The label's column, by name or place; the last one by default.
    classes
        All labels that can come, if not those of the shards.
    format, bad_lines, header, decimal, features
        Of files, as in :func:`bayesvote.datasets.stream`.
    engine
        What does the work: ``Loop()``, the default, or ``Dask(...)``.
    record
        A folder in which finished shards are kept. A second start with the same folder goes on from there.
    bad_shards
        "error", or "skip": shards that fail are left out, with a warning.
    time_limit
        Seconds after which a TimeoutError is raised.
    on_progress
        Called with a :class:`Progress` after every shard.

    Returns
    -------
    BayesianEnsembleClassifier
        A new one, fitted. Its members are frozen, and its weights go on learning with ``partial_fit``.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(4000, 4))
    >>> y = np.where(X[:, 0] * X[:, 1] > 0, "same", "other")
    >>> model = fit([(X[k::4], y[k::4]) for k in range(4)])
    >>> bool(np.mean(model.predict(X[:1000]) == y[:1000]) > 0.9)
    True
    """
    reading = Reading(format, target, bad_lines, header=header, decimal=decimal, features=features)
    job = Job(engine, record=record, bad_shards=bad_shards, time_limit=time_limit, on_progress=on_progress)
    model = job.fit(data, classifier, reading=reading, classes=classes)
    _warn(job)
    return model


def weigh(
    data: Any,
    classifier: BayesianEnsembleClassifier,
    *,
    target: str | int | None = None,
    format: str = "auto",  # noqa: A002
    bad_lines: str = "error",
    header: bool | None = None,
    decimal: str | None = None,
    features: Sequence[str] | None = None,
    engine: Engine | None = None,
    record: str | os.PathLike[str] | None = None,
    bad_shards: str = "error",
    time_limit: float | None = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> BayesianEnsembleClassifier:
    """Let the weights of frozen members learn from further shards; exact.

    Parameters
    ----------
    data, target, format, bad_lines, header, decimal, features, engine, record, bad_shards, time_limit, on_progress
        As in :func:`fit`.
    classifier
        A fitted one, of frozen members: one that ``fit`` returned, or that was fitted with members that were. Its
        weights go on from where they are; it is changed when all shards are done, and not before.
    """
    reading = Reading(format, target, bad_lines, header=header, decimal=decimal, features=features)
    job = Job(engine, record=record, bad_shards=bad_shards, time_limit=time_limit, on_progress=on_progress)
    job.weigh(data, classifier, reading=reading)
    _warn(job)
    return classifier


def _warn(job: Job) -> None:
    for names, what in ((job.duplicates, "given twice, and counted once"), ([*job.skipped], "skipped")):
        if names:
            first = f": {job.skipped[names[0]]}" if names[0] in job.skipped else ""
            warn(f"distributed: {len(names)} shards were {what}, the first {names[0]}{first}")
