"""What the live page shows of a model."""

import asyncio
import time
from collections import deque
from typing import Any

import numpy as np

from bayesvote import weighting
from bayesvote.apps.service.models import Served
from bayesvote.apps.service.service import Service

_SHOWN = 12  # members
_POINTS = 120  # of the curve
_WEIGHTS_EVERY = 3.0  # seconds: the members' weights, with the probability of being best, take a while to find
_RATE_OVER = 5.0  # seconds


class Watch:
    """Looks at the models for all pages that are open, at most once per second."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self._started = time.time()
        self._counts: dict[int, deque[tuple[float, int]]] = {}
        self._weights: dict[int, tuple[float, int, dict[str, Any]]] = {}
        self._locks: dict[int, asyncio.Lock] = {}

    async def status(self, name: str | None) -> dict[str, Any]:
        """All that the page shows, about one model or, without a name, the first one."""
        models = self.service.learner.models
        served = models.get(name or "") or next(iter(models.values()), None)
        found: dict[str, Any] = {
            "time": time.time(),
            "started": self._started,
            "models": sorted(models),
            "trouble": self.service.learner.counters.trouble,
            "refusals": [each._asdict() for each in self.service.refusals],
        }
        if served is not None:
            weights = await self._weights_of(served)
            found["model"] = self._figures(served) | weights
        return found

    def _figures(self, served: Served) -> dict[str, Any]:
        tally = served.figures.tally
        curve = tally.curve
        kept = np.unique(np.linspace(0, max(0, len(curve.rows) - 1), _POINTS).astype(int))[: len(curve.rows)]
        bins = served.figures.bins[served.figures.bins[:, 0] > 0]
        return {
            "name": served.name,
            "failed": served.failed,
            "classes": served.classes,
            "columns": len(served.columns.names),
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

    def _rate(self, served: Served) -> float:
        """Rows learned per second, over the last seconds."""
        seen = self._counts.setdefault(served.number, deque())
        now = time.monotonic()
        if not seen or now - seen[-1][0] > 0.5:
            seen.append((now, served.rows))
        while len(seen) > 2 and seen[1][0] < now - _RATE_OVER:
            seen.popleft()
        (before, rows), (last, then) = seen[0], seen[-1]
        return (then - rows) / (last - before) if last > before else 0.0

    async def _weights_of(self, served: Served) -> dict[str, Any]:
        async with self._locks.setdefault(served.number, asyncio.Lock()):  # found once for all pages
            when, rows, found = self._weights.get(served.number, (0.0, -1, {}))
            if rows != served.rows and time.monotonic() - when > _WEIGHTS_EVERY:
                found = await asyncio.to_thread(_weights, served)
                self._weights[served.number] = time.monotonic(), served.rows, found
        return found


def _weights(served: Served) -> dict[str, Any]:
    """The heaviest members, with their bands and how probably each is the best."""
    model = served.estimator.model_
    weighter = getattr(model, "weighter", None)
    with served.turn():
        before = max(0, (model.about()["rows_learned"] or 0) - served.rows)  # learned elsewhere, where that is known
    if weighter is None:
        return {"about": type(model).__name__, "members": [], "effective": None, "before": before}
    is_posterior = isinstance(weighter, weighting.Posterior)
    with served.turn():
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
    return float(np.ravel(values[place])[0])  # of two parameters, the first
