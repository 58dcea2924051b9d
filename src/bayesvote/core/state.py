"""What models are made of: parts with parameters and, once started, something learned, which a file can keep."""

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
MOST_ROWS = 2**53  # that a state may count: more than anybody can learn, and exact as a float
# Sample weights that a state may rest on: more than rows can have, by so much that further ones are lost in rounding.
# What a file brings, at the bound even, stays within it when it learns.
MOST_TOTAL = 2**20 * MOST_WEIGHT * MOST_ROWS
# Rows that a file may tell of, the same for saving and loading, so that what is saved can be loaded. Only a forged file
# comes near it: 2**53 rows take centuries at a million a second.
_MOST_SAVED = MOST_ROWS - 2**40


class Shape(NamedTuple):
    """Of the rows and labels that something was started for."""

    n_features: int
    n_classes: int


class Learned(NamedTuple):
    """What a part has learned, in the form in which files keep it."""

    facts: dict[str, Any] = {}  # noqa: RUF012 - plain values, never changed
    arrays: Arrays = {}  # noqa: RUF012
    parts: dict[str, "Part"] = {}  # noqa: RUF012


class Part:
    """Something that a model file can hold: its parameters make it anew, then it takes up what it had learned."""

    complete: ClassVar[bool] = False  # whether it is a model by itself, not only a part of one
    # Names that the rest of the library calls and users do not. Tab completion leaves out those of all base classes.
    _internal: ClassVar[str] = "complete learned parameters reference restore who"

    def __dir__(self) -> list[str]:
        hidden = {name for kind in type(self).__mro__ for name in vars(kind).get("_internal", "").split()}
        return [name for name in super().__dir__() if name not in hidden]

    @property
    def who(self) -> str:
        """The name by which errors speak of this part."""
        return type(self).__name__

    @property
    def reference(self) -> tuple[str, ...] | None:
        """For a part that no file can hold, as it has the user's own objects: attributes by which it is known again."""
        return None

    def read_lock(self) -> AbstractContextManager[Any]:
        """Hold off whatever would change this part, to look at all of it."""
        return nullcontext()

    def parameters(self) -> dict[str, Any]:
        """Everything that its constructor takes."""
        part: Any = self
        return {field.name: getattr(part, field.name) for field in fields(part) if field.init}

    def learned(self) -> Learned | None:
        """What it has learned, checked; None before it was started."""
        return None

    def restore(self, learned: Learned, room: int) -> None:  # noqa: ARG002
        """Take up what a file brings, after checking all of it; a state of more than ``room`` bytes is refused."""
        raise ValueError(f"{self.who} learns nothing, so there is nothing to restore")


def read_locked(method: Callable[Concatenate[P, A], R]) -> Callable[Concatenate[P, A], R]:
    """Hold off learning while a method looks at a part."""

    @wraps(method)
    def held(part: P, /, *args: A.args, **kwargs: A.kwargs) -> R:
        with part.read_lock():
            return method(part, *args, **kwargs)

    return held


