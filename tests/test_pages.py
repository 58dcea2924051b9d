"""Figures on pages: marked places, stale results, numbers outside of marks, and what a benchmark stores."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pages = pytest.importorskip("pages")
probes = pytest.importorskip("probes")
results = pytest.importorskip("results")

ABOUT = {"command": "python -m benchmarks missing", "version": "bayesvote 0.1.0", "date": "2026-01-02"}


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Store the result of one benchmark in an empty folder, and let all probes be 1."""
    monkeypatch.setattr(probes, "value", lambda name: 1.0)  # noqa: ARG005
    monkeypatch.setattr(results, "FOLDER", tmp_path)
    put(tmp_path, 1.0)
    yield tmp_path
    for cached in (pages.stored, pages.figures):
        cached.cache_clear()


def put(folder: Path, probe: float | None, **figures: Any) -> None:
    about = ABOUT | ({} if probe is None else {"probes": dict.fromkeys(("default", "table", "boosters"), probe)})
    found = {"about": about, "figures": {"errors": {"array": [0.25, 0.123456]}, **figures}}
    (folder / "missing.json").write_text(json.dumps(found))
    pages.stored.cache_clear()
    pages.figures.cache_clear()


@pytest.mark.usefixtures("store")
def test_a_figure_is_written_in_its_format() -> None:
    text = "An error of <!-- figure missing/errors/array/1 .4f -->0.5<!-- /figure -->."
    assert pages.written(text) == "An error of <!-- figure missing/errors/array/1 .4f -->0.1235<!-- /figure -->."


@pytest.mark.usefixtures("store")
def test_writing_twice_changes_nothing() -> None:
    text = "<!-- figure missing/errors/array/0 .2f --><!-- /figure --> <!-- measured missing --><!-- /measured -->"
    once = pages.written(text)
    assert "Measured with bayesvote 0.1.0 (2026-01-02) by `python -m benchmarks missing`." in once
    assert pages.written(once) == once


@pytest.mark.parametrize("probe", [1.001, None])
def test_a_changed_or_missing_probe_makes_a_result_stale(store: Path, probe: float | None) -> None:
    put(store, probe)
    assert "These figures predate the last change to the model" in pages.written(
        "<!-- measured missing --><!-- /measured -->"
    )


def test_a_probe_may_differ_by_rounding(store: Path) -> None:
    put(store, 1 + 1e-6)
    assert not results.stale_part(pages.stored("missing"))


@pytest.mark.usefixtures("store")
def test_times_are_stale_after_a_release() -> None:
    about = pages.stored("missing").about
    assert results.stale(about, timed=True)
    assert not results.stale(about | {"version": f"bayesvote {results.__version__}"}, timed=True)


