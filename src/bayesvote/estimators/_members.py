"""The bank and the weighter that the parameters of the ensemble classifier name."""

from copy import deepcopy
from dataclasses import replace
from typing import Any, NamedTuple

from numpy.typing import NDArray

from bayesvote import members, weighting
from bayesvote.core.checks import InputError, InputTypeError, fraction
from bayesvote.core.names import make
from bayesvote.members import Bank, EstimatorBank, Frozen, Union
from bayesvote.members.sparse_bayes import is_wide
from bayesvote.weighting import Weighter


class BankOptions(NamedTuple):
    """Parameters of a classifier that decide which members it has."""

    who: str
    members: Any
    n_members: int
    max_features: Any
    scale: bool


def weighter_of(who: str, given: Any, forgetting: float) -> Weighter[Any]:
    """Return the weighter of that name, or the given one."""
    fraction(who, "forgetting", forgetting)
    weighter = make(who, "weighter", given, weighting.named()) if isinstance(given, str) else given
    if not isinstance(weighter, Weighter):
        raise InputTypeError(who, "weighter", "must be a name or a weighter", repr(weighter))
    if forgetting == 1:
        return weighter
    if not isinstance(given, str) or "forgetting" not in weighter.parameters():
        raise InputError(
            who,
            "forgetting",
            "must be 1 unless the weighter is the name of a posterior that has this parameter",
            f"{forgetting} with {given!r}",
            "Pass it to the weighter itself, or use weighter='joint_gaussian'. The weights of 'drifting' follow "
            "changes without it.",
        )
    changed: Any = weighter
    forgetful: Weighter[Any] = replace(changed, forgetting=forgetting)
    return forgetful


def bank_of(options: BankOptions, classes: NDArray[Any], n_features: int) -> Bank[Any]:
    """Return the named bank, a copy of the given one, or a bank of the given classifiers."""
    who, given = options.who, options.members
    if isinstance(given, str):
        return _named_bank(options, n_features)
    if options.max_features != "auto":
        raise InputError(
            who,
            "max_features",
            "must be 'auto' unless members is a name",
            repr(options.max_features),
            "Pass it to the bank itself, or pass pairs (classifier, columns).",
        )
    if isinstance(given, Bank):
        return deepcopy(given)
    if not isinstance(given, list | tuple):
        raise InputTypeError(who, "members", "must be a name, a bank or a list of classifiers", repr(given))
    if not given:
        raise InputError(who, "members", "must hold at least one classifier", "none")
    for i, member in enumerate(given):
        one = member[0] if isinstance(member, tuple) else member
        if not any(hasattr(one, name) for name in ("classes_", "partial_fit", "learn_one")):
            must = "must be a classifier that is fitted, or that learns online by partial_fit or learn_one"
            raise InputTypeError(who, f"members[{i}]", must, repr(one), "Fit it first.")
    if all(is_fitted(member) for member in given):
        return Frozen(EstimatorBank(given, classes=classes))
    return Union(
        [
            Frozen(EstimatorBank([member], classes=classes))
            if is_fitted(member)
            else EstimatorBank([member], online=True)
            for member in given
        ]
    )


def is_fitted(member: Any) -> bool:
    """Return True for a fitted classifier, or a pair of one and its columns."""
    return hasattr(member[0] if isinstance(member, tuple) else member, "classes_")


def _named_bank(options: BankOptions, n_features: int) -> Bank[Any]:
    bank: Bank[Any] = make(options.who, "members", options.members, members.named(), options.n_members)
    if options.max_features != "auto":
        _choose_features(options, bank)
    if options.scale:
        bank = members.scaled(bank)
    return members.Compact(bank) if is_wide(n_features) else bank


def _choose_features(options: BankOptions, bank: Bank[Any]) -> None:
    choosing: list[Any] = [part for part in _innermost(bank) if part.draws_features]
    if not choosing:
        raise InputError(
            options.who,
            "max_features",
            f"must be 'auto' for {options.members}, whose members choose their features themselves",
            repr(options.max_features),
        )
    for part in choosing:
        part.max_features = options.max_features


def _innermost(bank: Bank[Any]) -> list[Bank[Any]]:
    return [inner for part in bank.parts for inner in _innermost(part)] if bank.parts else [bank]
