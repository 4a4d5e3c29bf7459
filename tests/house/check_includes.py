#!/usr/bin/env python3
"""Fails on an #include that the architecture does not allow, and on a folder without the page that says what it is.

usage: check_includes.py [ROOT]

core/ is made of floors, one folder each. FLOORS below names them, lowest first, with the floors that each may include.
Floors that stand beside each other do not name each other. From outside a floor only its border headers are seen. The
line "Border:" of the folder's README.md names them: `a.h`, `b.h`; or it says "all headers". A test may include other
headers of a floor where tests/house/inside.txt says so: that list may only shrink.

A backend includes gm/backend.h (and what that includes), the public header of its own native objects
(gm/native_<x>.h), core/base, backends/shared and its own folder; backends/shared includes gm/backend.h and core/base;
backends/template has what a stranger has, gm/backend.h alone. Tools, examples, benchmarks and integrations use the
public headers; public headers use each other and the headers of C11.
Each public header belongs to one tier (gm/gm.h, gm/model_all.h, gm/store_all.h, gm/pages_all.h, gm/trace_all.h, gm/tools.h) and includes no higher
one. gm/backend.h stands above the tiers, gm/native_<x>.h beside the first. gm/gm.hpp includes gm/gm.h and C++'s own headers. Vendor
headers stay inside backends/<x>/ (an example or a benchmark plays the engine, so it may have them too).

A pool is known to the floors of POOL_KNOWN alone: no other source of core/ names gm_pool.

Each folder of core/ and backends/ has a README.md of at most 40 lines. core/README.md names all floors in their order.
Unit tests lie in tests/unit/<folder>/, where the folder is one of core/ or backends/.
"""
import os
import re
import sys

FLOORS = {  # lowest first: each with the floors that it may include
    "base": "",
    "algo": "base",
    "context": "base",
    "file": "base",
    "tier": "base algo context",
    "host": "base",
    "figures": "base host",
    "model": "base",
    "fit": "base model",
    "room": "base context host figures",
    "discovery": "base context host figures room",
    "track": "base context",
    "device": "base algo context host figures room discovery",
    "staging": "base context host discovery device",
    "order": "base context discovery device",
    "provider": "base algo context room discovery track device staging order",
    "arena": "base algo context track device order provider",
    "bucket": "base algo context track device order provider",
    "heap": "base algo context track device order provider arena bucket",
    "guard": "base context discovery track device staging order provider arena heap",
    "pool": "base context track device order provider arena bucket heap guard",
    "block": "base context discovery track device staging order provider arena heap guard pool",
    "cache": "base algo context device pool",
    "manage": "base context host fit room discovery track device staging order provider arena bucket heap guard pool block",
    "buffer": "base context host device staging provider heap guard pool block manage",
    "store": "base algo context tier host device staging provider pool block manage buffer",
    "transfer": "base file device pool block manage staging",
    "load": "base algo file model device pool block manage store staging",
    "pages": "base algo context device block",
    "trace": "base track arena pool manage",
    "report": "base context discovery manage",
}
# The floors that know what a pool is.
POOL_KNOWN = {"pool", "block", "cache", "manage", "buffer", "store", "transfer", "load", "pages", "trace", "report"}
POOL = re.compile(r"\bstruct gm_pool\b|\bgm_pool\s*\*")
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)
# Public headers that are the face of one floor; the others hold what several floors speak of.
FACES = {"context": "context", "config": "context", "device": "discovery", "probe": "discovery", "model": "model",
         "model_config": "model", "model_value": "model", "fit": "fit", "estimate": "fit", "components": "fit", "tracker": "track",
         "trace": "trace", "advice": "trace", "stream": "device", "evictor": "device", "request": "device", "pool": "provider", "quota": "track",
         "spans": "pool", "debug": "guard", "copy": "block", "share": "block", "cleanup": "manage", "pool_set": "manage",
         "record": "trace", "reserve": "manage", "fragmentation": "manage", "perf": "manage", "profile": "trace", "warm_up": "manage", "buffer": "buffer", "relocation": "buffer", "idle": "buffer", "batch": "buffer", "peer": "transfer", "transfer": "transfer",
         "managed": "transfer", "pipeline": "transfer", "load": "load", "save": "load", "store_file": "load", "report": "report", "file": "file", "tier": "tier", "value": "store", "store": "store",
         "cache": "cache", "tensor_sets": "cache", "codec": "staging", "pages": "pages", "page_memory": "pages", "page_table": "pages", "slots": "pages"}
# The headers that include a tier, and its rank; a higher tier includes lower ones. gm/backend.h stands above them all.
TIERS = {"gm/gm.h": 1, "gm/model_all.h": 2, "gm/store_all.h": 2, "gm/pages_all.h": 2, "gm/trace_all.h": 2, "gm/tools.h": 3}
PAGE_LINES = 40
INSIDE = "tests/house/inside.txt"
INSIDE_MOST = 25
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
BORDER = re.compile(r"^Border:(.*?)(?:\n\n|\Z)", re.S | re.M)
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


