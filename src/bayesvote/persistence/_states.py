"""What must hold of a state that a file brings. Kernels trust their indices: a wrong one would reach foreign memory."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesvote._checks import whole
from bayesvote.boosting._booster import Booster
from bayesvote.boosting._state import BoosterState
from bayesvote.members.ferns import FernBank, FernState
from bayesvote.members.naive_bayes import NaiveBayesBank, NaiveBayesState
from bayesvote.members.perceptron import PerceptronBank, PerceptronState
from bayesvote.weighting import SAG, JointState, Weighter

Leaf = PerceptronBank | NaiveBayesBank | FernBank


def shape_of(part: Leaf | Booster) -> tuple[int, int] | None:
    """Return the features and classes that a bank or booster was started with."""
    match part.state:
        case PerceptronState(weights=weights):
            return len(weights), max(2, weights.shape[1] // part.n_members)
        case NaiveBayesState(uses=uses, total=total):
            return len(uses), len(total)
        case FernState(slot_of=slot_of, counts=counts):
            return len(slot_of), counts.shape[2]
        case BoosterState(weights=weights, order=order, seen=seen):
            return max(weights.shape[1] - 1, order.shape[1]), max(2, len(seen))
    return None


def check_room(part: Leaf | Booster, n_features: int, n_classes: int, room: int) -> None:
    """Refuse a state that is larger than its file, before room is made for it."""
    who, m = type(part).__name__, part.n_members
    whole(who, "n_members", m)
    if isinstance(part, FernBank):
        asked = min(n_features, 8 * m * part.depth)
        least = 4 * n_features + 8 * m * 2**part.depth * n_classes + part.warmup * asked
    elif isinstance(part, NaiveBayesBank):
        least = 8 * n_features * (m + 4 * n_classes)
    else:
        pool = getattr(part, "pool", 1)
        whole(who, "pool", pool)
        least = 8 * n_features * m * pool * (1 if n_classes == 2 else n_classes)
    _fits(who, least, room)


def check_weighter_room(weighter: Weighter[Any], n_members: int, room: int) -> None:
    """Refuse a weighter's state that is larger than its file."""
    one = weighter.init(1)
    numbers = len(one.means) * n_members**2 if isinstance(one, JointState) else one[0].size * n_members
    _fits(type(weighter).__name__, 8 * numbers, room)


def _fits(who: str, least: int, room: int) -> None:
    if least > room:
        raise ValueError(f"{who}: a state of {least} bytes or more in a file of {room}")


def filled(fresh: Any, found: dict[str, NDArray[Any]]) -> Any:
    """Return the state with the arrays found; they must have the shapes and types of a fresh one."""
    wanted = {name: (array.dtype, array.shape) for name, array in fresh._asdict().items()}
    if isinstance(fresh, FernState):  # how many columns are asked about depends on the draw
        n_columns = found["columns"].size
        wanted["columns"] = (fresh.columns.dtype, (n_columns,))
        wanted["rows"] = (fresh.rows.dtype, (len(fresh.rows), n_columns))
    for name, (dtype, shape) in wanted.items():
        array = found[name]
        if array.dtype != dtype or array.shape != shape:
            raise ValueError(f"{name} of {array.dtype} {array.shape} instead of {dtype} {shape}")
    return type(fresh)(**{name: found[name] for name in wanted})


def check_state(part: Any, state: Any) -> None:
    """Refuse a state that no stream leads to: not finite, or with an index out of range."""
    who = type(part).__name__
    may_be_nan = {"pair", "shown", "rows"} if not isinstance(state, JointState) else set()
    for name, array in state._asdict().items():
        bad = np.isinf(array) if name in may_be_nan else ~np.isfinite(array)
        _require(who, not np.any(bad), f"{name} must be finite")
    match state:
        case PerceptronState(own=own, uses=uses):
            _require(who, _agree(own, uses, uses.shape[1] // len(own)), "own and uses must agree")
        case NaiveBayesState(own=own, uses=uses, shown=shown):
            _require(who, _agree(own, uses, 1), "own and uses must agree")
            _require(who, _within(shown[2:], 0, 4) and not np.any(shown[2:] % 1), "shown must hold kinds")
        case FernState():
            _check_ferns(who, part, state)
        case BoosterState(order=order, n_continuous=n_continuous, book=book, seen=seen):
            d = order.shape[1]
            _require(who, np.array_equal(np.sort(order), np.tile(np.arange(d), (len(order), 1))), "order is none")
            _require(who, _within(n_continuous, 0, d + 1), "n_continuous is out of range")
            _require(who, not np.any(book < 0) and not np.any(seen < 0), "book and seen must be at least 0")
        case JointState(rows=rows, behind=behind):
            _require(who, _within(rows, 0, part._refresh_every), "rows is out of range")
            _require(who, _within(behind, 0, part._refresh_every), "behind is out of range")
        case _ if isinstance(part, SAG):
            _require(who, _within(state.fields[3], 0, part.horizon + 1), "the rows must be within the horizon")


def _check_ferns(who: str, bank: FernBank, state: FernState) -> None:
    d, n_columns, n_classes = len(state.slot_of), len(state.columns), state.counts.shape[2]
    seen = int(state.seen[0])
    _require(who, 0 <= seen <= bank.warmup, "seen is out of range")
    _require(who, n_columns > 0 and bool(np.all(np.diff(state.columns) > 0)), "columns must ascend")
    _require(who, _within(state.columns, 0, d), "columns is out of range")
    _require(who, _within(state.candidates, 0, n_columns), "candidates is out of range")
    _require(who, _within(state.places, 0, 1), "places is out of range")
    _require(who, _within(state.labels, 0, n_classes), "labels is out of range")
    _require(who, not np.any(state.weights < 0) and not np.any(state.counts < 0), "weights must be at least 0")
    # The features in use are numbered from 0 without a gap, and questions ask about all of them and no other.
    used = np.flatnonzero(state.slot_of >= 0)
    numbers = np.sort(state.slot_of[used])
    asked = np.unique(state.slots)
    none_yet = len(used) == 0 and not np.any(state.slots) and seen < 4
    _require(who, none_yet or np.array_equal(numbers, asked), "slots must be those of slot_of")
    _require(who, none_yet or np.array_equal(asked, np.arange(len(asked))), "slots must be numbered from 0")
    _require(who, bool(np.all(np.isin(used, state.columns))), "slot_of must be of the columns")


def _require(who: str, holds: bool, sentence: str) -> None:
    if not holds:
        raise ValueError(f"{who}: {sentence}")


def _within(values: NDArray[Any], low: float, high: float) -> bool:
    return bool(np.all((values >= low) & (values < high)))


def _agree(own: NDArray[Any], uses: NDArray[Any], per: int) -> bool:
    """Whether the features each member sees are the same in both forms."""
    mask = uses[:, ::per].T == 1
    if np.any(np.count_nonzero(mask, axis=1) != own.shape[1]):
        return False
    return np.array_equal(np.nonzero(mask)[1].reshape(own.shape), own) and np.array_equal(
        np.repeat(mask, per, axis=0).T, uses
    )
