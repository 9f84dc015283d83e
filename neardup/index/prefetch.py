"""One machine instruction that numba does not offer: ask for a cache line before it is needed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

if TYPE_CHECKING:
    import numpy.typing as npt

    def prefetch(array: npt.NDArray[Any], index: int) -> None:
        """Fetch the cache line of ``array[index]``, of shape (n,), without waiting for it. Has no effect but on time."""
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
