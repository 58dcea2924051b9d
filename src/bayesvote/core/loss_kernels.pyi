from bayesvote.core.checks import Array

BUILD: str

def two_classes(kind: int, scores: Array, out: Array) -> None: ...
