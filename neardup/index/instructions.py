"""Machine instructions that numba does not offer, by way of LLVM, which has them for every processor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

_EIGHT = 8

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    def prefetch(array: npt.NDArray[Any], index: int) -> None:
        """Fetch the cache line of ``array[index]``, of shape (n,), without waiting for it. Has no effect but on time."""

    def reaching(numbers: npt.NDArray[np.float64], factor: float, floor: float) -> int:
        """Which of eight numbers, shape (8,), times ``factor`` are at least ``floor``: bit i for the i-th; no bit for what is no number."""

    def trailing_zeros(bits: int) -> int:
        """Place of the lowest bit that is set; there must be one."""
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
    def trailing_zeros(typing_context, bits):
        """One instruction."""

        def generate(context, builder, signature, arguments):
            none_given_is_undefined = ir.IntType(1)(1)
            return builder.cttz(arguments[0], none_given_is_undefined)

        return types.int64(types.int64), generate
