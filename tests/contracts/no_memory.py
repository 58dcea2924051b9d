"""Learn while requests for memory fail, one after the other; ``python no_memory.py KIND`` runs in its own process."""

import copy
import sys
from typing import Any

import numpy as np

from bayesvote import BayesianEnsembleClassifier, OSBoostClassifier
from bayesvote.io.model_file import dumps

N, BEFORE = 400, 100
rng = np.random.default_rng(0)
X = rng.normal(size=(N, 4))
y = (X[:, 0] > 0).astype(np.intp)
TEXTS = [f"t{k // 15}" for k in range(N)]


def fresh(kind: str) -> Any:
    if kind == "default":
        return BayesianEnsembleClassifier(random_state=0)
    if kind == "booster":
        return OSBoostClassifier("perceptron", 8, random_state=0)
    return BayesianEnsembleClassifier("perceptron", 5, weighter="gamma_rate", calibrated=True, random_state=0)


def rows(kind: str, first: int, last: int) -> Any:
    return {"x": X[first:last, 0], "t": TEXTS[first:last]} if kind == "table" else X[first:last]


def learned(kind: str, n: int) -> bytes:
    """Return the file of a model that has learned ``n`` rows in two calls."""
    model = fresh(kind)
    for first, last in ((0, BEFORE), (BEFORE, n)):
        if first < last:
            model.partial_fit(rows(kind, first, last), y[first:last], classes=[0, 1])
    return dumps(model)


def main(kind: str) -> None:
    """Repeat a call with the first, then later requests for memory failing, until the call makes fewer requests."""
    import _testcapi

    given, labels = rows(kind, BEFORE, N), y[BEFORE:]
    before = fresh(kind).partial_fit(rows(kind, 0, BEFORE), y[:BEFORE], classes=[0, 1])
    wanted: dict[int, bytes] = {}
    failed, request, went_well = 0, 0, 0
    while went_well < 40:
        model, n = copy.deepcopy(before), N
        try:
            _testcapi.set_nomemory(request, request + 1)
            try:
                model.partial_fit(given, labels)
            finally:
                _testcapi.remove_mem_hooks()
            went_well += 1  # somebody has got along without, or there were not so many requests
        except (MemoryError, SystemError, RuntimeError) as error:  # what the interpreter and NumPy make of it
            n = BEFORE + getattr(error, "rows_learned", 0)
            failed, went_well = failed + 1, 0
        if n not in wanted:
            wanted[n] = learned(kind, n)
        assert dumps(model) == wanted[n], f"request {request}: not as after {n} rows"
        request += 1 + request // 64
    print(failed, "calls failed; the models are as after", sorted(wanted), "rows")


if __name__ == "__main__":
    main(sys.argv[1])
