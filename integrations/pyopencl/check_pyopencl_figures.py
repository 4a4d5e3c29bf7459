"""Driver calls, bytes and time of pyopencl's own allocators and of gm's, in one process. Prints a table.

A layer of OpenCL's loader counts for all of them (check_calls.c). Each run begins with a new allocator, and the allocators
take turns. A figure is the median of its runs.
"""
import ctypes
import gc
import os
import random
import statistics
import time

LAYER = os.path.join(os.environ["GM_ENGINES_BUILD"], "lib", "libcheck_calls.so")
os.environ["OPENCL_LAYERS"] = LAYER  # the loader reads it when it starts

import gm_pyopencl  # noqa: E402
import numpy  # noqa: E402
import pyopencl  # noqa: E402
import pyopencl.array  # noqa: E402
import pyopencl.tools  # noqa: E402

RUNS = 7


class Calls(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in ("buffers", "parts", "failures", "bytes", "live_bytes", "peak_bytes")]


def arithmetic(queue, allocator):
    """Temporaries of one size, which live for an operation."""
    value = pyopencl.array.zeros(queue, 100000, "float32", allocator=allocator)
    for _ in range(200):
        value = (value * 2 + 1) / 2
    assert numpy.allclose(value.get(), 100, rtol=1e-3)


def mixed(queue, allocator):
    """Buffers of 256 bytes to 4 MiB, of which 64 live at once and a random one goes."""
    chance, live = random.Random(1), []
    for _ in range(2000):
        live.append(allocator(int(2 ** chance.uniform(8, 22))))
        pyopencl.enqueue_fill_buffer(queue, live[-1], numpy.uint8(1), 0, min(4096, live[-1].size))
        if len(live) > 64:
            live.pop(chance.randrange(64))


def rounds(queue, allocator):
    """1800 buffers of 64 KiB to 16 MiB, of which 16 live at once. No work uses them."""
    for _ in range(9):
        live = [None] * 16
        for number in range(200):
            live[number * 5 % 16] = None
            live[number * 5 % 16] = allocator(65536 << number * 7 % 9)


ALLOCATORS = {
    "ImmediateAllocator": pyopencl.tools.ImmediateAllocator,
    "MemoryPool": lambda queue: pyopencl.tools.MemoryPool(pyopencl.tools.ImmediateAllocator(queue)),
    "gm": gm_pyopencl.Allocator,
}


def run(work, make, context, layer):
    queue, calls = pyopencl.CommandQueue(context), Calls()
    layer.check_calls_reset()
    before = time.perf_counter()
    allocator = make(queue)
    work(queue, allocator)
    queue.finish()
    took = time.perf_counter() - before
    del allocator
    gc.collect()
    deadline = time.monotonic() + 60
    layer.check_calls_read(ctypes.byref(calls))
    while calls.live_bytes and time.monotonic() < deadline:  # PoCL's thread lets go of buffers after its last command
        time.sleep(0.001)
        layer.check_calls_read(ctypes.byref(calls))
    assert calls.failures == 0 and calls.live_bytes == 0, f"{calls.live_bytes} bytes are left"
    return calls.buffers, calls.parts, calls.bytes / 2**20, calls.peak_bytes / 2**20, took * 1000


def check(work, figures):
    """Calls and bytes do not depend on the machine: only those are checked. PoCL lets go of buffers late, so the most bytes
    of ImmediateAllocator are at least those in use at once, by chance."""
    (immediate, _, asked, *_), (pool, _, _, pool_peak, _), (buffers, parts, gm_asked, gm_peak, _) = figures.values()
    assert 0 < buffers <= pool < immediate and buffers < immediate / 100, figures
    assert work is mixed or buffers + parts < immediate / 50, figures  # mixed has hardly a size twice
    assert gm_asked < asked / 10 and gm_peak <= max(2, pool_peak * 4 / 3), figures


def main():
    context, layer = pyopencl.create_some_context(interactive=False), ctypes.CDLL(LAYER)
    print("| pyopencl | allocator | clCreateBuffer | clCreateSubBuffer | MiB asked of the driver | most MiB at once | ms |")
    print("|---|---|---|---|---|---|---|")
    for work in (arithmetic, mixed, rounds):
        taken = {name: [] for name in ALLOCATORS}
        for number in range(RUNS + 1):  # the first one compiles kernels
            for name, make in ALLOCATORS.items():
                figures = run(work, make, context, layer)
                if number:
                    taken[name].append(figures)
        figures = {name: [statistics.median(column) for column in zip(*runs)] for name, runs in taken.items()}
        for name, (buffers, parts, asked, peak, took) in figures.items():
            print(f"| {work.__name__} | {name} | {buffers:.0f} | {parts:.0f} | {asked:.1f} | {peak:.1f} | {took:.0f} |")
        check(work, figures)
    print(f"{pyopencl.VERSION_TEXT} driver calls beside pyopencl's own allocators")


if __name__ == "__main__":
    main()
