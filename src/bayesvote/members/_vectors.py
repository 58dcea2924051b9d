"""A row times a matrix, and a row added to a matrix, by vectors of several doubles that stay in registers.

Numba's compiler would write the sums to memory every few steps, and check each time that the arrays do not overlap.
Matrices are flat here, places in them are unsigned, and nothing is checked: a vector must lie within its array.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic, models, register_model
from numpy.typing import NDArray

from bayesvote._checks import Array

Columns = NDArray[np.int32] | NDArray[np.uint32]
Index = np.uint64
Mask = NDArray[np.uint8] | Array


class _Vector(types.Type):
    """So many doubles."""

    def __init__(self, lanes: int) -> None:
        self.lanes = lanes
        super().__init__(name=f"Vector({lanes})")


@register_model(_Vector)
class _VectorModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: _Vector) -> None:
        super().__init__(manager, kind, ir.VectorType(ir.DoubleType(), kind.lanes))


def _place(context: Any, builder: Any, kind: Any, array: Any, at: Any, lanes: int) -> Any:
    """Pointer to so many elements of an array."""
    first = builder.gep(context.make_array(kind)(context, builder, array).data, [at])
    return builder.bitcast(first, ir.VectorType(first.type.pointee, lanes).as_pointer())


@intrinsic(prefer_literal=True)
def load(_: Any, array: Any, _at: Any, lanes: Any) -> Any:
    """So many elements of an array, from one place on; ``lanes`` is a constant."""

    def build(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        place = _place(context, builder, signature.args[0], given[0], given[1], lanes.literal_value)
        return builder.load(place, align=1)

    return _Vector(lanes.literal_value)(array, types.uint64, lanes), build


@intrinsic
def store(_: Any, array: Any, _at: Any, vector: Any) -> Any:
    """Put a vector into an array."""

    def build(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        place = _place(context, builder, signature.args[0], given[0], given[1], vector.lanes)
        builder.store(given[2], place, align=1)
        return context.get_dummy_value()

    return types.void(array, types.uint64, vector), build


@intrinsic
def add_times(_: Any, vector: Any, _x: Any, other: Any) -> Any:
    """Vector + x * other, in two steps: rounded twice, as plain numbers are."""

    def build(_context: Any, builder: Any, _signature: Any, given: Any) -> Any:
        first = builder.insert_element(given[0].type(ir.Undefined), given[1], ir.IntType(32)(0))
        same = builder.shuffle_vector(first, first, ir.VectorType(ir.IntType(32), vector.lanes)(None))
        return builder.fadd(given[0], builder.fmul(same, given[2]))

    return vector(vector, types.float64, other), build


@intrinsic
def where(_: Any, mask: Any, _at: Any, vector: Any) -> Any:
    """Keep a vector's numbers where the mask's bytes, from one place on, are not zero; zero elsewhere."""

    def build(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        kept = builder.load(_place(context, builder, signature.args[0], given[0], given[1], vector.lanes), align=1)
        return builder.select(builder.icmp_unsigned("!=", kept, kept.type(None)), given[2], given[2].type(None))

    return vector(mask, types.uint64, vector), build


def _product_tile(lanes: int) -> Any:
    @njit(nogil=True, error_model="numpy")
    def tile(
        values: Array,
        a: Index,
        columns: Columns,
        f: Index,
        n: Index,
        W: Array,
        width: Index,
        start: Array,
        out: Array,
        c: Index,
    ) -> None:
        s = load(start, c, lanes)
        for p in range(n):
            s = add_times(s, values[a + p], load(W, np.uint64(columns[f + p]) * width + c, lanes))
        store(out, c, s)

    return tile


product_32, _product_8, _product_1 = _product_tile(32), _product_tile(8), _product_tile(1)


@njit(cache=True, nogil=True, error_model="numpy")
def product(
    values: Array, a: Index, columns: Columns, f: Index, n: Index, W: Array, width: Index, start: Array, out: Array
) -> None:
    """Put start + x W into out, for n values from place a on and their columns from f on.

    The last tile is moved back to end with the row, and does some columns again.
    """
    if width >= 32:
        for c in range(np.uint64(0), width, np.uint64(32)):
            product_32(values, a, columns, f, n, W, width, start, out, min(c, width - np.uint64(32)))
    elif width >= 8:
        for c in range(np.uint64(0), width, np.uint64(8)):
            _product_8(values, a, columns, f, n, W, width, start, out, min(c, width - np.uint64(8)))
    else:
        for c in range(width):
            _product_1(values, a, columns, f, n, W, width, start, out, c)


def _teach_tile(lanes: int) -> Any:
    @njit(nogil=True, error_model="numpy")
    def tile(
        values: Array, a: Index, columns: Columns, n: Index, uses: Mask, steps: Array, W: Array, width: Index, c: Index
    ) -> None:
        step = load(steps, c, lanes)
        for p in range(a, a + n):
            at = np.uint64(columns[p]) * width + c
            store(W, at, add_times(load(W, at, lanes), values[p], where(uses, at, step)))

    return tile


_teach_16, _teach_4, _teach_1 = _teach_tile(16), _teach_tile(4), _teach_tile(1)


@njit(cache=True, nogil=True, error_model="numpy")
def teach_sparse(
    values: Array, columns: Columns, a: Index, n: Index, uses: Mask, steps: Array, W: Array, width: Index
) -> None:
    """Add step times x to the weights of all scores."""
    by_16, by_4 = width - width % np.uint64(16), width - width % np.uint64(4)
    for c in range(np.uint64(0), by_16, np.uint64(16)):
        _teach_16(values, a, columns, n, uses, steps, W, width, c)
    for c in range(by_16, by_4, np.uint64(4)):
        _teach_4(values, a, columns, n, uses, steps, W, width, c)
    for c in range(by_4, width):
        _teach_1(values, a, columns, n, uses, steps, W, width, c)
