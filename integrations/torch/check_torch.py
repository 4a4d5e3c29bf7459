"""torch on gm: a model's logits are equal bit by bit, a limit reaches Python, and every hook for cards can be set.

What the functions for cards do is tested without torch (tests/integrations), on a simulated driver.
"""
import copy
import ctypes
import os
import pathlib
import subprocess
import threading

import gm_cards
import gm_engines
import gm_torch
import torch
from torch.utils import cpp_extension

HERE = pathlib.Path(__file__).resolve().parent
ROOT, OUT = pathlib.Path(os.environ["GM_ENGINES_ROOT"]), pathlib.Path(os.environ["GM_ENGINES_OUT"])


def compiled(name, *links):
    """Compiles a file of this folder for this torch, once."""
    source, made = HERE / f"{name}.cpp", OUT / f"lib{name}-{torch.__version__}.so"
    if not made.exists() or made.stat().st_mtime < source.stat().st_mtime:
        command = [os.environ.get("CXX", "g++"), "-std=c++20", "-O1", "-fPIC", "-shared", str(source), "-o", str(made),
                   f"-I{ROOT / 'include'}", "-Wl,--no-as-needed", *links]
        command += [f"-isystem{path}" for path in cpp_extension.include_paths()]
        command += [f"-L{path}" for path in cpp_extension.library_paths()] + ["-lc10"]
        subprocess.run(command, check=True)
    return str(made)


def model():
    torch.manual_seed(7)
    layer = torch.nn.TransformerEncoderLayer(64, 4, 128, dropout=0.0, batch_first=True)
    return torch.nn.Sequential(torch.nn.Embedding(500, 64), torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False),
                               torch.nn.Linear(64, 500))


def train(net, batch):
    """The logits before and after one step."""
    before = net(batch)
    torch.nn.functional.cross_entropy(before.flatten(0, 1), batch.flatten()).backward()
    with torch.no_grad():
        for parameter in net.parameters():
            parameter -= 0.1 * parameter.grad
        return before.detach().clone(), net(batch)


def check_cpu():
    stock = model()
    batch = torch.arange(64).reshape(2, 32)
    wanted = train(copy.deepcopy(stock), batch)
    engines = os.environ["GM_ENGINES_LIBRARY"]
    gm_torch.use_on_cpu(compiled("gm_torch_cpu", engines, f"-Wl,-rpath,{pathlib.Path(engines).parent}"))
    started = gm_engines.host_figure("allocs")
    active = gm_engines.host_figure("active")
    ours = copy.deepcopy(stock)
    assert gm_engines.host_figure("active") >= active + len(list(ours.parameters()))
    got = train(ours, batch)
    for one, other in zip(wanted, got):
        assert torch.equal(one, other), (one - other).abs().max()
    again = gm_engines.host_figure("allocs")
    with torch.no_grad():
        ours(batch)
    hits = gm_engines.host_figure("stream_hits") + gm_engines.host_figure("global_hits")
    assert again > started + 200 and hits > 100, (again - started, hits)
    check_limit()
    del ours, got, one, other
    return again - started


def check_limit():
    gm_engines.host_limit(gm_engines.host_figure("reserved_bytes"))
    try:
        torch.empty(1 << 30)
        raise SystemExit("4 GiB past the limit were given")
    except torch.OutOfMemoryError as refused:
        assert "gm" in str(refused), refused
    gm_engines.host_limit(0)
    assert float(torch.ones(1 << 20).sum()) == 1 << 20


def check_hooks():
    """Construction needs no card. With one, scripts/gpu-check goes on from here."""
    assert gm_torch.allocator().allocator() is not None
    gm_torch.use_on_cuda()
    assert torch.cuda.memory.get_allocator_backend() == "pluggable"
    for function in gm_torch.HOOKS.values():
        assert ctypes.cast(function, ctypes.c_void_p).value


def allocates():
    """How many blocks of the card's own pool an allocation takes: 0 where a private pool serves. torch has no card here
    to ask with, so gm is asked as torch would."""
    allocate, free = gm_engines.library.gm_torch_alloc, gm_engines.library.gm_torch_free
    allocate.restype, allocate.argtypes = ctypes.c_void_p, [ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p]
    free.argtypes = [ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p]
    before = gm_cards.figure(0, "allocs")
    pointer = allocate(4096, 0, None)
    assert pointer
    free(pointer, 4096, 0, None)
    return gm_cards.figure(0, "allocs") - before


def check_pools():
    """torch's own calls for private pools, with its own filter: this thread is meant, another one is not."""
    pool, beside = torch.cuda.graph_pool_handle(), []
    gm_engines.library.gm_torch_init(1)
    for _ in range(3):
        torch._C._cuda_beginAllocateCurrentThreadToPool(0, pool)
        thread = threading.Thread(target=lambda: beside.append(allocates()))
        thread.start()
        thread.join()
        assert allocates() == 0 and beside.pop() == 1
        torch._C._cuda_endAllocateToPool(0, pool)
        assert allocates() == 1
        torch._C._cuda_releasePool(0, pool)


count = check_cpu()
check_hooks()
check_pools()
print(torch.__version__, f"bit-equal logits, {count} allocations of a training step, OutOfMemoryError, hooks, private pools")
