from bayesvote.core.checks import Array, Labels

FLOOR: float
SGD: int
AVERAGED: int
SAG: int

def stream(kind: int, fields: Array, G: Array, y: Labels, w: Array, size: float, theta: float, out: Array) -> None: ...
