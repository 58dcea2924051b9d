"""The paper's data sets, and streams of the user's own data."""

from bayesvote.datasets.loading import Dataset, load_dataset, locate, scale
from bayesvote.datasets.registry import DATASETS
from bayesvote.io.chunks import Chunk
from bayesvote.io.open_stream import Stream, stream, stream_unlabelled
from bayesvote.io.survey import Survey, survey

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
