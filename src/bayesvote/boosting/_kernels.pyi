from bayesvote.boosting._state import BoosterState, Rule
from bayesvote.core.checks import Array, Labels
from bayesvote.core.rows import Rows

def run(
    rule: Rule, state: BoosterState, rows: Rows, label: Labels, weight: Array, carry: Array, votes: Array
) -> None: ...
def _project(x: Array) -> None: ...
