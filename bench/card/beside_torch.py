"""gm beside PyTorch's own allocator, the driver's pool and raw calls, in this process: prints one JSON object.

usage: beside_torch.py LIBGM_CARD_ROWS TRACES [ROUNDS]      leaves with 77 where there is no torch, or no card for it

torch's allocator is called through the C entry that newer versions have. Where that is missing it is called through
Python. Then its times hold the cost of two calls of Python, and "torch_through" says so.
"""
import ctypes
import json
import os
import pathlib
import sys
import tempfile

ALLOC = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_uint64, ctypes.POINTER(ctypes.c_void_p))
FREE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)
EMPTY = ctypes.CFUNCTYPE(None)


class Torch(ctypes.Structure):
    """gm_card_torch"""
    _fields_ = [("alloc", ALLOC), ("free", FREE), ("empty_cache", EMPTY)]


def absent(why):
    print(why, file=sys.stderr)
    sys.exit(77)


def entries(torch):
    """(how, alloc, free)"""
    for name in ("libtorch_cuda.so", "libtorch.so"):
        try:
            library = ctypes.CDLL(str(pathlib.Path(torch.__file__).parent / "lib" / name))
            return ("C", ALLOC(("aoti_torch_cuda_caching_allocator_raw_alloc", library)),
                    FREE(("aoti_torch_cuda_caching_allocator_raw_delete", library)))
        except (OSError, AttributeError):
            continue

    def alloc(size, out):
        try:
            out[0] = torch.cuda.caching_allocator_alloc(size, 0, 0)
            return 0
        except torch.cuda.OutOfMemoryError:
            return 1

    def free(pointer):
        torch.cuda.caching_allocator_delete(pointer)
        return 0

    return "Python", ALLOC(alloc), FREE(free)


def main():
    try:
        import torch
    except ImportError as missing:
        absent(f"torch is not there: {missing}")
    if not torch.cuda.is_available():
        absent(f"torch {torch.__version__} has no card")
    torch.ones(1, device="cuda:0")
    how, alloc, free = entries(torch)
    peer = Torch(alloc, free, EMPTY(torch.cuda.empty_cache))
    library = ctypes.CDLL(sys.argv[1])
    with tempfile.TemporaryFile() as out:
        code = library.gm_card_rows(ctypes.byref(peer), os.fsencode(sys.argv[2]),
                                    int(sys.argv[3]) if len(sys.argv) > 3 else 3, out.fileno())
        if code:
            sys.exit(code)
        out.seek(0)
        rows = json.loads(out.read())
    rows |= {"torch": torch.__version__, "torch_through": how}
    print(json.dumps(rows))


if __name__ == "__main__":
    main()
