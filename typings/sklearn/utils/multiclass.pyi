# The checks of scikit-learn that this project uses; scikit-learn ships no types.
from numpy.typing import ArrayLike

def check_classification_targets(y: ArrayLike) -> None: ...
