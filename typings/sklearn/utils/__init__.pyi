# The little of scikit-learn's utilities that this project uses; scikit-learn ships no types.
from typing import Any

import numpy as np

class InputTags:
    allow_nan: bool
    sparse: bool

class Tags:
    input_tags: InputTags

def check_random_state(seed: Any) -> np.random.RandomState: ...
