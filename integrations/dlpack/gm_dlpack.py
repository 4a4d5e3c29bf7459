"""Tensors in memory of gm for every library that knows DLPack, and such libraries' tensors as blocks of gm.

    array = numpy.from_dlpack(gm_dlpack.Tensor((1000, 1000), "float32"))
    block = gm_dlpack.Block(torch.arange(10))
"""
import ctypes

from gm_engines import capsule, capsule_pointer, library, static_name, why

_CODES = {"int": 0, "uint": 1, "float": 2}
_VERSIONED, _PLAIN = b"dltensor_versioned", b"dltensor"
_TENSOR_AT = {_VERSIONED: 32, _PLAIN: 0}  # where DLPack's structs have the tensor, and the deleter
_DELETER_AT = {_VERSIONED: 16, _PLAIN: 56}


class _View(ctypes.Structure):  # gm_dl_view
    _fields_ = [("offset", ctypes.c_uint64), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
                ("lanes", ctypes.c_uint16), ("rank", ctypes.c_int32), ("shape", ctypes.POINTER(ctypes.c_int64))]


class _Block(ctypes.Structure):  # gm_block
    _fields_ = [("address", ctypes.c_uint64), ("bytes", ctypes.c_uint64), ("memory", ctypes.c_uint64),
                ("number", ctypes.c_uint32), ("check", ctypes.c_uint32)]


_is_valid = ctypes.pythonapi.PyCapsule_IsValid
_is_valid.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
_set_name = ctypes.pythonapi.PyCapsule_SetName
_set_name.argtypes = [ctypes.py_object, ctypes.c_void_p]
_export = {_VERSIONED: library.gm_dlpack_host_versioned, _PLAIN: library.gm_dlpack_host_tensor}
for _function in _export.values():
    _function.argtypes, _function.restype = [ctypes.POINTER(_View)], ctypes.c_void_p
library.gm_dlpack_host_import.argtypes = [ctypes.c_void_p, ctypes.POINTER(_Block)]
library.gm_dlpack_host_release.argtypes = [ctypes.POINTER(_Block)]


def _delete(address, name):
    deleter = ctypes.c_void_p.from_address(address + _DELETER_AT[name]).value
    if deleter:
        ctypes.CFUNCTYPE(None, ctypes.c_void_p)(deleter)(address)


# In C: a capsule may end while an exception passes, when no Python code may run.
_drop = ctypes.cast(library.gm_dlpack_host_drop, ctypes.c_void_p)


class Tensor:
    """A tensor that the first consumer takes over, with its memory."""

    def __init__(self, shape, dtype):
        word = dtype.rstrip("0123456789")
        self.shape, self.code, self.bits = tuple(shape), _CODES[word], int(dtype[len(word):])

    def __dlpack_device__(self):
        return 1, 0

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        name = _VERSIONED if max_version and max_version[0] >= 1 else _PLAIN
        shape = (ctypes.c_int64 * len(self.shape))(*self.shape)
        address = _export[name](_View(0, self.code, self.bits, 1, len(self.shape), shape))
        if not address:
            raise MemoryError(why())
        try:
            return capsule(address, name, _drop)
        except MemoryError:
            _delete(address, name)
            raise


class Block:
    """A block of gm over another library's tensor, which stays alive until close()."""

    def __init__(self, tensor):
        try:
            taken = tensor.__dlpack__(max_version=(1, 0))
        except TypeError:  # it knows 0.x only
            taken = tensor.__dlpack__()
        self.name = _VERSIONED if _is_valid(id(taken), _VERSIONED) else _PLAIN
        address, self.block = capsule_pointer(taken, self.name), _Block()
        if library.gm_dlpack_host_import(address + _TENSOR_AT[self.name], self.block):
            raise ValueError(why())
        _set_name(taken, static_name(b"used_" + self.name))
        self.managed = address

    def close(self):
        if library.gm_dlpack_host_release(self.block):
            raise ValueError("the block was freed before")
        _delete(self.managed, self.name)
