"""Engines run a function for every shard. The plain loop is the reference."""

import time
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import Any, NamedTuple, Protocol, Self, TypeVar

from bayesvote.core.checks import InvalidInputError

T = TypeVar("T", contravariant=True)
Work = Callable[[T, Sequence[Any]], Any]  # of an item and of what all items share


class Failure(NamedTuple):
    """The failure of an item: the class and the message of the error."""

    kind: str
    text: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.text}"


class Engine(Protocol):
    """Protocol of an engine, which runs work for many items, anywhere and in any order.

    An engine is a context manager, and may be used for several maps. Work is a pure function that can be pickled. Its
    arguments are an item and the values that all items share. An engine may run it twice for an item and use either
    result. The result for an item whose work raised an error is a :class:`Failure`.
    """

    def __enter__(self) -> Self:
        """Start the engine."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Release all resources."""

    @property
    def link(self) -> str | None:
        """Address of a page that shows the progress, if there is one."""

    def map(
        self, work: Work[T], items: Sequence[T], shared: Sequence[Any] = (), deadline: float | None = None
    ) -> Iterator[tuple[int, Any]]:
        """Yield the index of an item and its result, as results arrive.

        After the deadline, a time of ``time.monotonic``, a TimeoutError is raised.
        """


class Loop:
    """Engine that runs one item after the other in this process."""

    link: str | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def map(
        self, work: Work[T], items: Sequence[T], shared: Sequence[Any] = (), deadline: float | None = None
    ) -> Iterator[tuple[int, Any]]:
        """Run the work in the order of the items, checking the deadline between two of them."""
        for place, item in enumerate(items):
            if deadline is not None and time.monotonic() > deadline:
                raise TimeoutError
            yield place, attempted(item, work, shared)


def attempted(item: T, work: Work[T], shared: Sequence[Any]) -> Any:
    """Return the result of work, or its failure. Exceptions such as KeyboardInterrupt pass through."""
    try:
        return work(item, shared)
    except InvalidInputError as error:
        return Failure(type(error).__name__, error.sentence()[:2000])
    except Exception as error:
        return Failure(type(error).__name__, str(error)[:2000] or "(no message)")
