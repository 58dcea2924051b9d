"""Error of the default classifier and its alternatives, on orders and streams that no table reports.

The members and weights of the default were chosen by these figures. ``python -m benchmarks selection [--seeds 10 11]``
computes the members' scores once for each data set. It weights them again without some kinds of members, or by other
posteriors. The data are the paper's thirteen data sets, at most 12,000 rows (BAYESVOTE_DATA names the folder of those
that are not embedded), the changing streams, and three data sets with several classes. Tables report orders 0 to 4.
"""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

import results
from bayesvote import JointGaussian, JointLogistic, adaptive, losses
from bayesvote.core.checks import Array, Labels
from bayesvote.members import scaled
from bayesvote.model import decided
from bayesvote.weighting import Weighter, drifting
from bayesvote_paper.changing import STREAMS
from bayesvote_paper.default_classifier import PEERS
from bayesvote_paper.streams import stream
from forests import digits, segments, wine

MOST_ROWS = 12_000
SEVERAL = {"digits": digits, "segments": segments, "wine": wine}
# The weather has one order only, which table 7 reports.
GENERATED = [name for name in STREAMS if name != "weather"]
GROUPS: Mapping[str, Sequence[str]] = {"thirteen sets": [*PEERS], "changing": GENERATED, "several": [*SEVERAL]}
KINDS = ("Logistic", "PassiveAggressive", "Neighbours", "NaiveBayes", "x Tree", "Refined")


class Variant(NamedTuple):
    """A kind of members to leave out, and the weighter."""

    without: str | None
    weighter: Weighter[Any]


VARIANTS: Mapping[str, Variant] = {
    "default": Variant(None, drifting()),
    **{f"without {kind}": Variant(kind, drifting()) for kind in KINDS},
    "discount 0.99": Variant(None, drifting(discount=0.99)),
    "discount 0.998": Variant(None, drifting(discount=0.998)),
    "six posteriors": Variant(None, drifting((0.3, 3, 30, 0.3, 3, 3), (1, 1, 1, 0.9997, 0.9997, 0.995))),
    "four, narrower": Variant(None, drifting((1, 100, 1, 3))),
    "still": Variant(None, JointLogistic()),
    "JointGaussian": Variant(None, JointGaussian()),
}


def rows(name: str, seed: int) -> tuple[Any, Labels]:
    if name in STREAMS:
        return STREAMS[name](seed)[:2]
    if name in SEVERAL:
        data = SEVERAL[name]()
        order = np.random.default_rng(seed).permutation(len(data.y))
        return data.X[order], data.y[order]
    X, y, _ = stream(name, seed).rows(0, MOST_ROWS)
    return X, y.astype(np.intp)


def errors(name: str, seed: int) -> Iterator[tuple[str, float]]:
    X, y = rows(name, seed)
    n_classes = int(y.max()) + 1
    bank = scaled(adaptive()).start(X.shape[1], n_classes, seed)
    scores, names = bank.scores_then_learn(X, y), bank.member_names()
    for variant, (without, weighter) in VARIANTS.items():
        kept = [i for i, member in enumerate(names) if without is None or without not in member]
        yield variant, error(weighter, scores[:, kept], y)


def error(weighter: Weighter[Any], scores: Array, y: Labels) -> float:
    G = losses.of_labels(weighter.usual_loss, scores)
    out, _ = weighter.advance(weighter.init(scores.shape[1]), G, y, np.ones(len(y)))
    return float(np.mean(decided(out) != y))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seeds", nargs="+", type=int, default=[10, 11, 12])
    parser.add_argument("--groups", nargs="+", choices=GROUPS, default=list(GROUPS), metavar="NAME")
    asked = parser.parse_args()
    found: dict[tuple[str, str], list[float]] = {}
    for group in asked.groups:
        for name in GROUPS[group]:
            for seed in asked.seeds:
                for variant, of_variant in errors(name, seed):
                    found.setdefault((variant, group), []).append(of_variant)
    groups = dict.fromkeys(group for _, group in found)
    means = {variant: {group: float(np.mean(found[variant, group])) for group in groups} for variant in VARIANTS}
    print("\n".join(results.grid("mean error", means, ".4f")))
    results.write("selection", {"errors": means})


def errors_table(result: results.Result) -> Iterator[str]:
    """Yield the table of docs/choosing.md."""
    return results.grid("mean error", result.figures["errors"], ".4f")


if __name__ == "__main__":
    main()
