"""Posteriors by brute force: mpmath integrals of the paper's densities, without regard to speed."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import mpmath as mp
import numpy as np

Real = mp.mpf
GAUSS = tuple(part.tolist() for part in np.polynomial.legendre.leggauss(16))


@dataclass
class Oracle:
    """A density of u = log(weight), given by its logarithm and the slope of the logarithm."""

    log_density: Callable[[Real], Real]
    slope: Callable[[Real], Real]

    def __post_init__(self) -> None:
        low, high = Real(-900), Real(800)
        for _ in range(int(mp.mp.prec) + 20):
            middle = (low + high) / 2
            low, high = (middle, high) if self.slope(middle) > 0 else (low, middle)
        self.mode, self.top = low, self.log_density(low)
        h = Real(10) ** -10
        self.sd = 1 / mp.sqrt((self.slope(low - h) - self.slope(low + h)) / (2 * h))
        self.low, self.high = (self._end(sign) for sign in (-1, 1))
        self._points = list(self._rule(self.low, self.high))
        self.mass = mp.fsum(w for _, w in self._points)

    @property
    def mean(self) -> Real:
        return mp.fsum(w * mp.exp(u) for u, w in self._points) / self.mass

    @property
    def variance(self) -> Real:
        mean = self.mean
        return mp.fsum(w * (mp.exp(u) - mean) ** 2 for u, w in self._points) / self.mass

    def _end(self, sign: int) -> Real:
        v = sign * 4 * self.sd
        while self.log_density(self.mode + v) - self.top > -50:
            v *= Real(5) / 4
        return self.mode + v

    def _rule(self, low: Real, high: Real) -> Iterator[tuple[Real, Real]]:
        """Points and weights, the density among them, of 16-point Gauss-Legendre panels."""
        n = 1 + int((high - low) / min(2 * self.sd, Real(1)))
        for k in range(n):
            for x, w in zip(*GAUSS, strict=True):
                u = low + (high - low) * (k + (Real(x) + 1) / 2) / n
                yield u, Real(w) / 2 * (high - low) / n * mp.exp(self.log_density(u) - self.top)

    def cdf(self, u: Real) -> Real:
        return mp.fsum(w for _, w in self._rule(self.low, min(max(u, self.low), self.high))) / self.mass

    def density(self, u: Real) -> Real:
        return mp.exp(self.log_density(u) - self.top) / self.mass

    def quantile_error(self, weight: float, probability: float) -> Real:
        """Relative error of a quantile, to first order: error of the probability over the density of log(weight)."""
        u = mp.log(Real(weight))
        return (self.cdf(u) - Real(probability)) / self.density(u)


def gamma_rate(count: float, sum_g: float, alpha: float, beta: float, theta: float) -> Oracle:
    shape, rate = Real(alpha) + Real(count), Real(beta) + Real(theta) * Real(sum_g)
    return Oracle(lambda u: shape * u - rate * mp.exp(u), lambda u: shape - rate * mp.exp(u))


def gamma_shape(count: float, sum_log: float, theta: float, a: float, b: float, c: float) -> Oracle:
    power = mp.log(Real(a)) + Real(sum_log) + (Real(c) + Real(count)) * mp.log(Real(theta))
    b_t = Real(b) + Real(count)
    return Oracle(
        lambda u: power * mp.exp(u) - b_t * mp.loggamma(mp.exp(u)) + u,
        lambda u: mp.exp(u) * (power - b_t * mp.digamma(mp.exp(u))) + 1,
    )


def gamma_shape_rate(count: float, sum_g: float, sum_log: float, p: float, q: float, r: float, s: float) -> Oracle:
    """The posterior of the shape alone: (24) with the rate, Gamma given the shape, integrated out."""
    log_p, Q = mp.log(Real(p)) + Real(sum_log), Real(q) + Real(sum_g)
    r_t, s_t = Real(r) + Real(count), Real(s) + Real(count)

    def log_density(u: Real) -> Real:
        a = mp.exp(u)
        return (a - 1) * log_p - r_t * mp.loggamma(a) + mp.loggamma(a * s_t + 1) - (a * s_t + 1) * mp.log(Q) + u

    def slope(u: Real) -> Real:
        a = mp.exp(u)
        return a * (log_p - r_t * mp.digamma(a) + s_t * mp.digamma(a * s_t + 1) - s_t * mp.log(Q)) + 1

    return Oracle(log_density, slope)
