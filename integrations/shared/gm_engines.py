"""Opens libgm_engines.so, the adapters in C. GM_ENGINES_LIBRARY names it where it is not beside the system's libraries."""
import ctypes
import os

library = ctypes.CDLL(os.environ.get("GM_ENGINES_LIBRARY", "libgm_engines.so"))
library.gm_engines_why.restype = ctypes.c_char_p
library.gm_engines_host_limit.argtypes = [ctypes.c_uint64]
library.gm_engines_host_figure.argtypes = [ctypes.c_char_p]
library.gm_engines_host_figure.restype = ctypes.c_uint64


def why():
    """The last failure of this thread, as a sentence."""
    return library.gm_engines_why().decode()


def host_figure(name):
    """A field of the statistics of the pool of host memory."""
    return library.gm_engines_host_figure(name.encode())


def host_limit(bytes_or_0):
    """Caps the pool of host memory; 0 takes the cap away."""
    if library.gm_engines_host_limit(bytes_or_0):
        raise ValueError(why())


_names = {}  # a capsule keeps the address of its name, also when Python ends
_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.argtypes, _new_capsule.restype = [ctypes.c_void_p] * 3, ctypes.py_object
capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer  # (capsule, name): an address
capsule_pointer.argtypes, capsule_pointer.restype = [ctypes.py_object, ctypes.c_char_p], ctypes.c_void_p


def static_name(name):
    """The address of a C string that lives as long as the process."""
    if name not in _names:
        _names[name] = ctypes.create_string_buffer(name)
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(_names[name]))
    return ctypes.addressof(_names[name])


def capsule(address, name, destructor=None):
    """A capsule for a C pointer. `destructor` is the address of a C function, or None."""
    return _new_capsule(address, static_name(name), destructor)
