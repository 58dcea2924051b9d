"""Columns encoded one row at a time with plain dictionaries, as documented."""

import math
import zlib
from datetime import UTC, datetime
from typing import Any

NOTHING = (None, "", "NA", "?")


class PlainColumns:
    """Encodes cells that are numbers, text, ISO dates or missing; a kind of None is inferred from the first cell."""

    def __init__(self, kinds: dict[str, str | None], max_texts: int, n_buckets: int) -> None:
        self.kinds, self.max_texts, self.n_buckets = dict(kinds), max_texts, n_buckets
        self.numbers: dict[str, list[float]] = {name: [] for name in kinds}
        self.moments: dict[str, list[datetime]] = {name: [] for name in kinds}
        self.texts: dict[str, list[str]] = {name: [] for name in kinds}
        self.features: set[str] = set()

    def begin(self, row: dict[str, Any]) -> None:
        for name, value in row.items():
            if self.kinds[name] is None:
                self.kinds[name] = kind_of(value)
            self._known(name)

    def _known(self, name: str) -> None:
        if self.kinds[name] == "category":
            self.features.add(f"{name} is new")
        elif self.kinds[name] is not None:
            self.features.add(name)

    def _bucket(self, name: str, text: str) -> str:
        return f"{name} has hash {zlib.crc32(text.encode()) % self.n_buckets}"

    def encode(self, row: dict[str, Any]) -> dict[str, float]:
        out: dict[str, float] = {}
        for name, value in row.items():
            kind = self.kinds[name]
            if kind is None:
                continue
            number, text = read(kind, value)
            if kind != "category":
                seen = self.numbers[name]
                out[name] = number if number is not None else math.fsum(seen) / len(seen) if seen else 0.0
            if kind == "date" and number is not None:
                out |= turns(name, datetime.fromtimestamp(number * 86400, UTC))
            if number is None and text is None:
                out[f"{name} is missing"] = 1.0
            if text is not None:
                shared = self._bucket(name, text)
                if text in self.texts[name]:
                    out[f"{name} = {text}"] = 1.0
                elif len(self.texts[name]) == self.max_texts and shared in self.features:
                    out[shared] = 1.0
                else:
                    out[f"{name} is new"] = 1.0
        return {name: value for name, value in out.items() if name in self.features and value != 0}

    def learn(self, row: dict[str, Any]) -> None:
        for name, value in row.items():
            if self.kinds[name] is None:
                self.kinds[name] = kind_of(value)
                self._known(name)
            kind = self.kinds[name]
            if kind is None:
                continue
            number, text = read(kind, value)
            if number is not None:
                self.numbers[name].append(number)
            if kind == "date" and number is not None:
                self._learn_moment(name, datetime.fromtimestamp(number * 86400, UTC))
            if number is None and text is None:
                self.features.add(f"{name} is missing")
            if text is not None and text not in self.texts[name]:
                self.features.add(f"{name} is new")
                if len(self.texts[name]) < self.max_texts:
                    self.texts[name].append(text)
                    self.features.add(f"{name} = {text}")
                else:
                    self.features.add(self._bucket(name, text))

    def _learn_moment(self, name: str, moment: datetime) -> None:
        self.moments[name].append(moment)
        first = self.moments[name][0]
        for circle, a, b in (
            ("hour", first.hour, moment.hour),
            ("weekday", first.weekday(), moment.weekday()),
            ("month", first.month, moment.month),
        ):
            if a != b:
                self.features |= {f"sine of the {circle} of {name}", f"cosine of the {circle} of {name}"}


def kind_of(value: Any) -> str | None:
    if value in NOTHING:
        return None
    if isinstance(value, float):
        return "number"
    return next((kind for kind in ("number", "date") if read(kind, value)[0] is not None), "category")


def read(kind: str, value: Any) -> tuple[float | None, str | None]:
    """Return a cell as a number (for a date, days since 1970), as text, or as neither."""
    if value in NOTHING:
        return None, None
    if kind == "category":
        return None, value if isinstance(value, str) else str(int(value)) if value == int(value) else repr(value)
    if isinstance(value, float):
        return (value / 86400 if kind == "date" else value), None
    try:
        if kind == "number":
            return float(value), None
        return datetime.fromisoformat(value).replace(tzinfo=UTC).timestamp() / 86400, None
    except ValueError:
        return None, value


def turns(name: str, moment: datetime) -> dict[str, float]:
    out = {}
    for circle, part in (
        ("hour", (60 * moment.hour + moment.minute) / 1440),
        ("weekday", moment.weekday() / 7),
        ("month", (moment.month - 1) / 12),
    ):
        out[f"sine of the {circle} of {name}"] = math.sin(2 * math.pi * part)
        out[f"cosine of the {circle} of {name}"] = math.cos(2 * math.pi * part)
    return out
