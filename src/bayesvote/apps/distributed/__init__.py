"""Distributed training: members trained on separate shards of the data, then weighted on all shards.

Each shard trains members, which are then frozen. All shards pass their rows through all members, and the results are
merged in the order of the shards. An engine runs the work: :class:`Loop` in this process, or :class:`Dask` on many
processes or machines. The model is the same for every engine, bit for bit.
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
    """Train members on each shard separately, and weight all members on all shards.

    Each shard trains a few members, which are then frozen. Then every shard passes its rows through all members except
    those that it trained. The statistics of the weights are summed in the order of the shards. The model does not
    depend on the engine, the number of workers, or lost workers.

    Parameters
    ----------
    data
        The shards: paths or globs of LIBSVM, CSV or Parquet files, one shard per file; a dask.dataframe, one shard per
        partition; a pair (X, y) of dask.arrays with the same blocks of rows; or a list of pairs (X, y) in memory.
    classifier
        The configuration; the object itself stays unfitted. Its ``n_members`` is the total over all shards, 128 if no
        classifier is passed. Its members are a name or a bank. Enough shards train a copy of a bank each to reach that
        total. The defaults suit a stream, so two of them change. Shards train :func:`shard_members` instead of
        "adaptive" members. The weighter is "joint_gaussian", because "drifting" depends on the order of the rows.
        A ``random_state`` of None means 0.
    target
        Column of the labels, by name or position; the last one by default.
    classes
        All possible labels, by default those in the shards.
    format, bad_lines, header, decimal, features
        Options for files, as in :func:`bayesvote.datasets.stream`.
    engine
        ``Loop()``, the default, or ``Dask(...)``.
    record
        Folder for the results of finished shards. A second run with the same folder resumes from them.
    bad_shards
        "error" stops at the first shard that fails. "skip" leaves such shards out, with a warning.
    time_limit
        Seconds after which a TimeoutError is raised.
    on_progress
        Called with a :class:`Progress` after every shard.

    Returns
    -------
    BayesianEnsembleClassifier
        A new fitted classifier. Its members are frozen; ``partial_fit`` updates its weights.

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
    """Update the weights of frozen members with further shards, exactly.

    Parameters
    ----------
    data, target, format, bad_lines, header, decimal, features, engine, record, bad_shards, time_limit, on_progress
        As in :func:`fit`.
    classifier
        A fitted classifier with frozen members, such as one that ``fit`` returned. It changes only after all shards
        are done.
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
