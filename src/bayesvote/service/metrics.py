"""Figures for Prometheus."""

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from bayesvote.service.learner import Learner

_SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0)


class Metrics(Collector):
    """What ``/metrics`` shows: requests as they come, and the models as they are."""

    def __init__(self, learner: Learner) -> None:
        self._learner = learner
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "bayesvote_requests", "Requests, by route and status.", ["route", "status"], registry=self.registry
        )
        self.seconds = Histogram(
            "bayesvote_request_seconds",
            "Time until a request was answered.",
            ["route"],
            buckets=_SECONDS,
            registry=self.registry,
        )
        self._known: dict[tuple[str, int], Counter] = {}
        self._timed: dict[str, Histogram] = {}
        self.registry.register(self)

    def count(self, route: str, status: int, seconds: float) -> None:
        """Count a request."""
        counter = self._known.get((route, status))
        if counter is None:  # looked up once: finding a label is slow
            counter = self._known[route, status] = self.requests.labels(route, str(status))
            self._timed[route] = self.seconds.labels(route)
        counter.inc()
        self._timed[route].observe(seconds)

    def text(self) -> bytes:
        """All figures in Prometheus' text format."""
        return generate_latest(self.registry)

    def collect(self) -> Iterator[Metric]:
        """Figures of the models and of the learning thread."""
        models = list(self._learner.models.values())
        figures: dict[str, tuple[str, list[float], bool]] = {
            "rows_learned": ("Rows learned.", [served.rows for served in models], True),
            "mistakes": ("Rows predicted wrongly.", [served.figures.tally.mistakes for served in models], True),
            "windowed_error": (
                "Error of the last rows.",
                [m.figures.tally.windowed_error for m in models],
                False,
            ),
            "brier": ("Brier score of all rows.", [served.figures.tally.brier for served in models], False),
            "pending": ("Rows that wait for their label.", [served.pending for served in models], False),
            "expired": ("Rows dropped because no label came in time.", [served.expired for served in models], True),
            "crowded": ("Rows dropped because too many waited.", [served.crowded for served in models], True),
            "snapshot_rows": ("Rows in the last snapshot.", [served.saved for served in models], False),
            "failed": ("1 if the model cannot be used.", [bool(served.failed) for served in models], False),
        }
        for name, (help_, values, counts) in figures.items():
            kind = CounterMetricFamily if counts else GaugeMetricFamily
            metric = kind(f"bayesvote_{name}", help_, labels=["model"])
            for served, value in zip(models, values, strict=True):
                metric.add_metric([served.name], float(value))
            yield metric
        counters = self._learner.counters
        yield CounterMetricFamily("bayesvote_commits", "Commits of the journal.", value=counters.commits)
        yield CounterMetricFamily("bayesvote_grouped", "Requests in all commits.", value=counters.grouped)
        yield CounterMetricFamily("bayesvote_snapshots", "Snapshots taken.", value=counters.snapshots)
        yield CounterMetricFamily("bayesvote_disk_errors", "Commits that the disk refused.", value=counters.disk_errors)
