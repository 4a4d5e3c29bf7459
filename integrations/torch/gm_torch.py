"""torch's memory from gm.

    gm_torch.use_on_cuda()                # before the first tensor on a card: every allocation of torch is a block of gm
    with torch.cuda.use_mem_pool(gm_torch.mem_pool()): ...   # or: gm gives segments, torch's own cache stays
    gm_torch.use_on_cpu("libgm_torch_cpu.so")                # tensors on the CPU, from now on
"""
import ctypes
import pathlib

import torch
from gm_engines import library

graphs = ctypes.CDLL(str(pathlib.Path(library._name).with_name("libgm_torch_graphs.so")))
HOOKS = {"set_init_fn": library.gm_torch_init, "set_reset_fn": library.gm_torch_reset,
         "set_memory_fraction_fn": library.gm_torch_memory_fraction, "set_base_alloc_fn": library.gm_torch_base_alloc,
         "set_record_stream_fn": library.gm_torch_record_stream,
         "set_begin_allocate_to_pool": graphs.gm_torch_begin_allocate_to_pool,
         "set_end_allocate_to_pool_fn": library.gm_torch_end_allocate_to_pool,
         "set_release_pool": library.gm_torch_release_pool}


def allocator():
    """A CUDAPluggableAllocator of gm, with its hooks."""
    made = torch.cuda.memory.CUDAPluggableAllocator(library._name, "gm_torch_alloc", "gm_torch_free")
    for setter, function in HOOKS.items():
        getattr(made.allocator(), setter)(ctypes.cast(function, ctypes.c_void_p).value)
    return made


def use_on_cuda():
    torch.cuda.memory.change_current_allocator(allocator())


def mem_pool():
    made = allocator()
    pool = torch.cuda.MemPool(made.allocator())
    pool.gm_allocator = made
    return pool


def use_on_cpu(path):
    """`path` is gm_torch_cpu.cpp, compiled for this version of torch."""
    ctypes.CDLL(path).gm_torch_cpu_install()
