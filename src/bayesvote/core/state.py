"""Base classes of the parts of a model: parameters, and a state that a file can hold."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from copy import deepcopy
from dataclasses import fields
from functools import wraps
from typing import Any, ClassVar, Concatenate, Generic, NamedTuple, ParamSpec, Self, TypeVar, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesvote.core.checks import MOST_WEIGHT, Array, InputTypeError, Labels, integer
from bayesvote.core.lock import RWLock, Uninterrupted
from bayesvote.core.rollback import Chunk, Rollback, RowsLearned
from bayesvote.core.rows import Rows, RowsLike, check_labelled, check_rows, check_start, started

S = TypeVar("S", bound=Any)  # a NamedTuple of arrays
P = TypeVar("P", bound="Part")
A = ParamSpec("A")
R = TypeVar("R")
Rng = np.random.Generator | int | None
Arrays = Mapping[str, NDArray[Any]]
MOST_ROWS = 2**53  # that a state may count: floats hold all smaller integers
# Largest sum of sample weights in a state. It is 2**20 times the weight of all rows that can be learned. So a state
# from a file may be at the bound and stay there: the weights of further rows are lost in rounding.
MOST_TOTAL = 2**20 * MOST_WEIGHT * MOST_ROWS
# Most rows of a state in a file, when saving and when loading, so that every saved file loads. It leaves room to learn
# 2**40 rows after loading. Only a forged file comes near it: 2**53 rows take 285 years at a million a second.
_MOST_SAVED = MOST_ROWS - 2**40


class Shape(NamedTuple):
    """Numbers of features and classes for which a part was started."""

    n_features: int
    n_classes: int


class Learned(NamedTuple):
    """State of a part in the form in which files hold it."""

    facts: dict[str, Any] = {}  # noqa: RUF012 - never changed
    arrays: Arrays = {}  # noqa: RUF012
    parts: dict[str, "Part"] = {}  # noqa: RUF012


class Part:
    """An object that a model file can hold: parameters, from which it is constructed, and a state to restore."""

    complete: ClassVar[bool] = False  # True if it is a model by itself, not only a part of one
    # Methods that only the library calls. Tab completion leaves them out, with those of all base classes.
    _internal: ClassVar[str] = "complete learned parameters reference restore who"

    def __dir__(self) -> list[str]:
        hidden = {name for kind in type(self).__mro__ for name in vars(kind).get("_internal", "").split()}
        return [name for name in super().__dir__() if name not in hidden]

    @property
    def who(self) -> str:
        """Name in error messages."""
        return type(self).__name__

    @property
    def reference(self) -> tuple[str, ...] | None:
        """Attributes to compare when a part with the user's own objects, which files cannot hold, is given again."""
        return None

    def read_lock(self) -> AbstractContextManager[Any]:
        """Return a context in which no other thread changes this part."""
        return nullcontext()

    def parameters(self) -> dict[str, Any]:
        """Return the constructor's arguments."""
        part: Any = self
        return {field.name: getattr(part, field.name) for field in fields(part) if field.init}

    def learned(self) -> Learned | None:
        """Return the checked state; None before the start."""
        return None

    def restore(self, learned: Learned, room: int) -> None:  # noqa: ARG002
        """Restore the state of a file after checking it; a state of more than ``room`` bytes is an error."""
        raise ValueError(f"{self.who} learns nothing, so there is nothing to restore")


def read_locked(method: Callable[Concatenate[P, A], R]) -> Callable[Concatenate[P, A], R]:
    """Hold the read lock of a part while a method runs."""

    @wraps(method)
    def held(part: P, /, *args: A.args, **kwargs: A.kwargs) -> R:
        with part.read_lock():
            return method(part, *args, **kwargs)

    return held


class Versioned(ABC, Generic[S]):
    """Conversion of states from and to arrays of files, with checks, because kernels do not check indices."""

    version: ClassVar[int] = 1  # of the state; when the arrays change, increment it and extend ``upgraded``
    _internal: ClassVar[str] = "age arrays validate load_state upgraded version"

    @abstractmethod
    def validate(self, state: S) -> None:
        """Reject a state that no stream leads to: signs, ranges, indices, definiteness."""

    def age(self, state: S) -> int:  # noqa: ARG002
        """Return the number of rows learned, at most ``MOST_ROWS``; 0 if the state does not count them."""
        return 0

    def arrays(self, state: S) -> dict[str, NDArray[Any]]:
        """Check a state and return its arrays by name."""
        self._check(state)
        found: dict[str, NDArray[Any]] = state._asdict()
        return found

    def upgraded(self, version: int, arrays: Arrays) -> Arrays:  # noqa: ARG002
        """Convert the arrays of an older version to this one."""
        raise ValueError(f"{type(self).__name__} of version {version}, which is not known")

    def load_state(self, blank: S, version: int, arrays: Arrays) -> S:
        """Return a state with these arrays, of the shapes and types of the blank one."""
        require(type(version) is int, "version must be a whole number")
        given = arrays if version == self.version else self.upgraded(version, arrays)
        state = like(blank, given)
        self._check(state)
        return state

    def _check(self, state: S) -> None:
        self.validate(state)
        require(self.age(state) <= _MOST_SAVED, f"rows learned must be at most {_MOST_SAVED}")


