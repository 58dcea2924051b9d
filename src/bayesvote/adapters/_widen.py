"""Room for more features in a model that has learned already, as if they had been 0 in every row so far."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesvote._checks import Array
from bayesvote.boosting import OGBoost, OSBoost, OzaBoost
from bayesvote.boosting._state import BoosterState
from bayesvote.ensemble import Ensemble
from bayesvote.members import EstimatorBank, FernBank, Frozen, NaiveBayesBank, PerceptronBank, Union, random_subsets
from bayesvote.members.foreign import _River

Model = Ensemble | OzaBoost | OGBoost | OSBoost


def widen(model: Model, n_features: int, rng: np.random.Generator) -> None:
    """Make a started model ready for rows of n_features, more than it had, without forgetting anything.

    Every member gets as large a share of the new features as it has of the old ones. Ferns, whose questions are
    chosen, and scikit-learn's estimators, whose width is fixed, go on with the old ones.
    """
    if isinstance(model, Ensemble):
        _widen_bank(model.bank, n_features, rng)
        model.n_features = n_features
    elif model.state is not None:
        model.state = _booster_state(model.state, n_features, model.member == "perceptron", rng)


def _widen_bank(bank: Any, n_features: int, rng: np.random.Generator) -> None:
    if isinstance(bank, Union):
        for part in bank.banks:
            _widen_bank(part, n_features, rng)
        if bank.shape is not None:
            bank.shape = (n_features, bank.shape[1])
    elif isinstance(bank, Frozen):
        _widen_bank(bank.bank, n_features, rng)
    elif isinstance(bank, PerceptronBank) and bank.state is not None:
        old = bank.state
        own, more = _shares(old.own, len(old.weights), n_features, rng)
        uses = np.repeat(more, len(old.bias) // bank.n_members, axis=0).T.astype(np.uint8)
        bank.state = old._replace(
            own=own,
            uses=np.concatenate([old.uses, uses]),
            weights=_padded(old.weights, 0, n_features),
            past_weights=_padded(old.past_weights, 0, n_features if bank.averaged else 0),
        )
    elif isinstance(bank, NaiveBayesBank) and bank.state is not None:
        d = len(bank.state.uses)
        own, more = _shares(bank.state.own, d, n_features, rng)
        statistics = _padded(bank.state.statistics, 2, n_features)
        shown = _padded(bank.state.shown, 1, n_features)
        statistics[0, :, d:] = bank.state.total[:, np.newaxis]
        shown[:2, d:] = np.nan
        if bank.state.total.any():  # rows were seen, so the value 0 was
            shown[[0, 2], d:] = [[0.0], [1.0]]
        bank.state = bank.state._replace(
            own=own, uses=np.concatenate([bank.state.uses, more.T]), statistics=statistics, shown=shown
        )
    elif isinstance(bank, FernBank) and bank.state is not None:
        unused = np.full(n_features - len(bank.state.slot_of), -1, dtype=np.int32)
        bank.state = bank.state._replace(slot_of=np.concatenate([bank.state.slot_of, unused]))
    elif isinstance(bank, EstimatorBank) and bank.state is not None:
        columns = list(bank.state.columns)
        for i, (given, member) in enumerate(zip(bank.estimators, bank.state.members, strict=True)):
            if isinstance(member, _River) and not isinstance(given, tuple):
                columns[i] = np.arange(n_features)
                member.columns = columns[i].tolist()
        bank.state = bank.state._replace(columns=tuple(columns), n_features=n_features)
    else:
        raise TypeError(
            f"widen: members must be of a kind that can take more features, got {type(bank).__name__}. "
            "Give the first row all the names."
        )


def _shares(
    own: NDArray[np.uint32], d: int, n_features: int, rng: np.random.Generator
) -> tuple[NDArray[np.uint32], NDArray[np.bool_]]:
    """Features of every member, (m, k), with some of the new ones; and which of the new ones, (m, new)."""
    m, k = own.shape
    more = random_subsets(n_features - d, m, k / d, rng)
    new = np.nonzero(more)[1].reshape(m, -1).astype(np.uint32) + np.uint32(d)
    return np.concatenate([own, new], axis=1), more


def _padded(array: Array, axis: int, size: int) -> Array:
    """Return the array with zeros up to that size along an axis."""
    widths = [(0, 0)] * array.ndim
    widths[axis] = (0, size - array.shape[axis])
    return np.pad(array, widths)


def _booster_state(old: BoosterState, n_features: int, linear: bool, rng: np.random.Generator) -> BoosterState:
    if linear:
        b, rows, m = old.weights.shape
        new = rng.uniform(-1.0, 1.0, (b, 1 + n_features - rows, m))  # as at the start
        return old._replace(weights=np.concatenate([old.weights, new], axis=1))
    b, d = old.order.shape
    pair = np.full((b, 2, n_features), np.nan)
    pair[:, :, :d] = old.pair
    pair[:, 0, d:] = np.where(old.seen > 0, 0.0, np.nan)  # rows were seen, so the value 0 was
    return old._replace(
        stats=_padded(old.stats, 3, n_features),
        overall=_padded(old.overall, 2, n_features),
        pair=pair,
        order=np.concatenate([old.order, np.tile(np.arange(d, n_features), (b, 1))], axis=1),
    )
