"""The paper's data sets, and streams of the user's own data."""

from bayesvote.datasets._readers import Chunk
from bayesvote.datasets.loading import Dataset, load_dataset, locate, scale
from bayesvote.datasets.registry import DATASETS
from bayesvote.datasets.streams import Stream, Survey, stream, stream_unlabelled, survey

__all__ = [
    "DATASETS",
    "Chunk",
    "Dataset",
    "Stream",
    "Survey",
    "load_dataset",
    "locate",
    "scale",
    "stream",
    "stream_unlabelled",
    "survey",
]
