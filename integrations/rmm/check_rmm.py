"""RMM calls gm for each of its allocations: on a simulated card, where RMM itself needs none."""
import gm_cards
import gm_rmm
import rmm

resource = gm_rmm.resource()
blocks = [resource.allocate(size) for size in (256, 4096, 100000)]
assert all(blocks) and len(set(blocks)) == 3 and gm_cards.figure(0, "active") == 3
for block, size in zip(blocks, (256, 4096, 100000)):
    resource.deallocate(block, size)
assert gm_cards.figure(0, "active") == 0
again = resource.allocate(4096)
assert gm_cards.figure(0, "stream_hits") >= 1
resource.deallocate(again, 4096)
try:
    resource.allocate(1 << 50)
    raise SystemExit("a pebibyte was given")
except MemoryError:
    pass
print(rmm.__version__, "allocations of a resource, on a simulated card")
