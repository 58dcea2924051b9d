"""Files: how they are written, and which are refused."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bayesvote import (
    SAG,
    Ensemble,
    FernBank,
    JointGaussian,
    NaiveBayesBank,
    OGBoost,
    OzaBoost,
    PerceptronBank,
    Union,
    Voting,
    __version__,
)
from bayesvote.estimators import OSBoostClassifier
from bayesvote.io.model_file import ModelFileError, dumps, load, loads, save
from bayesvote.io.model_file import file as _file
from model_files.samples import D, described, edited, equal, rows


def test_the_file_is_a_safetensors_file(tmp_path: Path) -> None:
    safetensors = pytest.importorskip("safetensors.numpy", reason="safetensors is not installed")
    from safetensors import safe_open

    model = Ensemble(PerceptronBank(5), JointGaussian()).start(D, rng=0)
    save(model, tmp_path / "m.safetensors")
    arrays = safetensors.load_file(tmp_path / "m.safetensors")
    assert model.state is not None
    for name, array in model.state._asdict().items():
        assert np.array_equal(arrays[f"state.{name}"], array)
    with safe_open(tmp_path / "m.safetensors", framework="numpy") as file:
        about = file.metadata()
    assert (about["format"], about["version"]) == ("bayesvote", "2")
    assert about["library"] == __version__
    assert json.loads(about["model"])["parameters"]["weighter"]["kind"] == "JointGaussian"


def test_saving_replaces_the_file_and_keeps_links(tmp_path: Path) -> None:
    path = tmp_path / "m.safetensors"
    save(OzaBoost(), path)
    (tmp_path / "link").symlink_to(path)
    save(OGBoost(), tmp_path / "link")
    assert load(path) == OGBoost()
    assert sorted(os.listdir(tmp_path)) == ["link", "m.safetensors"]
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "none")
    with pytest.raises(OSError):
        save(OzaBoost(), tmp_path / "none" / "m")
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError):
        save(OzaBoost(), tmp_path / "folder")
    assert sorted(os.listdir(tmp_path)) == ["folder", "link", "m.safetensors"]


def test_bad_files_are_refused_in_words(tmp_path: Path) -> None:
    safetensors = pytest.importorskip("safetensors.numpy", reason="safetensors is not installed")
    data = dumps(Ensemble(PerceptronBank(3)).start(D, rng=0))
    for bad, said in [
        (b"", "no valid header"),
        (b"not a model", "no valid header"),
        (data[:100], "no valid header"),
        (data[:-1], "truncated or changed"),
        (data + b"0", "truncated or changed"),
        (safetensors.save({"x": np.zeros(3)}), "another safetensors file"),
        (safetensors.save({"x": np.zeros(3)}, metadata={"format": "pt"}), "another safetensors file"),
        (edited(data, lambda header: header["__metadata__"].update(version="3", library="9.1")), "bayesvote 9.1. Upd"),
        (edited(data, lambda header: header["__metadata__"].pop("version")), "format version 2"),
        (edited(data, lambda header: header.pop("bank.state.bias")), "belong to no array|bytes"),
    ]:
        with pytest.raises(ModelFileError, match=said):
            loads(bad)
    (tmp_path / "m").write_bytes(data)
    with pytest.raises(ModelFileError, match="at most max_bytes=100 bytes"):
        load(tmp_path / "m", max_bytes=100)
    assert equal(load(tmp_path / "m", max_bytes=len(data)), loads(data))
    (tmp_path / "penguins.csv").write_text("a,b\n1,2\n")
    with pytest.raises(ModelFileError, match=r"^load\('.*penguins.csv'\): the file must be a safetensors file, got"):
        load(tmp_path / "penguins.csv")


def test_a_key_that_occurs_twice_is_refused() -> None:
    data = dumps(Ensemble(PerceptronBank(3)))

    def doubled(header: Any) -> None:
        about = header["__metadata__"]
        about["model"] = '{"kind": "OSBoost", ' + about["model"].removeprefix("{")

    with pytest.raises(ModelFileError, match="a key occurs twice"):
        loads(edited(data, doubled))


def test_a_file_cannot_name_what_is_not_ours() -> None:
    data = dumps(Ensemble(PerceptronBank(3)))

    def renamed(**changes: Any) -> bytes:
        return described(data, lambda model: model["parameters"]["bank"].update(changes))

    for kind in ("os.system", "Ensemble", "GammaRate", "EstimatorBank", "builtins.eval", "", None, ["PerceptronBank"]):
        with pytest.raises(ModelFileError):
            loads(renamed(kind=kind))
    with pytest.raises(ModelFileError, match="n_jobs"):
        loads(renamed(parameters={"n_jobs": 1}))
    with pytest.raises(ModelFileError, match="loss must be one of"):
        loads(described(data, lambda model: model["parameters"].update(loss="eval")))


def test_a_small_file_cannot_ask_for_much_memory() -> None:
    huge = 2**40
    for model in (
        Ensemble(PerceptronBank(2)).start(D),
        Ensemble(NaiveBayesBank(2)).start(D),
        Ensemble(FernBank(2, depth=2, warmup=8)).start(D),
        OzaBoost("naive_bayes", 2).start(D),
    ):
        data = dumps(model)

        def changed(key: str, value: Any, data: bytes = data) -> bytes:
            def change(node: Any) -> None:
                part = node["parameters"].get("bank", node)
                if key == "n_members":
                    part["parameters"]["n_members"] = value
                else:
                    shape = [value, 2] if key == "n_features" else [D, value]
                    part["learned"]["facts"]["shape"] = node["learned"]["facts"]["shape"] = shape

            return described(data, change)

        for key in ("n_members", "n_features", "n_classes"):
            with pytest.raises(ModelFileError, match=r"bytes or more in a file|n_features must be at most"):
                loads(changed(key, huge))
    wide: dict[str, Any] = {"kind": "JointGaussian", "parameters": {}, "learned": None}
    joint = dumps(Ensemble(PerceptronBank(300, max_features=1), Voting()).start(1))
    with pytest.raises(ModelFileError, match="JointGaussian: a state of"):
        loads(described(joint, lambda node: node["parameters"].update(weighter=wide)))
    labels = {"array": ["a"] * 10_000 + ["b" * 10_000], "dtype": "U"}
    with pytest.raises(ModelFileError, match="more memory than the file"):
        loads(described(joint, lambda node: node["parameters"]["bank"]["parameters"].update(max_features=labels)))


@pytest.mark.parametrize(
    ("array", "at", "value"),
    [
        ("bank.banks[0].state.features", 0, 99),
        ("bank.banks[0].state.mask", 0, 2),
        ("bank.banks[0].state.weights", 0, np.nan),
        ("bank.banks[1].state.features", 0, 99),
        ("bank.banks[1].state.values_seen", -D - 1, 7.0),
        ("bank.banks[2].state.seen", 0, 100),
        ("bank.banks[2].state.seen", 0, -1),
        ("bank.banks[2].state.columns", 0, 3),
        ("bank.banks[2].state.candidates", 0, 6),
        ("bank.banks[2].state.places", 0, 1.0),
        ("bank.banks[2].state.labels", 0, 2),
        ("bank.banks[2].state.slots", 0, 6),
        ("bank.banks[2].state.slot_of", 0, 6),
        ("bank.banks[2].state.counts", 0, -1.0),
        ("state.rows", 0, 512),
        ("state.rows", 0, -1),
        ("state.means", 0, np.inf),
    ],
)
def test_states_that_would_mislead_a_kernel_are_refused(array: str, at: int, value: float) -> None:
    bank = Union([PerceptronBank(3), NaiveBayesBank(3), FernBank(4, depth=3, warmup=16)])
    model = Ensemble(bank, JointGaussian()).start(D, rng=0)
    model.decide_then_learn(*rows(40))
    data = dumps(model)
    _, description, arrays = _file.unpack(data)
    arrays[array].reshape(-1)[at] = value
    with pytest.raises(ModelFileError):
        loads(_file.pack(description, arrays))


def test_boosters_states_that_would_mislead_a_kernel_are_refused() -> None:
    model = OzaBoost("naive_bayes", 3).start(D, rng=0)
    model.decide_then_learn(*rows(40))
    for name, value in (("order", 6), ("order", -1), ("n_continuous", 7), ("seen", -1.0), ("record", np.nan)):
        _, description, arrays = _file.unpack(dumps(model))
        arrays[f"state.{name}"].reshape(-1)[0] = value
        with pytest.raises(ModelFileError):
            loads(_file.pack(description, arrays))


def test_boosters_that_count_more_than_there_was_are_refused() -> None:
    model = OzaBoost("naive_bayes", 3).start(D, rng=0)
    X, y = rows(40)
    X = np.where(np.arange(D) < 3, X > 0, X)
    model.decide_then_learn(X, y)
    for change in (-1.0, 1e6):
        _, description, arrays = _file.unpack(dumps(model))
        at = int(arrays["state.n_continuous"][0, 0])  # the first feature of two values
        assert at < D
        arrays["state.stats"][0, 0, 0, at] = change
        with pytest.raises(ModelFileError, match="counts in stats"):
            loads(_file.pack(description, arrays))


def test_an_array_that_belongs_to_nothing_is_refused() -> None:
    _, description, arrays = _file.unpack(dumps(Ensemble(PerceptronBank(3)).start(D, rng=0)))
    with pytest.raises(ModelFileError, match="the array 'spare' belongs to no part"):
        loads(_file.pack(description, arrays | {"spare": np.zeros(3)}))


def test_classes_that_are_not_in_order_are_refused() -> None:
    X, y = rows(20)
    data = dumps(OSBoostClassifier(n_members=3, random_state=0).fit(np.nan_to_num(X), y))
    assert loads(data).classes_.tolist() == [0, 1]
    with pytest.raises(ModelFileError, match="classes_ or n_features_in_"):
        loads(described(data, lambda model: model["learned"]["facts"]["classes_"].update(array=[1, 0])))


def test_labels_that_end_in_nul_are_refused_as_strings() -> None:
    """NumPy would strip it from an array of strings, so that the label would be another one."""
    X, y = rows(20)
    data = dumps(OSBoostClassifier(n_members=2).fit(np.nan_to_num(X), np.array(["a", "b"])[y]))
    labels = ["a", "b\0"]

    def forged(dtype: str) -> bytes:
        return described(data, lambda model: model["learned"]["facts"]["classes_"].update(array=labels, dtype=dtype))

    with pytest.raises(ModelFileError, match="labels that end in NUL must have the type object"):
        loads(forged("U"))
    kept: Any = loads(forged("O"))
    assert kept.classes_.tolist() == labels


def test_truth_values_are_0_or_1() -> None:
    """Others would be true here and something else there."""
    data = _file.pack({"kind": "any"}, {"flags": np.array([True, False, True])})
    np.testing.assert_array_equal(_file.unpack(edited(data, lambda _: None))[2]["flags"], [True, False, True])
    for wrong in (2, 255):
        spoilt = edited(data[:-1] + bytes([wrong]), lambda _: None)
        with pytest.raises(ModelFileError, match="booleans must be 0 or 1 in flags"):
            _file.unpack(spoilt)


def test_boosters_that_name_a_feature_twice_are_refused() -> None:
    model = OzaBoost("naive_bayes", 3).start(D, rng=0)
    _, description, arrays = _file.unpack(dumps(model))
    arrays["state.order"][0, 0] = arrays["state.order"][0, 1]
    with pytest.raises(ModelFileError, match="order"):
        loads(_file.pack(description, arrays))


def test_a_stream_beyond_its_horizon_is_refused() -> None:
    model = Ensemble(PerceptronBank(3), SAG(horizon=40)).start(D, rng=0)
    model.decide_then_learn(*rows(40))
    _, description, arrays = _file.unpack(dumps(model))
    assert equal(loads(_file.pack(description, arrays)), model)
    arrays["state.fields"][3] = 41
    with pytest.raises(ModelFileError, match="within the horizon"):
        loads(_file.pack(description, arrays))


def test_parts_that_were_started_for_different_rows_are_refused() -> None:
    data = dumps(Ensemble(Union([PerceptronBank(2), NaiveBayesBank(2)])).start(D, rng=0))

    def shaped(where: str, shape: list[int]) -> bytes:
        def change(node: Any) -> None:
            of = {"ensemble": node, "union": node["parameters"]["bank"]}
            of["first bank"] = of["union"]["parameters"]["banks"][0]
            of[where]["learned"]["facts"]["shape"] = shape

        return described(data, change)

    with pytest.raises(ModelFileError, match=r"members for .* features and classes instead of"):
        loads(shaped("ensemble", [D, 3]))
    with pytest.raises(ModelFileError, match=r"must have . features and 3 classes each"):
        loads(shaped("union", [D, 3]))
    for where in ("ensemble", "union", "first bank"):
        with pytest.raises(ModelFileError, match="n_classes must be an integer of at least 2"):
            loads(shaped(where, [D, 1]))
        with pytest.raises(ModelFileError, match="n_features must be an integer of at least 1"):
            loads(shaped(where, [0, 2]))
    _, description, arrays = _file.unpack(data)
    _, other, wider = _file.unpack(dumps(Ensemble(NaiveBayesBank(2)).start(D + 1, rng=0)))
    description["parameters"]["bank"]["parameters"]["banks"][1] = other["parameters"]["bank"]
    arrays |= {name.replace("bank.", "bank.banks[1]."): array for name, array in wider.items() if "bank." in name}
    with pytest.raises(ModelFileError, match="Union"):
        loads(_file.pack(description, arrays))


def test_a_calibration_that_no_stream_leads_to_is_refused() -> None:
    X, y = rows(20)
    model = OSBoostClassifier(n_members=3, random_state=0, calibrated=True).fit(np.nan_to_num(X), y)
    _, description, arrays = _file.unpack(dumps(model))
    arrays["state.mean"][1] = -1.0
    with pytest.raises(ModelFileError, match="the calibration's mean must be at least 0"):
        loads(_file.pack(description, arrays))
    model.calibration_.mean[1] = -1.0
    with pytest.raises(ValueError, match="must be valid, but in OSBoostClassifier: the calibration's mean"):
        dumps(model)


@pytest.mark.parametrize("count", [-1.0, np.nan, np.inf, 1.7e308])
def test_class_counts_that_no_stream_leads_to_are_refused(count: float) -> None:
    X, y = rows(20)
    model = OSBoostClassifier(n_members=3, random_state=0, class_weight="balanced").fit(np.nan_to_num(X), y)
    _, description, arrays = _file.unpack(dumps(model))
    arrays["state.class_counts"][:] = count
    with pytest.raises(ModelFileError, match="class counts that are not"):
        loads(_file.pack(description, arrays))


KILLED = """
import os, random, signal, sys, time
from bayesvote import Ensemble, PerceptronBank
from bayesvote.io.model_file import dumps, load, save

path = sys.argv[1]
models = [Ensemble(PerceptronBank(m)).start(54, rng=0) for m in (20, 100)]
files = [dumps(model) for model in models]
save(models[0], path)
random.seed(0)
ends = [0, 0]
for _ in range(200):
    child = os.fork()
    if child == 0:
        while True:
            for model in models:
                save(model, path)
    time.sleep(random.uniform(0.0, 0.02))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    ends[files.index(dumps(load(path)))] += 1
print(*ends)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system cannot fork")
def test_two_hundred_kills_while_saving(tmp_path: Path) -> None:
    path = tmp_path / "m.safetensors"
    done = subprocess.run([sys.executable, "-c", KILLED, str(path)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    ends = [int(n) for n in done.stdout.split()]
    assert sum(ends) == 200
    assert min(ends) > 0
    assert len(os.listdir(tmp_path)) > 10  # what was being written when the kill came