class Stateful(Versioned[S], Part):
    """A part that is started for numbers of features and classes, and then has a state.

    Other threads may use it while one learns: they see the state before or after a chunk of rows. The public methods
    and copying hold the lock for that. ``state`` is not a copy, and changes with learning.
    """

    _internal = (
        "template check_weights checked checked_labelled init install least_bytes pipeline progress ready "
        "returning revert snapshot step read_lock wider"
    )
    _state: S | None = None
    _shape: Shape | None = None
    _lock: RWLock
    _rollback: Rollback

    def __new__(cls, *_: Any, **__: Any) -> Self:  # noqa: D102
        made = super().__new__(cls)
        made._lock, made._rollback = RWLock(), Rollback()
        return made

    @abstractmethod
    def init(self, n_features: int, n_classes: int, rng: np.random.Generator) -> S:
        """Check the parameters; return the state before any row."""

    @abstractmethod
    def least_bytes(self, n_features: int, n_classes: int) -> int:
        """Return the least size of a state in bytes, without allocating one."""

    def template(self, shape: Shape, arrays: Arrays) -> S:  # noqa: ARG002
        """Return a state with arrays of the shapes and types that a file must have."""
        return self.init(*shape, np.random.default_rng(0))

    def wider(self, n_features: int, rng: np.random.Generator) -> S:  # noqa: ARG002
        """Return the state with room for more features, as if they had been 0 in every row so far."""
        raise InputTypeError(
            self.who,
            "the members",
            "must be of a kind that can take more features",
            do="Give the first row all the names.",
        )

    def check_weights(self, w: Array) -> None:
        """Raise an error for sample weights that cannot be learned; most kinds take any."""

    @abstractmethod
    def step(self, rows: Rows, y: Labels, w: Array) -> Array:
        """Learn a chunk of checked rows; return its result."""

    def learn_chunk(self, chunk: Chunk) -> Array:
        """Learn a chunk; return its result. By default late labels are learned like others."""
        return self.step(chunk.rows, chunk.y, chunk.w)

    def pipeline(self, chunks: Iterable[Chunk]) -> Iterator[Array]:
        """Learn chunks in order and yield their results; may read the next chunk before it yields a result."""
        for chunk in chunks:
            yield self.learn_chunk(chunk)

    def progress(self) -> RowsLearned:
        """Number of rows learned so far by this thread."""
        return RowsLearned(self._rollback, self._rollback.count.rows)

    def snapshot(self) -> Any:
        """Copy what learning changes."""
        return deepcopy(self.state)

    @final
    def revert(self, snapshot: Any) -> None:
        """Restore a snapshot, taking ownership of it."""
        self.returning(snapshot)()

    def returning(self, snapshot: Any) -> Callable[[], None]:
        """Prepare to restore a snapshot; return the function that does, as ``ready``."""
        return self.ready(snapshot, started(self.who, self.shape))

    @property
    def lock(self) -> RWLock:
        """Reader-writer lock."""
        return self._lock

    def read_lock(self) -> AbstractContextManager[Any]:
        """Return a context in which no other thread learns."""
        return self.lock.read

    def __getstate__(self) -> dict[str, Any]:
        with self.read_lock():
            return deepcopy(self.__dict__)  # a copy, because pickling comes after the lock is released

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        copy = type(self).__new__(type(self))
        memo[id(self)] = copy
        with self.read_lock():
            copy.__dict__.update(deepcopy(self.__dict__, memo))
        return copy

    @property
    def state(self) -> S | None:
        """State, or None before the start."""
        return self._state

    @property
    def shape(self) -> Shape | None:
        """Numbers of features and classes, or None before the start."""
        return self._shape

    @final
    def install(self, state: S, shape: Shape) -> None:
        """Set the state."""
        self.ready(state, shape)()

    def ready(self, state: S, shape: Shape) -> Callable[[], None]:
        """Prepare to set a state; return the function that does.

        Only the preparation may fail: either all banks of a union must have their new states, or none.
        """

        def set_state() -> None:
            self._state, self._shape = state, shape

        return set_state

    @property
    def n_features(self) -> int:
        """Number of features; 0 before the start."""
        return 0 if self.shape is None else self.shape.n_features

    @property
    def n_classes(self) -> int:
        """Number of classes; 0 before the start."""
        return 0 if self.shape is None else self.shape.n_classes

    @final
    def start(self, n_features: int, n_classes: int = 2, rng: Rng = None) -> Self:
        """Start with an initial state for rows of n_features and labels 0 to n_classes - 1."""
        generator = check_start(self.who, n_features, n_classes, rng)
        with self.lock.write:
            self._rollback.forget()
            self.install(self.init(n_features, n_classes, generator), Shape(n_features, n_classes))
        return self

    @final
    def widen(self, n_features: int, rng: Rng = None) -> Self:
        """Add features without forgetting anything, as if they had been 0 in every row so far."""
        with self.lock.write, Uninterrupted():
            shape = started(self.who, self.shape)
            integer(f"{self.who}.widen", "n_features", n_features, least=shape.n_features)
            if n_features > shape.n_features:
                self._rollback.forget()  # of another width
                self.install(self.wider(n_features, np.random.default_rng(rng)), shape._replace(n_features=n_features))
        return self

    def checked(self, X: RowsLike) -> Rows:
        """Return the checked rows."""
        return check_rows(self.who, X, started(self.who, self.shape).n_features)

    def checked_labelled(
        self, X: RowsLike, y: ArrayLike, sample_weight: ArrayLike | None
    ) -> tuple[Rows, Labels, Array]:
        """Return checked rows, labels and sample weights."""
        rows, labels, w = check_labelled(self.who, X, y, sample_weight, *started(self.who, self.shape))
        self.check_weights(w)
        return rows, labels, w

    @read_locked
    def learned(self) -> Learned | None:
        """Return the checked state."""
        if self.state is None:
            return None
        facts = {"shape": list(map(int, started(self.who, self.shape))), "version": self.version}
        return Learned(facts, self.arrays(self.state))

    def restore(self, learned: Learned, room: int) -> None:
        """Restore the state of a file."""
        shape = restored_shape(learned)
        least = self.least_bytes(*shape)
        check_size(self.who, least, room)
        blank = self.template(shape, learned.arrays)
        self.install(self.load_state(blank, learned.facts["version"], learned.arrays), shape)


