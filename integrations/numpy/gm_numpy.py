"""NumPy's arrays in memory of gm (NEP 49).

    with gm_numpy.memory():
        a = numpy.zeros(1000)   # its data is a block of gm's, also after the `with`

The choice is a context variable, as NumPy has it: a new thread begins with NumPy's own allocator.
"""
import contextlib
import ctypes

import numpy
from gm_engines import capsule, capsule_pointer, library

_SET_HANDLER = 304  # the entry of NumPy's table of C functions that is PyDataMem_SetHandler
_table = ctypes.cast(capsule_pointer(numpy._core.multiarray._ARRAY_API, None), ctypes.POINTER(ctypes.c_void_p))
_set_handler = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)(_table[_SET_HANDLER])
_handler = capsule(ctypes.addressof(ctypes.c_char.in_dll(library, "gm_numpy")), b"mem_handler")


@contextlib.contextmanager
def memory():
    """New arrays of this context take their data from gm."""
    before = _set_handler(_handler)
    try:
        yield
    finally:
        _set_handler(before)
