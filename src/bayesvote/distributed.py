"""Public name of :mod:`bayesvote.apps.distributed`: members trained on shards and weighed together."""

from bayesvote.apps.distributed import (
    Dask,
    Engine,
    Failure,
    Job,
    Loop,
    Progress,
    Reading,
    fit,
    predict,
    predict_proba,
    shard_members,
    weigh,
)

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
