#!/usr/bin/env python3
"""The checks of this folder must find what they are for: each is run on small trees, good and bad."""
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
GOOD = {
    "include/gm/status.h": "#include <stdint.h>\n",
    "include/gm/backend.h": '#include "gm/status.h"\n',
    "include/gm/pool.h": '#include "gm/status.h"\n',
    "include/gm/gm.h": '#include "gm/backend.h"\n#include "gm/pool.h"\n#include "gm/status.h"\n',
    "core/base/alloc.h": '#include "gm/status.h"\n',
    "core/base/alloc.c": '#include "core/base/alloc.h"\n\n#include <stdlib.h>\n',
    "core/base/thread.h": "#include <pthread.h>\n",
    "core/algo/tlsf.c": '#include <string.h>\n\n#include "core/base/alloc.h"\n',
    "core/pool/pool.h": '#include "core/device/device.h"\n',
    "core/device/device.h": '#include "core/base/alloc.h"\n',
    "core/report/html.c": '#include "core/pool/pool.h"\n',
    "backends/cl/mem.h": "#include <CL/cl.h>\n",
    "backends/cl/mem.c": '#include "backends/cl/mem.h"\n\n#include "core/base/alloc.h"\n#include "gm/backend.h"\n',
    "include/gm/native_cl.h": '#include "gm/status.h"\n',
    "backends/cl/native.c": '#include "gm/native_cl.h"\n',
    "backends/template/t.c": '#include "gm/backend.h"\n#include <stdlib.h>\n',
    "tools/gmem/main.c": '#include "gm/pool.h"\n#include "tools/gmem/table.h"\n',
    "tools/gmem/table.h": "#include <stdio.h>\n",
    "examples/engine.c": "#include <CL/cl.h>\n#include <gm/pool.h>\n",
}
ARROWS = [  # a file, a bad include line, a part of the complaint
    ("core/base/bad.c", '#include "core/pool/pool.h"', "core/base is below core/pool"),
    ("core/base/bad.c", '#include "core/algo/tlsf.c"', "core/base is below core/algo"),
    ("core/device/bad.c", '#include "../pool/pool.h"', "core/device is below core/pool"),
    ("core/device/bad.c", '#include "gm/pool.h"', "core/device is below core/pool"),
    ("core/report/bad.c", '#include "gm/gm.h"', "the headers it needs"),
    ("core/pool/bad.c", '#include "backends/cl/mem.h"', "core knows no backend"),
    ("core/pool/bad.c", '  #  include <CL/cl.h>', "vendor headers stay"),
    ("core/pool/bad.c", "#include <json-c/json.h>", "only tools and tests have json-c"),
    ("core/pool/bad.c", '#include "core/pool/none.h"', "no such file"),
    ("core/pool/bad.c", '#include "stdlib.h"', "not a file of the project"),
    ("core/algo/bad.c", "#include <pthread.h>", "core/algo is pure"),
    ("core/algo/bad.c", '#include "core/base/thread.h"', "core/algo is pure"),
    ("core/base/thread.c", "#include <stdlib.h>", "its own header"),
    ("backends/cl/bad.c", '#include "gm/pool.h"', "by gm/backend.h"),
    ("backends/cuda/bad.c", '#include "gm/native_cl.h"', "by gm/backend.h"),
    ("backends/cl/bad.c", '#include "core/device/device.h"', "a backend includes"),
    ("backends/cuda/bad.c", '#include "backends/cl/mem.h"', "a backend includes"),
    ("backends/template/bad.c", '#include "core/base/alloc.h"', "a backend includes"),
    ("backends/template/bad.c", "#include <CL/cl.h>", "gm/backend.h alone"),
    ("tools/gmem/bad.c", '#include "core/base/alloc.h"', "public headers only"),
    ("tools/gmem/bad.c", "#include <vulkan/vulkan.h>", "vendor headers stay"),
    ("bench/bad.c", '#include "backends/cl/mem.h"', "public headers only"),
    ("include/gm/new.h", "#include <stdint.h>", "gm/new.h: the header with all of them"),
    ("include/gm/bad.h", "#include <sys/types.h>", "headers of C11"),
    ("include/gm/bad.h", '#include "core/base/alloc.h"', "headers of C11"),
]


def function(lines):
    return "static int f(int a,\n             int b) {\n" + "  a++;\n" * (lines - 3) + "}\n"


