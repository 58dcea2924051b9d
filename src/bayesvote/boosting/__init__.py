"""The online boosting methods of the paper's comparison, as models with ``decide`` and ``decide_then_learn``."""

from bayesvote.boosting._booster import Booster
from bayesvote.boosting.ogboost import OGBoost
from bayesvote.boosting.osboost import OSBoost
from bayesvote.boosting.ozaboost import OzaBoost

# Every kind of booster, by the name that the command line uses. Model files can name no others.
BOOSTERS: dict[str, type[Booster]] = {"ogboost": OGBoost, "osboost": OSBoost, "ozaboost": OzaBoost}

__all__ = ["BOOSTERS", "Booster", "OGBoost", "OSBoost", "OzaBoost"]
