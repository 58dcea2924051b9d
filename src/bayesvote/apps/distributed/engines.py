"""What an engine is: something that does one piece of work for every shard. The plain loop is the reference."""

import time
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import Any, NamedTuple, Protocol, Self, TypeVar

from bayesvote.core.checks import InvalidInputError

T = TypeVar("T", contravariant=True)
Work = Callable[[T, Sequence[Any]], Any]  # of an item and of what all items share


class Failure(NamedTuple):
    """What went wrong with an item: the kind of the error, and what it says."""

    kind: str
    text: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.text}"


class Engine(Protocol):
    """Does work for many items, anywhere and in any order.

    An engine is entered before it is used, and may be used for several maps. Work is a pure function that can be
    pickled, of an item and of what is shared by all items; it may be done twice for an item, of which any answer will
    do. A :class:`Failure` is answered for an item whose work failed.
    """

    def __enter__(self) -> Self:
        """Get ready."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Let go of everything."""

    @property
    def link(self) -> str | None:
        """Address of a page that shows the work, if there is one."""

    def map(
        self, work: Work[T], items: Sequence[T], shared: Sequence[Any] = (), deadline: float | None = None
    ) -> Iterator[tuple[int, Any]]:
        """Yield the place of an item and its answer, as the answers come.

        After the deadline, a time of ``time.monotonic``, a TimeoutError is raised.
        """


class Loop:
    """One item after the other, in this process."""

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
        """Do the work in the order of the items; the time is looked at between two of them."""
        for place, item in enumerate(items):
            if deadline is not None and time.monotonic() > deadline:
                raise TimeoutError
            yield place, attempted(item, work, shared)


def attempted(item: T, work: Work[T], shared: Sequence[Any]) -> Any:
    """The answer of work, or its failure; what stops the process is no failure of the work."""
    try:
        return work(item, shared)
    except InvalidInputError as error:
        return Failure(type(error).__name__, error.sentence()[:2000])
    except Exception as error:
        return Failure(type(error).__name__, str(error)[:2000] or "(it says nothing)")
