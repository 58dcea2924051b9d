"""Prequential evaluation: every row is first predicted, then learned."""

from bayesvote.evaluation.loop import Prequential, Step, prequential, steps
from bayesvote.evaluation.models import memory
from bayesvote.evaluation.tally import Curve, Tally

__all__ = ["Curve", "Prequential", "Step", "Tally", "memory", "prequential", "steps"]
