#!/usr/bin/env python3
"""Test model files, rows, streams and readers with thousands of invalid inputs.

``python -m tools fuzz [--cases N] [--seed S] [--target files|rows|streams|readers]`` draws inputs that are almost
valid, with one or two faults. Each must raise a clear error or give a valid result. It must not crash, hang, change a
state when it is rejected, or take more memory than the limit.

- ``streams`` are valid, with unusual sizes, weights and columns.
- ``--target integers`` draws nothing. It sets every integer of a model file of each kind to its extremes, one at a
  time. Each kind has a separate process.
- ``--atheris SECONDS`` lets atheris, if it is installed, search for bytes that break the readers of models and text.
"""

import argparse
import faulthandler
import gc
import multiprocessing
import resource
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np

from bayesvote import (
    SAG,
    SGD,
    AveragedSGD,
    BayesianEnsembleClassifier,
    Committees,
    Ensemble,
    FernBank,
    Frozen,
    GammaRate,
    GammaShape,
    GammaShapeRate,
    JointGaussian,
    JointLogistic,
    LaplacePosterior,
    LinearBank,
    LogisticBank,
    NaiveBayesBank,
    NeighbourBank,
    NumericalPosterior,
    OGBoost,
    OSBoost,
    OSBoostClassifier,
    OzaBoost,
    OzaBoostClassifier,
    PerceptronBank,
    Scaled,
    TreeBank,
    Union,
    Voting,
)
from bayesvote.core.checks import InvalidInputError
from bayesvote.datasets import stream
from bayesvote.io.model_file import ModelFileError, dumps, loads
from bayesvote.io.model_file import file as _file
from bayesvote.weighting import drifting

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
edited: Callable[[bytes, Callable[[Any], None]], bytes] = import_module("model_files.samples").edited
file_tests: Any = import_module("model_files.test_spoilt_files")
mutated: Callable[[bytes, np.random.Generator], tuple[bytes, bool]] = file_tests.mutated
with_integers: Callable[[bytes], Iterator[tuple[str, bytes]]] = file_tests.with_integers

D = 4
GIGABYTES = 4
SECONDS = 60  # a case that takes longer hangs

Rng = np.random.Generator


def sample_rows(n: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(n, D))
    X[:, 1] = rng.integers(2, size=n)
    return X, (X[:, 0] + 0.3 * rng.normal(size=n) > 0).astype(np.intp)


X, Y = sample_rows(60)
TREES = TreeBank(2, [(16, 1, 4)], [1.0], rows_kept=32, max_nodes=31)
MODELS: list[Callable[[], Any]] = [
    lambda: Ensemble(PerceptronBank(3)),
    lambda: Ensemble(PerceptronBank(3, averaged=True), GammaShape(), "logistic"),
    lambda: Ensemble(LinearBank(3), JointLogistic((1.0, 2.0), (1.0, 0.9))),
    lambda: Ensemble(LinearBank(3), JointGaussian((1.0, 2.0), persistence=(1.0, 0.9))),
    lambda: Ensemble(NaiveBayesBank(3), GammaShapeRate(), "logistic"),
    lambda: Ensemble(FernBank(3, depth=2, warmup=8), GammaRate(forgetting=0.9)),
    lambda: Ensemble(TREES, JointGaussian(precision=1.0)),
    lambda: Ensemble(Union([Scaled(PerceptronBank(2)), Frozen(FernBank(2, depth=2, warmup=8))]), JointGaussian()),
    lambda: Ensemble(LogisticBank(2), SGD()),
    lambda: Ensemble(NeighbourBank((8, 30)), GammaRate()),
    lambda: Ensemble(Scaled(PerceptronBank(3)), AveragedSGD()),
    lambda: Ensemble(NaiveBayesBank(3), SAG(horizon=200)),
    lambda: Ensemble(Committees(Union([LinearBank(2), PerceptronBank(2)]), (2, 2)), Voting()),
    lambda: Ensemble(FernBank(3, depth=2, warmup=8), JointGaussian((1.0, 1e8))),
    lambda: Ensemble(TREES, drifting(), "wide_ramp"),
    lambda: OSBoost("perceptron", 3, variant="expert"),
    lambda: OSBoost("perceptron", 3, variant="convex"),
    lambda: OGBoost("perceptron", 2, pool=2),
    lambda: OzaBoost("perceptron", 3),
    lambda: OzaBoost("naive_bayes", 3),
    lambda: OGBoost("perceptron", 3),
    lambda: OSBoost("naive_bayes", 3),
]


