"""DLPack with torch on a card: gm's host tensor reaches the card, and a tensor of the card is refused as host memory.
Prints one JSON object; leaves with 77 where there is no torch or no card."""
import json
import sys

try:
    import torch
except ImportError as missing:
    print(f"torch is not there: {missing}", file=sys.stderr)
    sys.exit(77)
if not torch.cuda.is_available():
    print(f"torch {torch.__version__} has no card", file=sys.stderr)
    sys.exit(77)
import gm_dlpack

host = torch.from_dlpack(gm_dlpack.Tensor((1 << 16,), "int64"))
host[:] = torch.arange(1 << 16)
there = host.cuda()
assert int(there.sum()) == (1 << 16) * ((1 << 16) - 1) // 2
try:
    gm_dlpack.Block(there)
    raise SystemExit("a tensor of the card was taken for host memory")
except ValueError:
    pass
print(json.dumps({"engine": "dlpack", "version": torch.__version__}))
