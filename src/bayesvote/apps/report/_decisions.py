"""Sections about the decisions of a run: metrics by label, confusion matrix and calibration."""

from collections.abc import Mapping

import numpy as np

from bayesvote.apps.report.blocks import Block, Cell, Chart, Charts, Section, Series, TableBlock, number
from bayesvote.evaluation import Tally
from bayesvote.evaluation.tally import Reliability

_LABELS = 20  # in the table by label
_SQUARE = 12  # maximum number of labels for which the whole confusion matrix is shown
_PAIRS = 20  # pairs of confused labels that are shown otherwise
_ENOUGH = 20  # minimum number of decisions for a share of correct ones
_POINTS = 50  # each point of the calibration curve has at least this fraction of the rows
_NO_PREDICTION = "no prediction"


def by_label(tallies: Mapping[str, Tally]) -> Section:
    """Return the metrics by label and the confusion matrix of every model."""
    blocks: list[Block] = []
    for name, tally in tallies.items():
        blocks += [_labels(name, tally), _confusion(name, tally)]
    lead = (
        "Precision is the share of the predictions of a label that are correct. Recall is the share of the label's "
        "rows that are predicted correctly. F1 is their harmonic mean."
    )
    return Section("By label", blocks, lead)


def _labels(name: str, tally: Tally) -> TableBlock:
    found = sorted(tally.by_label, key=lambda one: -one.rows)
    rows = [
        [str(one.label), *(number(n, 0) for n in one[1:3]), *(number(share) for share in one[3:])]
        for one in found[:_LABELS]
    ]
    note = f"{len(found) - _LABELS:,} labels with fewer rows are not shown." if len(found) > _LABELS else ""
    return TableBlock(f"{name}: labels", ["label", "rows", "predicted", "precision", "recall", "F1"], rows, note)


def _confusion(name: str, tally: Tally) -> TableBlock:
    names = [_NO_PREDICTION if label is None else str(label) for label in tally.labels]
    counts, of_label = tally.confusion, tally.confusion.sum(axis=1)
    seen = [k for k in range(len(names)) if of_label[k]]
    answered = [k for k in range(len(names)) if of_label[k] or counts[:, k].any()]
    if len(answered) <= _SQUARE:
        rows: list[list[str | Cell]] = [
            [names[k], *(_share(int(counts[k, j]), int(of_label[k])) for j in answered)] for k in seen
        ]
        header = ["label", *(f"as {names[j]}" for j in answered)]
        return TableBlock(f"{name}: predicted as", header, rows, "Number of rows by label and prediction.")
    off = counts * (1 - np.eye(len(names), dtype=np.int64))
    order = np.argsort(-off, axis=None, kind="stable")[:_PAIRS]
    pairs = [(int(at) // len(names), int(at) % len(names)) for at in order if off.flat[at]]
    rows = [[names[k], names[j], _share(int(counts[k, j]), int(of_label[k]))] for k, j in pairs]
    return TableBlock(f"{name}: most frequent confusions", ["label", "predicted as", "rows"], rows)


def _share(part: int, whole: int) -> Cell:
    return Cell(number(part, 0), spread=f"{part / whole:.0%}" if part else "")


def calibration(tallies: Mapping[str, Tally]) -> Section | None:
    """Return the calibration curves; None if no model gave probabilities."""
    found = {name: joined(tally.calibration) for name, tally in tallies.items() if len(tally.calibration.rows)}
    if not found:
        return None
    low = min(float(one.probability[0]) for one in found.values())
    series = [Series(name, one.probability, one.right) for name, one in found.items()]
    series.append(Series("perfect calibration", [low, 1.0], [low, 1.0]))
    caption = "Share of correct decisions, by their probability"
    blocks: list[Block] = [
        Charts([Chart(caption, "probability of the decision", "share of correct decisions", series)])
    ]
    for name, one in found.items():
        rows = [[number(p, 3), number(right, 3), number(n, 0)] for p, right, n in zip(*one, strict=True)]
        blocks.append(TableBlock(f"{name}: decisions by probability", ["probability", "correct", "rows"], rows))
    lead = (
        "A calibrated model follows the diagonal. Below it, decisions were correct less often than their probabilities "
        "predicted; above it, more often. Decisions of similar probability are grouped."
    )
    return Section("Calibration", blocks, lead)


def joined(found: Reliability) -> Reliability:
    """Merge neighbouring bins until each has enough rows for a reliable share."""
    enough = max(_ENOUGH, int(found.rows.sum()) // _POINTS)
    place, last, total = np.zeros(len(found.rows), dtype=np.intp), 0, 0
    for k, n in enumerate(found.rows.tolist()):
        if total >= enough:
            last, total = last + 1, 0
        place[k], total = last, total + n
    if total < enough and last:  # too few rows: add them to the last bin
        place = np.minimum(place, last - 1)
    rows = np.bincount(place, found.rows)
    probability, right = (
        np.asarray(np.bincount(place, values * found.rows) / rows) for values in (found.probability, found.right)
    )
    return Reliability(probability, right, rows.astype(np.int64))
