"""CPU time of the weighters, compared with NumPy's cumsum and SciPy's quad in one run."""

import math
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.special import gammaln, psi

import results
from bayesvote.weighting import GammaRate, GammaShape, GammaShapeRate, JointGaussian, JointLogistic, Weighter

MEMBERS = 100


def seconds(work: Callable[[], object], repeats: int = 7) -> float:
    """Return the CPU time of the work, the best of several runs after a first one that is not counted."""
    work()
    best = math.inf
    for _ in range(repeats):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return best


def by_quad(log_density: Callable[[float], float], slope: Callable[[float], float]) -> float:
    """Return the posterior mean of exp(u) by two calls of quad around the mode, at a relative error of 1e-10."""
    mode = brentq(slope, -30.0, 30.0)
    sd = 1 / math.sqrt((slope(mode - 1e-4) - slope(mode + 1e-4)) / 2e-4)
    top, ends = log_density(mode), (mode - 12 * sd, mode + 12 * sd)
    mass, _ = quad(lambda u: math.exp(log_density(u) - top), *ends, epsabs=0, epsrel=1e-10)
    first, _ = quad(lambda u: math.exp(log_density(u) - top + u), *ends, epsabs=0, epsrel=1e-10)
    return float(first / mass)


def shape_by_quad(count: float, sum_log: float) -> float:
    power, b = sum_log + (1 + count) * math.log(0.1), 1 + count
    return by_quad(
        lambda u: power * math.exp(u) - b * gammaln(math.exp(u)) + u,
        lambda u: math.exp(u) * (power - b * psi(math.exp(u))) + 1,
    )


def shape_rate_by_quad(count: float, sum_g: float, sum_log: float) -> float:
    r, s, log_q = 1.5 + count, 1 + count, math.log(1 + sum_g)

    def log_density(u: float) -> float:
        a = math.exp(u)
        return float((a - 1) * sum_log - r * gammaln(a) + gammaln(a * s + 1) - (a * s + 1) * log_q + u)

    def slope(u: float) -> float:
        a = math.exp(u)
        return float(a * (sum_log - r * psi(a) + s * psi(a * s + 1) - s * log_q) + 1)

    return by_quad(log_density, slope)


def integrated(n: int) -> dict[str, float]:
    g = np.random.default_rng(0).gamma(2.0, 0.2, (n, MEMBERS))
    shape, pair = GammaShape(), GammaShapeRate()
    shape_state, pair_state = shape.update(shape.init(MEMBERS), g), pair.update(pair.init(MEMBERS), g)

    def shape_loop() -> list[float]:
        return [shape_by_quad(*sums) for sums in shape_state.value.T]

    def pair_loop() -> list[float]:
        return [shape_rate_by_quad(*sums) for sums in pair_state.value.T]

    agree = max(
        np.abs(shape_loop() / shape.mean(shape_state) - 1).max(),
        np.abs(pair_loop() / pair.mean(pair_state)[:, 0] - 1).max(),
    )
    found = {}
    for name, slow, fast in (
        ("GammaShape", shape_loop, lambda: shape.mean(shape_state)),
        ("GammaShapeRate", pair_loop, lambda: pair.mean(pair_state)),
    ):
        theirs, ours = seconds(slow, 3), seconds(fast, 50)
        found[name] = theirs / ours
        print(
            f"{name} means after {n:>6,} samples: {ours * 1e6:6.0f} us, quad {theirs * 1e3:5.0f} ms: "
            f"{theirs / ours:5.0f} times faster (agreeing to {agree:.0e})"
        )
    return found


def closed_form() -> dict[str, float]:
    rng, n = np.random.default_rng(0), 100_000
    g, weighter = rng.random((n, MEMBERS)), GammaRate()
    G, y = np.stack((g, 1 - g), axis=1), rng.integers(0, 2, n)
    start = weighter.init(MEMBERS)
    cumulative, found = seconds(lambda: np.cumsum(g, axis=0)), {}
    for name, work in (
        ("GammaRate.update", lambda: weighter.update(start, g)),
        ("GammaRate.losses_then_update, both labels", lambda: weighter.losses_then_update(start, G, y)),
    ):
        ratio = found[name] = seconds(work) / cumulative
        print(f"{name} over {n:,} x {MEMBERS}: {ratio:.2f} times numpy.cumsum ({cumulative * 1e3:.0f} ms)")
    return found


def microseconds() -> dict[str, float]:
    """Return microseconds a row of 100 members, of decision and update."""
    rng, n, found = np.random.default_rng(0), 4096, {}
    G, y = rng.random((n, 2, MEMBERS)), rng.integers(0, 2, n)
    weighters: list[Weighter[Any]] = [GammaRate(), JointGaussian(), JointLogistic(), GammaShape(), GammaShapeRate()]
    for weighter in weighters:

        def work(weighter: Weighter[Any] = weighter) -> object:
            return weighter.losses_then_update(weighter.init(MEMBERS), G, y)

        found[type(weighter).__name__] = seconds(work, 2) / n * 1e6
        print(f"{weighter}: {found[type(weighter).__name__]:.1f} us a row of {MEMBERS} members")
    return found


def costs(result: results.Result) -> Iterator[str]:
    """Yield the table of docs/choosing.md and docs/performance.md."""
    yield "| weights of 100 members | CPU time, us a row |"
    yield "|---|---:|"
    for name, us in result.figures["us a row"].items():
        yield f"| `{name}` | {us:.1f} |"


def ratios(result: results.Result) -> Iterator[str]:
    """Yield the times of closed forms and integrals, relative to NumPy's and SciPy's."""
    yield "| what | figure |"
    yield "|---|---|"
    for name, times in result.figures["times cumsum"].items():
        yield f"| {name}, 100,000 x 100 losses | {times:.2f} times `numpy.cumsum` over the same array |"
    for name in ("GammaShape", "GammaShapeRate"):
        of = {int(n): times[name] for n, times in result.figures["faster than quad"].items()}
        for title, chosen in (("10 to 100", (10, 100)), ("1,000 to 100,000", (1000, 10_000, 100_000))):
            least, most = (edge(of[n] for n in chosen if n in of) for edge in (min, max))
            yield f"| `{name}` means, after {title} samples | {least:.0f} to {most:.0f} times faster than `quad` |"


if __name__ == "__main__":
    found: dict[str, Any] = {"times cumsum": closed_form(), "us a row": microseconds()}
    found["faster than quad"] = {str(rows): integrated(rows) for rows in (10, 100, 1000, 10_000, 100_000)}
    results.write("weights", found)