def check_size(who: str, least: int, room: int) -> None:
    """Reject a state that is larger than the file that is said to hold it."""
    if least > room:
        raise ValueError(f"{who}: a state of {least} bytes or more in a file of {room} bytes")


def like(blank: S, arrays: Arrays) -> S:
    """Return a state with these arrays, which must have the names, shapes and types of those of ``blank``."""
    wanted: dict[str, NDArray[Any]] = blank._asdict()
    if arrays.keys() != wanted.keys():
        raise ValueError(f"the arrays {sorted(arrays)} instead of {sorted(wanted)}")
    for name, array in wanted.items():
        if arrays[name].dtype != array.dtype or arrays[name].shape != array.shape:
            found = f"{arrays[name].dtype} {arrays[name].shape}"
            raise ValueError(f"{name} of {found} instead of {array.dtype} {array.shape}")
    state: S = type(blank)(**arrays)
    return state


def restored_shape(learned: Learned) -> Shape:
    """Return the checked shape of a file."""
    shape = Shape(*learned.facts["shape"])
    check_start("shape", *shape, None)
    return shape


def renamed(arrays: Arrays, **names: str) -> Arrays:
    """Return the arrays, some under new names: ``old=new``."""
    require(arrays.keys() >= names.keys(), f"arrays must be {', '.join(names)} and others")
    return {names.get(name, name): array for name, array in arrays.items()}


def require(holds: bool, sentence: str) -> None:
    """Raise a ValueError with this sentence if a condition on a state does not hold."""
    if not holds:
        raise ValueError(sentence)


def within(values: NDArray[Any], low: float, high: float) -> bool:
    """Return True if all values are in [low, high]; NaN is not."""
    return bool(np.all((values >= low) & (values <= high)))


def all_finite(state: Any, *, but: tuple[str, ...] = (), most: float = 1e230) -> None:
    """Reject a state with a number that is not finite, or above ``most`` in size.

    Arrays named in ``but`` may hold NaN for unknown values. The default of ``most`` is above all sums of squares that
    rows lead to: MOST_ROWS rows of weight MOST_WEIGHT and size LARGEST (1e100) make 1e225.
    """
    for name, array in state._asdict().items():
        require(not np.any(np.isinf(array) if name in but else ~np.isfinite(array)), f"{name} must be finite")
        if array.dtype.kind == "f":
            require(not np.any(np.abs(array, dtype=np.float64) > most), f"{name} must be at most {most:g} in size")


def padded(array: Array, axis: int, size: int) -> Array:
    """Return the array padded with zeros to that size along an axis."""
    widths = [(0, 0)] * array.ndim
    widths[axis] = (0, size - array.shape[axis])
    return np.pad(array, widths)
