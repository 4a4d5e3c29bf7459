#!/usr/bin/env python3
"""Prints how long the ways of requests are, and who knows whom. scripts/measure-house calls it.

usage: measure.py ROOT WALKS FOLDER LIBRARY GROWTH

ROOT     the tree that is measured
WALKS    the program of walks.c, with gm compiled at -O0 with -finstrument-functions; it has written to FOLDER
LIBRARY  libgm.so of an optimised build
GROWTH   the program of growth.c, linked with LIBRARY

lean: without core/base, core/algo and core/context, as others' walks are counted without their helpers. A stay is a run
of entries in one file. A return is a stay in a file where the way has been before.
"""
import collections
import os
import re
import statistics
import subprocess
import sys

HELPERS = ("core/base/", "core/algo/", "core/context/")
ROUNDS = 9
# The floors below those that only pass an answer on: symbols of these files tell how much memory may be taken.
SOURCES = re.compile(r"core/(room/|figures/|(context|device|discovery|provider|heap|manage)/[\w/]*"
                     r"(promise|headroom|budget|holding|card_turn|figures|quota_book|limits|room|process)\w*\.c$)")
FORK = re.compile(r"gm__process_(generation|is_current|page|salt)")  # who the process is, not what it may take
STRUCT = re.compile(r"^(?:typedef )?struct(?: \w+\([^)]*\))? (\w+) \{", re.M)
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)
INCLUDE = re.compile(r'^\s*#\s*include\s+["<]([^">]+)[">]', re.M)


def output(*command, **more):
    return subprocess.run(command, check=True, capture_output=True, text=True, **more).stdout


def read(*path):
    with open(os.path.join(*path), encoding="utf-8", errors="replace") as file:
        return file.read()


def row(name, *values):
    print(f"| {name} | {', '.join(str(value) for value in values)} |")


# Walks.

def places_of(program, addresses):
    """Of each address of a function: the file of the tree that it stands in."""
    lines = output("addr2line", "-e", program, input="\n".join(addresses)).splitlines()
    found = (re.search(r"/((?:core|backends|include/gm)/[^:]*):", os.path.normpath(line)) for line in lines)
    return {address: match and match[1] for address, match in zip(addresses, found)}


def walk_of(files):
    """(files, calls, stays, returns) of the files that calls entered, one after another."""
    stays = [path for at, path in enumerate(files) if at == 0 or files[at - 1] != path]
    return len(set(files)), len(files), len(stays), len(stays) - len(set(files))


def print_walks(program, folder):
    print("| request | all: files, calls, stays, returns | lean: files, calls, stays, returns | opens of promises |\n|---|---|---|---|")
    for name in sorted(name for name in os.listdir(folder) if name.endswith(".trace")):
        addresses = read(folder, name).split()
        places = places_of(program, sorted(set(addresses)))
        entered = [places[address] for address in addresses if places[address]]
        lean = [path for path in entered if not path.startswith(HELPERS)]
        request = name[:-len(".trace")]
        columns = [", ".join(map(str, walk_of(files))) for files in (entered, lean)]
        print(f"| {request} | {columns[0]} | {columns[1]} | {read(folder, request + '.opens').strip()} |")


# Headers.

def find(root, path, header):
    for folder in ("", "include", os.path.dirname(path)):
        candidate = os.path.normpath(os.path.join(folder, header))
        if os.path.exists(os.path.join(root, candidate)):
            return candidate
    return None


def closure(root, path, known):
    """The project's headers that a file sees, itself among them."""
    seen, left = {path}, [path]
    while left:
        here = left.pop()
        if here not in known:
            known[here] = [found for header in INCLUDE.findall(read(root, here)) if (found := find(root, here, header))]
        left += (new := set(known[here]) - seen)
        seen |= new
    return seen


def structs_in_reach(root, folder, known):
    """The most internal structs that one header of a folder of core has in reach, and that header."""
    def count(header):
        reach = (path for path in closure(root, header, known) if path.startswith(("core/", "backends/")))
        return len({name for path in reach for name in STRUCT.findall(read(root, path))})
    headers = (os.path.join("core", folder, name) for name in os.listdir(os.path.join(root, "core", folder)) if name.endswith(".h"))
    return max((count(header), header) for header in headers)


