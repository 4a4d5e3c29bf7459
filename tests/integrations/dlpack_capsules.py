"""A capsule that nobody consumed gives its tensor back, also where it is destroyed while an exception passes. Needs no other library."""
import gc
import sys

import gm_dlpack
from gm_engines import host_figure

active = host_figure("active")
unraisable = []
sys.unraisablehook = unraisable.append


def check(what):
    gc.collect()
    left = host_figure("active") - active
    if left or unraisable:
        raise SystemExit(f"{what}: {left} tensors were lost, {len(unraisable)} exceptions were swallowed")


def passing(version):
    """The capsule lies on the interpreter's stack while ZeroDivisionError passes."""
    try:
        return [gm_dlpack.Tensor((2, 3), "float32").__dlpack__(max_version=version), 1 // 0]
    except ZeroDivisionError:
        return None


class Failing:
    """A producer whose capsule cannot be made."""

    def __call__(self, *unused):
        raise MemoryError


for version in (None, (1, 0)):
    kept = gm_dlpack.Tensor((2, 3), "float32").__dlpack__(max_version=version)
    if host_figure("active") != active + 1:
        raise SystemExit("a capsule has no tensor")
    del kept
    check("a capsule that ends")
    passing(version)
    check("a capsule that ends while an exception passes")
    whole, gm_dlpack.capsule = gm_dlpack.capsule, Failing()
    try:
        gm_dlpack.Tensor((2, 3), "float32").__dlpack__(max_version=version)
        raise SystemExit("there is a capsule")
    except MemoryError:
        pass
    gm_dlpack.capsule = whole
    check("a capsule that cannot be made")
print("no tensor was lost")
