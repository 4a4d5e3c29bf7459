"""ONNX Runtime's memory from gm.

    session = onnxruntime.InferenceSession("model.onnx", gm_onnxruntime.use(onnxruntime.SessionOptions()))
    providers = [("CUDAExecutionProvider", gm_onnxruntime.cuda_options(0, stream))]   # stream: a native handle
"""
import ctypes

from gm_engines import library, why


class _Functions(ctypes.Structure):  # gm_ort_functions
    _fields_ = [(name, ctypes.c_void_p) for name in ("alloc", "free", "empty_cache")]


library.gm_ort_card_functions.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(_Functions)]
library.gm_ort_card_functions_end.argtypes = [ctypes.c_int, ctypes.c_void_p]


def use(options):
    """Sessions with these options take their memory on the CPU from gm."""
    options.register_custom_ops_library(library._name)
    return options


def cuda_options(ordinal, stream):
    """Options for CUDAExecutionProvider: it computes on the stream, and gm has its memory."""
    functions = _Functions()
    if library.gm_ort_card_functions(ordinal, stream, functions):
        raise RuntimeError(why())
    options = {f"gpu_external_{name}": str(getattr(functions, name)) for name, _ in _Functions._fields_}
    return options | {"device_id": str(ordinal), "user_compute_stream": str(stream), "has_user_compute_stream": "1"}


def cuda_options_end(ordinal, stream):
    """Call this after the last session with the options, and before the stream is destroyed."""
    if library.gm_ort_card_functions_end(ordinal, stream):
        raise RuntimeError(why())
