import numpy as np
from numpy.typing import NDArray

class Instance:
    @property
    def x(self) -> NDArray[np.float64]: ...

class LabeledInstance(Instance):
    @property
    def y_index(self) -> int: ...