class Versioned(ABC, Generic[S]):
    """States as files keep them. What a file brings is checked here, as kernels trust their indices."""

    version: ClassVar[int] = 1  # of the state; raise it when the arrays change, and teach ``upgraded`` the old ones
    _internal: ClassVar[str] = "age arrays validate load_state upgraded version"

    @abstractmethod
    def validate(self, state: S) -> None:
        """Refuse a state that no stream leads to: signs, ranges, indices, definiteness."""

    def age(self, state: S) -> int:  # noqa: ARG002
        """How many rows were learned, where the state counts them without end; at most ``MOST_ROWS``."""
        return 0

    def arrays(self, state: S) -> dict[str, NDArray[Any]]:
        """Check a state and return its arrays by name."""
        self._check(state)
        found: dict[str, NDArray[Any]] = state._asdict()
        return found

    def upgraded(self, version: int, arrays: Arrays) -> Arrays:  # noqa: ARG002
        """Bring the arrays of an older version of the state to this one."""
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
    """A part that is started for rows of some width and for some number of classes, and then has a state.

    Threads may use it while one of them has it learn: they see it as it is before or after a chunk of rows. The doors
    and copying see to that; ``state`` is what learns, not a copy.
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
        """How many bytes a state has at least, found without making one."""

    def template(self, shape: Shape, arrays: Arrays) -> S:  # noqa: ARG002
        """Return a state whose arrays have the shapes and types that those of a file must have."""
        return self.init(*shape, np.random.default_rng(0))

    def wider(self, n_features: int, rng: np.random.Generator) -> S:  # noqa: ARG002
        """Return the state with room for more features, as if they had been 0 in every row so far."""
        raise InputTypeError(
            self.who,
            "the members",
            "must be of a kind that can take more features to be widened",
            do="Give the first row all the names.",
        )

    def check_weights(self, w: Array) -> None:
        """Refuse sample weights that cannot be learned from; most take any."""

    @abstractmethod
    def step(self, rows: Rows, y: Labels, w: Array) -> Array:
        """Learn a chunk of checked rows; return what came of it."""

    def learn_chunk(self, chunk: Chunk) -> Array:
        """Learn a chunk; return what came of it. By default labels that come late are learned like others."""
        return self.step(chunk.rows, chunk.y, chunk.w)

    def pipeline(self, chunks: Iterable[Chunk]) -> Iterator[Array]:
        """Learn chunks in their order; give what came of each. The next may be begun before that."""
        for chunk in chunks:
            yield self.learn_chunk(chunk)

    def progress(self) -> RowsLearned:
        """How far it has come in learning."""
        return RowsLearned(self._rollback, self._rollback.count.rows)

    def snapshot(self) -> Any:
        """Copy what learning changes."""
        return deepcopy(self.state)

    @final
    def revert(self, snapshot: Any) -> None:
        """Take up such a copy, which is given up."""
        self.returning(snapshot)()

    def returning(self, snapshot: Any) -> Callable[[], None]:
        """Get ready to take up such a copy, as ``ready`` does."""
        return self.ready(snapshot, started(self.who, self.shape))

    @property
    def lock(self) -> RWLock:
        """Who may use this when."""
        return self._lock

    def read_lock(self) -> AbstractContextManager[Any]:
        """Hold off learning."""
        return self.lock.read

    def __getstate__(self) -> dict[str, Any]:
        with self.read_lock():
            return deepcopy(self.__dict__)  # pickled when others may learn again

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        copy = type(self).__new__(type(self))
        memo[id(self)] = copy
        with self.read_lock():
            copy.__dict__.update(deepcopy(self.__dict__, memo))
        return copy

    @property
    def state(self) -> S | None:
        """What was learned; None before the start."""
        return self._state

    @property
    def shape(self) -> Shape | None:
        """Features and classes; None before the start."""
        return self._shape

    @final
    def install(self, state: S, shape: Shape) -> None:
        """Take over a state."""
        self.ready(state, shape)()

    def ready(self, state: S, shape: Shape) -> Callable[[], None]:
        """Make what a state needs; what is returned takes it over.

        Only the first may fail, for want of memory: of a bank of several, all or none must have their new states.
        """

        def take_over() -> None:
            self._state, self._shape = state, shape

        return take_over

    @property
    def n_features(self) -> int:
        """How many features the rows have; 0 before the start."""
        return 0 if self.shape is None else self.shape.n_features

    @property
    def n_classes(self) -> int:
        """How many classes there are; 0 before the start."""
        return 0 if self.shape is None else self.shape.n_classes

    @final
    def start(self, n_features: int, n_classes: int = 2, rng: Rng = None) -> Self:
        """Forget everything and get ready for rows of n_features and labels 0 to n_classes - 1."""
        generator = check_start(self.who, n_features, n_classes, rng)
        with self.lock.write:
            self._rollback.forget()
            self.install(self.init(n_features, n_classes, generator), Shape(n_features, n_classes))
        return self

    @final
    def widen(self, n_features: int, rng: Rng = None) -> Self:
        """Take more features, without forgetting anything: as if they had been 0 in every row so far."""
        with self.lock.write, Uninterrupted():
            shape = started(self.who, self.shape)
            integer(f"{self.who}.widen", "n_features", n_features, least=shape.n_features)
            if n_features > shape.n_features:
                self._rollback.forget()  # of another width
                self.install(self.wider(n_features, np.random.default_rng(rng)), shape._replace(n_features=n_features))
        return self

    def checked(self, X: RowsLike) -> Rows:
        """Rows that this takes."""
        return check_rows(self.who, X, started(self.who, self.shape).n_features)

    def checked_labelled(
        self, X: RowsLike, y: ArrayLike, sample_weight: ArrayLike | None
    ) -> tuple[Rows, Labels, Array]:
        """Rows, labels and weights that this can learn from."""
        rows, labels, w = check_labelled(self.who, X, y, sample_weight, *started(self.who, self.shape))
        self.check_weights(w)
        return rows, labels, w

    @read_locked
    def learned(self) -> Learned | None:
        """The state, checked."""
        if self.state is None:
            return None
        facts = {"shape": list(map(int, started(self.who, self.shape))), "version": self.version}
        return Learned(facts, self.arrays(self.state))

    def restore(self, learned: Learned, room: int) -> None:
        """Take up a state that a file brings."""
        shape = restored_shape(learned)
        least = self.least_bytes(*shape)
        if least > room:
            raise ValueError(f"{self.who}: a state of {least} bytes or more in a file of {room}")
        blank = self.template(shape, learned.arrays)
        self.install(self.load_state(blank, learned.facts["version"], learned.arrays), shape)


def like(blank: S, arrays: Arrays) -> S:
    """Return a state with these arrays, which must have the names, shapes and types of those of the blank one."""
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
    """Shape that a file brings, checked."""
    shape = Shape(*learned.facts["shape"])
    check_start("shape", *shape, None)
    return shape


def renamed(arrays: Arrays, **names: str) -> Arrays:
    """Arrays of which some have new names, given by their old ones."""
    require(arrays.keys() >= names.keys(), f"arrays must be {', '.join(names)} and others")
    return {names.get(name, name): array for name, array in arrays.items()}


def require(holds: bool, sentence: str) -> None:
    """Refuse a state of which something does not hold."""
    if not holds:
        raise ValueError(sentence)


def within(values: NDArray[Any], low: float, high: float) -> bool:
    """Whether all values are in [low, high]; NaN is not."""
    return bool(np.all((values >= low) & (values <= high)))


def all_finite(state: Any, *, but: tuple[str, ...] = (), most: float = 1e230) -> None:
    """Refuse a state with a number that is not finite, or larger than rows, weights and losses can lead to.

    The named arrays may hold NaN, for what is not known yet.
    """
    for name, array in state._asdict().items():
        require(not np.any(np.isinf(array) if name in but else ~np.isfinite(array)), f"{name} must be finite")
        if array.dtype.kind == "f":
            require(not np.any(np.abs(array, dtype=np.float64) > most), f"{name} must be at most {most:g} in size")


def padded(array: Array, axis: int, size: int) -> Array:
    """Return the array with zeros up to that size along an axis."""
    widths = [(0, 0)] * array.ndim
    widths[axis] = (0, size - array.shape[axis])
    return np.pad(array, widths)
