"""Machine instructions that numba does not offer, by way of LLVM, which has them for every processor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.typing.npydecl import parse_dtype
from numba.extending import intrinsic
from numba.np.arrayobj import make_array, populate_array

_EIGHT = 8
SIXTEEN = 16
"""How many numbers :func:`near_of_sixteen` compares with."""

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    T = TypeVar("T", bound=np.generic)

    def prefetch(array: npt.NDArray[Any], index: int) -> None:
        """Fetch the cache line of ``array[index]``, of shape (n,), without waiting for it. Has no effect but
        on time.
        """

    def reaching(numbers: npt.NDArray[np.float64], factor: float, floor: float) -> int:
        """Which of eight numbers, shape (8,), times ``factor`` are at least ``floor``: bit i for the i-th; no
        bit for what is no number.
        """

    def near_of_sixteen(lows: npt.NDArray[np.uint32], at: int, low: np.uint32, most: int) -> int:
        """Which of ``lows[at : at + 16]`` differ from ``low`` in at most so many bits: bit i for the i-th.
        There must be sixteen.
        """

    def trailing_zeros(bits: int) -> int:
        """Place of the lowest bit that is set; there must be one."""

    def array_at(address: int, shape: tuple[int, ...], kind: type[T]) -> npt.NDArray[T]:
        """The array, C-contiguous, that begins at an address. Nothing keeps its memory alive."""
else:

    @intrinsic
    def prefetch(typing_context, array, index):
        """Fetch the cache line of ``array[index]`` without waiting for it."""

        def generate(context, builder, signature, arguments):
            struct = context.make_array(signature.args[0])(context, builder, arguments[0])
            address = cgutils.get_item_pointer(
                context, builder, signature.args[0], struct, [arguments[1]], wraparound=False
            )
            byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
            kind = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
            function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
            reading, keep, data = number(0), number(3), number(1)
            builder.call(function, [builder.bitcast(address, byte), reading, keep, data])
            return context.get_dummy_value()

        return types.void(array, types.intp), generate

    @intrinsic
    def reaching(typing_context, numbers, factor, floor):
        """One comparison of eight numbers, where numba would make eight."""

        def generate(context, builder, signature, arguments):
            struct = context.make_array(signature.args[0])(context, builder, arguments[0])
            vector = ir.VectorType(ir.DoubleType(), _EIGHT)
            loaded = builder.load(builder.bitcast(struct.data, vector.as_pointer()))
            loaded.align = 8  # of one number: the array may begin anywhere

            def eight_times(number):
                made = ir.Constant(vector, ir.Undefined)
                for place in range(_EIGHT):
                    made = builder.insert_element(made, number, ir.IntType(32)(place))
                return made

            products = builder.fmul(loaded, eight_times(arguments[1]))
            reached = builder.fcmp_ordered(">=", products, eight_times(arguments[2]))
            return builder.zext(builder.bitcast(reached, ir.IntType(_EIGHT)), ir.IntType(64))

        return types.int64(numbers, types.float64, types.float64), generate

    @intrinsic
    def near_of_sixteen(typing_context, lows, at, low, most):
        """One comparison of sixteen numbers, at any address."""

        def generate(context, builder, signature, arguments):
            struct = context.make_array(signature.args[0])(context, builder, arguments[0])
            address = cgutils.get_item_pointer(
                context, builder, signature.args[0], struct, [arguments[1]], wraparound=False
            )
            number = ir.IntType(32)
            vector = ir.VectorType(number, SIXTEEN)
            loaded = builder.load(builder.bitcast(address, vector.as_pointer()))
            loaded.align = 4

            def sixteen_times(one):
                made = builder.insert_element(ir.Constant(vector, ir.Undefined), one, number(0))
                return builder.shuffle_vector(
                    made,
                    ir.Constant(vector, ir.Undefined),
                    ir.Constant(ir.VectorType(number, SIXTEEN), [0] * SIXTEEN),
                )

            kind = ir.FunctionType(vector, [vector])
            count = cgutils.get_or_insert_function(builder.module, kind, "llvm.ctpop.v16i32")
            differing = builder.call(count, [builder.xor(loaded, sixteen_times(arguments[2]))])
            near = builder.icmp_unsigned("<=", differing, sixteen_times(builder.trunc(arguments[3], number)))
            return builder.zext(builder.bitcast(near, ir.IntType(SIXTEEN)), ir.IntType(64))

        return types.int64(lows, types.intp, types.uint32, types.int64), generate

    @intrinsic
    def trailing_zeros(typing_context, bits):
        """One instruction."""

        def generate(context, builder, signature, arguments):
            none_given_is_undefined = ir.IntType(1)(1)
            return builder.cttz(arguments[0], none_given_is_undefined)

        return types.int64(types.int64), generate

    @intrinsic
    def array_at(typing_context, address, shape, kind):
        """What numba's carray makes, which is a function that gives an array back; those need its counting of
        references.
        """
        made = types.Array(parse_dtype(kind), len(shape), "C")

        def generate(context, builder, signature, arguments):
            struct = make_array(made)(context, builder)
            element = context.get_data_type(made.dtype)
            size = context.get_constant(types.intp, context.get_abi_sizeof(element))
            lengths, strides = cgutils.unpack_tuple(builder, arguments[1]), [size]
            for length in reversed(lengths[1:]):
                strides.insert(0, builder.mul(strides[0], length))
            data = builder.inttoptr(arguments[0], element.as_pointer())
            populate_array(struct, data=data, shape=lengths, strides=strides, itemsize=size, meminfo=None)
            return struct._getvalue()

        return made(types.int64, shape, kind), generate
