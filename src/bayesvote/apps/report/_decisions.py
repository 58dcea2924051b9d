"""Sections about the decisions of a run: by label, which were taken for which, and how far probabilities held."""

from collections.abc import Mapping

import numpy as np

from bayesvote.apps.report.blocks import Block, Cell, Chart, Charts, Section, Series, Table, number
from bayesvote.evaluation import Tally
from bayesvote.evaluation.tally import Reliability

_LABELS = 20  # in the table by label
_SQUARE = 12  # labels up to which all of the confusion is shown
_PAIRS = 20  # of labels taken for each other, beyond that
_ENOUGH = 20  # decisions, for the share that was right
_POINTS = 50  # no point of the calibration stands for fewer than this part of the rows
_NO_PREDICTION = "no prediction"


def by_label(tallies: Mapping[str, Tally]) -> Section:
    """How each label was predicted, and which were taken for which, a table of each for every model."""
    blocks: list[Block] = []
    for name, tally in tallies.items():
        blocks += [_labels(name, tally), _confusion(name, tally)]
    lead = (
        "Precision is the share of the rows with that prediction that were of the label, recall the share of the "
        "label's rows that were predicted so, F1 their harmonic mean."
    )
    return Section("By label", blocks, lead)


def _labels(name: str, tally: Tally) -> Table:
    found = sorted(tally.by_label, key=lambda one: -one.rows)
    rows = [
        [str(one.label), *(number(n, 0) for n in one[1:3]), *(number(share) for share in one[3:])]
        for one in found[:_LABELS]
    ]
    note = f"The {len(found) - _LABELS:,} labels with fewer rows are left out." if len(found) > _LABELS else ""
    return Table(f"{name}: labels", ["label", "rows", "predicted", "precision", "recall", "F1"], rows, note)


def _confusion(name: str, tally: Tally) -> Table:
    names = [_NO_PREDICTION if label is None else str(label) for label in tally.labels]
    counts, of_label = tally.confusion, tally.confusion.sum(axis=1)
    seen = [k for k in range(len(names)) if of_label[k]]
    answered = [k for k in range(len(names)) if of_label[k] or counts[:, k].any()]
    if len(answered) <= _SQUARE:
        rows: list[list[str | Cell]] = [
            [names[k], *(_share(int(counts[k, j]), int(of_label[k])) for j in answered)] for k in seen
        ]
        header = ["label", *(f"as {names[j]}" for j in answered)]
        return Table(f"{name}: predicted as", header, rows, "Rows of each label by what was predicted.")
    off = counts * (1 - np.eye(len(names), dtype=np.int64))
    order = np.argsort(-off, axis=None, kind="stable")[:_PAIRS]
    pairs = [(int(at) // len(names), int(at) % len(names)) for at in order if off.flat[at]]
    rows = [[names[k], names[j], _share(int(counts[k, j]), int(of_label[k]))] for k, j in pairs]
    return Table(f"{name}: labels most often taken for another", ["label", "predicted as", "rows"], rows)


def _share(part: int, whole: int) -> Cell:
    return Cell(number(part, 0), spread=f"{part / whole:.0%}" if part else "")


def calibration(tallies: Mapping[str, Tally]) -> Section | None:
    """How often decisions were right, by the probability they were given; None if no model gave any."""
    found = {name: joined(tally.calibration) for name, tally in tallies.items() if len(tally.calibration.rows)}
    if not found:
        return None
    low = min(float(one.probability[0]) for one in found.values())
    series = [Series(name, one.probability, one.right) for name, one in found.items()]
    series.append(Series("as often as said", [low, 1.0], [low, 1.0]))
    caption = "Share of the decisions that were right, by their probability"
    blocks: list[Block] = [Charts([Chart(caption, "probability of the decision", "share that was right", series)])]
    for name, one in found.items():
        rows = [[number(p, 3), number(right, 3), number(n, 0)] for p, right, n in zip(*one, strict=True)]
        blocks.append(Table(f"{name}: decisions by probability", ["probability", "right", "rows"], rows))
    lead = (
        "A model that is calibrated keeps to the diagonal. Below it, decisions were less often right than their "
        "probabilities said; above it, more often. Decisions of about the same probability are taken together."
    )
    return Section("Calibration", blocks, lead)


def joined(found: Reliability) -> Reliability:
    """Neighbouring bins joined until each has enough rows for its share to mean something."""
    enough = max(_ENOUGH, int(found.rows.sum()) // _POINTS)
    place, last, total = np.zeros(len(found.rows), dtype=np.intp), 0, 0
    for k, n in enumerate(found.rows.tolist()):
        if total >= enough:
            last, total = last + 1, 0
        place[k], total = last, total + n
    if total < enough and last:  # too few: they go with those before
        place = np.minimum(place, last - 1)
    rows = np.bincount(place, found.rows)
    probability, right = (
        np.asarray(np.bincount(place, values * found.rows) / rows) for values in (found.probability, found.right)
    )
    return Reliability(probability, right, rows.astype(np.int64))
