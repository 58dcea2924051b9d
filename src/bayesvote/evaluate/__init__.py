"""Prequential evaluation: every row is first predicted, then learned."""

from bayesvote.evaluate._models import memory
from bayesvote.evaluate.loop import Prequential, Step, prequential, steps
from bayesvote.evaluate.tally import Curve, Tally

__all__ = ["Curve", "Prequential", "Step", "Tally", "memory", "prequential", "steps"]
