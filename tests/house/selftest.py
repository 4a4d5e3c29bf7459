#!/usr/bin/env python3
"""The checks of this folder must find what they are for: each is run on small trees, good and bad."""
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
from run_here import run_here  # noqa: E402

PAGE = "# a floor\n\nBorder: all headers.\n"
FLOORS = ("base", "algo", "host", "figures", "device", "pool", "report")
GOOD = {
    **{f"core/{floor}/README.md": PAGE for floor in FLOORS},
    **{f"backends/{name}/README.md": "# a backend\n" for name in ("cl", "cuda", "shared", "template")},
    "core/README.md": "".join(f"[`{floor}`]({floor}/README.md)\n" for floor in FLOORS),
    "include/gm/status.h": "#include <stdint.h>\n",
    "include/gm/backend.h": '#include "gm/status.h"\n',
    "include/gm/pool.h": '#include "gm/status.h"\n',
    "include/gm/trace.h": '#include "gm/pool.h"\n',
    "include/gm/model.h": '#include "gm/status.h"\n',
    "include/gm/gm.h": '#include "gm/pool.h"\n#include "gm/status.h"\n',
    "include/gm/model_all.h": '#include "gm/gm.h"\n#include "gm/model.h"\n',
    "include/gm/store_all.h": '#include "gm/gm.h"\n',
    "include/gm/pages_all.h": '#include "gm/gm.h"\n',
    "include/gm/trace_all.h": '#include "gm/gm.h"\n#include "gm/trace.h"\n',
    "include/gm/tools.h": '#include "gm/gm.h"\n#include "gm/trace_all.h"\n',
    "core/base/alloc.h": '#include "gm/status.h"\n',
    "core/base/alloc.c": '#include "core/base/alloc.h"\n\n#include <stdlib.h>\n',
    "core/base/thread.h": "#include <pthread.h>\n",
    "core/algo/tlsf.c": '#include <string.h>\n\n#include "core/base/alloc.h"\n',
    "core/pool/pool.h": '#include "core/device/device.h"\n',
    "core/device/device.h": '#include "core/base/alloc.h"\n#include "core/host/host.h"\n',
    "core/host/README.md": "# a floor\n\nBorder: `host.h`,\n`pci.h`.\n",
    "core/host/host.h": '#include "core/host/numa.h"\n',
    "core/host/numa.h": "#include <stdint.h>\n",
    "core/host/pci.h": "#include <stdint.h>\n",
    "core/figures/README.md": "# a floor\n\nBorder: none.\n",
    "core/figures/free.h": '#include "core/host/pci.h"\n',
    "core/report/html.c": '#include "core/base/alloc.h"\n',
    "backends/cl/mem.h": "#include <CL/cl.h>\n",
    "backends/cl/mem.c": '#include "backends/cl/mem.h"\n\n#include "core/base/alloc.h"\n#include "gm/backend.h"\n',
    "backends/cl/kit.c": '#include "backends/shared/kit.h"\n',
    "backends/shared/kit.h": '#include "core/base/alloc.h"\n#include "gm/backend.h"\n',
    "include/gm/native_cl.h": '#include "gm/status.h"\n',
    "backends/cl/native.c": '#include "gm/native_cl.h"\n',
    "backends/template/t.c": '#include "gm/backend.h"\n#include <stdlib.h>\n',
    "tools/gmem/main.c": '#include "gm/pool.h"\n#include "tools/gmem/output/table.h"\n',
    "tools/gmem/output/table.h": "#include <stdio.h>\n",
    "examples/engine.c": "#include <CL/cl.h>\n#include <gm/pool.h>\n",
    "tests/unit/host/test_numa.c": '#include "core/host/numa.h"\n#include "core/host/host.h"\n',
    "tests/house/inside.txt": "# a list\ntests/unit/host/test_numa.c core/host/numa.h\n",
}
ARROWS = [  # a file, a bad include line, a part of the complaint
    ("core/base/bad.c", '#include "core/pool/pool.h"', "core/base is below core/pool"),
    ("core/base/bad.c", '#include "core/algo/tlsf.c"', "core/base is below core/algo"),
    ("core/device/bad.c", '#include "../pool/pool.h"', "core/device is below core/pool"),
    ("core/device/bad.c", '#include "gm/pool.h"', "core/device is below core/provider"),
    ("core/host/bad.c", '#include "core/algo/tlsf.c"', "core/host does not know core/algo"),
    ("core/report/bad.c", '#include "core/pool/pool.h"', "core/report does not know core/pool"),
    ("core/device/bad.c", '#include "core/host/numa.h"', "not a border header of core/host"),
    ("core/device/bad.c", '#include "core/figures/free.h"', "not a border header of core/figures"),
    ("tests/unit/device/test_bad.c", '#include "core/host/numa.h"', "not a border header of core/host"),
    ("tests/unit/test_bad.c", "#include <stdint.h>", "tests/unit/./test_bad.c: not in a folder"),
    ("tests/unit/store/test_bad.c", "#include <stdint.h>", "tests/unit/store/test_bad.c: not in a folder"),
    ("tests/unit/host/test_numa.c", '#include "core/host/host.h"', "numa.h: no longer needed"),
    ("tests/house/inside.txt", "tests/a.c core/b.h\ntests/unit/host/test_numa.c core/host/numa.h", "tests/a.c core/b.h: no"),
    ("core/cellar/bad.c", "#include <stdint.h>", "core/cellar/README.md: is missing"),
    ("core/cellar/bad.c", "#include <stdint.h>", "core/cellar: not a floor"),
    ("backends/metal/bad.c", "#include <stdint.h>", "backends/metal/README.md: is missing"),
    ("core/pool/README.md", PAGE + "a line\n" * 38, "42 lines, 40 at most"),
    ("tests/house/inside.txt", "".join(f"tests/{i}.c core/b.h\n" for i in range(99)), "only shrink"),
    ("core/pool/README.md", "# a floor", 'no line "Border:"'),
    ("core/pool/README.md", "Border: `none_such.h`", "none_such.h: there is no such file"),
    ("core/README.md", "[`algo`](algo/README.md)", "it does not name each floor"),
    ("core/report/bad.c", '#include "gm/gm.h"', "the headers it needs"),
    ("core/pool/bad.c", '#include "backends/cl/mem.h"', "core knows no backend"),
    ("core/pool/bad.c", '  #  include <CL/cl.h>', "vendor headers stay"),
    ("core/pool/bad.c", "#include <json-c/json.h>", "only tools and tests have json-c"),
    ("core/pool/bad.c", '#include "core/pool/none.h"', "no such file"),
    ("core/pool/bad.c", '#include "stdlib.h"', "not a file of the project"),
    ("core/algo/bad.c", "#include <pthread.h>", "core/algo is pure"),
    ("core/algo/bad.c", '#include "core/base/thread.h"', "core/algo is pure"),
    ("core/base/thread.c", "#include <stdlib.h>", "its own header"),
    ("core/device/bad.c", "/* gm_pool * */\nvoid f(const gm_pool *pool);", "bad.c:2: gm_pool: core/device does not know"),
    ("core/host/bad.h", "struct gm_pool;", "bad.h:1: gm_pool: core/host does not know"),
    ("backends/cl/bad.c", '#include "gm/pool.h"', "by gm/backend.h"),
    ("backends/cuda/bad.c", '#include "gm/native_cl.h"', "by gm/backend.h"),
    ("backends/cl/bad.c", '#include "core/device/device.h"', "a backend includes"),
    ("backends/cuda/bad.c", '#include "backends/cl/mem.h"', "a backend includes"),
    ("backends/shared/bad.c", '#include "backends/cl/mem.h"', "a backend includes"),
    ("backends/shared/bad.c", '#include "gm/native_cl.h"', "by gm/backend.h"),
    ("backends/shared/bad.c", "#include <CL/cl.h>", "vendor headers stay"),
    ("core/device/bad.c", '#include "backends/shared/kit.h"', "core knows no backend"),
    ("backends/template/bad.c", '#include "core/base/alloc.h"', "a backend includes"),
    ("backends/template/bad.c", '#include "backends/shared/kit.h"', "a backend includes"),
    ("backends/template/bad.c", "#include <CL/cl.h>", "gm/backend.h alone"),
    ("tools/gmem/bad.c", '#include "core/base/alloc.h"', "public headers only"),
    ("tools/gmem/bad.c", "#include <vulkan/vulkan.h>", "vendor headers stay"),
    ("bench/bad.c", '#include "backends/cl/mem.h"', "public headers only"),
    ("include/gm/new.h", "#include <stdint.h>", "gm/new.h: belongs to no tier"),
    ("include/gm/tools.h", '#include "gm/trace_all.h"\n#include "gm/pool.h"', "gm/pool.h: is in gm/gm.h already"),
    ("include/gm/tools.h", '#include "gm/trace_all.h"\n#include "gm/backend.h"', "gm/backend.h: is not below"),
    ("include/gm/pool.h", '#include "gm/backend.h"', "gm/backend.h: is not below the tier of gm/gm.h"),
    ("include/gm/pool.h", '#include "gm/trace.h"', "gm/trace.h: is not below the tier of gm/gm.h"),
    ("include/gm/trace.h", '#include "gm/model.h"', "gm/model.h: is not below the tier of gm/trace_all.h"),
    ("include/gm/trace.h", '#include "gm/model_all.h"', "gm/model_all.h: is not below the tier of gm/trace_all.h"),
    ("include/gm/native_cl.h", '#include "gm/trace.h"', "gm/trace.h: is not below the tier of gm/gm.h"),
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

LONG = " ".join(["word"] * 26)
WORDS = [  # a file, its content, the complaint or None
    ("include/gm/a.h", f"/* {LONG[:-5]}. {LONG[:-5]}. */\n", None),
    ("include/gm/a.h", f"/* Short.\n * {LONG}. */\nint a;\n", "a.h:1: a sentence of 26 words"),
    ("include/gm/a.h", f"int a; // {LONG}\n", "a sentence of 26 words"),
    ("include/gm/a.h", f"/* {LONG[:65]}; {LONG[:65]} */\n", "a sentence of 26 words"),
    ("include/gm/a.h", f"/* {LONG[:65]}\n *\n * {LONG[:65]}\n * - {LONG[:65]}\n */\n", None),
    ("include/gm/a.h", "/* Errors: " + ", ".join(["GM_IO", "gm_alloc", "IO"] * 10) + ". */\n", None),
    ("include/gm/a.h", f"/* `{LONG}` \"{LONG}\" */\nchar a[] = \"{LONG}\";\n", None),
    ("include/gm/a.h", "int a;\n/* The same of b. */\n", 'a.h:2: begins with "The same"'),
    ("include/gm/a.h", "/* It is open. Else it waits. */\n", "a.h:1: begins without its subject: Else it"),
    ("docs/a.md", "**What it does.** It works. What does it do? Nothing.\n\nAsk it.\n", None),
    ("include/gm/a.h", "/* Not the same, T10 and F, `F16` and GM_F16. */\n", None),
    ("include/gm/a.h", "/* Pools (F22). */\n", "F22: say it in words"),
    ("include/gm/a.h", "/* Measured\n * by T5. */\n", "T5: say it in words"),
    ("include/gm/a.h", "/* As the documents say. */\n", "the documents: say it in words"),
    ("include/a.md", f"| a | b |\n|---|---|\n| {LONG[:65]} | {LONG[:65]} |\n\n```c\n{LONG}\n```\n", None),
    ("include/a.md", f"# A\n\n1. {LONG}\n", "a.md:3: a sentence of 26 words"),
    ("docs/a/b.md", f"{LONG}\n", "docs/a/b.md:1: a sentence of 26 words"),
    ("README.md", f"{LONG}\n", "README.md:1: a sentence of 26 words"),
    ("core/a.c", f"/* {LONG} */\n", "core/a.c:1: a sentence of 26 words"),
    ("core/a.c", f"/* A.\n *\n *   {LONG}\n *   {LONG};\n *\n * {LONG} */\n", "core/a.c:6: a sentence of 26 words"),
    ("core/a.c", f"/* A.\n *\n *   {LONG}\n *   {LONG};\n */\n", None),
    ("core/a.py", f"# {LONG}\n", None),
    ("tests/a.c", f"/* {LONG} */\n", "tests/a.c:1: a sentence of 26 words"),
    ("tests/a.h", f"/* {LONG} */\n", "tests/a.h:1: a sentence of 26 words"),
]


CALLING = {  # two modules of which the second calls the first
    "core/base/a.h": "static inline int gm__a_size(void) { return 1; }\nint gm__a_open(void);\n",
    "core/base/a.c": "/* gm__b_open is above. */\nint gm__a_open(void) {\n  return gm__a_size();\n}\n",
    "core/pool/b.c": "int gm__b_open(void) {\n  return gm__a_open() + gm__a_size();\n}\n",
}
CIRCLES = [  # a file that closes the circle
    ("core/base/a.c", "int gm__a_open(void) {\n  return gm__b_open();\n}\n"),
    ("core/base/a.h", "static inline int gm__a_size(void) { return gm__b_open(); }\n"),
    ("core/base/a.c", "static const struct ops table = {.open = gm__b_open};\nint gm__a_open(void) { return 0; }\n"),
]

CANCEL = {  # one call that must not be cancelled, one that cannot be
    "include/gm/a.h": "GM_API gm_status gm_a_open(int);\nGM_API int gm_a_size(void);\n",
    "core/base/a.c": "gm_status gm_a_open(int i) {\n  GM__UNCANCELLED();\n  return i;\n}\nint gm_a_size(void) { return 1; }\n",
    "tests/house/cancellable.txt": "# a list\ngm_a_size\n",
}
CANCELS = [  # a file, its text, a part of the complaint
    ("core/base/a.c", CANCEL["core/base/a.c"].replace("  GM__UNCANCELLED();\n", ""), "gm_a_open does not begin with"),
    ("tests/house/cancellable.txt", "gm_a_size\ngm_a_open\n", "gm_a_open begins with"),
    ("tests/house/cancellable.txt", "gm_a_size\ngm_b\n", "gm_b: there is no such call"),
    ("core/base/a.c", "int gm_a_size(void) { return 1; }\n", "gm_a_open: declared, and found nowhere"),
]


KEYS = {
    "core/context/config_keys.h": '#define KEYS(X) \\\n  X("a.key", "GM_A_KEY", "bool", "", "true", true, "is read") \\\n'
                                  '  X("b_key", "GM_B_KEY", "count", "0..9", "1", true, "has no effect: it is old")\n',
    "core/pool/a.c": 'int f(void) { return gm__config_bool(ctx, "a.key"); }\n',
}
UNREAD = [  # a file that makes a key wrong, and what the check says
    ("core/pool/a.c", 'int f(void) { return gm__config_bool(ctx, "a_key"); } /* "a.key" */\n', "nobody reads `a.key`"),
    ("core/pool/a.c", 'const char *f(void) { return "a.key"; }\n', "nobody reads `a.key`"),
    ("core/pool/b.c", 'int g(void) { return gm__config_u64(ctx, "b_key"); }\n', "`b_key` is said to have no effect"),
    ("core/context/config_keys.h", '#define KEYS(X) X("a.key", NAME, "bool", "", "true", true, "is read")\n', "cannot read"),
]
# No text shows who calls what here: the names are made by a macro, and brackets keep another one out.
MADE = {
    "core/base/a.c": "int gm__b_open(void);\n#define NAME(x) gm__##x\nint(NAME(a_open))(void) {\n  return NAME(b_open)();\n}\n",
    "core/pool/b.c": "int gm__a_open(void);\nint (gm__b_open)(void) {\n  return gm__a_open();\n}\n",
}


def objects_in(root, tree):
    """A build tree with the objects of the sources."""
    build = os.path.join(root, "build")
    for path in (p for p in tree if p.endswith(".c")):
        target = os.path.join(build, "CMakeFiles", "gm_objects.dir", path + ".o")
        os.makedirs(os.path.dirname(target), exist_ok=True)
        subprocess.run([os.environ.get("CC", "cc"), "-c", os.path.join(root, path), "-o", target], check=True)
    return build


def run(check, tree, built=False):
    with tempfile.TemporaryDirectory() as root:
        for path, text in tree.items():
            os.makedirs(os.path.join(root, os.path.dirname(path)), exist_ok=True)
            with open(os.path.join(root, path), "w", encoding="utf-8") as file:
                file.write(text)
        more = [objects_in(root, tree)] if built else []
        return run_here(os.path.join(HERE, check), [root, *more])


def expect(what, check, tree, complaint, built=False):
    code, output = run(check, tree, built)
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
    good.append(expect("no circle", "check_circles.py", CALLING, None))
    for path, text in CIRCLES:
        good.append(expect(text, "check_circles.py", {**CALLING, path: text}, "2 modules call each other"))
    cast = {"tests/support/README.md": "| `a.h` | a card |\n", "tests/support/a.h": ""}
    good.append(expect("cast", "check_cast.py", cast, None))
    good.append(expect("cast b.h", "check_cast.py", {**cast, "tests/support/b.h": ""}, "README.md there does not name it"))
    good.append(expect("cast c.h", "check_cast.py", {**cast, "tests/support/README.md": "`a.h` `c.h`"}, "there is no c.h"))
    good.append(expect("keys", "check_keys.py", KEYS, None))
    for path, text, complaint in UNREAD:
        good.append(expect(text, "check_keys.py", {**KEYS, path: text}, complaint))
    good.append(expect("a circle that objects show", "check_circles.py", MADE, "2 modules call each other", built=True))
    good.append(expect("one arrow of objects", "check_circles.py",
                       {**MADE, "core/pool/b.c": "int gm__b_open(void) {\n  return 0;\n}\n"}, None, built=True))
    good.append(expect("calls that are not cancelled", "check_cancel.py", CANCEL, None))
    for path, text, complaint in CANCELS:
        good.append(expect(text, "check_cancel.py", {**CANCEL, path: text}, complaint))
    for text, complaint in STRUCTS:
        good.append(expect(text, "check_structs.py", {"include/gm/bad.h": text}, complaint))
    for path, text, complaint in WORDS:
        good.append(expect(text[:40], "check_words.py", {path: text}, complaint))
    good.append(expect("tools may print", "check_calls.py", {"tools/gmem/main.c": "  printf(text);\n"}, None))
    long_median = {"core/pool/bad.c": function(15)}
    good.append(expect("median", "check_sizes.py", long_median, "median"))
    print(f"{sum(good)} passed, {len(good) - sum(good)} failed")
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
