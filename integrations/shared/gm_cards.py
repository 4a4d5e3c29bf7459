"""The cards of the process for engines in Python: memory by ordinal and native stream."""
import ctypes

from gm_engines import library, why

_alloc, _free, _memory = library.gm_cards_alloc, library.gm_cards_free, library.gm_cards_memory
_base, _figure = library.gm_cards_base, library.gm_cards_figure
_alloc.argtypes, _alloc.restype = [ctypes.c_uint64, ctypes.c_int, ctypes.c_void_p], ctypes.c_void_p
_free.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p]
_memory.argtypes = [ctypes.c_int, ctypes.POINTER(ctypes.c_uint64), ctypes.POINTER(ctypes.c_uint64)]
_base.argtypes, _base.restype = [ctypes.c_void_p, ctypes.POINTER(ctypes.c_uint64)], ctypes.c_void_p
_figure.argtypes, _figure.restype = [ctypes.c_int, ctypes.c_char_p], ctypes.c_uint64


def alloc(size, ordinal, stream=0):
    """The address of `size` bytes, in the order of a native stream."""
    address = _alloc(size, ordinal, stream)
    if not address:
        raise MemoryError(why())
    return address


def free(address, ordinal, stream=0):
    if _free(address, ordinal, stream):
        raise ValueError(f"{address:#x} is no block of card {ordinal}")


def memory(ordinal):
    """(free, total) in bytes."""
    free_bytes, total = ctypes.c_uint64(), ctypes.c_uint64()
    if _memory(ordinal, free_bytes, total):
        raise RuntimeError(why())
    return free_bytes.value, total.value


def base(address):
    """(address, bytes) of the driver's allocation around an address."""
    size = ctypes.c_uint64()
    return _base(address, size), size.value


def figure(ordinal, name):
    """A field of the statistics of a card's pool."""
    return _figure(ordinal, name.encode())
