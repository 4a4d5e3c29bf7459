#!/usr/bin/env python3
"""Fails on an #include that the architecture does not allow.

usage: check_includes.py [ROOT]

The layers of core/, lowest first: base, algo, context, device, track, pool, buffer, transfer, store, model, report.
A file includes its own layer or lower ones. A backend includes gm/backend.h (and what that includes), the public
header of its own native objects (gm/native_<x>.h), core/base and its own folder; backends/template has what a stranger
has, gm/backend.h alone. Tools, examples, benchmarks and integrations use the public headers; public headers use each
other and the headers of C11. Vendor headers stay inside backends/<x>/ (an example or a benchmark plays the engine, so
it may have them too). Tests see everything.
"""
import os
import re
import sys

LAYERS = ["base", "algo", "context", "device", "track", "pool", "buffer", "transfer", "store", "model", "report"]
# Public headers that are the face of one layer; the others hold what several layers speak of.
FACES = {"context": "context", "config": "context", "device": "device", "stream": "device", "request": "device",
         "tracker": "track", "trace": "track", "pool": "pool", "buffer": "buffer", "copy": "pool", "share": "pool",
         "peer": "transfer", "managed": "transfer", "model": "model", "load": "model", "fit": "model", "report": "report"}
C11 = {name + ".h" for name in (
    "assert complex ctype errno fenv float inttypes iso646 limits locale math setjmp signal stdalign stdarg stdatomic "
    "stdbool stddef stdint stdio stdlib stdnoreturn string tgmath threads time uchar wchar wctype").split()}
# core/algo is pure: no operating system, no device, no lock.
ALGO_SYSTEM = C11 - {"threads.h", "stdatomic.h", "signal.h", "time.h", "locale.h", "setjmp.h"}
ALGO_NOT_FROM_BASE = re.compile(
    r"^core/base/(posix/|windows/|(thread|atomic|mutex|lock|clock|dynlib|env|log|file)\w*\.h$)")
VENDOR = re.compile(r"^(CL/|vulkan/|cuda|hip/|nvml|cufile|level_zero/|ze_api|vk_)")
JSON = re.compile(r"^(json-c/|json\.h$|json_\w+\.h$)")
VENDOR_FOLDERS = {"examples", "bench", "integrations"}
INCLUDE = re.compile(r'^\s*#\s*include\s+(?:"([^"]+)"|<([^>]+)>)')
SOURCES = (".c", ".h", ".cpp", ".hpp", ".cc", ".def", ".inc")


def includes_of(path):
    with open(path, encoding="utf-8", errors="replace") as lines:
        for number, line in enumerate(lines, 1):
            match = INCLUDE.match(line)
            if match:
                yield number, match.group(1) or match.group(2), match.group(1) is not None


def backend_headers(root):
    """gm/backend.h and every public header that it reaches."""
    reached, todo = set(), ["gm/backend.h"]
    while todo:
        name = todo.pop()
        path = os.path.join(root, "include", name)
        if name in reached or not os.path.exists(path):
            continue
        reached.add(name)
        todo += [target for _, target, _ in includes_of(path) if target.startswith("gm/")]
    return reached


