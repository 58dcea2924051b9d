"""The default classifier over the whole of covtype and cod-rna: error, time a row and memory along the way.

Run ``python benchmarks/whole.py``; the sets must be at hand (BAYESVOTE_DATA). Rows are shuffled by seed 0, features in
[-1, 1]; every row is predicted before it is learned.
"""

import time

import numpy as np

from bayesvote import BayesianEnsembleClassifier
from bayesvote.experiments.streams import stream
from bayesvote.persistence import dumps

CHUNK = 50_000


def main() -> None:
    for name in ("cod-rna", "covtype"):
        X, y, partial = stream(name, 0)
        model, wrong, clock, processor = BayesianEnsembleClassifier(random_state=0), 0, 0.0, 0.0
        for first in range(0, len(y), CHUNK):
            part = slice(first, first + CHUNK)
            start = time.perf_counter(), time.process_time()
            p = model.predict_proba_then_learn(X[part], y[part], classes=[0, 1])
            clock += time.perf_counter() - start[0]
            processor += time.process_time() - start[1]
            wrong += int(np.count_nonzero(p.argmax(axis=1) != y[part]))
            n = min(first + CHUNK, len(y))
            print(
                f"{name}{' (part)' if partial else ''}: {n:,} rows, error {wrong / n:.4f}, "
                f"{clock / n * 1e6:.1f} us a row ({processor / n * 1e6:.1f} of the processor), "
                f"saved {len(dumps(model)) / 1e6:.0f} MB",
                flush=True,
            )


if __name__ == "__main__":
    main()
