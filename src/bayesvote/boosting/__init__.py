"""The online boosters that the paper compares with, as models: ``decide`` and ``decide_then_learn``."""

from bayesvote.boosting.ogboost import OGBoost
from bayesvote.boosting.osboost import OSBoost
from bayesvote.boosting.ozaboost import OzaBoost

__all__ = ["OGBoost", "OSBoost", "OzaBoost"]
