#!/usr/bin/env python3
"""Holds what libgm.so exports against what the public headers declare, and what it needs against a list.

usage: check_symbols.py LIBRARY INCLUDE_DIR ALLOWED_LIBRARY...
"""
import os
import re
import subprocess
import sys

DECLARATION = re.compile(r"\bGM_API\b[^;{]*?\b(\w+)\s*\(")


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def declared_in(include):
    names = set()
    for folder, _, files in os.walk(include):
        for name in files:
            with open(os.path.join(folder, name), encoding="utf-8") as text:
                code = re.sub(r"/\*.*?\*/|//[^\n]*|^[ \t]*#.*?(?<!\\)$", "", text.read(), flags=re.S | re.M)
                names.update(DECLARATION.findall(code))
    return names


def exported_by(library):
    return {line.split()[-1].split("@")[0] for line in run("nm", "-D", "--defined-only", library).splitlines()}


def needed_by(library):
    return set(re.findall(r"\(NEEDED\).*\[(.*?)\]", run("readelf", "-d", library)))


def main():
    library, include, *allowed = sys.argv[1:]
    exported, declared, needed = exported_by(library), declared_in(include), needed_by(library)
    problems = [f"{name}: exported, but does not begin with gm_" for name in sorted(exported)
                if not re.match(r"gm_[a-z0-9]", name)]
    problems += [f"{name}: exported, but no public header declares it" for name in sorted(exported - declared)]
    problems += [f"{name}: declared GM_API, but not exported" for name in sorted(declared - exported)]
    problems += [f"{name}: libgm.so needs it, which is not allowed here" for name in sorted(needed)
                 if name.split(".so")[0] not in allowed]
    if "NODELETE" not in run("readelf", "-d", library):
        problems.append("libgm.so is not marked NODELETE")
    for problem in problems:
        print(problem)
    print(f"{len(exported)} names exported, needs {' '.join(sorted(needed))}, {len(problems)} problems")
    return 1 if problems or not exported else 0


if __name__ == "__main__":
    sys.exit(main())
