"""DLPack 0.x and 1.x, both ways, with NumPy, and with torch where it is installed: no copy, and each deleter runs once."""
import gc
import importlib.util

import gm_dlpack
import numpy
from gm_engines import host_figure

SHAPE = (3, 5)


class Old:
    """A producer that knows DLPack 0.x only."""

    def __init__(self, inner):
        self.inner, self.__dlpack_device__ = inner, inner.__dlpack_device__

    def __dlpack_device__(self):
        return self.inner.__dlpack_device__()

    def __dlpack__(self, *, stream=None):
        return self.inner.__dlpack__()


def to_numpy(old):
    tensor = gm_dlpack.Tensor(SHAPE, "float32")
    return numpy.from_dlpack(Old(tensor) if old else tensor)


def check_export(library, old):
    active = host_figure("active")
    tensor = gm_dlpack.Tensor(SHAPE, "float32")
    array = library.from_dlpack(Old(tensor) if old else tensor)
    assert tuple(array.shape) == SHAPE and str(array.dtype).endswith("float32")
    assert host_figure("active") == active + 1
    if library is not numpy or not old:  # NumPy makes arrays of DLPack 0.x read-only
        array[:] = 7
        assert float(array.sum()) == 105
    view = array[1]
    del array
    assert host_figure("active") == active + 1
    del view
    gc.collect()
    assert host_figure("active") == active


def check_unused(version):
    active = host_figure("active")
    capsule = gm_dlpack.Tensor(SHAPE, "int64").__dlpack__(max_version=version)
    assert host_figure("active") == active + 1
    del capsule
    assert host_figure("active") == active


class Counted:
    """A NumPy array's producer that tells when its owner was let go."""

    def __init__(self, old):
        self.old, self.array = old, numpy.arange(24, dtype="int32").reshape(4, 6)

    def __dlpack__(self, **wanted):
        if self.old and wanted:
            raise TypeError("0.x knows no max_version")
        return self.array.__dlpack__(**wanted)


def check_import(make, address_of):
    active = host_figure("active")
    owner = make()
    block = gm_dlpack.Block(owner)
    assert block.block.address == address_of(owner) and host_figure("active") == active + 1
    block.close()
    assert host_figure("active") == active


def check_refused():
    for wrong in (numpy.arange(24).reshape(4, 6).T, numpy.zeros((0, 3)), numpy.arange(10)[::2]):
        active = host_figure("active")
        try:
            gm_dlpack.Block(wrong)
            raise SystemExit("a tensor that is not compact became a block")
        except ValueError:
            pass
        assert host_figure("active") == active
    for shape in ((1 << 40, 1 << 40), (-1,), (1,) * 17, (1 << 50,)):
        try:
            numpy.from_dlpack(gm_dlpack.Tensor(shape, "int8"))
            raise SystemExit(f"{shape} was given")
        except MemoryError:
            pass


libraries = [numpy]
if importlib.util.find_spec("torch"):
    import torch
    libraries.append(torch)
for library in libraries:
    for old in (False, True):
        check_export(library, old)
for version in ((1, 0), None):
    check_unused(version)
for old in (False, True):
    check_import(lambda: Counted(old), lambda owner: owner.array.ctypes.data)
if len(libraries) > 1:
    check_import(lambda: torch.arange(10), lambda owner: owner.data_ptr())
check_refused()
print("0.x,1.x", "with", " and ".join(f"{library.__name__} {library.__version__}" for library in libraries))
