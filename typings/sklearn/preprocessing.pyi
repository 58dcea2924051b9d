from typing import Any, Self

from numpy.typing import NDArray
from sklearn.base import BaseEstimator

class StandardScaler(BaseEstimator):
    def fit(self, X: Any, y: None = None) -> Self: ...
    def transform(self, X: Any) -> NDArray[Any]: ...
