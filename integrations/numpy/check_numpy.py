"""NumPy's arrays in memory of gm: every one, until it is freed, in the thread that asked for it."""
import ctypes
import threading

import gm_numpy
import numpy
from gm_engines import host_figure, host_limit
from numpy._core.multiarray import get_handler_name, get_handler_version

numpy.random.default_rng(1)  # what a module keeps for ever it shall take before
started = host_figure("active")
with gm_numpy.memory():
    assert (get_handler_name(), get_handler_version()) == ("gm", 1)
    arrays = [numpy.zeros(n) for n in (0, 1, 7, 100, 100000, 1000000)]
    assert host_figure("active") == started + len(arrays)
    assert all(not array.any() for array in arrays)
    assert get_handler_name(arrays[3]) == "gm" and arrays[3].ctypes.data % 64 == 0
    product = numpy.random.default_rng(1).random((200, 200)) @ numpy.eye(200)
    names = []
    thread = threading.Thread(target=lambda: names.append(get_handler_name(numpy.zeros(9))))
    thread.start()
    thread.join()
    assert names == ["default_allocator"], names  # a context variable: a new thread has not inherited it

grown = numpy.zeros(1)
with gm_numpy.memory():
    grown = numpy.arange(1000)
for count in (2000, 1999, 3, 100000):
    before = grown[:3].tolist()
    grown.resize(count, refcheck=False)
    assert before == grown[:3].tolist() == [0, 1, 2] and get_handler_name(grown) == "gm"
assert numpy.array_equal(product, numpy.random.default_rng(1).random((200, 200)))

assert get_handler_name(numpy.zeros(9)) == "default_allocator"
with gm_numpy.memory():
    host_limit(host_figure("reserved_bytes"))
    try:
        numpy.zeros(1 << 28)
        raise SystemExit("2 GiB past the limit were given")
    except MemoryError:
        pass
    host_limit(0)
    refilled = numpy.ones(1 << 20)
    assert refilled.sum() == 1 << 20
    del refilled

for _ in range(1000):
    with gm_numpy.memory():
        numpy.zeros(300)
assert host_figure("stream_hits") + host_figure("global_hits") > 900
del arrays, product, grown
assert host_figure("active") == started, host_figure("active")
assert ctypes.sizeof(ctypes.c_void_p) == 8
print(numpy.__version__, "arrays, threads, resize, limit")
