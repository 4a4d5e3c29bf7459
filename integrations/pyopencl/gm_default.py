"""A plug-in of pytest: arrays that are made without an allocator take their memory from gm, a pool for each queue.

    pytest -p gm_default test_array.py
"""
import atexit
import os

import gm_pyopencl
import pyopencl
import pyopencl.array

_allocators, _made, _before = {}, [0], pyopencl.array.Array.__init__


def _allocator_of(queue):
    """A context's first queue is the pool's. A later queue waits for it, as the events of arrays say."""
    known = _allocators.get(queue.int_ptr)
    if not known:
        while len(_allocators) > 8:  # of queues that tests have left behind
            _allocators.pop(next(iter(_allocators)))
        known = _allocators[queue.int_ptr] = gm_pyopencl.Allocator(queue)
    return known


def _init(self, cq, shape, dtype, order="C", allocator=None, data=None, *others, **named):
    if allocator is None and data is None and isinstance(cq, pyopencl.CommandQueue):
        allocator, _made[0] = _allocator_of(cq), _made[0] + 1
    _before(self, cq, shape, dtype, order, allocator, data, *others, **named)


def _tell():
    with open(os.environ["GM_DEFAULT_COUNT"], "w", encoding="utf-8") as file:
        file.write(str(_made[0]))


pyopencl.array.Array.__init__ = _init
if "GM_DEFAULT_COUNT" in os.environ:
    atexit.register(_tell)
