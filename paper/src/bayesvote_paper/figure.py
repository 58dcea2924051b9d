"""Experiments that are figures: curves, means over the trials."""

from dataclasses import dataclass

import numpy as np

from bayesvote.core.checks import Array
from bayesvote_paper.experiment import Experiment, Results
from bayesvote_paper.members import MEMBERS, in_words
from bayesvote_paper.shown import Line, Plot

POINTS = 200  # at most, of a curve
FIRST_ROW = 20  # of a linear axis, which the jumps of the first rows would otherwise fill


@dataclass(frozen=True, kw_only=True, eq=False)
class Figure(Experiment):
    """A figure: a plot for each set, and for each kind of members where a plot has more than one line.

    A job's result has ``x`` and ``series``, values by the name of a line; it may have ``lower`` and ``upper``, the
    bands of the lines, and ``limits``, values of horizontal lines.
    """

    x_label: str
    y_label: str
    log_x: bool = False
    log_y: bool = False
    from_zero: bool = False

    def shown_as(self, dataset: str) -> str:
        """Return the heading of the plot of a data set."""
        return dataset

    def show(self, results: Results) -> list[Plot]:
        """Return the plots."""
        plots: dict[str, list[Line]] = {}
        for members, dataset in dict.fromkeys((line["members"], line["dataset"]) for line in results):
            runs = [line for line in results if (line["members"], line["dataset"]) == (members, dataset)]
            x = np.array(runs[0]["x"])
            kept = x >= FIRST_ROW if self.x_label == "rows" and not self.log_x else x > 0
            alone = len(runs[0]["series"]) == 1
            shown = self.shown_as(dataset)
            caption = shown if alone or members not in MEMBERS else f"{shown}, {in_words(members)}"
            lines = plots.setdefault(caption, [])
            for name in runs[0]["series"]:
                line_and_band = (key for key in ("series", "lower", "upper") if key in runs[0])
                values = (np.mean([run[key][name] for run in runs], axis=0)[kept] for key in line_and_band)
                lines.append(Line(in_words(members) if alone else name, x[kept], *values))
            for name, value in runs[0].get("limits", {}).items():
                lines.append(Line(name, x[kept], np.full(int(kept.sum()), value)))
        return [
            Plot(caption, self.x_label, self.y_label, lines, self.log_x, self.log_y, self.from_zero)
            for caption, lines in plots.items()
        ]


def spaced(length: int) -> Array:
    """Return the rows at which a curve has its points."""
    return np.unique(np.linspace(0, length - 1, min(POINTS, length)).astype(int))
