"""The paper's tables and figures, and those that go beyond them."""

from bayesvote.experiments.runner import read, reproduce
from bayesvote.experiments.setup import DEFAULT, EXPERIMENTS

__all__ = ["DEFAULT", "EXPERIMENTS", "read", "reproduce"]
