"""CuPy's memory from gm.

    cupy.cuda.set_allocator(gm_cupy.allocator().malloc)          # on the default stream; no Python in the way
    cupy.cuda.set_allocator(gm_cupy.stream_allocator().malloc)   # in the order of the current stream
"""
import ctypes

import cupy
import gm_cards
from gm_engines import library


def allocator():
    """A CFunctionAllocator, which must live as long as its arrays."""
    functions = [ctypes.cast(library[name], ctypes.c_void_p).value for name in ("gm_cupy_malloc", "gm_cupy_free")]
    return cupy.cuda.CFunctionAllocator(0, *functions, library)


def stream_allocator():
    """A PythonFunctionAllocator: memory goes back in the order of the stream that it was asked for on, which lives on."""
    streams = {}

    def malloc(size, ordinal):
        stream = cupy.cuda.get_current_stream()
        address = gm_cards.alloc(size, ordinal, stream.ptr)
        streams[address] = stream
        return address

    def free(address, ordinal):
        gm_cards.free(address, ordinal, streams.pop(address).ptr)

    return cupy.cuda.PythonFunctionAllocator(malloc, free)