class Checker:
    def __init__(self, root):
        self.root = root
        self.stranger = backend_headers(root)
        self.problems = []

    def resolve(self, folder, target):
        """What a quoted name means, as a path from the root; None: not a file of the project."""
        for base in (folder, "", "include"):
            path = os.path.normpath(os.path.join(base, target))
            if os.path.exists(os.path.join(self.root, path)):
                return path
        return None

    def reason(self, path, target, quoted):
        """Why `path` may not include `target`; None: it may."""
        top, folder = path.split("/")[0], os.path.dirname(path)
        inside = self.resolve(folder, target) if quoted or target.startswith("gm/") else None
        if inside is None and target.startswith(("gm/", "core/", "backends/")):
            return "there is no such file"
        if quoted and inside is None:
            return "quoted, but not a file of the project"
        if inside is None:
            return self.system_reason(path, top, target)
        if inside.startswith("include/gm/"):
            return self.public_reason(path, top, inside[len("include/"):])
        return self.project_reason(path, top, folder, inside)

    def system_reason(self, path, top, target):
        layer = path.split("/")[1] if top == "core" else ""
        if top == "include" and target not in C11:
            return "public headers use only gm/ and the headers of C11"
        if layer == "algo" and target not in ALGO_SYSTEM:
            return "core/algo is pure: no operating system, no lock"
        if JSON.match(target) and not path.startswith("tools/"):
            return "the library reads JSON through core/model/json_scan.h; only tools and tests have json-c"
        if VENDOR.match(target) and top not in VENDOR_FOLDERS and top != "backends":
            return "vendor headers stay inside backends/<x>/"
        if VENDOR.match(target) and path.startswith("backends/template/"):
            return "the template has gm/backend.h alone"
        return None

    def public_reason(self, path, top, name):
        if top == "backends" and name not in self.stranger and name != f"gm/native_{path.split('/')[1]}.h":
            return "a backend knows gm by gm/backend.h, what that includes, and the native header of its own API"
        if top == "core" and name == "gm/gm.h":
            return "core includes the headers it needs, not the one with all of them"
        face = FACES.get(name[len("gm/"):-len(".h")])
        if top == "core" and face:
            return self.layer_reason(path.split("/")[1], face)
        return None

    def layer_reason(self, mine, theirs):
        if mine not in LAYERS or theirs not in LAYERS:
            return "not a layer of core/"
        if LAYERS.index(theirs) > LAYERS.index(mine):
            return f"core/{mine} is below core/{theirs}"
        return None

    def project_reason(self, path, top, folder, inside):
        if top == "core":
            if not inside.startswith("core/"):
                return "core knows no backend, tool or test"
            mine = path.split("/")[1]
            if mine == "algo" and ALGO_NOT_FROM_BASE.match(inside):
                return "core/algo is pure: no operating system, no lock"
            return self.layer_reason(mine, inside.split("/")[1])
        if top == "backends":
            own = "/".join(path.split("/")[:2]) + "/"
            if inside.startswith(own):
                return None
            if inside.startswith("core/base/") and own != "backends/template/":
                return None
            return "a backend includes gm/backend.h, core/base and its own folder"
        if top == "include":
            return "public headers use only gm/ and the headers of C11"
        if not inside.startswith(top + "/"):
            return f"{top}/ uses the public headers only"
        return None

    def check_file(self, path):
        first = True
        own = os.path.splitext(path)[0] + ".h"
        has_own = path.endswith(".c") and os.path.exists(os.path.join(self.root, own))
        for number, target, quoted in includes_of(os.path.join(self.root, path)):
            why = self.reason(path, target, quoted)
            if why is None and first and has_own and self.resolve(os.path.dirname(path), target) != own:
                why = f"the first include of a file is its own header, {own}"
            if why:
                self.problems.append(f"{path}:{number}: {target}: {why}")
            first = False

    def check_umbrella(self):
        folder = os.path.join(self.root, "include", "gm")
        path = os.path.join(folder, "gm.h")
        if not os.path.exists(path):
            self.problems.append("include/gm/gm.h: is missing")
            return
        has = {target for _, target, _ in includes_of(path)}
        for name in sorted(os.listdir(folder)):
            if name != "gm.h" and not name.startswith("native_") and f"gm/{name}" not in has:
                self.problems.append(f"include/gm/gm.h: gm/{name}: the header with all of them has it not")

    def check_tree(self):
        count = 0
        self.check_umbrella()
        for top in ("core", "backends", "tools", "examples", "bench", "integrations", "include"):
            for folder, _, names in sorted(os.walk(os.path.join(self.root, top))):
                for name in sorted(names):
                    if name.endswith(SOURCES):
                        self.check_file(os.path.relpath(os.path.join(folder, name), self.root))
                        count += 1
        return count


def main():
    checker = Checker(sys.argv[1] if len(sys.argv) > 1 else ".")
    count = checker.check_tree()
    for problem in checker.problems:
        print(problem)
    print(f"{count} files, {len(checker.problems)} arrows that are not allowed")
    return 1 if checker.problems or count == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
