"""Buffers from a pool of gm's: sizes, contents, reuse, limits, and that nothing is left."""
import gc

import gm_pyopencl
import numpy
import pyopencl
import pyopencl.array

context = pyopencl.create_some_context(interactive=False)
queue = pyopencl.CommandQueue(context)
allocator = gm_pyopencl.Allocator(queue)

assert allocator(0) is None
buffers = [allocator(size) for size in (1, 100, 4096, 1 << 20, 3 << 20)]
assert [buffer.size for buffer in buffers] == [1, 100, 4096, 1 << 20, 3 << 20]
assert allocator.figure("active") == 5 and allocator.figure("driver_allocs") < 5
for number, buffer in enumerate(buffers):
    pyopencl.enqueue_fill_buffer(queue, buffer, numpy.uint8(number + 1), 0, buffer.size)
for number, buffer in enumerate(buffers):
    back = numpy.zeros(buffer.size, numpy.uint8)
    pyopencl.enqueue_copy(queue, back, buffer)
    assert (back == number + 1).all()
del buffer, buffers
gc.collect()
assert allocator.figure("active") == 0

value = pyopencl.array.arange(queue, 100000, dtype=numpy.float32, allocator=allocator)
taken = allocator.figure("driver_allocs")
for _ in range(50):
    value = (value * 2 + 1) / 2
assert numpy.allclose(value.get(), numpy.arange(100000) + 25, rtol=1e-4)
assert allocator.figure("driver_allocs") <= taken + 3
assert allocator.figure("stream_hits") > 40

part = value[1000:2000]
assert numpy.array_equal(part.get(), value.get()[1000:2000])
del value
assert allocator.figure("active") == 1, "a part of an array keeps the whole buffer"
del part
assert allocator.figure("active") == 0

queue.finish()
assert allocator.trim() > 0
assert allocator.figure("reserved_bytes") == 0

try:
    allocator(1 << 50)
    raise SystemExit("a pebibyte was given")
except pyopencl.MemoryError as refused:
    assert "1125899906842624" in str(refused) or "PiB" in str(refused) or "bytes" in str(refused), refused

held = allocator(1000)
del allocator
pyopencl.enqueue_fill_buffer(queue, held, numpy.uint8(1), 0, 1000)  # its pool lives as long as it does
queue.finish()
del held
print(pyopencl.VERSION_TEXT, "buffers, arrays, reuse, limits")
