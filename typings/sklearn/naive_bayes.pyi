from typing import Any, Self

from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin

class GaussianNB(ClassifierMixin, BaseEstimator):
    def __init__(self, *args: Any, **params: Any) -> None: ...
    def fit(self, X: Any, y: ArrayLike) -> Self: ...
