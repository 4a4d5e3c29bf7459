"""Python's ONNX Runtime on gm, with the models that the check in C has left: one line puts a session on gm."""
import ctypes
import os
import threading

import gm_dlpack
import gm_onnxruntime
import numpy
import onnxruntime
from gm_engines import host_figure, host_limit

onnxruntime.set_default_logger_severity(4)
folder = os.environ["GM_ENGINES_OUT"]
random = numpy.random.default_rng(1)


def session(name, gm=True):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(f"{folder}/{name}.onnx", gm_onnxruntime.use(options) if gm else options)


def inputs_of(of, batch):
    return {of.get_inputs()[0].name: random.random([batch, *of.get_inputs()[0].shape[1:]], "float32")}


started = host_figure("active")
cases = []
for name in ("transformer", "convnet"):
    own, ours = session(name, gm=False), session(name)
    for batch in (1, 5, 2):
        x = inputs_of(own, batch)
        cases.append((ours, x, own.run(None, x)[0]))
assert host_figure("active") > started + 4, "the sessions have no memory of gm"


def check_cases():
    for ours, x, expected in cases:
        assert numpy.array_equal(ours.run(None, x)[0], expected)


check_cases()
threads = [threading.Thread(target=check_cases) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()

# Past a limit: ONNX Runtime's own exception, with gm's reason. The session goes on.
ours = cases[0][0]
host_limit(host_figure("in_use_bytes"))
try:
    ours.run(None, inputs_of(ours, 2000))
    raise SystemExit("a run past the limit was allowed")
except onnxruntime.capi.onnxruntime_pybind11_state.RuntimeException as error:
    assert "limit" in str(error), error
host_limit(0)
check_cases()

# Tensors in memory of gm, without a copy: ONNX Runtime reads one and writes the other.
ours, x, expected = cases[0]
(name, data), = x.items()
values = []
for shape in (data.shape, expected.shape):
    value = onnxruntime.OrtValue.from_dlpack(gm_dlpack.Tensor(shape, "float32"))
    values.append(value)
numpy.ctypeslib.as_array(ctypes.cast(values[0].data_ptr(), ctypes.POINTER(ctypes.c_float)), data.shape)[...] = data
binding = ours.io_binding()
binding.bind_ortvalue_input(name, values[0])
binding.bind_ortvalue_output(ours.get_outputs()[0].name, values[1])
ours.run_with_iobinding(binding)
assert numpy.array_equal(values[1].numpy(), expected)
assert host_figure("active") > started

# The options of the CUDA provider, on a simulated card. The functions are called as the provider calls them.
options = gm_onnxruntime.cuda_options(0, 0)
assert options == gm_onnxruntime.cuda_options(0, 0)
alloc = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_size_t)(int(options["gpu_external_alloc"]))
free = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(int(options["gpu_external_free"]))
block = alloc(1000)
assert block
free(block)
ctypes.CFUNCTYPE(None)(int(options["gpu_external_empty_cache"]))()
gm_onnxruntime.cuda_options_end(0, 0)

del ours, own, cases, binding, values, value
assert host_figure("active") == started, host_figure("active")
print(onnxruntime.__version__, "sessions in C and Python with equal bits; bound tensors, refusals, threads, ends")
