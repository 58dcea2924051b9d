"""`JointLogistic` with late labels, row by row in NumPy and SciPy, for two labels."""

from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit

from bayesvote import JointLogistic
from bayesvote.core.checks import Array
from horizons.sites import Sites


class Reference:
    """Posteriors side by side: an online Laplace approximation, compared by what they said at prediction time.

    One half of them learns from the margins when labels come, the other from those when the rows were predicted.
    """

    def __init__(self, weighter: JointLogistic, m: int) -> None:
        self.weighter = weighter
        self.precisions, self.rho = np.tile(weighter.precision, 2), np.tile(weighter.persistence, 2)
        self.prior = weighter.scale / m
        self.means = np.full((len(self.rho), m), self.prior)
        self.past = [self.means.copy()]
        self.covariances = np.eye(m) / self.precisions[:, None, None]
        self.sites = [Sites(self.means[0].copy(), precision) for precision in self.precisions]
        self.evidence = np.zeros(len(self.rho))
        self.horizon = 0

    def _chance(self, margins: Array, means: Array, p: int) -> float:
        """Probability of label 1 at the horizon, averaged over the weights' uncertainty (MacKay 1992)."""
        kept = self.rho[p] ** self.horizon
        mean = self.prior + kept * (means[p] - self.prior)
        noise = (1 - kept**2) / self.precisions[p] * np.eye(len(mean))
        variance = margins @ (kept**2 * self.covariances[p] + noise) @ margins
        return float(expit(margins @ mean / np.sqrt(1 + np.pi / 8 * variance)))

    def predict(self, margins: Array) -> tuple[float, Any]:
        """Return the probability of label 1, and the data to learn the label later."""
        shares = np.exp(self.evidence - self.evidence.max())
        chances = np.array([self._chance(margins, self.means, p) for p in range(len(self.rho))])
        n = len(self.past) - 1
        earlier = self.past[n - min(self.weighter.burst, n // 8)]
        compared = np.array([self._chance(margins, earlier, p) for p in range(len(self.rho))])
        return float(shares @ chances / shares.sum()), (margins, compared, n)

    def learn(self, forecast: Any, y: int, now: Array) -> None:
        margins, compared, n = forecast
        self.horizon = len(self.past) - 1 - n
        share = 1 / (1 + self.horizon / 50)
        least = np.log(0.2 / 2) if self.weighter.burst else np.log(1e-12)
        likelihood = np.maximum(np.log(compared if y else 1 - compared), least)
        self.evidence = self.weighter.discount**share * self.evidence + share * likelihood
        for p, rho in enumerate(self.rho):
            near = p < len(self.rho) // 2
            x = (now if near else margins) * (1 if y else -1)
            if rho == 1:
                self.sites[p].learn(x, 0.0)
                self.means[p], self.covariances[p] = self.sites[p].posterior()
                continue
            s = self.covariances[p] @ x
            spread, odds = float(x @ s), float(x @ self.means[p])

            def slope(a: float, odds: float = odds, spread: float = spread) -> float:
                return a - odds - spread * expit(-a)

            mode = brentq(slope, odds - 1e-12, odds + spread + 1e-12, xtol=1e-14)
            miss = expit(-mode)
            curvature = miss * (1 - miss)
            mean = self.means[p] + miss * s
            covariance = self.covariances[p] - curvature / (1 + curvature * spread) * np.outer(s, s)
            self.means[p] = self.prior + rho * (mean - self.prior)
            drifted = (1 - rho**2) / self.precisions[p] * np.eye(len(s))
            self.covariances[p] = rho**2 * covariance + drifted
        self.past.append(self.means.copy())
