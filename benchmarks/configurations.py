"""The 34 configurations of other libraries that table 6 is compared with, and the loops that run them.

A configuration is a class with some parameters set, the same on every data set. All other parameters are the library's
defaults.
"""

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module, metadata
from typing import Any, NamedTuple

import numpy as np

from answers import Scored, scored
from bayesvote.core.checks import Array, Labels

SEED = "{seed}"  # placeholder of the seed of the order


class Make(NamedTuple):
    """A class in a library's package, and its parameters, which may be such objects too."""

    path: str
    parameters: Mapping[str, Any]

    def __str__(self) -> str:
        return f"{self.path}({', '.join(f'{key}={_shown(value)}' for key, value in self.parameters.items())})"


def make(path: str, **parameters: Any) -> Make:
    return Make(path, parameters)


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_shown, value))}]"
    if isinstance(value, Make):
        return str(value)
    return "seed" if value == SEED else repr(value)


def _built(what: Any, package: str, seed: int, **more: Any) -> Any:
    if isinstance(what, list):
        return [_built(one, package, seed) for one in what]
    if isinstance(what, Make):
        module, _, name = f"{package}.{what.path}".rpartition(".")
        parameters = {key: _built(value, package, seed) for key, value in what.parameters.items()}
        return getattr(import_module(module), name)(**more, **parameters)
    return seed if what == SEED else what


# Each of these yields its prediction of a row, or None, and learns the row when the next prediction is requested.
def _river(what: Make, seed: int, X: Array, y: Labels) -> Iterator[bool | None]:
    model = _built(what, "river", seed)
    for row, label in zip(X, y.tolist(), strict=True):
        x = dict(enumerate(row.tolist()))
        yield model.predict_one(x)
        model.learn_one(x, label == 1)


def _capymoa(what: Make, seed: int, X: Array, y: Labels) -> Iterator[bool | None]:
    core, streams = import_module("capymoa.core"), import_module("capymoa.stream")
    schema = streams.NumpyStream(X[:2], np.array([0, 1]), target_type="categorical").get_schema()
    model = _built(what, "capymoa", seed, schema=schema)
    for row, label in zip(X, y.tolist(), strict=True):
        instance = core.LabeledInstance.from_array(schema, row, label)
        answer = model.predict(instance)
        yield None if answer is None else bool(answer == 1)
        model.train(instance)


def _vowpal_wabbit(what: Make, seed: int, X: Array, y: Labels) -> Iterator[bool]:
    model = _built(what, "vowpalwabbit", seed)
    threshold = 0.5 if "--link logistic" in what.parameters["arg_str"] else 0.0
    for row, label in zip(X.tolist(), y.tolist(), strict=True):
        example = model.example(f"{2 * label - 1} | " + " ".join(f"{j}:{v:.9g}" for j, v in enumerate(row) if v))
        model.learn(example)  # the example keeps the prediction from before the update
        yield example.get_simplelabel_prediction() > threshold


def _scikit_learn(what: Make, seed: int, X: Array, y: Labels) -> Iterator[bool | None]:
    model = _built(what, "sklearn", seed)
    for i in range(len(y)):
        yield bool(model.predict(X[i : i + 1])[0] == 1) if i else None
        model.partial_fit(X[i : i + 1], y[i : i + 1], classes=[0, 1])


class Library(NamedTuple):
    """A library: the loop that runs it, its module and package, and how to install it."""

    drive: Callable[[Make, int, Array, Labels], Iterator[bool | None]]
    module: str
    package: str
    install: str

    @property
    def version(self) -> str:
        """The installed release."""
        return metadata.version(self.package)

    def missing(self) -> str:
        """Return the reason why the library cannot be run here, or an empty string."""
        try:
            import_module(self.module)
        except ImportError as error:
            return f"{error}; pip install {self.install}"
        except Exception as error:  # without Java, importing CapyMOA raises errors of several types
            return f"{type(error).__name__}: {error}"
        return ""


LIBRARIES: Mapping[str, Library] = {
    "river": Library(_river, "river", "river", "'bayesvote[peers]'"),
    "CapyMOA": Library(_capymoa, "capymoa.classifier", "capymoa", "'bayesvote[capymoa]', which needs Java"),
    "Vowpal Wabbit": Library(_vowpal_wabbit, "vowpalwabbit", "vowpalwabbit", "'bayesvote[peers]'"),
    "scikit-learn": Library(_scikit_learn, "sklearn", "scikit-learn", "scikit-learn"),
}

_LOGISTIC, _BAYES = make("linear_model.LogisticRegression"), make("naive_bayes.GaussianNB")
_TREE, _PERCEPTRON = make("tree.HoeffdingTreeClassifier"), make("linear_model.Perceptron")
_TRIO = [_LOGISTIC, _BAYES, _TREE]


