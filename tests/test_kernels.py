"""The compiled kernels: built beforehand, for every processor and for newer ones, with the same results."""

import os
import subprocess
import sys
from importlib.metadata import requires

import numpy as np
import pytest

from bayesvote.members._perceptron_kernels import compress

# Every kind of member, weights and booster, dense, sparse and with missing values; prints a digest of all results.
EVERYTHING = """
import hashlib
import numpy as np
from scipy.sparse import csr_array
from bayesvote import *
from bayesvote.core.loss_kernels import BUILD

rng = np.random.default_rng(0)
X = np.round(rng.standard_normal((1300, 21)), 2)
X[:, :7] = X[:, :7] > 0.5
X[rng.random(X.shape) < 0.4] = 0.0
y = (X @ rng.standard_normal(21) > 0).astype(int)
three = y + (X[:, 9] > 0.7)
holes = np.where(rng.random(X.shape) < 0.02, np.nan, X)
digest = hashlib.sha256()

drifting = JointGaussian(persistence=(1, 1, 0.999, 0.99), discount=0.99)
joint = (JointGaussian(), JointGaussian(forgetting=0.99), drifting, JointLogistic(), JointLogistic(persistence=0.9))
for weighter in (GammaRate(), *joint, SGD(), AveragedSGD()):
    linear = (PerceptronBank(37), PerceptronBank(5, averaged=True), LinearBank(37, 0.5))
    trees = TreeBank(5, [(128, 3, 32)], rows_kept=600)
    for bank in (*linear, NaiveBayesBank(37), NeighbourBank(), FernBank(37, depth=4), trees):
        for rows, labels in ((X, y), (csr_array(X), y), (holes, y), (X, three)):
            model = Ensemble(bank, weighter).start(21, labels.max() + 1, rng=0)
            digest.update(model.decide_then_learn(rows, labels).tobytes())
            digest.update(model.decide(rows).tobytes())
for weighter in (GammaShape(), GammaShapeRate()):
    model = Ensemble(NaiveBayesBank(9), weighter, "logistic").start(21, rng=0)
    digest.update(model.decide_then_learn(X[:100], y[:100]).tobytes())
for kind in (OzaBoost, OGBoost, OSBoost):
    for member in ("perceptron", "naive_bayes"):
        digest.update(kind(member, 37).start(21, rng=0).decide_then_learn(X, y).tobytes())
print(BUILD, digest.hexdigest())
"""


def results(build: str) -> list[str]:
    command, where = [sys.executable, "-c", EVERYTHING], os.environ | {"BAYESVOTE_BUILD": build}
    return subprocess.run(command, env=where, capture_output=True, text=True, check=True).stdout.split()


def test_every_build_gives_the_same_bits() -> None:
    own, baseline = results(""), results("baseline")
    assert baseline[0] == "baseline"
    if own[0] == "baseline":
        pytest.skip("this processor has one build only")
    assert own[1] == baseline[1]


def test_nothing_is_compiled_on_first_use() -> None:
    code = "import sys; import bayesvote; bayesvote.Ensemble(bayesvote.FernBank(2)).start(2); print(*sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert not {"numba", "llvmlite"} & set(out.split())
    assert not [name for name in requires("bayesvote") or [] if name.startswith(("numba", "llvmlite"))]


@pytest.mark.parametrize(
    "values",
    [np.empty(5, dtype=np.float32), np.empty(10)[::2], np.empty(5, dtype=">f8"), [0.0] * 5, None],
)
def test_a_wrong_array_is_refused(values: object) -> None:
    with pytest.raises(TypeError, match="kernel: an array must be contiguous, writeable, of kind 'f' and 8 bytes"):
        compress(np.ones((1, 4)), values, np.empty(5, np.int32), np.zeros(2, np.int64))  # type: ignore[arg-type]


def test_a_frozen_array_is_not_written_to() -> None:
    frozen = np.zeros(5)
    frozen.flags.writeable = False
    with pytest.raises(TypeError, match="must be contiguous, writeable"):
        compress(np.ones((1, 4)), frozen, np.empty(5, np.int32), np.zeros(2, np.int64))
