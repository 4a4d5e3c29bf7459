"""numba on a card with gm's memory: arrays go there and back. Prints one JSON object; leaves with 77 where there is no
numba or no card."""
import json
import sys

try:
    import numba
    import numpy
    from numba import cuda
except ImportError as missing:
    print(f"numba is not there: {missing}", file=sys.stderr)
    sys.exit(77)
import gm_cards
import gm_numba

cuda.set_memory_manager(gm_numba.MemoryManager)
if not cuda.is_available():
    print("numba has no card", file=sys.stderr)
    sys.exit(77)
data = numpy.arange(100000, dtype="float32")
before = gm_cards.figure(0, "allocs")
there = cuda.to_device(data)
assert gm_cards.figure(0, "allocs") > before
assert (there.copy_to_host() == data).all()
print(json.dumps({"engine": "numba", "version": numba.__version__}))
