"""All experiments. A new experiment needs one line here."""

from bayesvote_paper.changing_streams import FIGURE7, TABLE7
from bayesvote_paper.choice_of_settings import SETTINGS
from bayesvote_paper.convergence import FIGURE4
from bayesvote_paper.default_classifier import TABLE6
from bayesvote_paper.drift import FIGURE6
from bayesvote_paper.experiment import Experiment
from bayesvote_paper.frozen_members import TABLE1, TABLE2
from bayesvote_paper.learning_curves import FIGURE1
from bayesvote_paper.online_members import TABLE3, TABLE4
from bayesvote_paper.sensitivity import FIGURE2, FIGURE3
from bayesvote_paper.three_losses import TABLE5
from bayesvote_paper.weight_intervals import FIGURE5

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