SIZES = [  # content of core/pool/bad.c, the complaint or None
    (function(60), None),
    (function(61), "function of 61 lines"),
    (function(30) + "\ndone:\n" + "static const int t[] = {\n" + "  1,\n" * 60 + "};\n", None),
    ("int x;\n" * 499, None),
    ("int x;\n" * 500, "500 lines"),
]
CALLS = [  # content of core/pool/bad.c, the complaint or None
    ("  exit(1);\n", "core/pool/bad.c:1: exit"),
    ("  x();\n  if (y) abort ();\n", "bad.c:2: abort"),
    ("  printf(format);\n", "does not print"),
    ("  snprintf(text, sizeof text, format);\n", None),
    ("  p = malloc(5);\n", "core/base/alloc.h"),
    ("  ops.free(p);\n  ops->free(p);\n  pool_free(p);\n", None),
    ("  /* calls exit(1) */\n  f(\"abort(); printf(\");  // free(p)\n", None),
    ('  f("\\"", exit(1));\n', "bad.c:1: exit"),
    ("  /* TODO: free it */\n", "unfinished"),
    ("  dlopen(name, 0);\n", "dynlib"),
    ("  nanosleep(&time, NULL);\n", "core/base/poll.h"),
    ("enum { GM__ONE = GM_TWO, GM__THREE };\n#define GM__FOUR 4\n#define GM_CORE_POOL_BAD_H\n", None),
    ("x;\nenum { GM__ONE, GM_TWO = 2 };\n", "bad.c:2: GM_TWO"),
    ("  device->ops->point_record(device->handle, stream, out, err);\n", "gm__submitting"),
    ("  device->ops->point_done(device->handle, point, out, err);\n", None),
    ("#define GM_FOUR 4\n", "bad.c:1: GM_FOUR"),
]

SIZED = "typedef struct gm_a {\n  uint32_t struct_size;\n} gm_a;\n"
STRUCTS = [  # content of include/gm/bad.h, the complaint or None
    (SIZED, None),
    ("typedef struct gm_a {\n  gm_native_memory head; /* first */\n} gm_a;\n", None),
    ("typedef struct gm_a {\n  int b;\n  uint64_t reserved[2]; /* 0 */\n} gm_a;\n", None),
    ("typedef struct gm_a {\n  int b;\n  void (*reserved[2])(void);\n} gm_a;\n", None),
    ("/* An a. Never\n * grows. */\ntypedef struct gm_a {\n  int b;\n} gm_a;\n", None),
    ("typedef struct gm_a { /* never grows */\n  int b;\n} gm_a;\n", None),
    ("/* gm alone makes one. */\ntypedef struct gm_a {\n  int b;\n} gm_a;\n", None),
    ("typedef struct gm_a {\n  int b;\n} gm_a;\n", "gm_a: no struct_size"),
    ("/* Never grows. */\n\ntypedef struct gm_a {\n  int b;\n} gm_a;\n", "gm_a: no struct_size"),
    ("typedef struct gm_a {\n  int b;\n  uint32_t struct_size;\n} gm_a;\n", "gm_a: no struct_size"),
    (SIZED + "typedef struct gm_b {\n  uint32_t struct_size;\n  gm_a a;\n} gm_b;\n", "gm_b has a gm_a inside"),
    (SIZED + "typedef struct gm_b {\n  uint32_t struct_size;\n  gm_a as[3];\n} gm_b;\n", "gm_b has a gm_a inside"),
    (SIZED + "typedef struct gm_b {\n  uint32_t struct_size;\n  const gm_a *a;\n} gm_b;\n", None),
]


def run(check, tree):
    with tempfile.TemporaryDirectory() as root:
        for path, text in tree.items():
            os.makedirs(os.path.join(root, os.path.dirname(path)), exist_ok=True)
            with open(os.path.join(root, path), "w", encoding="utf-8") as file:
                file.write(text)
        result = subprocess.run([sys.executable, os.path.join(HERE, check), root], capture_output=True, text=True)
        return result.returncode, result.stdout + result.stderr


def expect(what, check, tree, complaint):
    code, output = run(check, tree)
    good = code == 0 if complaint is None else code == 1 and complaint in output
    if not good:
        print(f"FAILED: {what}: expected {complaint or 'no complaint'}, got exit code {code} and\n{output}")
    return good


def main():
    good = [expect("good tree", "check_includes.py", GOOD, None)]
    for path, line, complaint in ARROWS:
        good.append(expect(f"{path}: {line}", "check_includes.py", {**GOOD, path: line + "\n"}, complaint))
    short = {f"core/base/short{i}.c": function(5) for i in range(3)}
    for text, complaint in SIZES:
        good.append(expect(text[:40], "check_sizes.py", {**short, "core/pool/bad.c": text}, complaint))
    for text, complaint in CALLS:
        good.append(expect(text, "check_calls.py", {"core/pool/bad.c": text}, complaint))
    for text, complaint in STRUCTS:
        good.append(expect(text, "check_structs.py", {"include/gm/bad.h": text}, complaint))
    good.append(expect("tools may print", "check_calls.py", {"tools/gmem/main.c": "  printf(text);\n"}, None))
    long_median = {"core/pool/bad.c": function(15)}
    good.append(expect("median", "check_sizes.py", long_median, "median"))
    print(f"{sum(good)} passed, {len(good) - sum(good)} failed")
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
