"""The options that choose a model."""

import inspect
from dataclasses import asdict, dataclass
from typing import Annotated, Any

import typer
from numpy.typing import NDArray

from bayesvote import losses, weighting
from bayesvote.apps.cli.errors import option, usage
from bayesvote.apps.cli.lists import split
from bayesvote.apps.cli.options import one_of_names
from bayesvote.boosting import BOOSTERS
from bayesvote.core.checks import InputError
from bayesvote.members import named as member_names


def _option(*names: str, **settings: Any) -> Any:
    return typer.Option(*names, rich_help_panel="Model", **settings)


def _models() -> list[str]:
    return ["bayesian", *sorted(BOOSTERS)]


@dataclass(frozen=True)
class ModelOptions:
    """The model and its parameters; None is the default of the model."""

    model: Annotated[str, _option(help=f"Model: {', '.join(_models())}.", **one_of_names(_models))] = "bayesian"
    members: Annotated[
        str | None,
        _option(
            help=f"Members of the ensemble: {', '.join(sorted(member_names()))} (default adaptive). Parameters go in "
            "parentheses: 'fern(depth=6)'. Boosters accept perceptron (default) and naive_bayes.",
            **one_of_names(member_names),
        ),
    ] = None
    n_members: Annotated[int, _option(min=1, metavar="N", help="Number of members.")] = 100
    max_features: Annotated[
        str | None, _option(help="Features per member: auto, all, a fraction such as 0.5, or a number.")
    ] = None
    weighter: Annotated[
        str | None,
        _option(
            help=f"Rule for the weights: {', '.join(sorted(weighting.named()))} (default drifting). Parameters go in "
            "parentheses: 'sag(horizon=5000)'.",
            **one_of_names(weighting.named),
        ),
    ] = None
    loss: Annotated[
        str | None,
        _option(
            help=f"Loss: {', '.join(sorted(losses.LOSSES))}. The default depends on the weighter.",
            **one_of_names(lambda: losses.LOSSES),
        ),
    ] = None
    forgetting: Annotated[
        float | None,
        _option(metavar="X", help="Decay factor (at most 1) applied to the influence of past rows with each new row."),
    ] = None
    scale: Annotated[
        bool | None,
        _option("--scale/--no-scale", help="Standardise features for linear members (default: on)."),
    ] = None
    class_weight: Annotated[
        str | None,
        _option(
            metavar="WEIGHTS",
            help="balanced, to give all labels the same total weight, or weights of labels: rare=5,other=0.5.",
        ),
    ] = None
    seed: Annotated[int, _option(min=0, metavar="N", help="Random seed.")] = 0

    def parsed(self) -> dict[str, Any]:
        """Return the options by name, as checkpoints and results store them."""
        return asdict(self) | {"max_features": self.features_per_member}

    @property
    def features_per_member(self) -> str | float | int | None:
        """The value of ``--max-features``; None for the model's default."""
        text = self.max_features
        if text is None or text in ("auto", "all"):
            return text
        try:
            return float(text) if "." in text else int(text)
        except ValueError:
            raise typer.BadParameter(
                f"it must be auto, all, a fraction such as 0.5 or a number, got {text!r}.", param_hint="--max-features"
            ) from None

    def classifier(self, columns: dict[str, str] | None) -> Any:
        """Make a new model; ``columns`` are the stated kinds of columns."""
        from bayesvote.estimators import CLASSIFIERS

        kind: Any = CLASSIFIERS[self.model]
        known = inspect.signature(kind).parameters
        parameters: dict[str, Any] = {"n_members": self.n_members, "random_state": self.seed}
        for name in ("members", "max_features", "weighter", "loss", "forgetting", "scale"):
            value = self.features_per_member if name == "max_features" else getattr(self, name)
            if value is None:
                continue
            parameter = name if name in known else name.removesuffix("s")
            if parameter not in known:
                message = f"boosters do not have this option. Leave it out with --model {self.model}."
                raise typer.BadParameter(message, param_hint=option(name))
            parameters[parameter] = value
        if self.max_features == "all":
            parameters["max_features"] = None
        found = kind(**parameters, columns=columns, class_weight=self._class_weight())
        with usage():
            try:
                found.check()
            except InputError as error:
                if self.weighter != "sag" or error.subject != "horizon":
                    raise
                must, do = "needs the number of rows to come", "Pass it as in --weighter 'sag(horizon=5000)'."
                raise InputError("", "--weighter sag", must, do=do) from error
        return found

    def class_weights(self, classes: NDArray[Any]) -> Any:
        """Return the weights of labels; ``classes`` are the labels of the file."""
        given = self._class_weight()
        if not isinstance(given, dict):
            return given
        known = {str(label): label for label in classes.tolist()}
        return {known.get(text, text): weight for text, weight in given.items()}

    def _class_weight(self) -> dict[str, float] | str | None:
        """Return the weights of labels by their text."""
        if self.class_weight in (None, "balanced"):
            return self.class_weight
        found = {}
        for given in split(self.class_weight or ""):
            label, _, weight = given.rpartition("=")
            try:
                found[label.strip()] = float(weight)
            except ValueError:
                label = ""
            if not label.strip():
                message = f"it must be balanced or label=weight,label=weight, got {self.class_weight!r}."
                raise typer.BadParameter(message, param_hint="--class-weight")
        return found
