"""A posterior of the logistic loss, as a prior and one parabola per row, in dense algebra."""

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit

from bayesvote.core.checks import Array

AGES = (512, 64)  # rows after which a row is learned again


class Sites:
    """A Gaussian prior times, for each row, exp(slope a - curvature a^2/2) of the label's log-odds a.

    A row is learned by laying its parabola at the mode of the row's likelihood times everything else, along its
    log-odds. With ``again`` it is laid anew when 64 and 512 further rows have been learned.
    """

    def __init__(self, mean: Array, precision: float, again: bool = True) -> None:
        self.prior, self.precision, self.again = mean, precision, again
        self.rows: list[tuple[Array, float, float]] = []  # growth of the log-odds, their offset, and the weight
        self.parabolas: list[tuple[float, float]] = []  # curvature and slope

    def posterior(self, but: int | None = None) -> tuple[Array, Array]:
        """Return mean and covariance, perhaps without one row."""
        kept = [t for t in range(len(self.parabolas)) if t != but]
        P, h = self.precision * np.eye(len(self.prior)), self.precision * self.prior
        if kept:
            D = np.array([self.rows[t][0] for t in kept])
            offset = np.array([self.rows[t][1] for t in kept])
            curvature, slope = np.array([self.parabolas[t] for t in kept]).T
            P, h = P + D.T @ (curvature[:, None] * D), h + D.T @ (slope - curvature * offset)
        return np.asarray(np.linalg.solve(P, h)), np.asarray(np.linalg.inv(P))

    def _lay(self, t: int) -> tuple[float, float]:
        d, offset, w = self.rows[t]
        mean, covariance = self.posterior(but=t)
        odds, reach = float(d @ mean + offset), float(w * d @ covariance @ d)

        def excess(a: float) -> float:
            return float(a - odds - reach * expit(-a))

        mode = brentq(excess, odds - 1e-12, odds + reach + 1e-12, xtol=1e-14) if reach > 0 else odds
        curvature = w * expit(mode) * expit(-mode)
        return curvature, w * expit(-mode) + curvature * mode

    def learn(self, d: Array, offset: float, w: float = 1.0) -> None:
        n = len(self.rows)
        self.rows.append((d, offset, w))
        self.parabolas.append(self._lay(n))
        for age in AGES if self.again else ():
            if n >= age and np.any(self.rows[n - age][0]):
                self.parabolas[n - age] = self._lay(n - age)
