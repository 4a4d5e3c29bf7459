"""CuPy on a card with gm's memory: results are right, and all memory goes back. Prints one JSON object; leaves with 77
where there is no CuPy or no card."""
import json
import sys

try:
    import cupy
    cupy.cuda.runtime.getDeviceCount()
except Exception as missing:  # CuPy has its own errors for a missing driver
    print(f"CuPy or its card is not there: {missing}", file=sys.stderr)
    sys.exit(77)
import gm_cards
import gm_cupy

for made in (gm_cupy.allocator(), gm_cupy.stream_allocator()):
    cupy.cuda.set_allocator(made.malloc)
    before = gm_cards.figure(0, "active")
    array = cupy.arange(1 << 20, dtype=cupy.int64)
    assert gm_cards.figure(0, "active") > before
    assert int((array * 2).sum()) == (1 << 20) * ((1 << 20) - 1)
    del array
    cupy.cuda.Device().synchronize()
    assert gm_cards.figure(0, "active") == before
cupy.cuda.set_allocator()
print(json.dumps({"engine": "cupy", "version": cupy.__version__}))
