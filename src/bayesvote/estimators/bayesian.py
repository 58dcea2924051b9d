"""The ensemble as a scikit-learn classifier, with what its posterior knows beyond the labels."""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from bayesvote import members, weighting
from bayesvote.core import checks as _checks
from bayesvote.core.checks import Array
from bayesvote.core.horizon import AUTO
from bayesvote.core.names import make
from bayesvote.core.rows import Rows
from bayesvote.core.state import MOST_ROWS, read_locked
from bayesvote.ensemble import Ensemble
from bayesvote.estimators._calibration import trust_in
from bayesvote.estimators._class_weight import BALANCED, weighted
from bayesvote.estimators._explain import (
    RECENT,
    ColumnMap,
    Columns,
    as_table,
    given_values,
    importances,
    joined,
    pieces,
    ranked,
)
from bayesvote.estimators.base import OnlineClassifier
from bayesvote.losses import Loss
from bayesvote.members import Bank, EstimatorBank, Frozen, Union
from bayesvote.members.sparse_bayes import is_wide
from bayesvote.model import decided
from bayesvote.tables import difference
from bayesvote.weighting import GaussianPosterior, Posterior, Weighter


class BayesianEnsembleClassifier(OnlineClassifier[Ensemble]):
    """Online ensemble with Bayesian weights.

    The paper's algorithm is ``members="perceptron"`` or ``"naive_bayes"`` with ``weighter="gamma_rate"`` and
    ``scale=False``. The defaults are what does best on most data: trees, linear and naive Bayes members, of the first
    rows and of recent ones, and weights that know which of them are correlated and that drift. The default of version
    0.1 is ``members="mixed", weighter="joint_gaussian", scale=False``.

    Linear members see standardised numbers, whose scales are learned as the stream goes on: see ``scale``.

    Parameters
    ----------
    members : str, Bank or list of classifiers
        "adaptive", "fast", "mixed", "perceptron", "averaged_perceptron", "linear", "logistic", "naive_bayes", "fern"
        or "tree", with parameters if need be, such as "fern(depth=6)"; or a bank, of which a copy learns; or
        classifiers of scikit-learn or river. Of these, fitted ones are used as they are, and the others learn online,
        by ``partial_fit`` or ``learn_one``. ``clone`` keeps fitted ones; in the grid of a search, wrap them in
        scikit-learn's ``FrozenEstimator``.
    n_members : int
        How many members, if they are named. In "adaptive" and "fast" some vote together, with one weight.
    max_features : "auto", float, int or None
        How many features each Perceptron or naive Bayes sees: what suits their kind, a fraction, a count, or None for
        all.
    scale : bool
        Whether linear members, if they are named or in a named mixture, see standardised numbers, by
        :class:`bayesvote.Scaled`. A bank that is given is taken as it is.
    loss : str or callable
        Loss of a member, by name or as a function of its margin; "auto" is what suits the weighter: "logistic" for
        "gamma_shape" and "gamma_shape_rate", "wide_ramp" for "drifting" and "joint_logistic", else "ramp".
    weighter : str or Weighter
        "drifting", "joint_gaussian", "joint_logistic", "gamma_rate", "gamma_shape", "gamma_shape_rate", "voting",
        "sgd", "averaged_sgd" or "sag", with parameters if need be, such as "sag(horizon=5000)"; or a weighter.
    forgetting : float
        Factor by which the past fades with each row, if the weighter is named and takes one; 1 keeps all of it. The
        default weighter follows changes without.
    columns : dict, optional
        What columns of a table are where their types and first values do not tell: "number", "category", "boolean",
        "date", "day_first" or "month_first" for dates such as 01/02/2020, or "drop" to leave one out. A stated category
        has counts of the classes for every value. See docs/tables.md.
    class_weight : None, dict or "balanced"
        Factors of the rows' weights by their label; labels that a dict leaves out have 1. "balanced" weighs a row of a
        class that has n_k of N rows so far with (N + K) / (K (n_k + 1)), so that all of the K classes count alike;
        by the rows before it, so that chunks change nothing. Probabilities are those of the weighted stream, then.
    calibrated : bool
        Whether probabilities are calibrated as the stream goes on. ``predict`` stays the same.
    shuffle : bool
        Whether ``fit`` shuffles the rows. False keeps their order: the weights are then learned as by ``partial_fit``.
    horizon : "auto" or int
        Number of rows between the last label that ``partial_fit`` learned and the rows that are predicted next.
        Members that look at the last rows do well one row after a label and worse later; weights are learned for this
        distance. "auto" is 150, or 0 if the weighter is not "drifting" or "joint_logistic" or the members are frozen.
        0 suits users who call ``partial_fit`` after every single prediction. Methods that know the distance do not use
        this parameter: see docs/horizon.md.
    random_state : int, Generator, RandomState or None
        The randomness of the members' start and of shuffling. An integer means what it means to ``Ensemble.start``.

    Attributes
    ----------
    classes_ : array of shape (K,)
        The labels.
    n_features_in_ : int
        How many features there are.
    feature_names_in_ : array of shape (n_features_in_,)
        Their names, if ``fit`` saw data with column names.
    model_ : Ensemble
        The model itself.
    calibration_ : tuple
        What the calibration has learned.
    columns_ : Columns
        How the columns of a table are read, if ``fit`` saw one that is not of numbers alone.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
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
        members: str | Bank[Any] | Sequence[Any] = "adaptive",
        n_members: int = 100,
        *,
        max_features: str | float | int | None = "auto",
        scale: bool = True,
        loss: str | Loss = "auto",
        weighter: str | Weighter[Any] = "drifting",
        forgetting: float = 1.0,
        columns: Mapping[Any, str] | None = None,
        class_weight: Any = None,
        calibrated: bool | str = True,
        shuffle: bool = True,
        horizon: str | int = "auto",
        random_state: Any = None,
    ) -> None:
        self.members = members
        self.n_members = n_members
        self.max_features = max_features
        self.scale = scale
        self.loss = loss
        self.weighter = weighter
        self.forgetting = forgetting
        self.columns = columns
        self.class_weight = class_weight
        self.calibrated = calibrated
        self.shuffle = shuffle
        self.horizon = horizon
        self.random_state = random_state

    def predict(self, X: Any, abstain_below: float | None = None) -> NDArray[Any]:
        """Labels of rows.

        With ``abstain_below``, a probability, the answer is a masked array: rows whose ``decision_certainty`` is lower
        are masked. Comparisons and means skip them: ``(model.predict(X, 0.9) == y).mean()``.
        """
        if abstain_below is None:
            return super().predict(X)
        if not 0 <= abstain_below <= 1:
            raise ValueError(f"{self.who}.predict: abstain_below must be a probability or None, got {abstain_below!r}.")
        now = self._fitted()
        with now.read_lock():
            rows = now._rows(X)
            labels, certain = now.classes_[decided(now.model_.losses(rows))], now.model_.certainty(rows)
        return np.ma.MaskedArray(labels, mask=certain < abstain_below)

    def decision_certainty(self, X: Any, size: int = 1000) -> Array:
        """Probability (n,) that the decision is that of the best weights, by what their posterior knows of these.

        With two classes most weighters know it as good as exactly; others take ``size`` draws. It tells whether the
        weights are known well enough, not whether the label is right: that is ``predict_proba``.
        """
        now = self._fitted()
        with now.read_lock():
            return now.model_.certainty(now._rows(X), size)

    def contributions(self, X: Any) -> Array:
        """What each member adds (n, m) to the lead of the decision over the next best label; 0 where it abstains."""
        now = self._fitted()
        with now.read_lock():
            return now.model_.contributions(now._rows(X))

    def explain(self, X: Any, top: int | None = None) -> Any:
        """Tell, as a table, which columns moved each decision, and how much.

        Parameters
        ----------
        X
            The rows.
        top
            How many columns of each row to show, those that moved it most; all by default. The others are added up.

        Returns
        -------
        DataFrame, or a structured array if pandas is not installed
            For each ``row`` its columns, those that moved it most first. ``label`` is the decision, ``over`` the next
            best label and ``lead`` that of the one over the other. ``column`` has the ``value`` and has ``moved`` the
            lead by so much: towards the decision if above 0, towards the other if below. ``looked`` is the share of the
            vote that came from members that looked at the column. Two more lines have what the members said before
            they looked at any column, "(start)", and what came from members that cannot tell, "(not told)"; what has
            moved a row adds up to its lead.

        Notes
        -----
        A Perceptron's or passive-aggressive member's column moves its score by weight times value, naive Bayes' by the
        log-likelihood ratio: exactly. A tree's column moves it by the change of the node's value where it was asked, a
        fern's by the change of what the counts say. Other classifiers do not tell. What a member adds to the lead is
        shared out in proportion.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> X, y = load_iris(return_X_y=True)
        >>> model = BayesianEnsembleClassifier(random_state=0).fit(X, y)
        >>> table = model.explain(X[:1])
        >>> bool(abs(table["moved"].sum() - table["lead"][0]) < 1e-6)
        True
        """
        if top is not None:
            _checks.integer(f"{self.who}.explain", "top", top)
        now = self._fitted()
        with now.read_lock():
            return now._explain(X, top)

    def _explain(self, X: Any, top: int | None) -> Any:
        rows, columns = self._rows(X), self._columns()
        if not rows.n:
            raise _checks.InputError(f"{self.who}.explain", "X", "must have at least one row", "none")
        parts: list[Columns] = []
        for first, found in pieces(self.model_, rows, columns):
            part = ranked(found, first, columns, self._shown(X, rows, first, len(found.lead)), top)
            each = np.repeat(np.arange(len(found.lead)), len(part["row"]) // max(len(found.lead), 1))
            head = {
                "row": part.pop("row"),
                "label": self.classes_[found.decision][each],
                "over": self.classes_[found.runner_up][each],
                "lead": found.lead[each],
            }
            parts.append(head | part)
        return as_table(joined(parts))

    def importances(self, X: Any = None) -> Any:
        """How much each column moved the decisions about these rows: the mean size, as shares of the sum.

        Parameters
        ----------
        X
            The rows; by default those of ``feature_importances_``.

        Returns
        -------
        DataFrame, or a structured array if pandas is not installed
            Each ``column`` and its ``importance``, the largest first.
        """
        now = self._fitted()
        with now.read_lock():
            columns = now._columns()
            rows = now._kept() if X is None else now._rows(X)
            if X is not None and not rows.n:
                raise _checks.InputError(f"{self.who}.importances", "X", "must have at least one row", "none")
            shares = importances(now.model_, rows, columns)
        order = np.argsort(-shares, kind="stable")
        return as_table({"column": columns.names[order].astype(str), "importance": shares[order]})

    @property
    def feature_importances_(self) -> Array:
        """How much each column moved the decisions about rows of the stream, (columns,), as shares of the sum.

        The rows are the last 512 of those that members keep for their own ends: trees keep the last of the stream,
        ferns the first. Where no member keeps rows there is no such attribute; ``importances`` takes rows.
        """
        now = self._fitted()
        with now.read_lock():
            return importances(now.model_, now._kept(), now._columns())

    def _kept(self) -> Rows:
        kept = self.model_.bank.kept_rows()
        if kept is None:
            raise AttributeError(
                f"{self.who}: feature_importances_ needs members that keep rows, trees or ferns, got "
                f"{self.model_.bank.who}. Give rows: importances(X)."
            )
        return self.model_.checked(kept[-RECENT:])

    def _columns(self) -> ColumnMap:
        """The user's columns: the one place that knows which of them a feature of the model was made of."""
        names = np.asarray(getattr(self, "feature_names_in_", [f"x{j}" for j in range(self.n_features_in_)]))
        if not hasattr(self, "columns_"):
            return ColumnMap(names)
        of_feature = np.full(self._width, -1, dtype=np.intp)
        source = self.columns_.source_columns()
        of_feature[: len(source)] = source
        return ColumnMap(names, of_feature)

    def _shown(self, X: Any, rows: Rows, first: int, n: int) -> NDArray[Any]:
        """Values (n, columns) of some rows as the user gave them."""
        if not hasattr(self, "columns_"):
            return rows.todense(first, first + n)
        return given_values(self.columns_.checked(self._by_name(X)).part(first, first + n), self.columns_.names)

    @property
    @read_locked
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
        return as_table(columns, "member")

    @property
    @read_locked
    def effective_samples_(self) -> Array:
        """How many rows the posterior of every member rests on: the sum of their weights, faded by forgetting."""
        check_is_fitted(self)
        if not isinstance(self.model_.weighter, Posterior):
            raise AttributeError(f"{self.who}: only posteriors have effective_samples_, got {self.model_.weighter!r}.")
        return self.model_.weighter.effective_samples(self.model_.state)

    @property
    @read_locked
    def drift_(self) -> float:
        """How far weights that drift are believed now, from 0 to 1; see docs/drift.md."""
        check_is_fitted(self)
        weighter = self.model_.weighter
        if not isinstance(weighter, GaussianPosterior):
            raise AttributeError(f"{self.who}: only joint posteriors have drift_, got {weighter!r}.")
        return weighter.drift(self.model_.state)

    def merge(self, other: "BayesianEnsembleClassifier") -> Self:
        """Add what another classifier with the same frozen members has learned; exact but for the calibration.

        Of raw tables, both must read the columns in the same way: those of frozen members are read as they were when
        the members learned.
        """
        check_is_fitted(self)
        if not isinstance(other, BayesianEnsembleClassifier):
            raise _checks.InputTypeError(f"{self.who}.merge", "other", f"must be a {self.who}", repr(other))
        check_is_fitted(other)
        for name in ("classes_", "n_features_in_", "feature_names_in_"):
            mine, theirs = getattr(self, name, None), getattr(other, name, None)
            if mine is not None and theirs is not None and not np.array_equal(mine, theirs):
                raise ValueError(f"{self.who}.merge: both must have the same {name}, got {mine} and {theirs}.")
        self._check_columns(other)
        with other.read_lock():
            calibration, counts = deepcopy((other.calibration_, other.class_counts_))
        with self.model_.lock.write:
            self.model_.merge(other.model_)
            merged = self.calibration_.merged(calibration, trust_in(self.model_.loss_scale))
            for own, new in zip(self.calibration_, merged, strict=True):
                own[:] = new
            self.class_counts_[:] += counts
        return self

    def _check_columns(self, other: "BayesianEnsembleClassifier") -> None:
        """Refuse a classifier that reads tables in another way."""
        who = f"{self.who}.merge"
        if hasattr(self, "columns_") != hasattr(other, "columns_"):
            raise _checks.InputError(who, "both", "must have learned tables, or both rows of numbers", "one of each")
        if hasattr(self, "columns_"):
            with other.read_lock():
                theirs = deepcopy(other.columns_)
            with self.read_lock():
                wrong = difference(self.columns_, theirs)
            if wrong is not None:
                raise _checks.InputError(who, wrong.subject, wrong.must, wrong.got, "Merge copies of one model.")

    def unlearn(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Take back rows that the weights of frozen members have learned; exact. The calibration stays."""
        now = self._fitted()
        if self.class_weight == BALANCED:
            raise TypeError(
                f"{self.who}.unlearn: class_weight must not be 'balanced', as what a row weighed depended on the rows "
                "before it. Give the weights of the classes as a dict."
            )
        labels = now._checked(X, y, reset=False)[1]
        rows = now._rows(X)
        codes, w = _checks.encoded(self.who, labels, now.classes_), _checks.weights(self.who, sample_weight, rows.n)
        w, _ = weighted(self.who, self.class_weight, now.classes_, now.class_counts_, codes, w)
        now.model_.unlearn(rows, codes, w)
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

    @property
    def horizon_(self) -> int:
        """Rows between the last label and the predicted row for which ``partial_fit`` learns the weights."""
        if self.horizon != "auto":
            return self._given_horizon()
        return AUTO if self.model_.weighter.compares_horizons and self.model_.learns else 0

    @classmethod
    def around(cls, model: Ensemble) -> Self:
        """Return a classifier around an ensemble that was started; its labels are the class indices."""
        shell = cls(model.bank, loss=model.loss, weighter=model.weighter, calibrated=False)
        shell._take(model)
        return shell

    def _given_horizon(self) -> int:
        horizon: Any = self.horizon
        whole = isinstance(horizon, int | np.integer) and not isinstance(horizon, bool)
        if not whole or not 0 <= horizon <= MOST_ROWS:
            raise _checks.InputError(
                self.who, "horizon", f"must be 'auto' or an integer from 0 to {MOST_ROWS}", repr(self.horizon)
            )
        return int(horizon)

    def _model(self, classes: NDArray[Any]) -> Ensemble:
        if self.horizon != "auto":
            self._given_horizon()
        weighter = self._named_weighter()
        return Ensemble(self._bank(classes), weighter, weighter.usual_loss if self.loss == "auto" else self.loss)

    def _begin(self, classes: NDArray[Any], rng: np.random.Generator | None = None) -> None:
        super()._begin(classes, rng)
        names: NDArray[Any] = getattr(self, "feature_names_in_", np.empty(0, dtype=object))
        if hasattr(self, "columns_"):
            names = np.array(self.columns_.names, dtype=object)[self.columns_.source_columns()]
        if len(names) == self._width:  # or the rows are an array, which tells no names
            self.model_.bank.check_names(names.tolist())

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
                f"{self.who}: forgetting must be 1 unless the weighter is the name of a posterior that takes one, "
                f"got {self.forgetting} with {self.weighter!r}. Give it to the weighter itself, if it takes one, "
                "or use weighter='joint_gaussian'; the weights of 'drifting' follow changes by themselves."
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
        if not given:
            raise _checks.InputError(self.who, "members", "must hold at least one classifier", "none")
        for i, member in enumerate(given):
            one = member[0] if isinstance(member, tuple) else member
            if not any(hasattr(one, name) for name in ("classes_", "partial_fit", "learn_one")):
                must = "must be a classifier that is fitted, or that learns online by partial_fit or learn_one"
                raise _checks.InputTypeError(self.who, f"members[{i}]", must, repr(one), "Fit it first.")
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
        if self.max_features != "auto":
            self._choose_features(name, bank)
        if self.scale:
            bank = members.scaled(bank)
        return members.Compact(bank) if is_wide(self._width) else bank

    def _choose_features(self, name: str, bank: Bank[Any]) -> None:
        choosing: list[Any] = [part for part in _innermost(bank) if part.draws_features]
        if not choosing:
            raise ValueError(
                f"{self.who}: max_features must be 'auto' for {name}, whose members choose their features themselves, "
                f"got {self.max_features!r}."
            )
        for part in choosing:
            part.max_features = self.max_features


def _innermost(bank: Bank[Any]) -> list[Bank[Any]]:
    return [inner for part in bank.parts for inner in _innermost(part)] if bank.parts else [bank]


def _is_fitted(member: Any) -> bool:
    return hasattr(member[0] if isinstance(member, tuple) else member, "classes_")
