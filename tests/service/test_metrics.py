"""Figures for Prometheus: requests in the right buckets, and models as they are."""

from typing import Any

import pytest

from service.helpers import Api, objects, rows_of, said

parser: Any = pytest.importorskip("prometheus_client.parser")


def figures(api: Api) -> dict[tuple[str, str], float]:
    """Return the values of all figures by their names and their labels in order."""
    text = api.request("GET", "/metrics").text
    samples = [sample for family in parser.text_string_to_metric_families(text) for sample in family.samples]
    return {(sample.name, ",".join(sorted(sample.labels.values()))): sample.value for sample in samples}


def test_a_bucket_counts_the_requests_that_took_no_longer_than_its_bound(api: Api) -> None:
    for seconds in (0.0004, 0.005, 0.005, 0.006, 5.0, 7.0):
        api.service.metrics.count("route", 200, seconds)
    api.service.metrics.count("route", 404, 0.2)
    found = figures(api)
    counts = {0.0005: 1, 0.001: 1, 0.0025: 1, 0.005: 3, 0.01: 4, 0.025: 4, 0.1: 4, 0.25: 5, 1.0: 5, 5.0: 6}
    for bound, count in counts.items():
        assert found["bayesvote_request_seconds_bucket", f"{bound},route"] == count
    assert found["bayesvote_request_seconds_bucket", "+Inf,route"] == 7
    assert found["bayesvote_request_seconds_count", "route"] == 7
    assert found["bayesvote_request_seconds_sum", "route"] == pytest.approx(12.2164)
    assert found["bayesvote_requests_total", "200,route"] == 6
    assert found["bayesvote_requests_total", "404,route"] == 1


def test_figures_of_a_model(api: Api) -> None:
    X, y = rows_of(60)
    api.post("infer", rows=objects(X[:5]), ids=list("uvwxy"))
    mistakes = api.post("learn", rows=objects(X[5:]), labels=said(y[5:]))["mistakes"]
    mistakes += api.post("label", ids=["u", "v"], labels=said(y[:2]))["mistakes"]
    found = figures(api)
    tally = api.learner.models["m"].scores.tally
    expected = {
        "rows_learned_total": 57,
        "mistakes_total": mistakes,
        "windowed_error": mistakes / 57,
        "brier": tally.brier,
        "pending": 3,
        "failed": 0,
        "snapshot_rows": 0,
    }
    assert {name: found[f"bayesvote_{name}", "m"] for name in expected} == pytest.approx(expected)
    assert found["bayesvote_commits_total", ""] == 3
