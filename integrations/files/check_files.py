"""Files that gm writes, read by the packages of their formats: the same tensors, bit by bit, and what the files state about
themselves. The models that gm reads are written by those packages, too."""
import ctypes
import os
import pathlib
import tempfile

import gguf
import numpy
import safetensors
import safetensors.numpy

gm = ctypes.CDLL(os.environ["GM_ENGINES_BUILD"] + "/lib/libgm_model.so")  # and libgm.so, which it uses
gm.gm_status_text.restype = ctypes.c_char_p
gm.gm_model_close.argtypes = [ctypes.c_void_p]
gm.gm_model_save.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p,
                             ctypes.c_void_p]
ALIGN = 4096
random = numpy.random.default_rng(1)
count = 0


def save(source, target):
    """gm copies one model into another file. Returns gm's status."""
    global count
    count += 1
    model = ctypes.c_void_p()
    status = gm.gm_model_open(None, str(source).encode(), ctypes.byref(model), None)
    assert status == 0, gm.gm_status_text(status)
    status = gm.gm_model_save(model, None, str(target).encode(), None, None, None)
    gm.gm_model_close(model)
    return status


def saved(source, target):
    status = save(source, target)
    assert status == 0, gm.gm_status_text(status)
    return target


def tensors(path):
    """What the package reads: bits and shape by name, and its metadata."""
    if path.suffix == ".gguf":
        reader = gguf.GGUFReader(path)
        found = {one.name: (one.tensor_type.name, tuple(int(size) for size in one.shape), one.data.tobytes())
                 for one in reader.tensors}
        stated = {key: (field.types, [bytes(part) for part in field.parts[3:]]) for key, field in reader.fields.items()
                  if not key.startswith("GGUF.") and key != "general.alignment"}
        assert all(one.data_offset % reader.alignment == 0 for one in reader.tensors)
        return found, stated, reader
    found = {name: (str(array.dtype), array.shape, array.tobytes())
             for name, array in safetensors.numpy.load_file(path).items()}
    with safetensors.safe_open(path, "numpy") as file:
        return found, file.metadata(), None


def write_gguf(path):
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name("a \"name\" \u00e4")
    writer.add_uint32("layers", 3)
    writer.add_float64("scale", 0.1)
    writer.add_int64("below", -2**63)
    writer.add_bool("yes", True)
    writer.add_array("numbers", [1, -2, 3])
    writer.add_array("tokens", ["<s>", "", "\u2581a"])
    for name, shape in ("wide", (3, 500)), ("one", (1,)), ("deep", (2, 1, 3, 4)), ("page", (1024,)):
        for dtype in numpy.float32, numpy.float16, numpy.int8, numpy.int64, numpy.float64:
            writer.add_tensor(f"{name}.{numpy.dtype(dtype).name}", (random.random(shape) * 100).astype(dtype))
    for kind in gguf.GGMLQuantizationType.Q4_0, gguf.GGMLQuantizationType.Q8_0, gguf.GGMLQuantizationType.BF16:
        rows = gguf.quants.quantize(random.random((5, 96), dtype=numpy.float32), kind)
        writer.add_tensor(f"blocks.{kind.name}", rows, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def write_safetensors(path, dtypes, shapes):
    arrays = {f"{name}.{dtype}": numpy.array(random.random(shape) * 100).astype(dtype) for name, shape in shapes.items()
              for dtype in dtypes}
    safetensors.numpy.save_file(arrays, path, {"format": "np", "odd \"key\"": "a\nb\u00e4"})


with tempfile.TemporaryDirectory() as temporary:
    folder = pathlib.Path(temporary)
    # GGUF to GGUF: everything stays.
    write_gguf(folder / "in.gguf")
    wanted, stated, _ = tensors(folder / "in.gguf")
    found, again, reader = tensors(saved(folder / "in.gguf", folder / "out.gguf"))
    assert found == wanted and again == stated and reader.alignment == ALIGN and reader.data_offset % ALIGN == 0
    assert len(found) == 23 and len(stated) == 8
    # safetensors to safetensors: all types, an empty tensor, a scalar.
    shapes = {"a": (3, 5), "empty": (0, 4), "scalar": (), "many": (1, 1, 2, 1, 3), "long": (4097,)}
    dtypes = ["float64", "float32", "float16", "int64", "int32", "int16", "int8", "uint64", "uint32", "uint16", "uint8", "bool"]
    write_safetensors(folder / "in.safetensors", dtypes, shapes)
    wanted, stated, _ = tensors(folder / "in.safetensors")
    assert len(wanted) == 60 and len(stated) == 2
    found, again, _ = tensors(saved(folder / "in.safetensors", folder / "out.safetensors"))
    assert found == wanted and again == stated
    content = (folder / "out.safetensors").read_bytes()
    assert (8 + int.from_bytes(content[:8], "little")) % ALIGN == 0
    # From one format to the other and back.
    both = ["float64", "float32", "float16", "int64", "int32", "int16", "int8"]
    write_safetensors(folder / "both.safetensors", both, {"a": (3, 5), "scalar": (), "long": (4097,)})
    wanted, stated, _ = tensors(folder / "both.safetensors")
    found, fields, _ = tensors(saved(folder / "both.safetensors", folder / "both.gguf"))
    assert {name: bits for name, (_, _, bits) in found.items()} == {name: bits for name, (_, _, bits) in wanted.items()}
    assert all(shape == wanted[name][1][::-1] for name, (_, shape, _) in found.items() if shape)
    assert fields.keys() == stated.keys()
    found, again, _ = tensors(saved(folder / "both.gguf", folder / "back.safetensors"))
    assert found == wanted and again == stated
    # NumPy's archive, and what a format cannot hold.
    archive = numpy.load(saved(folder / "in.safetensors", folder / "out.npz"))
    wanted = safetensors.numpy.load_file(folder / "in.safetensors")
    assert set(archive) == set(wanted)
    assert all(archive[name].tobytes() == array.tobytes() and archive[name].shape == array.shape
               for name, array in wanted.items())
    assert save(folder / "in.gguf", folder / "no.safetensors") != 0 and not (folder / "no.safetensors").exists()
    assert save(folder / "in.safetensors", folder / "no.gguf") != 0 and not (folder / "no.gguf").exists()
print(gguf.__version__ if hasattr(gguf, "__version__") else safetensors.__version__,
      f"{count} models saved, read by gguf and safetensors")
