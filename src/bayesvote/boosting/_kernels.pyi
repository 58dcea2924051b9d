from bayesvote._checks import Array, Labels
from bayesvote._input import Rows
from bayesvote.boosting._state import BoosterState, Rule

def run(
    rule: Rule, state: BoosterState, rows: Rows, label: Labels, weight: Array, carry: Array, votes: Array
) -> None: ...
def _project(x: Array) -> None: ...
