"""NumPy's files, as this NumPy writes them: gm must find the same tensors, with the same bytes, or say why not. NumPy must
read the same from those that gm has written."""
import ctypes
import os
import pathlib
import tempfile
import zipfile

import numpy

gm = ctypes.CDLL(os.environ["GM_ENGINES_BUILD"] + "/lib/libgm_model.so")  # and libgm.so, which it uses
gm.gm_dtype_name.restype = gm.gm_status_name.restype = ctypes.c_char_p
gm.gm_model_tensor_count.restype = ctypes.c_uint64
gm.gm_model_tensor_count.argtypes = gm.gm_model_close.argtypes = [ctypes.c_void_p]
gm.gm_model_tensor.argtypes = [ctypes.c_void_p, ctypes.c_uint64, ctypes.c_void_p, ctypes.c_void_p]
TYPES = {"f64": "float64", "f32": "float32", "f16": "float16", "i64": "int64", "i32": "int32", "i16": "int16", "i8": "int8",
         "u64": "uint64", "u32": "uint32", "u16": "uint16", "u8": "uint8", "bool": "bool", "c64": "complex64"}


class Tensor(ctypes.Structure):
    """gm_tensor_info"""
    _fields_ = [("struct_size", ctypes.c_uint32), ("dtype", ctypes.c_int), ("rank", ctypes.c_uint32),
                ("shard", ctypes.c_uint32), ("shape", ctypes.c_uint64 * 16), ("file_offset", ctypes.c_uint64),
                ("bytes", ctypes.c_uint64), ("name", ctypes.c_char_p)]


def read(path):
    """The arrays that gm finds in a file, by name. The name of gm's status where it refuses the file."""
    model = ctypes.c_void_p()
    status = gm.gm_model_open(None, str(path).encode(), ctypes.byref(model), None)
    if status:
        return gm.gm_status_name(status).decode()
    content, found = path.read_bytes(), {}
    for i in range(gm.gm_model_tensor_count(model)):
        info = Tensor(struct_size=ctypes.sizeof(Tensor))
        assert gm.gm_model_tensor(model, i, ctypes.byref(info), None) == 0
        data = content[info.file_offset:info.file_offset + info.bytes]
        dtype = TYPES[gm.gm_dtype_name(info.dtype).decode()]
        found[info.name.decode()] = numpy.frombuffer(data, dtype).reshape(tuple(info.shape[:info.rank]))
    gm.gm_model_close(model)
    return found


def same(found, wanted):
    assert isinstance(found, dict) and found.keys() == wanted.keys(), found
    for name, array in wanted.items():
        assert found[name].dtype == array.dtype and numpy.array_equal(found[name], array), name


random = numpy.random.default_rng(1)
arrays = {f"layer.{i}/{dtype}": (random.random((i, 3)) * 100).astype(dtype) for i, dtype in enumerate(TYPES.values())}
arrays["scalar"] = numpy.array(3.5)
with tempfile.TemporaryDirectory() as temporary:
    folder = pathlib.Path(temporary)
    for dtype in TYPES.values():
        numpy.save(folder / f"{dtype}.npy", arrays[next(name for name in arrays if name.endswith("/" + dtype))])
        same(read(folder / f"{dtype}.npy"), {dtype: numpy.load(folder / f"{dtype}.npy")})
    numpy.savez(folder / "all.npz", **arrays)
    same(read(folder / "all.npz"), arrays)
    for version in (1, 0), (2, 0), (3, 0):
        with open(folder / "x.npy", "wb") as out:
            numpy.lib.format.write_array(out, arrays["scalar"], version)
        same(read(folder / "x.npy"), {"x": arrays["scalar"]})
    numpy.savez_compressed(folder / "packed.npz", **arrays)
    assert read(folder / "packed.npz") == "GM_ERR_NOT_SUPPORTED"
    for refused in (numpy.asfortranarray(numpy.eye(3)), numpy.array([{}], object), numpy.zeros(2, ">f4"),
                    numpy.zeros(2, [("a", "f4")]), numpy.array(["text"]), numpy.zeros(2, "complex128")):
        numpy.save(folder / "refused.npy", refused, allow_pickle=True)
        assert read(folder / "refused.npy") == "GM_ERR_NOT_SUPPORTED", refused
written = pathlib.Path(os.environ["GM_ENGINES_OUT"])  # by check_numpy_save
with zipfile.ZipFile(written / "gm.npz") as archive:
    assert archive.testzip() is None
saved = numpy.load(written / "gm.npz")
matrix = numpy.array([[1, 2, 3], [4, 5, 6.5]], "float32")
wanted = {"layer/matrix": matrix, "ä b": numpy.array([7, 8, 9], "uint8"), "scalar": numpy.array(-5)}
same(dict(saved), wanted)
same({"matrix": numpy.load(written / "gm.npy")}, {"matrix": matrix})
print(numpy.__version__, "arrays, threads, resize, limit; files read and written")