def learned(make: Callable[[], Any], n: int, n_classes: int = 2) -> Any:
    model = make().start(D, n_classes, rng=0)
    model.decide_then_learn(X[:n], (Y[:n] + np.arange(n) // 2) % n_classes)
    return model


def full(bank: Any = None) -> Any:
    """Return a model whose bank (nearest neighbours by default) is full, so that a new row replaces an old one."""
    model = Ensemble(bank or NeighbourBank((8, 30)), GammaRate()).start(D, 2, rng=0)
    for _ in range(6 if bank is None else 14):
        model.decide_then_learn(X, Y % 2)
    return model


def classifiers(n: int) -> list[Any]:
    made: list[Any] = [
        BayesianEnsembleClassifier(n_members=6, calibrated=True, random_state=0),
        OzaBoostClassifier(n_members=3, random_state=0),
    ]
    return [model.partial_fit(X[:n], Y[:n], classes=[0, 1]) for model in made]


def tables(n: int) -> list[Any]:
    """Return classifiers that have learned text, numbers and missing values."""
    made: list[Any] = [BayesianEnsembleClassifier("mixed", n_members=6, random_state=0), OSBoostClassifier(n_members=3)]
    return [model.partial_fit(table(n), Y[:n], classes=[0, 1]) for model in made]


def table(n: int) -> Any:
    pandas: Any = import_module("pandas")
    texts = np.where(X[:n, 2] > 0.5, "many", np.where(X[:n, 2] > 0, "few", ""))
    return pandas.DataFrame({"size": X[:n, 0], "seen": X[:n, 1] > 0, "how": texts, "gaps": np.sqrt(abs(X[:n, 3]))})


def behaves(model: Any) -> None:
    """Check that a model, loaded or used, predicts finite numbers, learns, and can be saved."""
    decide = model.predict_proba if hasattr(model, "model_") else model.decide
    if not hasattr(model, "model_") and model.shape is None:
        return
    width = model.n_features_in_ if hasattr(model, "model_") else model.n_features
    rows: Any = np.resize(X, (12, width))
    if getattr(model, "columns_", None) is not None:
        rows = dict(zip(model.columns_.names, (table(12)[name].tolist() for name in table(12)), strict=True))
    found = decide(rows)
    assert np.all(np.isfinite(found)), "a prediction is not finite"
    if hasattr(model, "model_"):
        model.partial_fit(rows, model.classes_[Y[:12] % len(model.classes_)])
    else:
        model.decide_then_learn(rows, Y[:12] % model.n_classes)
    assert np.all(np.isfinite(decide(rows))), "a prediction after learning is not finite"
    dumps(model)


def with_wrong_numbers(data: bytes, rng: Rng) -> bytes:
    """Return a file with other signs, sizes, positions or NaN in one of its arrays, and a correct checksum."""
    _, description, arrays = _file.unpack(data)
    name = list(arrays)[rng.integers(len(arrays))]
    array = arrays[name].copy()
    if array.size == 0:
        return data
    flat = array.reshape(-1)
    at = rng.integers(flat.size, size=rng.integers(1, 4)) if rng.random() < 0.7 else slice(None)
    way = rng.integers(7)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if way == 0 and array.dtype.kind in "fi":
            flat[at] = -flat[at]
        elif way == 1:
            flat[at] = flat[rng.integers(flat.size)]
        elif way == 2 and array.dtype.kind == "f":
            flat[at] *= 10.0 ** rng.integers(-200, 200)
        elif way == 3 and array.dtype.kind == "f":
            flat[at] = rng.choice([np.nan, np.inf, 0.0, -0.0, 5e-324, 1.7e308])
        elif way == 4 and array.dtype.kind in "iu":
            most = np.iinfo(array.dtype).max
            given = rng.integers(-3, 2**31) if rng.random() < 0.5 else most - int(rng.integers(9))
            flat[at] = np.array(given).astype(array.dtype)
        elif way == 5:
            rng.shuffle(flat)
        else:
            flat[at] = np.array(rng.normal() * 10).astype(array.dtype)
    return _file.pack(description, {**arrays, name: array})


class Files:
    """Model files: rejected with a clear error, or loaded as a valid model."""

    def __init__(self) -> None:
        models = [learned(make, n) for make in MODELS for n in (0, 9, 60)] + classifiers(30) + tables(30)
        models.append(full())
        models += [learned(make, 60, 3) for make in MODELS]
        self.files = [dumps(model) for model in models]

    def case(self, rng: Rng) -> bool:
        original = self.files[rng.integers(len(self.files))]
        data = mutated(original, rng)[0] if rng.random() < 0.4 else with_wrong_numbers(original, rng)
        try:
            model = loads(data)
        except ModelFileError:
            return False
        with np.errstate(all="ignore"):
            behaves(model)
        return True


class Rows:
    """Rows, labels and weights: rejected without any change of the model, or learned."""

    def __init__(self) -> None:
        self.models = [learned(make, 30) for make in MODELS] + classifiers(30)

    def case(self, rng: Rng) -> bool:
        model = self.models[rng.integers(len(self.models))]
        shell = hasattr(model, "model_")
        before = dumps(model)
        given, y, w = self.rows(rng), self.labels(rng), self.weights(rng)
        try:
            if shell:
                model.partial_fit(given, y, sample_weight=w)
            else:
                model.decide_then_learn(given, y, w)
        except (InvalidInputError, ValueError, TypeError):
            assert dumps(model) == before, "a rejected call changed the model"
            return False
        finally:
            loads(before)
        if rng.random() < 0.2:
            behaves(model)
        return True

    def rows(self, rng: Rng) -> Any:
        given: Any = X[: rng.integers(0, 9)].copy()
        way = rng.integers(12)
        if way == 0 and given.size:
            given.reshape(-1)[rng.integers(given.size)] = rng.choice(
                [np.nan, np.inf, -np.inf, 1e99, 1e101, -1e308, 5e-324]
            )
        elif way == 1:
            given = given[:, : rng.integers(0, D)]
        elif way == 2:
            given = given.astype(rng.choice(["f4", "i8", "u1", "?", "O", "U5", "c16", "M8[s]", "f2", ">f8"]))
        elif way == 3:
            given = given.reshape(-1)
        elif way == 4:
            given = [*given.tolist(), [1.0]]
        elif way == 5:
            given = np.asfortranarray(given)[::-1]
        elif way >= 6:
            given = self.sparse(given, rng)
        return given

    def sparse(self, dense: Any, rng: Rng) -> Any:
        module: Any = import_module("scipy.sparse")
        form = rng.choice(["csr", "csc", "coo", "bsr", "dia", "dok", "lil"])
        matrix = getattr(module, f"{form}_{rng.choice(['array', 'matrix'])}")(dense)
        for name in ("indptr", "indices", "data", "offsets", "coords"):
            value: Any = getattr(matrix, name, None)
            if rng.random() < 0.25 and isinstance(value, (np.ndarray, tuple)) and form != "lil":
                part: Any = value[rng.integers(2)] if name == "coords" else value
                spoilt = np.array(part).astype(rng.choice(["i4", "i8", "f8"]) if rng.random() < 0.2 else part.dtype)
                if spoilt.size:
                    spoilt.reshape(-1)[rng.integers(spoilt.size)] = rng.choice([-1, 0, 1, D, 10**6, 2**31 - 1])
                if rng.random() < 0.3:
                    spoilt = spoilt[: rng.integers(len(spoilt) + 1)]
                matrix.__dict__[name] = (spoilt, value[1]) if name == "coords" else spoilt
        return matrix

    def labels(self, rng: Rng) -> Any:
        n = rng.integers(0, 9)
        options: list[Any] = [Y[:n], Y[:n].tolist(), Y[:n] * 1.0, Y[:n] - 1, Y[:n] * 2**40, ["x", "x\0"] * 4, None]
        options += [np.array(["a", None] * 4, dtype=object), Y[:n][None], Y[:n] == 1, [np.nan] * n, "01010101"]
        return options[rng.integers(len(options))] if rng.random() < 0.6 else Y[: rng.integers(1, 9)]

    def weights(self, rng: Rng) -> Any:
        options: list[Any] = [1.0, [1.0] * 8, -1.0, np.nan, 1e9, 1.1e9, 1e18, 1.7e308, 5e-324, "1", [0.0], [True] * 8]
        return options[rng.integers(len(options))] if rng.random() < 0.4 else None


def margin_loss(weights: Any, g: Any) -> Any:
    return 0.5 * (1 - (weights * (1 - 2 * g)).sum(axis=-1)) ** 2


def margin_prior(weights: Any) -> Any:
    return 50 * ((weights - 1 / weights.shape[-1]) ** 2).sum(axis=-1)


def rate_loss(weight: Any, g: Any) -> Any:
    return 0.1 * weight * g - np.log(weight)


def rate_prior(weight: Any) -> Any:
    return weight


class Streams:
    """Valid rows of any size, weight and pattern: the model stays finite, and can be saved and loaded."""

    makes: tuple[Callable[[], Any], ...] = (
        *MODELS,
        lambda: Ensemble(LogisticBank(3, precision=(1e-3, 1e3)), GammaShape(), "logistic"),
        lambda: Ensemble(LogisticBank(1, precision=1e-40), Voting()),
        lambda: Ensemble(NaiveBayesBank(2, kinds="gaussian"), GammaShapeRate(forgetting=0.9), "logistic"),
        lambda: Ensemble(NaiveBayesBank(2, kinds="bernoulli"), GammaRate(forgetting=0.5)),
        lambda: Ensemble(FernBank(3, depth=2, warmup=8), JointGaussian((1e-3, 1.0, 1e8))),
        lambda: Ensemble(PerceptronBank(3), JointGaussian(1.0, theta=1e6, forgetting=0.99)),
        lambda: Ensemble(PerceptronBank(3), JointGaussian((1e-3, 1e3), persistence=(0.5, 0.9999), discount=0.9)),
        lambda: Ensemble(LinearBank(4), JointLogistic((1.0, 1e6), (1.0, 0.5), discount=0.9)),
        lambda: Ensemble(Scaled(LogisticBank(2)), JointLogistic((1e-3, 1e3), scale=1e3)),
        lambda: Ensemble(Scaled(NeighbourBank((8, 30))), SGD(), "logistic"),
        lambda: Ensemble(Scaled(NaiveBayesBank(2)), AveragedSGD(), "logistic"),
        lambda: Ensemble(PerceptronBank(2), LaplacePosterior(margin_loss, margin_prior)),
        lambda: Ensemble(PerceptronBank(2), NumericalPosterior(rate_loss, rate_prior)),
    )

    def case(self, rng: Rng) -> bool:
        which, d, n_classes = (
            rng.integers(len(self.makes)),
            int(rng.choice([1, 2, 4, 9])),
            int(rng.choice([2, 2, 3, 5])),
        )
        model, taken = self.makes[which]().start(d, n_classes, rng=int(rng.integers(1000))), False
        slow = isinstance(getattr(model, "weighter", None), NumericalPosterior | LaplacePosterior)
        for _ in range(rng.integers(1, 5)):
            n = int(rng.choice([1, 5, 12] if slow else [1, 5, 40, 300]))
            given, y, w = self.rows(rng, n, d), self.labels(rng, n, n_classes), self.weights(rng, n)
            try:
                with np.errstate(all="ignore"):
                    model.decide_then_learn(given, y, w)
            except (InvalidInputError, ValueError):
                continue
            taken = True
            with np.errstate(all="ignore"):
                self.check(model, given)
        return taken

    def check(self, model: Any, given: Any) -> None:
        found = model.probabilities(model.decide(given))
        assert np.all((found >= 0) & (found <= 1)), f"{model}: a probability outside [0, 1]"
        weighter = getattr(model, "weighter", None)
        assert weighter is None or np.all(np.isfinite(model.weights())), f"{model}: a weight is not finite"
        try:
            data = dumps(model)
            again = dumps(loads(data, objects={"weighter": weighter} if weighter and weighter.reference else None))
        except ValueError as error:
            raise AssertionError(f"{model}: {error}") from error
        assert data == again, f"{model}: the loaded model differs from the saved one"

    def rows(self, rng: Rng, n: int, d: int) -> Any:
        given = rng.normal(size=(n, d))
        way = rng.integers(9)
        if way == 1:
            given *= 10.0 ** rng.integers(-99, 99, size=(1, d))
        elif way == 2:
            given *= 10.0 ** rng.integers(-99, 99, size=(n, d))
        elif way == 3:
            given *= 10.0 ** rng.integers(-9, 9, size=(n, 1))
        elif way == 4:
            given[rng.random(given.shape) < rng.random()] = np.nan
        elif way == 5:
            given[:] = rng.choice([0, 1, -1, 1e100, -1e100, 1e-300, 5e-324])
        elif way == 6:
            given = np.round(given)
        elif way == 7:
            given[:, rng.integers(d)] = given[:, 0]
            given[:, rng.integers(d)] = rng.normal()
        elif way == 8:
            given = given[rng.integers(min(n, 3), size=n)] * 10.0 ** rng.integers(-99, 99)
        return given

    def labels(self, rng: Rng, n: int, n_classes: int) -> Any:
        return rng.integers(n_classes, size=n) if rng.random() < 0.7 else np.full(n, rng.integers(n_classes))

    def weights(self, rng: Rng, n: int) -> Any:
        if rng.random() < 0.3:
            return None
        if rng.random() < 0.5:
            return np.full(n, rng.choice([1.0, 0.3, 1e9, 1e-12, 1e-300, 5e-324, 0.0]))
        return np.minimum(10.0 ** rng.uniform(rng.choice([-323, -12, -1]), 9, n), 1e9) * (rng.random(n) < 0.8)


class Readers:
    """CSV and LIBSVM text with faults: rows, or an error that names the line."""

    def __init__(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.sound = {
            "csv": "a,b,label\n" + "".join(f"{i}.5,{-i},{'yes' if i % 2 else 'no'}\n" for i in range(12)),
            "libsvm": "".join(f"{i % 2} 1:{i}.5 3:{-i}\n" for i in range(12)),
        }
        self.pieces = [
            "\0",
            '"',
            "'",
            ",",
            "\n",
            "\r",
            "nan",
            "inf",
            "1e999",
            "9" * 400,
            "-",
            ":",
            "2147483647:1",
            "#",
            "é",
            "\ufeff",
        ]

    def case(self, rng: Rng) -> bool:
        form = rng.choice(list(self.sound))
        text = self.sound[form]
        for _ in range(rng.integers(0, 4)):
            at, cut = rng.integers(len(text)), rng.integers(0, 5)
            text = text[:at] + str(rng.choice(self.pieces)) * int(rng.integers(1, 3)) + text[at + cut :]
        return self.read(text.encode("utf-8", "surrogatepass"), form, str(rng.choice(["raise", "skip"])))

    def read(self, data: bytes, form: str, bad_lines: str) -> bool:
        path = Path(self.folder.name) / f"rows.{form}"
        path.write_bytes(data)
        try:
            n = sum(len(chunk.y) for chunk in stream(path, bad_lines=bad_lines))
        except (InvalidInputError, ValueError):
            return False
        assert n <= data.count(b"\n") + data.count(b"\r") + 1, "more rows than lines"
        return True


TARGETS: dict[str, Callable[[], Any]] = {"files": Files, "rows": Rows, "streams": Streams, "readers": Readers}


def run(name: str, n_cases: int, seed: int, go_on: bool) -> int:
    target, start, taken = TARGETS[name](), time.process_time(), 0
    wrong: Counter[str] = Counter()
    first: dict[str, int] = {}
    for number in range(n_cases):
        faulthandler.dump_traceback_later(SECONDS, exit=True)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                taken += target.case(np.random.default_rng([seed, number]))
        except Exception as error:
            if not go_on:
                print(f"case {number} of {name}, seed {seed}:", file=sys.stderr)
                raise
            said = f"{type(error).__name__}: {error}"
            wrong[said] += 1
            first.setdefault(said, number)
        if name == "rows" and number % 500 == 499:
            target.__init__()  # start again from valid models, because these have learned many odd rows
    faulthandler.cancel_dump_traceback_later()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    seconds = time.process_time() - start
    print(
        f"{name}: {n_cases:,} cases: {taken:,} accepted, {wrong.total():,} failed, the others rejected; "
        f"{seconds:.0f} s, at most {peak:.0f} MB",
        flush=True,
    )
    for what, times in wrong.most_common():
        print(f"  {times:,} times, first in case {first[what]}: {what}", flush=True)
    return wrong.total()


def with_each_integer(go_on: bool) -> int:
    """Test model files with one changed integer, in an array or the header; each kind has a separate process."""
    boosters: list[Callable[[], Any]] = [
        lambda: OGBoost("naive_bayes", 3),
        lambda: OzaBoost("perceptron", 3, scale=True),
        lambda: OSBoost("naive_bayes", 3, variant="expert"),
    ]
    kinds = [[learned(make, n, k) for n, k in ((9, 2), (60, 2), (60, 3))] for make in [*MODELS, *boosters]]
    kinds += [[full()], [full(TREES)], classifiers(30), tables(30)]
    start, totals, wrong = time.perf_counter(), np.zeros(2, dtype=int), Counter[str]()
    context = multiprocessing.get_context("spawn")
    for models in kinds:
        receiver, sender = context.Pipe(duplex=False)
        process = context.Process(target=scan, args=([dumps(model) for model in models], go_on, sender))
        process.start()
        sender.close()
        try:
            n, taken, found = receiver.recv()
            totals += np.array([n, taken])
            wrong += found
        except EOFError:
            process.join()
            wrong[f"the process of {models[0]} ended with {process.exitcode}"] += 1
        process.join()
    print(
        f"integers: {totals[0]:,} cases: {totals[1]:,} accepted, {wrong.total():,} failed, the others rejected; "
        f"{time.perf_counter() - start:.0f} s",
        flush=True,
    )
    for what, times in wrong.most_common():
        print(f"  {times:,} times {what}", flush=True)
    return wrong.total()


def scan(files: list[bytes], go_on: bool, sender: Any) -> None:
    """Send the number of files with a changed integer, the number that was accepted, and the failures."""
    limit()
    n, taken, wrong = 0, 0, Counter[str]()
    for what, data in (case for file in files for case in with_integers(file)):
        faulthandler.dump_traceback_later(SECONDS, exit=True)
        n += 1
        try:
            model = loads(data)
            taken += 1
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                behaves(model)
        except ModelFileError:
            continue
        except Exception as error:
            if not go_on:
                raise
            wrong[f"{what}: {type(error).__name__}: {error}"] += 1
    sender.send((n, taken, wrong))


def limit() -> None:
    """Report crashes and hangs, and limit the memory."""
    faulthandler.enable()
    resource.setrlimit(resource.RLIMIT_AS, (GIGABYTES << 30, GIGABYTES << 30))


def with_atheris(seconds: int) -> None:
    """Test bytes that atheris mutates by code coverage; the checksum of a model file is corrected."""
    atheris: Any = import_module("atheris")
    readers = Readers()

    def test(data: bytes) -> None:
        way, rest = data[:1], data[1:]
        if way >= b"\x55":
            readers.read(rest, "csv" if way < b"\xaa" else "libsvm", "skip" if rest[:1] < b"\x60" else "raise")
            return
        with suppress(Exception):
            rest = edited(rest, lambda _: None)
        with suppress(ModelFileError), np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            behaves(loads(rest))

    with tempfile.TemporaryDirectory() as corpus:
        seeds = [b"\x00" + file for file in Files().files] + [
            way + text.encode() for way, text in zip((b"\x60", b"\xb0"), readers.sound.values(), strict=True)
        ]
        for number, seed in enumerate(seeds):
            (Path(corpus) / f"{number}").write_bytes(seed)
        for one in gc.get_objects():  # the modules are imported already, so instrument each function
            if isinstance(one, FunctionType) and f"{one.__module__}.".startswith(("bayesvote.", "json.", "csv.")):
                atheris.instrument_func(one)
        limits = [f"-max_total_time={seconds}", "-rss_limit_mb=4096", "-timeout=60", "-max_len=30000"]
        atheris.Setup([sys.argv[0], *limits, corpus], test)
        atheris.Fuzz()  # ends the process


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m tools fuzz", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--target", choices=[*TARGETS, "integers"], default=None)
    parser.add_argument("--go-on", action="store_true", help="count failed cases instead of stopping at the first one")
    parser.add_argument("--atheris", type=int, default=0, metavar="SECONDS")
    given = parser.parse_args()
    limit()
    if given.atheris:
        with_atheris(given.atheris)
    if given.target == "integers":
        sys.exit(1 if with_each_integer(given.go_on) else 0)
    names = TARGETS if given.target is None else [given.target]
    if sum(run(name, given.cases, given.seed, given.go_on) for name in names):
        sys.exit(1)


if __name__ == "__main__":
    main()
