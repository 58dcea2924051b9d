"""The ensemble as a scikit-learn classifier, with what its posterior knows beyond the labels."""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from bayesvote import _checks, members, weighting
from bayesvote._checks import Array
from bayesvote._named import make
from bayesvote.ensemble import Ensemble
from bayesvote.estimators.base import OnlineClassifier
from bayesvote.losses import Loss
from bayesvote.members import Bank, EstimatorBank, Frozen, Union
from bayesvote.weighting import Posterior, Weighter


class BayesianEnsembleClassifier(OnlineClassifier[Ensemble]):
    """Online ensemble with Bayesian weights.

    The paper's algorithm is ``members="perceptron"`` or ``"naive_bayes"`` with ``weighter="gamma_rate"``. The defaults
    are what does best on most data: three kinds of members, and weights that know which of them are correlated.

    Perceptrons want features of about the same scale: put a scaler before the classifier.

    Parameters
    ----------
    members : str, Bank or list of classifiers
        "mixed", "perceptron", "averaged_perceptron", "linear", "naive_bayes" or "fern", with parameters if need be,
        such as "fern(depth=6)"; or a bank, of which a copy learns; or classifiers of scikit-learn or river. Of these,
        fitted ones are used as they are, and the others learn online, by ``partial_fit`` or ``learn_one``. ``clone``
        keeps fitted ones; in the grid of a search, wrap them in scikit-learn's ``FrozenEstimator``.
    n_members : int
        How many members, if they are named.
    max_features : "auto", float, int or None
        How many features each Perceptron or naive Bayes sees: what suits their kind, a fraction, a count, or None for
        all.
    loss : str or callable
        Loss of a member, by name or as a function of its margin. "gamma_shape" and "gamma_shape_rate" need "logistic";
        "joint_gaussian" and "joint_logistic" want a bounded one, "ramp" or "zero_one".
    weighter : str or Weighter
        "joint_gaussian", "joint_logistic", "gamma_rate", "gamma_shape", "gamma_shape_rate", "voting", "sgd",
        "averaged_sgd" or "sag", with parameters if need be, such as "sag(horizon=5000)"; or a weighter.
    forgetting : float
        Factor by which the past fades with each row, if the weighter is named; 1 keeps all of it.
    calibrated : bool
        Whether probabilities are calibrated as the stream goes on. ``predict`` stays the same. Those of
        "joint_logistic" are meant to do without.
    random_state : int, Generator, RandomState or None
        The randomness of the members' start. An integer means what it means to ``Ensemble.start``.

    Attributes
    ----------
    classes_ : array of shape (K,)
        The labels.
    n_features_in_ : int
        How many features there are.
    feature_names_in_ : array of shape (n_features_in_,)
        Their names, if ``fit`` saw a table.
    model_ : Ensemble
        The model itself.
    calibration_ : tuple
        What the calibration has learned.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import minmax_scale
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X = minmax_scale(X, (-1, 1))
    >>> model = BayesianEnsembleClassifier(random_state=0).fit(X[:400], y[:400])
    >>> model.score(X[400:], y[400:]) > 0.95
    True
    >>> model.predict(X[:3], abstain_below=0.99)
    masked_array(data=[0, 0, 0],
                 mask=[False, False, False],
           fill_value=999999)
    """

    def __init__(
        self,
        members: str | Bank[Any] | Sequence[Any] = "mixed",
        n_members: int = 100,
        *,
        max_features: str | float | int | None = "auto",
        loss: str | Loss = "ramp",
        weighter: str | Weighter[Any] = "joint_gaussian",
        forgetting: float = 1.0,
        calibrated: bool = False,
        random_state: Any = None,
    ) -> None:
        self.members = members
        self.n_members = n_members
        self.max_features = max_features
        self.loss = loss
        self.weighter = weighter
        self.forgetting = forgetting
        self.calibrated = calibrated
        self.random_state = random_state

    def predict(self, X: Any, abstain_below: float | None = None) -> NDArray[Any]:
        """Labels of rows.

        With ``abstain_below``, a probability, the answer is a masked array: rows whose ``decision_certainty`` is lower
        are masked. Comparisons and means skip them: ``(model.predict(X, 0.9) == y).mean()``.
        """
        labels = super().predict(X)
        if abstain_below is None:
            return labels
        if not 0 <= abstain_below <= 1:
            raise ValueError(f"{self.who}.predict: abstain_below must be a probability or None, got {abstain_below!r}.")
        return np.ma.MaskedArray(labels, mask=self.decision_certainty(X) < abstain_below)

    def decision_certainty(self, X: Any, size: int = 1000) -> Array:
        """Probability (n,) that the decision is that of the best weights, by ``size`` draws from their posterior.

        It tells whether the weights are known well enough, not whether the label is right: that is ``predict_proba``.
        """
        rows = self._rows(X)
        return self.model_.certainty(rows, size)

    def contributions(self, X: Any) -> Array:
        """What each member adds (n, m) to the lead of the decision over the next best label; 0 where it abstains."""
        rows = self._rows(X)
        return self.model_.contributions(rows)

    @property
    def weights_(self) -> Any:
        """The members' weights: a DataFrame with a row per member, or a structured array if pandas is not installed.

        ``kind`` is what the member is, ``mean`` its weight. Posteriors have the standard deviation ``sd`` and the 95%
        interval from ``lower`` to ``upper``, too, and ``probability_best``: that the member has the largest weight or,
        with the Gamma weights, the least loss. Weights of two parameters have two of each: ``mean_1``, ``mean_2``.
        """
        check_is_fitted(self)
        weighter, state = self.model_.weighter, self.model_.state
        found = {"mean": weighter.mean(state)}
        if isinstance(weighter, Posterior):
            lower, upper = weighter.interval(state)
            found |= {"sd": np.sqrt(weighter.variance(state)), "lower": lower, "upper": upper}
        columns: dict[str, NDArray[Any]] = {"kind": np.array(self.model_.bank.member_names())}
        for name, values in found.items():
            if values.ndim == 1:
                columns[name] = values
            else:
                columns |= {f"{name}_{k + 1}": values[:, k] for k in range(values.shape[1])}
        if isinstance(weighter, Posterior):
            columns["probability_best"] = weighter.probability_best(state)
        if find_spec("pandas"):
            pandas = import_module("pandas")
            return pandas.DataFrame(columns, index=pandas.RangeIndex(len(columns["kind"]), name="member"))
        table = np.empty(len(columns["kind"]), dtype=[(name, values.dtype) for name, values in columns.items()])
        for name, values in columns.items():
            table[name] = values
        return table

    @property
    def effective_samples_(self) -> Array:
        """How many rows the posterior of every member rests on: the sum of their weights, faded by forgetting."""
        check_is_fitted(self)
        if not isinstance(self.model_.weighter, Posterior):
            raise AttributeError(f"{self.who}: only posteriors have effective_samples_, got {self.model_.weighter!r}.")
        return self.model_.weighter.effective_samples(self.model_.state)

    def merge(self, other: "BayesianEnsembleClassifier") -> Self:
        """Add what another classifier with the same frozen members has learned; exact but for the calibration."""
        check_is_fitted(self)
        check_is_fitted(other)
        for name in ("classes_", "n_features_in_"):
            mine, theirs = getattr(self, name), getattr(other, name)
            if not np.array_equal(mine, theirs):
                raise ValueError(f"{self.who}.merge: both must have the same {name}, got {mine} and {theirs}.")
        self.model_.merge(other.model_)
        self.calibration_ = self.calibration_.merged(other.calibration_)
        return self

    def unlearn(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Take back rows that the weights of frozen members have learned; exact. The calibration stays."""
        check_is_fitted(self)
        rows, labels = self._checked(X, y, reset=False)
        self.model_.unlearn(rows, _checks.encoded(self.who, labels, self.classes_), sample_weight)
        return self

    def __sklearn_clone__(self) -> Self:
        # scikit-learn's clone would discard what fitted members have learned.
        twin = super().__sklearn_clone__()
        if isinstance(self.members, list | tuple):
            twin.members = [member if _is_fitted(member) else clone(member, safe=False) for member in self.members]
        return twin

    @property
    def _forgetting(self) -> float:
        return self.forgetting

    @classmethod
    def around(cls, model: Ensemble) -> Self:
        """Return a classifier around an ensemble that was started; its labels are the class indices."""
        shell = cls(model.bank, loss=model.loss, weighter=model.weighter)
        shell._take(model)
        return shell

    def _model(self, classes: NDArray[Any]) -> Ensemble:
        return Ensemble(self._bank(classes), self._named_weighter(), self.loss)

    def _named_weighter(self) -> Weighter[Any]:
        _checks.fraction(self.who, "forgetting", self.forgetting)
        named = isinstance(self.weighter, str)
        weighter: Any = self.weighter
        if isinstance(self.weighter, str):
            weighter = make(self.who, "weighter", self.weighter, weighting.named())
        if not isinstance(weighter, Weighter):
            raise TypeError(f"{self.who}: weighter must be a name or a weighter, got {weighter!r}.")
        if self.forgetting == 1:
            return weighter
        if not named or "forgetting" not in weighter.parameters():
            raise ValueError(
                f"{self.who}: forgetting must be 1 unless the weighter is the name of a posterior, "
                f"got {self.forgetting} with {self.weighter!r}. Give it to the weighter itself, if it takes one."
            )
        changed: Any = weighter
        forgetful: Weighter[Any] = replace(changed, forgetting=self.forgetting)
        return forgetful

    def _bank(self, classes: NDArray[Any]) -> Bank[Any]:
        given: Any = self.members
        if isinstance(given, str):
            return self._named_bank(given)
        if self.max_features != "auto":
            raise ValueError(
                f"{self.who}: max_features must be 'auto' unless the members are named, got {self.max_features!r}. "
                "Give it to the bank itself, or pairs (classifier, columns)."
            )
        if isinstance(given, Bank):
            return deepcopy(given)
        if not isinstance(given, list | tuple):
            raise TypeError(f"{self.who}: members must be a name, a bank or a list of classifiers, got {given!r}.")
        if all(_is_fitted(member) for member in given):
            return Frozen(EstimatorBank(given, classes=classes))
        return Union(
            [
                Frozen(EstimatorBank([member], classes=classes))
                if _is_fitted(member)
                else EstimatorBank([member], online=True)
                for member in given
            ]
        )

    def _named_bank(self, name: str) -> Bank[Any]:
        bank: Bank[Any] = make(self.who, "members", name, members.named(), self.n_members)
        if self.max_features == "auto":
            return bank
        choosing: list[Any] = [part for part in bank.parts or (bank,) if "max_features" in part.parameters()]
        if not choosing:
            raise ValueError(
                f"{self.who}: max_features must be 'auto' for {name}, whose members choose their features themselves, "
                f"got {self.max_features!r}."
            )
        for part in choosing:
            part.max_features = self.max_features
        return bank


def _is_fitted(member: Any) -> bool:
    return hasattr(member[0] if isinstance(member, tuple) else member, "classes_")
