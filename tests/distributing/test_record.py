"""A second start goes on where the first was stopped, and uses nothing that was made from something else."""

import time
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bayesvote.apps.distributed import Job, Loop, fit
from bayesvote.io.model_file import dumps
from distributing.rows import classifier, shards, write_csv


class Counting(Loop):
    """A loop that counts its items by stage, and stops after some."""

    def __init__(self, most: float = float("inf")) -> None:
        self.done: list[tuple[str, int]] = []
        self._most = most

    def map(self, work: Any, items: Any, shared: Any = (), deadline: float | None = None) -> Any:
        for place, answer in super().map(work, items, shared, deadline):
            if len(self.done) >= self._most:
                raise KeyboardInterrupt
            self.done.append((getattr(work, "__name__", type(work).__name__), items[place].place))
            yield place, answer


def test_a_second_start_goes_on_after_any_shard(tmp_path: Path) -> None:
    parts = shards(4, 60)
    expected = dumps(fit(parts, classifier()))
    for most in range(0, 16, 3):
        folder, first, second = tmp_path / str(most), Counting(most), Counting()
        with pytest.raises(KeyboardInterrupt):
            fit(parts, classifier(), engine=first, record=folder)
        assert dumps(fit(parts, classifier(), engine=second, record=folder)) == expected
        assert len(first.done) == most
        assert sorted(first.done + second.done) == sorted(
            (stage, place) for stage in ("survey", "Train", "Weigh", "Check") for place in range(4)
        )
    third = Counting()
    assert dumps(fit(parts, classifier(), engine=third, record=folder)) == expected
    assert third.done == []


def redone(parts: Any, folder: Path, model: Any, **options: Any) -> list[tuple[str, int]]:
    engine = Counting()
    assert dumps(fit(parts, model, engine=engine, record=folder, **options)) == dumps(fit(parts, model, **options))
    return engine.done


def test_what_was_made_from_something_else_is_made_again(tmp_path: Path) -> None:
    files = write_csv(tmp_path, shards(4, 60))
    folder = tmp_path / "record"
    assert len(redone(files, folder, classifier())) == 16
    assert redone(files, folder, classifier()) == []
    # Another weighter has other sums, of the same members; other members are trained again, by the same rows.
    assert {stage for stage, _ in redone(files, folder, classifier(weighter="gamma_rate"))} == {"Weigh", "Check"}
    assert {stage for stage, _ in redone(files, folder, classifier(random_state=7))} == {"Train", "Weigh", "Check"}
    heavy = classifier(class_weight={"no": 2.0})
    assert {stage for stage, _ in redone(files, folder, heavy)} == {"Train", "Weigh", "Check"}
    # A shard that has changed is looked at again, and so are all weights, as its members have changed.
    redone(files, folder, classifier())
    lines = Path(files[2]).read_text().splitlines(keepends=True)
    Path(files[2]).write_text("".join(lines[:-5]))
    everywhere = [(stage, place) for stage in ("Weigh", "Check") for place in range(4)]
    assert redone(files, folder, classifier()) == [("survey", 2), ("Train", 2), *everywhere]
    # A shard that trains no members is the only one to be weighed again; the probabilities are those of new weights.
    few = classifier(n_members=12)
    redone(files, folder, few)
    Path(files[1]).write_text("".join(lines[:-7]))
    assert redone(files, folder, few) == [("survey", 1), ("Weigh", 1), *everywhere[4:]]


def test_sums_of_a_loss_of_the_users_are_not_recorded_as_nothing_tells_it_from_another(tmp_path: Path) -> None:
    files, folder = write_csv(tmp_path, shards(3, 60)), tmp_path / "record"

    def loss(z: Any) -> Any:
        return next(factors) * np.exp(-np.abs(z))

    for factor in (0.5, 0.9):
        engine, factors = Counting(), repeat(factor)
        model = fit(files, classifier(loss=loss, weighter="gamma_rate"), engine=engine, record=folder)
        assert [stage for stage, _ in engine.done if stage == "Weigh"] == ["Weigh"] * 3
        again = fit(files, classifier(loss=loss, weighter="gamma_rate"))
        np.testing.assert_array_equal(model.model_.weights(), again.model_.weights())


def test_a_damaged_record_is_made_again(tmp_path: Path) -> None:
    parts, folder = shards(3, 60), tmp_path / "record"
    redone(parts, folder, classifier())
    cut, altered = folder / "survey" / "000001", folder / "train" / "000001"
    cut.write_bytes(cut.read_bytes()[:-20])
    assert redone(parts, folder, classifier()) == [("survey", 1)]
    altered.write_bytes(altered.read_bytes()[:-1] + b"x")
    assert redone(parts, folder, classifier()) == [("Train", 1)]
    (folder / "weigh" / "000001").write_bytes(b"")
    assert redone(parts, folder, classifier()) == [("Weigh", 1)]


def test_shards_must_stay_as_they_are_during_a_run(tmp_path: Path) -> None:
    files = write_csv(tmp_path, shards(3, 60))

    def meddle(at: Any) -> None:
        if at.stage == "weigh" and at.done == 3:
            Path(files[0]).write_text(Path(files[0]).read_text() + "1,2,3,4,no\n")

    with pytest.raises(ValueError, match=r"00\.csv must not change during the run"):
        fit(files, classifier(), on_progress=meddle)


def test_the_time_limit_is_that_of_the_whole_run(tmp_path: Path) -> None:
    parts = shards(6, 60)

    def wait(_: Any) -> None:
        time.sleep(0.05)

    with pytest.raises(TimeoutError, match=r"the time limit of 0\.2 s has passed; \d of 6 shards finished .*resumes"):
        fit(parts, classifier(), time_limit=0.2, on_progress=wait, record=tmp_path)
    assert dumps(fit(parts, classifier(), record=tmp_path)) == dumps(fit(parts, classifier()))
    for wrong in (0, -1, float("nan")):
        with pytest.raises(ValueError, match="time_limit must be"):
            Job(time_limit=wrong)
    with pytest.raises(ValueError, match="bad_shards must be one of"):
        Job(bad_shards="leave")