def body_of(root, name):
    """The members of a struct as text, those of structs inside it among them."""
    for folder, _, names in os.walk(os.path.join(root, "core")):
        for header in (name for name in names if name.endswith(".h")):
            text = COMMENT.sub("", read(folder, header))
            if match := re.search(rf"^(?:typedef )?struct {name} \{{\n(.*?)^\}}", text, re.S | re.M):
                return match[1]
    raise SystemExit(f"no struct {name}")


def members_of(body):
    """How many members a body declares: names between commas, those of inner structs too, these not themselves."""
    plain = re.sub(r"\([^()]*\)", "", re.sub(r"\((\*\w+)\)", r"\1", body))
    plain = re.sub(r"\bstruct \w* ?\{", "", plain)
    return sum(declared.count(",") + 1 for declared in plain.split(";") if declared.strip() and not re.match(r"\s*\}", declared))


# Symbols.

def symbols_of(objects):
    """Of each source: (symbols that it defines, symbols that it uses)."""
    symbols = {}
    for source, path in objects.items():
        lines = [line.split() for line in output("nm", "-P", path).splitlines()]
        symbols[source] = ({line[0] for line in lines if line[1] in "TDBRVW"}, {line[0] for line in lines if line[1] in "Uw"})
    return symbols


def objects_of(build):
    found = {}
    for folder, _, names in os.walk(build):
        for name in (name for name in names if name.endswith(".c.o")):
            path = os.path.join(folder, name)
            if match := re.search(r"((?:core|backends)/.*\.c)\.o$", re.sub(r"/CMakeFiles/\w+\.dir/(?:__/)*", "/", path)):
                found[re.sub(r".*?((?:core|backends)/)", r"\1", match[1])] = path
    return found


def askers_of(symbols):
    """The files that define or use a symbol which tells how much may be taken."""
    told = {name for source, (defined, _) in symbols.items() if SOURCES.match(source) for name in defined if not FORK.match(name)}
    return {source for source, (defined, used) in symbols.items() if source.startswith("core/") and (defined | used) & told}


def floors(files):
    return {path.split("/")[1] for path in files}


# Libraries.

def print_library(library, folder):
    stripped = os.path.join(folder, "stripped.so")
    subprocess.run(["strip", "-o", stripped, library], check=True)
    exported = [line for line in output("nm", "-D", "--defined-only", library).splitlines() if " T " in line or " D " in line]
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", output("readelf", "-d", library))
    row("libgm: stripped KB, exports, libraries beside libc", round(os.path.getsize(stripped) / 1000), len(exported),
        sum(not name.startswith("libc.so") for name in needed))


def print_growth(program):
    """The median ratio of a growth with reservations to one without, over rounds that take turns."""
    def took(share):
        return float(output(program, env=dict(os.environ, GM_RESERVE_SHARE=share)))
    ratios = []
    for at in range(ROUNDS):
        pair = [took(share) for share in (("auto", "off") if at % 2 else ("off", "auto"))]
        ratios.append(pair[0] / pair[1] if at % 2 else pair[1] / pair[0])
    row("a growth of 40 MiB: time against reservations off, and its range",
        *(f"{ratio:.2f}" for ratio in (statistics.median(ratios), min(ratios), max(ratios))))


def main():
    root, walks, folder, library, growth = sys.argv[1:]
    print_walks(walks, folder)
    print("\n| measure | figures |\n|---|---|")
    symbols = symbols_of(objects_of(os.path.dirname(os.path.dirname(walks))))
    asking = askers_of(symbols)
    row("files that ask how much may be taken, floors", len(asking), len(floors(asking)))
    device = body_of(root, "gm_device")
    row("gm_device: members, mutexes", members_of(device), len(re.findall(r"\bgm__mutex\b", device)))
    known = {}
    for floor in ("store", "buffer", "transfer", "load", "pool"):
        row(f"structs in reach of one header of core/{floor}", *structs_in_reach(root, floor, known))
    spelled = collections.Counter()
    sources = [os.path.join(where, name) for where, _, names in os.walk(os.path.join(root, "core")) for name in names]
    for path in sources:
        text = COMMENT.sub("", read(path)) if path.endswith((".c", ".h")) else ""
        spelled.update(word for word in ("pool->heap", "heap.provider", "device->") if word in text)
    row("files that spell pool->heap, heap.provider, device->", *(spelled[word] for word in ("pool->heap", "heap.provider", "device->")))
    row("lines of core", sum(read(path).count("\n") for path in sources if path.endswith((".c", ".h"))))
    print_library(library, folder)
    print_growth(growth)


if __name__ == "__main__":
    main()
