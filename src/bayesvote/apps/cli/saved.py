"""Work of ``inspect`` and ``merge``: show a saved model, or merge several."""

from collections.abc import Sequence
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from bayesvote.apps.cli import show
from bayesvote.apps.cli.models import Classifier, load_classifier, load_model
from bayesvote.apps.report.run import ColumnArrays, importances_of, weight_columns
from bayesvote.core.checks import InputError, Labels
from bayesvote.core.files import naming
from bayesvote.ensemble import Ensemble
from bayesvote.estimators.summary import facts_of
from bayesvote.io.model_file import save
from bayesvote.weighting import Posterior

_FIRST = 20  # members or names shown without --all


def inspect(path: Path, *, everything: bool, report: Path | None, as_json: bool) -> None:
    """Show a model."""
    if report is not None:
        show.require_report()
    model = load_classifier(path)
    about = _about(model)
    table = getattr(model, "weights_", None)
    weights = None if table is None else weight_columns(table)
    if report is not None:
        _report(path, model, about, report)
    ranking = importances_of(model)
    importances = None if ranking is None else weight_columns(ranking)
    if as_json:
        rows = None if weights is None else _records(weights)
        shares = None if importances is None else dict(zip(*(v.tolist() for v in importances.values()), strict=True))
        show.as_json({"model": str(path), **about, "weights": rows, "importances": shares})
        return
    screen = show.console()
    screen.print(show.facts({name.replace("_", " "): _text(value) for name, value in about.items()}))
    if weights is not None:
        screen.print()
        _print_weights(screen, weights, _order(model.model_), everything)
    if importances is not None:
        screen.print()
        _print_importances(screen, importances, everything)
    if report is not None:
        show.note(f"Wrote {report}.")


def merge(paths: Sequence[Path], out: Path) -> None:
    """Merge models with the same frozen members."""
    models = [load_model(path) for path in paths]
    for path, model in zip(paths, models, strict=True):
        if not hasattr(model, "merge"):
            raise InputError(
                "",
                str(path),
                "must be an ensemble with frozen members to be merged",
                type(model).__name__,
                "The members of boosters change with every row.",
            )
        if type(model) is not type(models[0]):
            must = f"must be a {type(models[0]).__name__} like {paths[0]}"
            raise InputError("", str(path), must, type(model).__name__)
    save(reduce(lambda merged, model: merged.merge(model), models), out)
    show.note(f"Merged {len(paths)} models into {out}.")


def _about(model: Classifier) -> dict[str, Any]:
    """Return facts about a model of any kind."""
    about: dict[str, Any] = {"kind": type(model).__name__} | facts_of(model)
    about["classes"] = model.classes_.tolist()
    about["features"] = model.n_features_in_
    names = getattr(model, "feature_names_in_", None)
    about["feature_names"] = None if names is None else names.tolist()
    if hasattr(model, "columns_"):
        about["columns"] = {found.pop("name"): found for found in model.columns_.describe()}
        about["encoded_features"] = model.model_.n_features
    return about


def _text(value: Any) -> str:
    if value is None:
        return "unknown"
    if isinstance(value, dict):
        return _text([f"{name} ({about['kind']})" for name, about in value.items()])
    if isinstance(value, list):
        first = ", ".join(map(str, value[:_FIRST]))
        return first if len(value) <= _FIRST else f"{first}, and {len(value) - _FIRST} more"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _records(columns: ColumnArrays) -> list[dict[str, Any]]:
    rows = zip(*(values.tolist() for values in columns.values()), strict=True)
    return [{"member": i, **dict(zip(columns, row, strict=True))} for i, row in enumerate(rows)]


def _order(model: Ensemble) -> Labels:
    """Return the members, the most trusted first; it may not have the largest weight."""
    means = model.weights()
    trust = model.weighter.trust(means) if isinstance(model.weighter, Posterior) else means
    if trust.ndim == 2:  # two parameters per weight; sort by the first
        trust = trust[:, 0]
    return np.argsort(-trust, kind="stable")


def _print_weights(screen: Console, columns: ColumnArrays, order: Labels, everything: bool) -> None:
    """Print a table of weights, with their intervals drawn if there is room."""
    parameters = [name.removeprefix("mean") for name in columns if name.startswith("mean")]
    first = parameters[0]
    members = order if everything else order[:_FIRST]
    chosen = {name: values[members].tolist() for name, values in columns.items()}
    cells = {"member": [str(i) for i in members], "kind": chosen["kind"]}
    for parameter in parameters:
        cells[f"weight{parameter.replace('_', ' ')}"] = [f"{mean:.3g}" for mean in chosen[f"mean{parameter}"]]
    if f"lower{first}" in chosen:
        ends = list(zip(chosen[f"lower{first}"], chosen[f"mean{first}"], chosen[f"upper{first}"], strict=True))
        cells[f"95% interval{first.replace('_', ' ')}"] = [f"{lower:.3g} to {upper:.3g}" for lower, _, upper in ends]
        cells["best"] = [f"{probability:.1%}" for probability in chosen["probability_best"]]
        low, high = min(0.0, *(end[0] for end in ends)), max(0.0, *(end[2] for end in ends))
        taken = sum(2 + max(len(head), *map(len, shown)) for head, shown in cells.items())
        width = min(screen.width, 120) - taken
        if width >= 10:
            ascii_only = screen.options.ascii_only
            bars = [show.interval_bar(*end, low, high, width, ascii_only) for end in ends]
            cells[f"from {low:.3g} to {high:.3g}"] = bars
    table = Table(box=None, padding=(0, 1), pad_edge=False, header_style="dim")
    for head in cells:
        table.add_column(head, justify="left" if head == "kind" or head.startswith("from") else "right", no_wrap=True)
    for row in zip(*cells.values(), strict=True):
        table.add_row(*map(show.cell, row))
    screen.print(table)
    if len(members) < len(order):
        screen.print(f"and {len(order) - len(members)} more members: --all shows them.", style="dim")


def _print_importances(screen: Console, columns: ColumnArrays, everything: bool) -> None:
    """Print a table of the columns with the largest effect on decisions, with bars if there is room."""
    names, shares = columns["column"].tolist(), columns["importance"].tolist()
    n = len(names) if everything else min(len(names), _FIRST)
    width = min(screen.width, 120) - 54
    mark = "#" if screen.options.ascii_only else "█"
    table = Table(box=None, padding=(0, 1), pad_edge=False, header_style="dim")
    table.add_column("column", overflow="fold")
    table.add_column("importance", justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    for name, share in zip(names[:n], shares[:n], strict=True):
        bar = mark * round(share / (shares[0] or 1.0) * width) if width >= 10 else ""
        table.add_row(show.cell(name), f"{share:.1%}", bar)
    screen.print(table)
    if n < len(names):
        screen.print(f"and {len(names) - n} more columns: --all shows them.", style="dim")


def _report(path: Path, model: Classifier, about: dict[str, Any], out: Path) -> None:
    from bayesvote.apps.report.html import write
    from bayesvote.apps.report.run import run_report

    weights = getattr(model, "weights_", None)
    settings = {name.replace("_", " "): _text(value) for name, value in about.items()}
    with naming(out):
        write(run_report(path.name, {}, weights, settings, importances_of(model)), out)
