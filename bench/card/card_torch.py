"""torch on a card with gm's memory: a training step, a graph, out of memory. Prints one JSON object.

Leaves with 77 where there is no torch or no card. Without words it runs itself twice: once with torch's own allocator,
once with gm's; what both computed must be equal bit by bit.
"""
import hashlib
import json
import os
import subprocess
import sys
import time

STEPS = 20


def absent(why):
    print(why, file=sys.stderr)
    sys.exit(77)


def model(torch):
    torch.manual_seed(7)
    layer = torch.nn.TransformerEncoderLayer(512, 8, 2048, dropout=0.0, batch_first=True)
    net = torch.nn.Sequential(torch.nn.Embedding(8000, 512),
                              torch.nn.TransformerEncoder(layer, 6, enable_nested_tensor=False),
                              torch.nn.Linear(512, 8000))
    return net.cuda()


def train(torch):
    """(digest of the logits, milliseconds of a step)"""
    torch.use_deterministic_algorithms(True, warn_only=True)
    net = model(torch)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-4)
    batch = torch.arange(8 * 256, device="cuda").reshape(8, 256) % 8000
    begin = None
    for step in range(STEPS):
        if step == STEPS // 2:
            torch.cuda.synchronize()
            begin = time.monotonic()
        optimizer.zero_grad(set_to_none=True)
        logits = net(batch)
        torch.nn.functional.cross_entropy(logits.flatten(0, 1), batch.flatten()).backward()
        optimizer.step()
    torch.cuda.synchronize()
    took = (time.monotonic() - begin) / (STEPS - STEPS // 2)
    return hashlib.sha256(logits.detach().cpu().numpy().tobytes()).hexdigest(), took * 1000


def graph(torch):
    """A captured graph is played and gives the right sum, while other memory is taken and given back."""
    source = torch.zeros(1 << 20, device="cuda")
    warm = torch.cuda.Stream()
    with torch.cuda.stream(warm):
        (source * 2 + 1).sum()
    torch.cuda.synchronize()
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured):
        total = (source * 2 + 1).sum()
    for value in (1.0, 3.0):
        source.fill_(value)
        beside = [torch.full((1 << 18,), -7.0, device="cuda") for _ in range(16)]
        captured.replay()
        torch.cuda.synchronize()
        assert float(total) == (1 << 20) * (2 * value + 1), float(total)
        del beside


def out_of_memory(torch):
    """More than there is is refused, and the next request is served. torch goes on with NULL where a pluggable allocator
    has no memory; gm then says why on standard error."""
    try:
        given = torch.empty(1 << 50, dtype=torch.uint8, device="cuda")
        assert given.data_ptr() == 0, "a pebibyte was given"
        refused = "NULL"
        del given
    except torch.cuda.OutOfMemoryError as error:
        refused = str(error).split("\n", maxsplit=1)[0]
    assert float(torch.ones(1 << 20, device="cuda").sum()) == 1 << 20
    return refused


def one(which):
    import torch
    if which == "gm":
        import gm_torch
        gm_torch.use_on_cuda()
    digest, took = train(torch)
    graph(torch)
    print(json.dumps({"digest": digest, "step_ms": round(took, 3), "refusal": out_of_memory(torch)}))


def both():
    try:
        import torch
    except ImportError as missing:
        absent(f"torch is not there: {missing}")
    if not torch.cuda.is_available():
        absent(f"torch {torch.__version__} has no card")
    answers = {}
    for which in ("torch", "gm"):
        done = subprocess.run([sys.executable, __file__, which], capture_output=True, text=True, timeout=55,
                              env=os.environ | {"CUBLAS_WORKSPACE_CONFIG": ":4096:8"})  # equal from run to run
        sys.stderr.write(done.stderr[-1500:])
        if done.returncode:
            sys.exit(f"{which}: exit status {done.returncode}")
        answers[which] = json.loads(done.stdout.splitlines()[-1])
    equal = answers["torch"]["digest"] == answers["gm"]["digest"]
    print(json.dumps({"engine": "torch", "version": torch.__version__, "card": torch.cuda.get_device_name(0),
                      "bit_equal": equal, "step_ms": {name: answer["step_ms"] for name, answer in answers.items()},
                      "refusal": answers["gm"]["refusal"]}))
    if not equal:
        sys.exit("the logits of both differ")


if __name__ == "__main__":
    one(sys.argv[1]) if len(sys.argv) > 1 else both()