def _moa(name: str, **parameters: Any) -> Make:
    return make(f"classifier.{name}", random_seed=SEED, **parameters)


def _vw(arguments: str) -> Make:
    return make("Workspace", arg_str=f"{arguments} --quiet")


_CONFIGURATIONS: Mapping[str, Mapping[str, Make]] = {
    "river": {
        "LogisticRegression": _LOGISTIC,
        "GaussianNB": _BAYES,
        "HoeffdingTree": _TREE,
        "Voting(LR,NB,HT)": make("ensemble.VotingClassifier", models=_TRIO),
        "Stacking(LR,NB,HT)": make("ensemble.StackingClassifier", models=_TRIO, meta_classifier=_LOGISTIC),
        "AdaBoost(Perceptron,10)": make("ensemble.AdaBoostClassifier", model=_PERCEPTRON, n_models=10, seed=SEED),
        "AdaBoost(Perceptron,100)": make("ensemble.AdaBoostClassifier", model=_PERCEPTRON, n_models=100, seed=SEED),
        "AdaBoost(HoeffdingTree,10)": make("ensemble.AdaBoostClassifier", model=_TREE, n_models=10, seed=SEED),
        "LeveragingBagging(HoeffdingTree,10)": make(
            "ensemble.LeveragingBaggingClassifier", model=_TREE, n_models=10, seed=SEED
        ),
        "SRP(10)": make("ensemble.SRPClassifier", n_models=10, seed=SEED),
        "ARF(10)": make("forest.ARFClassifier", n_models=10, seed=SEED),
        "ARF(100)": make("forest.ARFClassifier", n_models=100, seed=SEED),
        "AMF(10)": make("forest.AMFClassifier", n_estimators=10, seed=SEED),
        "AMF(100)": make("forest.AMFClassifier", n_estimators=100, seed=SEED),
    },
    "CapyMOA": {
        "NaiveBayes": _moa("NaiveBayes"),
        "HoeffdingTree": _moa("HoeffdingTree"),
        "SGD(hinge)": _moa("SGDClassifier"),
        "DynamicWeightedMajority": _moa("DynamicWeightedMajority"),
        "OzaBoost(HoeffdingTree,100)": _moa("OzaBoost", boosting_iterations=100),
        "OnlineSmoothBoost(NaiveBayes,100)": _moa(
            "OnlineSmoothBoost", base_learner="bayes.NaiveBayes", boosting_iterations=100
        ),
        "OnlineSmoothBoost(HoeffdingTree,100)": _moa(
            "OnlineSmoothBoost", base_learner="trees.HoeffdingTree", boosting_iterations=100
        ),
        "LeveragingBagging(100)": _moa("LeveragingBagging", ensemble_size=100),
        "ARF(10)": _moa("AdaptiveRandomForestClassifier", ensemble_size=10),
        "ARF(100)": _moa("AdaptiveRandomForestClassifier", ensemble_size=100),
        "SRP(10)": _moa("StreamingRandomPatches", ensemble_size=10),
        "SRP(100)": _moa("StreamingRandomPatches", ensemble_size=100),
        "SGBT(100)": _moa("StreamingGradientBoostedTrees"),
    },
    "Vowpal Wabbit": {
        "logistic": _vw("--loss_function logistic --link logistic"),
        "boosting 100 BBM": _vw("--boosting 100 --alg BBM"),
        "boosting 100 logistic": _vw("--boosting 100 --alg logistic"),
        "boosting 100 adaptive": _vw("--boosting 100 --alg adaptive"),
    },
    "scikit-learn": {
        "SGD(log_loss)": make("linear_model.SGDClassifier", loss="log_loss", random_state=SEED),
        # The replacement of PassiveAggressiveClassifier according to scikit-learn's documentation.
        "PassiveAggressive": make(
            "linear_model.SGDClassifier",
            loss="hinge",
            penalty=None,
            learning_rate="pa1",
            eta0=1.0,
            random_state=SEED,
        ),
        "GaussianNB": _BAYES,
    },
}


class Configuration(NamedTuple):
    """One of the 34 configurations: name, library, and model."""

    name: str
    library: Library
    what: Make

    def answers(self, seed: int, X: Array, y: Labels) -> Iterator[int | None]:
        """Yield the predicted class of each row, or None, before the row is learned."""
        with np.errstate(all="ignore"):  # naive Bayes divides by a variance of zero
            for answer in self.library.drive(self.what, seed, X, y):
                yield None if answer is None else int(answer)

    def scored(self, seed: int, X: Array, y: Labels) -> Scored:
        """Count the wrong predictions."""
        return scored(self.answers(seed, X, y), y.tolist())


CONFIGURATIONS: Mapping[str, Configuration] = {
    f"{library} {name}": Configuration(f"{library} {name}", LIBRARIES[library], what)
    for library, configurations in _CONFIGURATIONS.items()
    for name, what in configurations.items()
}
