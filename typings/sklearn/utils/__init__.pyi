# The little of scikit-learn's utilities that this project uses; scikit-learn ships no types.
from typing import Any

import numpy as np
from numpy.typing import NDArray

class InputTags:
    allow_nan: bool
    sparse: bool

class Tags:
    input_tags: InputTags

def column_or_1d(y: Any, *, warn: bool = False) -> NDArray[Any]: ...
def check_random_state(seed: Any) -> np.random.RandomState: ...
def estimator_html_repr(estimator: Any) -> str: ...
