"""The paper's data sets, synthetic streams, and streams of the user's own data."""

from bayesvote.datasets.loading import Dataset, load_dataset, locate, scale
from bayesvote.datasets.registry import DATASETS
from bayesvote.datasets.synthetic import SYNTHETIC, SyntheticStream, synthetic_stream
from bayesvote.io.chunks import Chunk
from bayesvote.io.open_stream import Stream, stream, stream_unlabelled
from bayesvote.io.survey import Survey, survey

__all__ = [
    "DATASETS",
    "SYNTHETIC",
    "Chunk",
    "Dataset",
    "Stream",
    "Survey",
    "SyntheticStream",
    "load_dataset",
    "locate",
    "scale",
    "stream",
    "stream_unlabelled",
    "survey",
    "synthetic_stream",
]
