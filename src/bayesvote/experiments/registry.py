"""All experiments: a new one is its own object, and one line here."""

from bayesvote.experiments.changing_streams import FIGURE7, TABLE7
from bayesvote.experiments.choice_of_settings import SETTINGS
from bayesvote.experiments.convergence import FIGURE4
from bayesvote.experiments.default_classifier import TABLE6
from bayesvote.experiments.drift import FIGURE6
from bayesvote.experiments.experiment import Experiment
from bayesvote.experiments.frozen_members import TABLE1, TABLE2
from bayesvote.experiments.learning_curves import FIGURE1
from bayesvote.experiments.online_members import TABLE3, TABLE4
from bayesvote.experiments.sensitivity import FIGURE2, FIGURE3
from bayesvote.experiments.three_losses import TABLE5
from bayesvote.experiments.weight_intervals import FIGURE5

_ALL: tuple[Experiment, ...] = (
    TABLE1,
    TABLE2,
    TABLE3,
    TABLE4,
    TABLE5,
    TABLE6,
    TABLE7,
    FIGURE1,
    FIGURE2,
    FIGURE3,
    FIGURE4,
    FIGURE5,
    FIGURE6,
    FIGURE7,
    SETTINGS,
)
EXPERIMENTS: dict[str, Experiment] = {experiment.name: experiment for experiment in _ALL}
