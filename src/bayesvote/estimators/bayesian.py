"""The ensemble as a scikit-learn classifier, with results of the weights' posterior."""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from bayesvote.core import checks as _checks
from bayesvote.core.checks import Array, InputError, InputTypeError
from bayesvote.core.horizon import AUTO
from bayesvote.core.state import MOST_ROWS, read_locked
from bayesvote.ensemble import Ensemble
from bayesvote.estimators._calibration import trust_in
from bayesvote.estimators._class_weight import BALANCED, weighted
from bayesvote.estimators._explain import as_table, column_map, explanation, importances, kept_rows
from bayesvote.estimators._members import BankOptions, bank_of, is_fitted, weighter_of
from bayesvote.estimators._validation import Features, encoded_rows, labelled_rows
from bayesvote.estimators.base import OnlineClassifier
from bayesvote.estimators.fitted import Fitted, check_mergeable
from bayesvote.losses import Loss
from bayesvote.members import Bank
from bayesvote.model import decided
from bayesvote.weighting import GaussianPosterior, Posterior, Weighter


class BayesianEnsembleClassifier(OnlineClassifier[Ensemble]):
    """Online ensemble with Bayesian weights.

    The paper's algorithm is ``members="perceptron"`` or ``"naive_bayes"`` with ``weighter="gamma_rate"`` and
    ``scale=False``. The defaults perform best on most data: trees, linear and naive Bayes members, of all rows and of
    recent ones, with weights that model the members' correlations and drift. The default of version 0.1 is
    ``members="mixed", weighter="joint_gaussian", scale=False``.

    Linear members see standardised numbers, with scales learned from the stream: see ``scale``.

    Parameters
    ----------
    members : str, Bank or list of classifiers
        "adaptive", "fast", "mixed", "perceptron", "averaged_perceptron", "linear", "logistic", "naive_bayes", "fern"
        or "tree", optionally with parameters, such as "fern(depth=6)"; or a bank, which is copied; or a list of
        classifiers of scikit-learn or river. Fitted classifiers are used without changes. The others learn online, by
        ``partial_fit`` or ``learn_one``. ``clone`` keeps fitted ones. In the grid of a search, wrap them in
        scikit-learn's ``FrozenEstimator``.
    n_members : int
        Number of members, if ``members`` is a name. In "adaptive" and "fast" some members share one weight.
    max_features : "auto", float, int or None
        Number of features of each Perceptron or naive Bayes member: the default of the kind, a fraction, a count, or
        None for all.
    scale : bool
        True to standardise the numbers for linear members, by :class:`bayesvote.Scaled`. It applies to named members
        and mixtures only.
    loss : str or callable
        Loss of a member, by name or as a function of its margin. "auto" is "logistic" for "gamma_shape" and
        "gamma_shape_rate", "wide_ramp" for "drifting" and "joint_logistic", and "ramp" for others.
    weighter : str or Weighter
        "drifting", "joint_gaussian", "joint_logistic", "gamma_rate", "gamma_shape", "gamma_shape_rate", "voting",
        "sgd", "averaged_sgd" or "sag", optionally with parameters, such as "sag(horizon=5000)"; or a weighter.
    forgetting : float
        Factor by which the past fades with each row, for named weighters that have this parameter; 1 forgets nothing.
        The default weighter follows changes without it.
    columns : dict, optional
        Kinds of the columns of a table, if their types and first values are ambiguous. A kind is "number",
        "category", "boolean" or "date". "day_first" and "month_first" are for dates such as 01/02/2020, and "drop"
        ignores a column. A column that is stated as "category" gets class counts for every value. See docs/tables.md.
    class_weight : None, dict or "balanced"
        Factors of the rows' weights by label; labels that a dict omits have the factor 1. With "balanced", a row of a
        class with n_k of the N rows so far has the factor (N + K) / (K (n_k + 1)), so that all K classes have equal
        weight. Only rows before it count, so chunks change nothing. Probabilities are then those of the weighted
        stream.
    calibrated : bool
        True to calibrate probabilities online. ``predict`` does not change.
    shuffle : bool
        True to shuffle the rows in ``fit``. False keeps their order, and learns the weights as ``partial_fit`` does.
    horizon : "auto" or int
        Number of rows between the last label that ``partial_fit`` learned and the next predicted rows. Members that
        depend on the last rows are better one row after a label than later, so weights are learned for this distance.
        "auto" is 150, or 0 if the weighter is not "drifting" or "joint_logistic" or the members are frozen. Use 0 if
        you call ``partial_fit`` after every prediction. Methods that know the distance ignore this parameter: see
        docs/horizon.md.
    random_state : int, Generator, RandomState or None
        Randomness of the members' first state and of shuffling. An integer is used as in ``Ensemble.start``.

    Attributes
    ----------
    classes_ : array of shape (K,)
        The labels.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : array of shape (n_features_in_,)
        Names of the columns of X, if it had names.
    model_ : Ensemble
        The model.
    calibration_ : tuple
        The state of the calibration.
    columns_ : Columns
        The encoding of the columns of a table, if X had more than numbers.
    fitted_ : Fitted
        The record from which the attributes above are read.

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
        """Return the labels of rows.

        With ``abstain_below``, a probability, the result is a masked array: rows whose ``decision_certainty`` is lower
        are masked. Comparisons and means skip them: ``(model.predict(X, 0.9) == y).mean()``.
        """
        if abstain_below is None:
            return super().predict(X)
        if not 0 <= abstain_below <= 1:
            must = "must be a probability or None"
            raise InputError(f"{self.who}.predict", "abstain_below", must, repr(abstain_below))
        fitted = self._require_fitted()
        with fitted.model.lock.read:
            rows = encoded_rows(self.who, fitted, X)
            labels, certain = fitted.classes[decided(fitted.model.losses(rows))], fitted.model.certainty(rows)
        return np.ma.MaskedArray(labels, mask=certain < abstain_below)

    def decision_certainty(self, X: Any, size: int = 1000) -> Array:
        """Return the probability (n,) that the best weights make the same decision, under the weights' posterior.

        With two classes most weighters compute it almost exactly; others take ``size`` draws. It says how well the
        weights are known, not how likely the label is. ``predict_proba`` says that.
        """
        fitted = self._require_fitted()
        with fitted.model.lock.read:
            return fitted.model.certainty(encoded_rows(self.who, fitted, X), size)

    def contributions(self, X: Any) -> Array:
        """Return how much each member adds (n, m) to the decision's lead over the next label; 0 if it abstains."""
        fitted = self._require_fitted()
        with fitted.model.lock.read:
            return fitted.model.contributions(encoded_rows(self.who, fitted, X))

    def explain(self, X: Any, top: int | None = None) -> Any:
        """Return a table of how much each column moved each decision.

        Parameters
        ----------
        X
            The rows.
        top
            Number of columns per row to show, those that moved it most; all by default. The others are summed.

        Returns
        -------
        DataFrame, or a structured array if pandas is not installed
            One line per ``row`` and ``column``, those that moved the row most first. ``label`` is the decision,
            ``over`` the next best label and ``lead`` the difference of their votes. The column's ``value`` has
            ``moved`` the lead by this amount: towards the decision if above 0, towards the other label if below.
            ``looked`` is the share of the vote from members that use the column. Two more lines per row are the vote
            before any column, "(start)", and the vote of members without explanations, "(not told)". The values of
            ``moved`` of a row sum to its lead.

        Notes
        -----
        For a Perceptron or passive-aggressive member, a column moves the score by weight times value; for naive Bayes,
        by the log-likelihood ratio. Both are exact. For a tree, it moves the score by the change of the node values
        where it splits; for a fern, by the change of the counts. Other classifiers have no explanations. A member's
        part of the lead is divided in proportion.

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
        fitted = self._require_fitted()
        with fitted.model.lock.read:
            return explanation(self.who, fitted, X, top)

    def importances(self, X: Any = None) -> Any:
        """Return how much each column moved the decisions for these rows: mean absolute values, as shares of the sum.

        Parameters
        ----------
        X
            The rows; by default those of ``feature_importances_``.

        Returns
        -------
        DataFrame, or a structured array if pandas is not installed
            Each ``column`` and its ``importance``, the largest first.
        """
        fitted = self._require_fitted()
        with fitted.model.lock.read:
            columns = column_map(fitted)
            rows = kept_rows(self.who, fitted) if X is None else encoded_rows(self.who, fitted, X)
            if X is not None and not rows.n:
                raise InputError(f"{self.who}.importances", "X", "must have at least one row", "none")
            shares = importances(fitted.model, rows, columns)
        order = np.argsort(-shares, kind="stable")
        return as_table({"column": columns.names[order].astype(str), "importance": shares[order]})

    @property
    def feature_importances_(self) -> Array:
        """Mean absolute effect of each column on decisions, (columns,), as shares of the sum.

        It is computed for the last 512 of the rows that members keep: trees keep the last rows of the stream, ferns the
        first. Without such members the attribute does not exist; pass rows to ``importances`` instead.
        """
        fitted = self._require_fitted()
        with fitted.model.lock.read:
            return importances(fitted.model, kept_rows(self.who, fitted), column_map(fitted))

    @property
    @read_locked
    def weights_(self) -> Any:
        """Weights of the members: a DataFrame with a row per member, or a structured array without pandas.

        ``kind`` is the kind of the member and ``mean`` its weight. Posteriors add the standard deviation ``sd``, the
        95% interval from ``lower`` to ``upper``, and ``probability_best``: the probability that the member has the
        largest weight or, with Gamma weights, the least loss. Weights of two parameters have two columns of each, such
        as ``mean_1`` and ``mean_2``.
        """
        model = self._require_fitted().model
        weighter, state = model.weighter, model.state
        found = {"mean": weighter.mean(state)}
        if isinstance(weighter, Posterior):
            lower, upper = weighter.interval(state)
            found |= {"sd": np.sqrt(weighter.variance(state)), "lower": lower, "upper": upper}
        columns: dict[str, NDArray[Any]] = {"kind": np.array(model.bank.member_names())}
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
        """Effective number of rows of each member's posterior: the sum of their weights, after forgetting."""
        model = self._require_fitted().model
        if not isinstance(model.weighter, Posterior):
            raise AttributeError(f"{self.who}: only posteriors have effective_samples_, got {model.weighter!r}.")
        return model.weighter.effective_samples(model.state)

    @property
    @read_locked
    def drift_(self) -> float:
        """Probability of drifting weights, from 0 to 1; see docs/drift.md."""
        model = self._require_fitted().model
        weighter = model.weighter
        if not isinstance(weighter, GaussianPosterior):
            raise AttributeError(f"{self.who}: only joint posteriors have drift_, got {weighter!r}.")
        return weighter.drift(model.state)

    def merge(self, other: "BayesianEnsembleClassifier") -> Self:
        """Merge the weights of another classifier with the same frozen members; exact except for the calibration.

        Both must encode the columns of a table in the same way. Frozen members use the encoding of their training.
        """
        who = f"{self.who}.merge"
        mine = self._require_fitted()
        if not isinstance(other, BayesianEnsembleClassifier):
            raise InputTypeError(who, "other", f"must be a {self.who}", repr(other))
        theirs = other._require_fitted()
        check_mergeable(who, mine, theirs)
        with theirs.model.lock.read:
            calibration, counts = deepcopy((theirs.calibration, theirs.class_counts))
        with mine.model.lock.write:
            mine.model.merge(theirs.model)
            merged = mine.calibration.merged(calibration, trust_in(mine.model.loss_scale))
            for old, new in zip(mine.calibration, merged, strict=True):
                old[:] = new
            mine.class_counts[:] += counts
        return self

    def unlearn(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Remove rows from the weights of frozen members, exactly. The calibration stays."""
        fitted = self._require_fitted()
        if self.class_weight == BALANCED:
            raise InputTypeError(
                f"{self.who}.unlearn",
                "class_weight",
                "must not be 'balanced', as the weight of a row depended on the rows before it",
                do="Pass the class weights as a dict.",
            )
        labels = labelled_rows(self.who, fitted, X, y)[1]
        rows = encoded_rows(self.who, fitted, X)
        codes, w = _checks.encoded(self.who, labels, fitted.classes), _checks.weights(self.who, sample_weight, rows.n)
        w = weighted(self.who, self.class_weight, fitted.classes, fitted.class_counts, codes, w)
        fitted.model.unlearn(rows, codes, w)
        return self

    def __sklearn_clone__(self) -> Self:
        # scikit-learn's clone would remove the fits of members.
        twin = super().__sklearn_clone__()
        if isinstance(self.members, list | tuple):
            twin.members = [member if is_fitted(member) else clone(member, safe=False) for member in self.members]
        return twin

    @property
    def _forgetting(self) -> float:
        return self.forgetting

    def _horizon(self, model: Ensemble) -> int:
        if self.horizon != "auto":
            return self._given_horizon()
        return AUTO if model.weighter.compares_horizons and model.learns else 0

    def _given_horizon(self) -> int:
        horizon: Any = self.horizon
        whole = isinstance(horizon, int | np.integer) and not isinstance(horizon, bool)
        if not whole or not 0 <= horizon <= MOST_ROWS:
            must = f"must be 'auto' or an integer from 0 to {MOST_ROWS}"
            raise InputError(self.who, "horizon", must, repr(self.horizon))
        return int(horizon)

    @classmethod
    def _parameters_of(cls, model: Ensemble) -> dict[str, Any]:
        return {"members": model.bank, "loss": model.loss, "weighter": model.weighter}

    def _model(self, classes: NDArray[Any], n_features: int) -> Ensemble:
        if self.horizon != "auto":
            self._given_horizon()
        weighter = weighter_of(self.who, self.weighter, self.forgetting)
        bank = bank_of(
            BankOptions(self.who, self.members, self.n_members, self.max_features, self.scale), classes, n_features
        )
        return Ensemble(bank, weighter, weighter.usual_loss if self.loss == "auto" else self.loss)

    def _begin(
        self, features: Features, classes: NDArray[Any], rng: np.random.Generator | None = None
    ) -> Fitted[Ensemble]:
        fitted = super()._begin(features, classes, rng)
        names = np.empty(0, dtype=object) if fitted.names is None else fitted.names
        if fitted.columns is not None:
            names = np.array(fitted.columns.names, dtype=object)[fitted.columns.source_columns()]
        if len(names) == fitted.width:  # an array has no names
            fitted.model.bank.check_names(names.tolist())
        return fitted
