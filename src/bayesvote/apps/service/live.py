"""The data of the live page."""

import asyncio
import time
from collections import deque
from typing import Any

import numpy as np

from bayesvote import weighting
from bayesvote.apps.service.models import ServedModel
from bayesvote.apps.service.service import Service

_SHOWN = 12  # members
_POINTS = 120  # of the curve
_WEIGHTS_INTERVAL = 3.0  # seconds; the posterior of the weights takes a while to compute
_RATE_WINDOW = 5.0  # seconds


class ModelWatcher:
    """Collects the data for all open pages, at most once per second."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self._started = time.time()
        self._counts: dict[int, deque[tuple[float, int]]] = {}
        self._weights: dict[int, tuple[float, int, dict[str, Any]]] = {}
        self._locks: dict[int, asyncio.Lock] = {}

    async def status(self, name: str | None) -> dict[str, Any]:
        """Return the data of the page for a model; without a name, for the first one."""
        models = self.service.learner.models
        served = models.get(name or "") or next(iter(models.values()), None)
        found: dict[str, Any] = {
            "time": time.time(),
            "started": self._started,
            "models": sorted(models),
            "disk_error": self.service.learner.counters.disk_error,
            "rejected": [each._asdict() for each in self.service.rejected],
        }
        if served is not None:
            weights = await self._weights_of(served)
            found["model"] = self._scores(served) | weights
        return found

    def _scores(self, served: ServedModel) -> dict[str, Any]:
        tally = served.scores.tally
        curve = tally.curve
        kept = np.unique(np.linspace(0, max(0, len(curve.rows) - 1), _POINTS).astype(int))[: len(curve.rows)]
        bins = served.scores.bins[served.scores.bins[:, 0] > 0]
        return {
            "name": served.name,
            "failed": served.failed,
            "classes": served.classes,
            "columns": len(served.format.names),
            "rows": served.rows,
            "error": tally.error if tally.rows else None,
            "windowed": tally.windowed_error if tally.rows else None,
            "window": tally.window,
            "rate": self._rate(served),
            "pending": served.pending,
            "dropped": served.expired + served.crowded,
            "saved": served.saved,
            "brier": tally.brier if tally.rows else None,
            "curve": [curve.rows[kept].tolist(), curve.error[kept].tolist(), curve.windowed[kept].tolist()],
            "calibration": [[n, said / n, right / n] for n, said, right in bins.tolist()],
        }

    def _rate(self, served: ServedModel) -> float:
        """Return the rows learned per second over the last five seconds."""
        seen = self._counts.setdefault(served.number, deque())
        now = time.monotonic()
        if not seen or now - seen[-1][0] > 0.5:
            seen.append((now, served.rows))
        while len(seen) > 2 and seen[1][0] < now - _RATE_WINDOW:
            seen.popleft()
        (before, rows), (last, then) = seen[0], seen[-1]
        return (then - rows) / (last - before) if last > before else 0.0

    async def _weights_of(self, served: ServedModel) -> dict[str, Any]:
        async with self._locks.setdefault(served.number, asyncio.Lock()):  # computed once for all pages
            when, rows, found = self._weights.get(served.number, (0.0, -1, {}))
            if rows != served.rows and time.monotonic() - when > _WEIGHTS_INTERVAL:
                found = await asyncio.to_thread(_weights, served)
                self._weights[served.number] = time.monotonic(), served.rows, found
        return found


def _weights(served: ServedModel) -> dict[str, Any]:
    """Return the members with the largest weights, their credible intervals, and the probability that each is best."""
    model = served.estimator.model_
    weighter = getattr(model, "weighter", None)
    with served.locked():
        before = max(
            0, (model.about()["rows_learned"] or 0) - served.rows
        )  # learned before the model was served, if known
    if weighter is None:
        return {"about": type(model).__name__, "members": [], "effective": None, "before": before}
    is_posterior = isinstance(weighter, weighting.Posterior)
    with served.locked():
        state, names = model.state, model.bank.member_names()
        mean = np.asarray(weighter.mean(state))
        if is_posterior:
            lower, upper = weighter.interval(state)
            best = weighter.probability_best(state, 2_000)
            effective = float(np.max(weighter.effective_samples(state)))
    order = np.argsort(-(mean if mean.ndim == 1 else mean[:, 0]), kind="stable")[:_SHOWN]
    shown = []
    for place in order.tolist():
        member: dict[str, Any] = {"member": place, "kind": str(names[place]), "mean": _first(mean, place)}
        if is_posterior:
            member |= {"lower": _first(lower, place), "upper": _first(upper, place), "best": float(best[place])}
        shown.append(member)
    found: dict[str, Any] = {"about": str(weighter), "members": shown, "effective": None, "total": len(mean)}
    found["before"] = before
    if is_posterior:
        place = int(np.argmax(best))
        found |= {"effective": effective, "best": {"member": place, "kind": str(names[place]), "p": float(best[place])}}
    return found


def _first(values: Any, place: int) -> float:
    return float(np.ravel(values[place])[0])  # the first of two parameters
