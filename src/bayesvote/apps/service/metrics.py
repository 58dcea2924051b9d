"""Metrics for Prometheus."""

from bisect import bisect_left
from collections.abc import Iterator

import numpy as np
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from bayesvote.apps.service.learner import LearningThread

_SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0)


class Metrics(Collector):
    """The metrics of ``/metrics``: counts and times of requests, and the state of the models."""

    def __init__(self, learner: LearningThread) -> None:
        self._learner = learner
        self.registry = CollectorRegistry()
        self._requests: dict[tuple[str, int], int] = {}
        self._seconds: dict[str, tuple[list[int], list[float]]] = {}  # by route: counts per bucket, and the sum
        self.registry.register(self)

    def count(self, route: str, status: int, seconds: float) -> None:
        """Count a request."""
        # Only the event loop counts, so the counters need no lock.
        self._requests[route, status] = self._requests.get((route, status), 0) + 1
        found = self._seconds.get(route)
        if found is None:
            found = self._seconds[route] = [0] * (len(_SECONDS) + 1), [0.0]
        counts, total = found
        counts[bisect_left(_SECONDS, seconds)] += 1
        total[0] += seconds

    def text(self) -> bytes:
        """Return all metrics in the text format of Prometheus."""
        return generate_latest(self.registry)

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics of the requests, the models and the learning thread."""
        requests = CounterMetricFamily(
            "bayesvote_requests", "Requests by route and status.", labels=["route", "status"]
        )
        for (route, status), count in self._requests.items():
            requests.add_metric([route, str(status)], count)
        yield requests
        times = HistogramMetricFamily("bayesvote_request_seconds", "Response time.", labels=["route"])
        bounds = [*map(str, _SECONDS), "+Inf"]
        for route, (counts, (total,)) in self._seconds.items():
            times.add_metric([route], list(zip(bounds, np.cumsum(counts).tolist(), strict=True)), total)
        yield times
        models = list(self._learner.models.values())
        metrics: dict[str, tuple[str, list[float], bool]] = {
            "rows_learned": ("Rows learned.", [served.rows for served in models], True),
            "mistakes": ("Rows predicted wrongly.", [served.scores.tally.mistakes for served in models], True),
            "windowed_error": (
                "Error rate of the latest rows.",
                [m.scores.tally.windowed_error for m in models],
                False,
            ),
            "brier": ("Brier score of all rows.", [served.scores.tally.brier for served in models], False),
            "pending": ("Rows that wait for their labels.", [served.pending for served in models], False),
            "expired": (
                "Rows dropped because their labels did not arrive in time.",
                [served.expired for served in models],
                True,
            ),
            "crowded": ("Rows dropped because too many were waiting.", [served.crowded for served in models], True),
            "snapshot_rows": ("Rows learned by the latest snapshot.", [served.saved for served in models], False),
            "failed": ("1 if the model is unusable.", [bool(served.failed) for served in models], False),
        }
        for name, (help_, values, grows) in metrics.items():
            kind = CounterMetricFamily if grows else GaugeMetricFamily
            metric = kind(f"bayesvote_{name}", help_, labels=["model"])
            for served, value in zip(models, values, strict=True):
                metric.add_metric([served.name], float(value))
            yield metric
        counters = self._learner.counters
        yield CounterMetricFamily("bayesvote_commits", "Commits of the journal.", value=counters.commits)
        yield CounterMetricFamily(
            "bayesvote_grouped", "Requests in all commits of the journal.", value=counters.grouped
        )
        yield CounterMetricFamily("bayesvote_snapshots", "Snapshots taken.", value=counters.snapshots)
        yield CounterMetricFamily(
            "bayesvote_disk_errors", "Commits that failed because of a disk error.", value=counters.disk_errors
        )
