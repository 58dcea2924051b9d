"""The default classifier on the synthetic streams that papers publish, next to the published kappas.

Run ``python -m benchmarks published [--rows N] [--streams NAME ...] [--seeds SEED ...] [--models NAME ...]``. Every row
is predicted before it is learned. Published figures are of 1,000,000 rows; with fewer rows the concepts are shorter, so
that figures are comparable with ``--rows 1000000`` only.

CPU time is that of all threads, for predicting and learning; generating the rows is left out.
"""

import argparse
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

import numpy as np

import results
from bayesvote import BayesianEnsembleClassifier
from bayesvote.core.checks import Array, Labels
from bayesvote.datasets import SYNTHETIC, synthetic_stream
from bayesvote.evaluation import Tally

ROWS = 100_000
CHUNK = 20_000
COLUMNS = ("LevBag", "ARF", "SRP", "ARE", "ARTE", "SGBT", "SORE")
# Kappa in % with 100 learners each, 1,000,000 rows: table 3 of the appendix of SORE (danielnowakassis/SORE, 2026).
PUBLISHED: Mapping[str, tuple[float, ...]] = {
    "LED_a": (70.75, 70.95, 70.99, 70.53, 70.84, 71.07, 71.03),
    "LED_g": (69.93, 69.90, 70.01, 69.57, 69.76, 70.18, 69.95),
    "SEA_a": (73.12, 77.44, 74.10, 77.11, 77.48, 76.44, 76.57),
    "SEA_g": (74.51, 75.70, 71.46, 75.57, 75.84, 75.05, 75.17),
    "AGR_a": (69.04, 72.90, 85.00, 72.08, 61.36, 90.29, 85.73),
    "AGR_g": (65.63, 63.35, 78.18, 63.38, 54.48, 84.19, 78.24),
    "RBF_m": (80.62, 83.29, 81.82, 83.80, 83.64, 83.29, 82.76),
    "RBF_f": (47.02, 69.95, 68.82, 68.04, 71.71, 67.44, 72.62),
    "HYPER": (75.18, 71.55, 71.14, 75.09, 73.16, 73.90, 72.82),
}


class Learner(Protocol):
    """A model that predicts each row before it learns it."""

    def predict_then_learn(self, X: Array, y: Labels) -> Labels:
        """Return the predictions."""


class Ours:
    """A classifier of this library."""

    def __init__(self, classes: Labels, seed: int, **options: Any) -> None:
        self.model, self.classes = BayesianEnsembleClassifier(**options, random_state=seed), classes

    def predict_then_learn(self, X: Array, y: Labels) -> Labels:
        """Return the predictions."""
        chances = self.model.predict_proba_then_learn(X, y, classes=self.classes)
        return np.asarray(chances.argmax(axis=1))


class NoChange:
    """Predict the previous label; class 0 for the first row."""

    def __init__(self, classes: Labels, seed: int) -> None:
        del classes, seed
        self.last = 0

    def predict_then_learn(self, X: Array, y: Labels) -> Labels:
        """Return the predictions."""
        del X
        predicted = np.concatenate(([self.last], y[:-1]))
        self.last = int(y[-1])
        return predicted


class Majority:
    """Predict the most frequent label so far; the smallest one of several."""

    def __init__(self, classes: Labels, seed: int) -> None:
        del seed
        self.counts = np.zeros(len(classes), dtype=np.int64)

    def predict_then_learn(self, X: Array, y: Labels) -> Labels:
        """Return the predictions."""
        del X
        after = self.counts + np.cumsum(y[:, None] == np.arange(len(self.counts)), axis=0)
        predicted = np.asarray(np.concatenate((self.counts[None], after[:-1])).argmax(axis=1))
        self.counts = after[-1]
        return predicted


DEFAULT, FAST, NO_CHANGE, MAJORITY = "default", "fast", "no change", "majority"
MODELS: Mapping[str, Callable[[Labels, int], Learner]] = {
    DEFAULT: Ours,
    FAST: lambda classes, seed: Ours(classes, seed, members="fast"),
    NO_CHANGE: NoChange,
    MAJORITY: Majority,
}


def measure(stream: str, seed: int, n_rows: int, models: list[str]) -> dict[str, dict[str, float]]:
    """Return the figures of models on a stream; the no-change classifier is always run, for kappa-temporal."""
    classes = SYNTHETIC[stream].classes
    names = dict.fromkeys([NO_CHANGE, *models])
    learners = {name: MODELS[name](classes, seed) for name in names}
    tallies, seconds = {name: Tally(classes) for name in names}, dict.fromkeys(names, 0.0)
    for X, y in synthetic_stream(stream, n_rows, seed=seed, chunk_size=CHUNK):
        for name, learner in learners.items():
            start = time.process_time()
            predicted = learner.predict_then_learn(X, y)
            seconds[name] += time.process_time() - start
            tallies[name].add(y, predicted)
    return {
        name: {
            "accuracy": 1 - tallies[name].error,
            "kappa": tallies[name].kappa,
            "kappa-temporal": 1 - tallies[name].error / tallies[NO_CHANGE].error,
            "us": seconds[name] / n_rows * 1e6,
        }
        for name in models
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=ROWS, help="rows of each stream")
    parser.add_argument("--streams", nargs="+", choices=SYNTHETIC, default=list(SYNTHETIC), help="default: all")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0], help="of the streams and the models")
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS), help="default: all")
    asked = parser.parse_args()
    found: dict[str, Any] = {}
    for stream in asked.streams:
        runs = [measure(stream, seed, asked.rows, asked.models) for seed in asked.seeds]
        found[stream] = {
            name: {what: float(np.mean([run[name][what] for run in runs])) for what in runs[0][name]}
            for name in asked.models
        }
        best = max(PUBLISHED[stream])
        print(f"{stream}: published kappa {best:.2f} ({COLUMNS[PUBLISHED[stream].index(best)]})")
        for name, of in found[stream].items():
            print(
                f"  {name:10} accuracy {100 * of['accuracy']:.2f}  kappa {100 * of['kappa']:.2f}  "
                f"kappa-temporal {100 * of['kappa-temporal']:.2f}  {of['us']:.1f} us of CPU a row",
                flush=True,
            )
    results.write("published", {"rows": asked.rows, "seeds": len(asked.seeds), "streams": found})


def streams(result: results.Result) -> Iterator[str]:
    """Yield the table of docs/evaluation.md: figures in %, and CPU time."""
    yield (
        "| stream | accuracy: default | fast | no change | majority | kappa: default | fast "
        "| best published kappa | kappa-temporal: default | fast | CPU time, us a row: default | fast |"
    )
    yield "|---|" + "---:|" * 11
    for name, of in result.figures["streams"].items():
        best = max(PUBLISHED[name])
        cells = [
            *(f"{100 * of[model]['accuracy']:.2f}" for model in MODELS),
            *(f"{100 * of[model]['kappa']:.2f}" for model in (DEFAULT, FAST)),
            f"{best:.2f} ({COLUMNS[PUBLISHED[name].index(best)]})",
            *(f"{100 * of[model]['kappa-temporal']:.2f}" for model in (DEFAULT, FAST)),
            *(f"{of[model]['us']:.0f}" for model in (DEFAULT, FAST)),
        ]
        yield f"| {name} | " + " | ".join(cells) + " |"


if __name__ == "__main__":
    main()