def test_lines_of_bayesvote_are_stale_without_probes_unless_they_are_of_an_earlier_release(store: Path) -> None:
    lines = [
        {"model": "bayesvote 0.1.0", "version": "bayesvote 0.1.0", "date": "2026-01-02"},
        {"model": "river ARF(10)", "version": "river 0.26.1", "date": "2026-01-02"},
    ]
    (store / "horizon.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert not results.stale_part(results.read("horizon"))
    lines.append({"model": "bayesvote", "version": "bayesvote 0.1.0", "date": "2026-01-02"})
    (store / "horizon.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert results.stale_part(results.read("horizon"))


def test_lines_of_unknown_version_are_stale(store: Path) -> None:
    (store / "forests.jsonl").write_text('{"set": "SEA", "model": "default", "error": 0.1}\n')
    assert results.stale_part(results.read("forests"))
    (store / "forests.jsonl").write_text('{"set": "SEA", "model": "river ARF(10)", "error": 0.1}\n')
    assert not results.stale_part(results.read("forests"))


def test_lines_without_a_release_are_named(store: Path) -> None:
    lines = [{"model": "river ARF(10)"}, {"model": "river AMF(10)", "version": "river 0.26.1", "date": "2026-01-02"}]
    (store / "forests.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    told = results.sentence(results.read("forests"))
    assert told.startswith("Measured with river 0.26.1 (2026-01-02) by ")
    assert told.endswith(". For older rows, the versions of river were not recorded.")


def test_a_table_says_when_it_was_measured_but_not_twice_in_a_row(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "view", lambda script: pages)  # noqa: ARG005
    monkeypatch.setattr(pages, "shown", lambda result: [result.name], raising=False)
    put(store, 1.0)
    mark = "<!-- table missing.shown --><!-- /table -->"
    first, second = pages.written(f"{mark}\n\n{mark}").split("\n\n<!-- table")
    assert "Measured with bayesvote 0.1.0" in first
    assert "Measured" not in second


@pytest.mark.usefixtures("store")
def test_a_missing_figure_names_the_mark() -> None:
    with pytest.raises(ValueError, match=r"Cannot write <!-- figure missing/errors/table \.4f -->"):
        pages.written("<!-- figure missing/errors/table .4f --><!-- /figure -->")
    with pytest.raises(ValueError, match="Unknown result 'nothing'"):
        pages.written("<!-- measured nothing --><!-- /measured -->")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("an error of 0.1328 on", ["0.1328"]),
        ("takes 25 us a row", ["25 us"]),
        ("17 to 25 us a row", ["17 to 25 us"]),
        ("a file of 1.5 MB", ["1.5 MB"]),
        ("is 165 times as fast", ["165 times"]),
        ("600,000 rows a second", ["600,000 rows a second"]),
        ("of 2% and 3.5%", ["2%", "3.5%"]),
        ("Python 3.11.7 and river 0.26.1, 100 members, 0.5 and page 3", []),
        ("`0.1328` and `a\nb 0.1328`", []),
        ("```\n0.1328\n```", []),
        ("<!-- figure missing/errors/array/1 .4f -->0.1235<!-- /figure -->", []),
        ("wait for 30 minutes", []),
    ],
)
def test_numbers_that_look_measured(text: str, found: list[str]) -> None:
    faults = list(pages.loose(text, ["30 minutes"]))
    assert [fault.split("'")[1] for fault in faults] == found


@pytest.mark.usefixtures("store")
def test_a_page_must_say_when_its_figures_were_measured() -> None:
    faults = list(pages.faults("<!-- figure missing/errors/array/0 .2f -->0.25<!-- /figure -->", []))
    assert faults == ["does not say when missing was measured. Add: <!-- measured missing --><!-- /measured -->"]


@pytest.mark.usefixtures("store")
def test_a_page_must_be_as_it_would_be_written() -> None:
    text = pages.written(
        "<!-- figure missing/errors/array/0 .2f --><!-- /figure --><!-- measured missing --><!-- /measured -->"
    )
    assert list(pages.faults(text, [])) == []
    assert list(pages.faults(text.replace("0.25", "0.24"), [])) == ["differs from the stored results. Run: make docs"]
    assert "has no result 'whole'" in next(pages.faults("<!-- measured whole --><!-- /measured -->", []))


def test_a_constant_that_is_on_no_page_is_a_fault() -> None:
    assert list(pages.faults("wait for 31 days", ["30 days"])) == [
        "constants.toml has '30 days', which is not on the page. Remove the line."
    ]


def test_only_the_command_of_a_result_stores_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probes, "value", lambda name: 1.0)  # noqa: ARG005
    monkeypatch.setattr(results, "FOLDER", tmp_path / "stored")
    monkeypatch.delenv("BAYESVOTE_RESULTS", raising=False)
    monkeypatch.setattr(sys, "argv", ["missing.py", "--rows", "20"])
    results.write("missing", {"error": 0.5})
    assert not (tmp_path / "stored").exists()
    monkeypatch.setenv("BAYESVOTE_RESULTS", str(tmp_path / "trial"))
    results.write("missing", {"error": 0.5})
    assert results.read("missing", tmp_path / "trial").about["command"] == "python -m benchmarks missing --rows 20"
    monkeypatch.delenv("BAYESVOTE_RESULTS")
    monkeypatch.setattr(sys, "argv", ["missing.py"])
    results.write("missing", {"error": 0.5})
    assert results.read("missing", tmp_path / "stored").figures == {"error": 0.5}


@pytest.mark.parametrize("name", results.BENCHMARKS)
def test_every_result_has_a_script(name: str) -> None:
    benchmark = results.BENCHMARKS[name]
    assert (Path(results.__file__).with_name(f"{benchmark.script}.py")).exists()
    assert set(benchmark.depends) <= set(probes.PROBES)
