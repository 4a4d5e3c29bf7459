"""An allocator of pyopencl whose buffers are blocks of a pool of gm's, on the program's own context and queue.

    allocator = gm_pyopencl.Allocator(queue)
    array = pyopencl.array.zeros(queue, 1000, "float32", allocator=allocator)

A buffer goes back to the pool when Python lets go of it, in the order of `queue`. As with pyopencl's own pools, who uses
a buffer on another queue waits before letting go of it.
"""
import ctypes
import pathlib

import pyopencl
from gm_engines import library, why
from pyopencl import _cl

_open, _close = library.gm_pyopencl_open, library.gm_pyopencl_close
_alloc, _free = library.gm_pyopencl_alloc, library.gm_pyopencl_free
_trim, _figure = library.gm_pyopencl_trim, library.gm_pyopencl_figure
_open.argtypes, _open.restype = [ctypes.c_void_p] * 4, ctypes.c_void_p
_close.argtypes = [ctypes.c_void_p]
_alloc.argtypes, _alloc.restype = [ctypes.c_void_p, ctypes.c_uint64, ctypes.POINTER(ctypes.c_size_t)], ctypes.c_void_p
_free.argtypes, _free.restype = [ctypes.c_void_p, ctypes.c_void_p], None
_trim.argtypes, _trim.restype = [ctypes.c_void_p], ctypes.c_uint64
_figure.argtypes, _figure.restype = [ctypes.c_void_p, ctypes.c_char_p], ctypes.c_uint64


def _loader():
    """The OpenCL library that a wheel of pyopencl brings along. None: the system's, which gm finds by itself."""
    found = sorted((pathlib.Path(pyopencl.__file__).parent / ".libs").glob("libOpenCL*.so*"))
    return ctypes.CDLL(str(found[0])) if found else None


class _Pool:
    def __init__(self, queue):
        self.queue, self.loader = queue, _loader()
        self.handle = _open(self.loader and self.loader._handle, queue.context.int_ptr, queue.device.int_ptr, queue.int_ptr)
        if not self.handle:
            raise pyopencl.RuntimeError(why())

    def __del__(self):
        if self.handle:
            _close(self.handle)


class _Owner:
    """Hangs on a buffer, and gives its block back when the buffer goes."""

    __slots__ = ("pool", "handle")

    def __init__(self, pool, handle):
        self.pool, self.handle = pool, handle

    def __del__(self):
        _free(self.pool.handle, self.handle)


class Allocator:
    """Called with a size in bytes, it returns a pyopencl.Buffer of exactly that size, or None for 0."""

    def __init__(self, queue):
        self._pool = _Pool(queue)

    def __call__(self, size):
        if size == 0:
            return None  # as pyopencl's own allocators do: OpenCL has no empty buffers
        memory = ctypes.c_size_t()
        handle = _alloc(self._pool.handle, size, memory)
        if not handle:
            raise pyopencl.MemoryError(_cl._ErrorRecord(
                why(), pyopencl.status_code.MEM_OBJECT_ALLOCATION_FAILURE, "gm_alloc"))
        owner = _Owner(self._pool, handle)
        buffer = pyopencl.MemoryObject.from_int_ptr(memory.value, retain=True)
        buffer.gm_owner = owner
        return buffer

    def trim(self):
        """Gives back memory that no work uses. Returns the bytes."""
        return _trim(self._pool.handle)

    def figure(self, name):
        """A field of the pool's statistics."""
        return _figure(self._pool.handle, name.encode())
