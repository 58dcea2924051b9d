"""The paper's embedded data sets, through its algorithm and through ours: how many rows are predicted wrongly.

Every row is predicted before it is learned. All ensembles have a hundred members and one setting for all sets.
"""

from collections.abc import Callable

import numpy as np

from bayesvote import Ensemble, GammaRate, JointGaussian, PerceptronBank, Voting, mixed, prequential
from bayesvote.datasets import load_dataset, scale

SETS = ("heart", "breast-cancer", "diabetes", "german", "splice", "mushrooms", "ionosphere", "sonar", "svmguide3")
MODELS: dict[str, Callable[[], Ensemble]] = {
    "Perceptron": lambda: Ensemble(PerceptronBank(1, max_features=None), Voting()),
    "uniform vote": lambda: Ensemble(PerceptronBank(100), Voting()),
    "the paper's": lambda: Ensemble(PerceptronBank(100), GammaRate()),
    "mixed, joint": lambda: Ensemble(mixed(100), JointGaussian()),
}

print(f"{'set':14} {'rows':>6}" + "".join(f"{name:>15}" for name in MODELS))
for name in SETS:
    data = load_dataset(name)
    dense = data.X if isinstance(data.X, np.ndarray) else data.X.toarray()
    order = np.random.default_rng(0).permutation(len(data.y))
    X, y = np.asarray(scale(dense))[order], data.y[order]
    errors = [prequential(make().start(X.shape[1], rng=0), X, y).error for make in MODELS.values()]
    print(f"{name:14} {len(y):6}" + "".join(f"{error:15.3f}" for error in errors), flush=True)
