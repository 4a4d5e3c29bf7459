"""CuPy with gm's functions: its allocators are made and set. CuPy asks its driver before it calls them, so the functions
are called here as CuPy calls them, on a simulated card."""
import ctypes

import cupy
import gm_cards
import gm_cupy
from gm_engines import library

for made in (gm_cupy.allocator(), gm_cupy.stream_allocator()):
    cupy.cuda.set_allocator(made.malloc)
    assert cupy.cuda.get_allocator().__self__ is made
cupy.cuda.set_allocator()

malloc = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)(("gm_cupy_malloc", library))
free = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int)(("gm_cupy_free", library))
blocks = [malloc(None, size, 0) for size in (1, 512, 100000)]
assert all(blocks) and len(set(blocks)) == 3 and gm_cards.figure(0, "active") == 3
for block in blocks:
    free(None, block, 0)
free(None, None, 0)
assert malloc(None, 0, 0) is None and malloc(None, 1 << 50, 0) is None and malloc(None, 1, 40) is None
assert gm_cards.figure(0, "active") == 0
print(cupy.__version__, "both allocators made and set; the functions called on a simulated card")
