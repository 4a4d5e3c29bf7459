"""numba takes the plug-in, and the plug-in gives memory of a simulated card. numba itself needs a real one."""
import types

import gm_cards
import gm_numba
import numba_cuda
from numba import cuda

cuda.set_memory_manager(gm_numba.MemoryManager)
assert cuda.cudadrv.driver._memory_manager is gm_numba.MemoryManager


class Context:
    device = types.SimpleNamespace(id=0)


context = Context()
manager = gm_numba.MemoryManager(context=context)
manager.initialize()
assert manager.interface_version == 1
free, total = manager.get_memory_info()
assert 0 < free <= total
memory = manager.memalloc(100000)
assert memory.size == 100000 and memory.handle.value % 256 == 0
base, size = gm_cards.base(memory.handle.value)
assert base <= memory.handle.value < base + size
assert gm_cards.figure(0, "active") == 1
view = memory.view(0, 100)
memory.free()
assert gm_cards.figure(0, "active") == 0
try:
    manager.memalloc(1 << 50)
    raise SystemExit("a pebibyte was given")
except MemoryError as refused:
    assert str(refused)
with manager.defer_cleanup():
    pass
print(numba_cuda.__version__, "plug-in set; memory, figures and base on a simulated card")