def folders_of(root, top):
    path = os.path.join(root, top)
    return sorted(name for name in os.listdir(path) if os.path.isdir(os.path.join(path, name))) \
        if os.path.isdir(path) else []


def read(root, path):
    """The text of a file; None: there is none."""
    path = os.path.join(root, path)
    if not os.path.exists(path):
        return None
    with open(path, encoding="utf-8") as file:
        return file.read()


class Checker:
    def __init__(self, root):
        self.root = root
        self.stranger = backend_headers(root)
        self.problems = []
        self.borders = {}  # of each floor: its border headers; None: all
        lines = (read(root, INSIDE) or "").splitlines()
        self.inside = {tuple(line.split()): False for line in lines if line and not line.startswith("#")}

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
        if top == "include" and target not in C11 and not path.endswith(".hpp"):
            return "public headers use only gm/ and the headers of C11"
        if layer == "algo" and target not in ALGO_SYSTEM:
            return "core/algo is pure: no operating system, no lock"
        if JSON.match(target) and not path.startswith("tools/"):
            return "the library reads JSON through core/model/json_scan.h; only tools and tests have json-c"
        if VENDOR.match(target) and top not in VENDOR_FOLDERS and top != "backends":
            return "vendor headers stay inside backends/<x>/"
        if VENDOR.match(target) and path.startswith("backends/template/"):
            return "the template has gm/backend.h alone"
        if VENDOR.match(target) and path.startswith("backends/shared/"):
            return "vendor headers stay inside backends/<x>/"
        return None

    def public_reason(self, path, top, name):
        if top == "backends" and name not in self.stranger and name != f"gm/native_{path.split('/')[1]}.h":
            return "a backend knows gm by gm/backend.h, what that includes, and the native header of its own API"
        if top == "core" and name in TIERS:
            return "core includes the headers it needs, not a whole tier"
        face = FACES.get(name[len("gm/"):-len(".h")])
        if top == "core" and face:
            return self.floor_reason(path.split("/")[1], face)
        return None

    def floor_reason(self, mine, theirs):
        if mine not in FLOORS or theirs not in FLOORS:
            return "not a floor of core/"
        if mine == theirs or theirs in FLOORS[mine].split():
            return None
        floors = list(FLOORS)
        if floors.index(theirs) > floors.index(mine):
            return f"core/{mine} is below core/{theirs}"
        return f"core/{mine} does not know core/{theirs}"

    def border_reason(self, inside):
        """Why a file of another folder may not include this one of core/."""
        _, floor, header = inside.split("/", 2)
        border = self.borders.get(floor)
        if border is None or header in border:
            return None
        return f"not a border header of core/{floor}: its README.md names those"

    def project_reason(self, path, top, folder, inside):
        if top == "core":
            if not inside.startswith("core/"):
                return "core knows no backend, tool or test"
            mine, theirs = path.split("/")[1], inside.split("/")[1]
            if mine == "algo" and ALGO_NOT_FROM_BASE.match(inside):
                return "core/algo is pure: no operating system, no lock"
            return self.floor_reason(mine, theirs) or (None if mine == theirs else self.border_reason(inside))
        if top == "backends":
            own = "/".join(path.split("/")[:2]) + "/"
            if inside.startswith(own):
                return None
            if inside.startswith(("core/base/", "backends/shared/")) and own != "backends/template/":
                return None
            return "a backend includes gm/backend.h, core/base, backends/shared and its own folder"
        if top == "include":
            return "public headers use only gm/ and the headers of C11"
        if not inside.startswith(top + "/"):
            return f"{top}/ uses the public headers only"
        return None

    def check_pool(self, path):
        """A source below core/pool names no gm_pool."""
        if not path.startswith("core/") or path.split("/")[1] in POOL_KNOWN:
            return
        text = COMMENT.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), read(self.root, path))
        for match in POOL.finditer(text):
            line = text.count("\n", 0, match.start()) + 1
            self.problems.append(f"{path}:{line}: gm_pool: core/{path.split('/')[1]} does not know what a pool is")

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
        self.check_pool(path)

    def tiers(self, headers):
        """The tier of each public header, which is checked to be one."""
        tier_of = {name: name for name in TIERS}
        for tier in TIERS:
            if tier not in headers:
                self.problems.append(f"include/{tier}: is missing")
            for name in (t for t in headers.get(tier, []) if t not in TIERS and t != "gm/backend.h"):
                if name in tier_of:
                    self.problems.append(f"include/{tier}: {name}: is in {tier_of[name]} already")
                tier_of[name] = tier
        for name in sorted(set(headers) - set(tier_of)):
            if name.startswith("gm/native_"):
                tier_of[name] = "gm/gm.h"
            elif name != "gm/backend.h":
                self.problems.append(f"include/{name}: belongs to no tier: {', '.join(TIERS)}")
        return tier_of

    def check_tiers(self):
        folder = os.path.join(self.root, "include", "gm")
        names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
        headers = {f"gm/{name}": [target for _, target, _ in includes_of(os.path.join(folder, name))
                                  if target.startswith("gm/")] for name in names if name.endswith(".h")}
        tier_of = self.tiers(headers)
        for name, targets in headers.items():
            mine = tier_of.get(name)
            for target in targets if name != "gm/backend.h" else []:
                theirs = tier_of.get(target)
                if theirs != mine and TIERS.get(theirs, 3) >= TIERS.get(mine, 3):
                    self.problems.append(f"include/{name}: {target}: is not below the tier of {mine}")

    def check_test(self, path):
        for number, target, quoted in includes_of(os.path.join(self.root, path)):
            inside = self.resolve(os.path.dirname(path), target) if quoted else None
            why = self.border_reason(inside) if inside and inside.startswith("core/") else None
            if why and (path, inside) in self.inside:
                self.inside[path, inside] = True
            elif why:
                self.problems.append(f"{path}:{number}: {target}: {why}")

    def check_inside(self):
        for (path, header), used in self.inside.items():
            if not used:
                self.problems.append(f"{INSIDE}: {path} {header}: no longer needed")
        if len(self.inside) > INSIDE_MOST:
            self.problems.append(f"{INSIDE}: {len(self.inside)} lines, {INSIDE_MOST} at most: the list may only shrink")

    def check_page(self, top, name):
        """The README.md of a folder. What it says of the border is kept."""
        path = f"{top}/{name}/README.md"
        text = read(self.root, path)
        if text is None:
            self.problems.append(f"{path}: is missing: what the folder is for, what it may know, where to start")
            return
        if text.count("\n") > PAGE_LINES:
            self.problems.append(f"{path}: {text.count(chr(10))} lines, {PAGE_LINES} at most")
        if top != "core":
            return
        border = BORDER.search(text)
        headers = set(re.findall(r"`([\w/]+\.h)`", border.group(1))) if border else set()
        if not headers and not (border and re.search(r"all headers|none\b", border.group(1))):
            self.problems.append(f"{path}: no line \"Border:\" with the headers that others see")
        self.borders[name] = None if border and "all headers" in border.group(1) else headers
        self.check_names(f"{top}/{name}", text)
        for inner in folders_of(self.root, f"{top}/{name}"):
            self.check_names(f"{top}/{name}/{inner}", read(self.root, f"{top}/{name}/{inner}/README.md") or "")

    def check_names(self, folder, text):
        """The files that the page of a folder names."""
        for file in sorted(set(re.findall(r"`(\w+\.[ch])`", text))):
            if not os.path.exists(os.path.join(self.root, folder, file)):
                self.problems.append(f"{folder}/README.md: {file}: there is no such file")

    def check_pages(self):
        for top in ("core", "backends"):
            for name in folders_of(self.root, top):
                self.check_page(top, name)
        floors = folders_of(self.root, "core")
        for name in floors:
            if name not in FLOORS:
                self.problems.append(f"core/{name}: not a floor of core/")
        named = re.findall(r"\[`(\w+)`\]", read(self.root, "core/README.md") or "")
        if named != [name for name in FLOORS if name in floors]:
            self.problems.append("core/README.md: it does not name each floor, lowest first: [`name`](name/README.md)")

    def check_unit_folders(self):
        known = set(folders_of(self.root, "core") + folders_of(self.root, "backends"))
        for folder, _, names in sorted(os.walk(os.path.join(self.root, "tests/unit"))):
            where = os.path.relpath(folder, os.path.join(self.root, "tests/unit"))
            for name in sorted(names):
                if name.endswith(".c") and where not in known:
                    self.problems.append(f"tests/unit/{where}/{name}: not in a folder named as one of core/ or backends/")

    def check_tree(self):
        count = 0
        self.check_tiers()
        self.check_pages()
        self.check_unit_folders()
        for top in ("core", "backends", "tools", "examples", "bench", "integrations", "include", "tests"):
            for folder, _, names in sorted(os.walk(os.path.join(self.root, top))):
                for name in sorted(names):
                    if name.endswith(SOURCES):
                        path = os.path.relpath(os.path.join(folder, name), self.root)
                        self.check_test(path) if top == "tests" else self.check_file(path)
                        count += 1
        self.check_inside()
        return count


def check_floors():
    """A floor knows only those before it."""
    seen = []
    for floor, known in FLOORS.items():
        for other in known.split():
            if other not in seen:
                yield f"check_includes.py: core/{floor} names core/{other}, which is not before it"
        seen.append(floor)


def main():
    checker = Checker(sys.argv[1] if len(sys.argv) > 1 else ".")
    checker.problems += check_floors()
    count = checker.check_tree()
    for problem in checker.problems:
        print(problem)
    print(f"{count} files, {len(checker.problems)} arrows that are not allowed")
    return 1 if checker.problems or count == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
