"""The paper's tables and figures, and those that go beyond them."""

from bayesvote.experiments.experiment import Experiment
from bayesvote.experiments.registry import EXPERIMENTS
from bayesvote.experiments.runner import read, reproduce

__all__ = ["EXPERIMENTS", "Experiment", "read", "reproduce"]
