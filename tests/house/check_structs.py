#!/usr/bin/env python3
"""Fails on a public struct of which nobody has said how it grows (docs/stability.md).

usage: check_structs.py [--sized | --opaque] [ROOT]

--sized only prints the names of the structs that may grow at their end, --opaque of those that programs cannot see into.

Each struct of include/gm is one of these, and which one its declaration shows:
- sized: `uint32_t struct_size`, or a native head that has it, is the first member;
- reserved: `reserved` is the last member;
- frozen: the comment above it says "Never grows";
- gm's own: the comment above it says "gm alone makes": others read it by pointer.
Those of gm/backend.h, gm/memory.h and gm/raw_figures.h that are none of these belong to the seam, whose changes
GM_BACKEND_ABI counts. A struct inside another one, or in an array of another one, keeps its size: it is reserved or frozen.
"""
import os
import re
import sys

SEAM = {"backend.h", "memory.h", "raw_figures.h"}
HEADS = {"gm_native_device", "gm_native_stream", "gm_native_point", "gm_native_memory"}
STRUCT = re.compile(r"((?:/\*(?:(?!\*/).)*\*/\n)?)typedef struct (gm_\w+)?\s*\{(.*?)\n\} (gm_\w+);", re.S)
COMMENT = re.compile(r"/\*.*?\*/", re.S)
LINE = re.compile(r"\n \*(?!/)")
OPAQUE = re.compile(r"^typedef struct (gm_\w+) \1;", re.M)
PLAIN = re.compile(r"^\s*(?:const )?(gm_\w+) \w", re.M)


def declared(root):
    folder = os.path.join(root, "include", "gm")
    for header in sorted(os.listdir(folder)):
        with open(os.path.join(folder, header), encoding="utf-8") as file:
            text = file.read()
        for match in STRUCT.finditer(text):
            comment, body = match.group(1) + match.group(3).split("\n")[0], match.group(3)
            members = COMMENT.sub("", body).strip()
            yield header, match.group(4), " ".join(LINE.sub(" ", comment).split()), members


def opaque(root):
    folder = os.path.join(root, "include", "gm")
    for header in sorted(os.listdir(folder)):
        with open(os.path.join(folder, header), encoding="utf-8") as file:
            yield from OPAQUE.findall(file.read())


def kind_of(header, comment, members):
    if members.startswith("uint32_t struct_size;"):
        return "sized"
    if re.match(r"gm_native_\w+ head;", members):
        return "sized"
    if re.search(r"\breserved(\[\w+\]|\)\(void\)|\[\w+\]\)\(void\));$", members):
        return "reserved"
    if "ever grows" in comment:
        return "frozen"
    if "gm alone makes" in comment:
        return "gm's own"
    return "seam" if header in SEAM else None


def main():
    arguments = [argument for argument in sys.argv[1:] if not argument.startswith("--")]
    root = arguments[0] if arguments else "."
    if "--opaque" in sys.argv:
        print("\n".join(sorted(set(opaque(root)))))
        return 0
    structs = list(declared(root))
    kinds = {name: kind_of(header, comment, members) for header, name, comment, members in structs}
    keeps = {name for header, name, comment, members in structs
             if kinds[name] in ("frozen", "reserved") or re.search(r"\breserved\[\w+\];$", members)}
    if "--sized" in sys.argv:
        may = {name for header, name, _, _ in structs if header not in SEAM and kinds[name] == "sized"}
        print("\n".join(sorted(may - keeps - HEADS)))
        return 0
    problems = []
    for header, name, _, members in structs:
        if kinds[name] is None:
            problems.append(f"include/gm/{header}: {name}: no struct_size, no `reserved`, no word that it never grows")
        for inner in PLAIN.findall(members):
            may_grow = inner in kinds and inner not in keeps and inner not in HEADS
            if may_grow and header not in SEAM:
                problems.append(f"include/gm/{header}: {name} has a {inner} inside, which may grow")
    print("\n".join([*problems, f"{len(structs)} structs, {len(problems)} problems"]))
    return 1 if problems or not structs else 0


if __name__ == "__main__":
    sys.exit(main())
