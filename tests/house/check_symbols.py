#!/usr/bin/env python3
"""Holds what gm's shared libraries export against what the public headers declare, and what each needs against a list.

usage: check_symbols.py [--lean] INCLUDE_DIR LIBRARY[,ALLOWED_LIBRARY...]...

Programs use the names of the version GM_0.1 and the like. Those of GM_PRIVATE are for gm's own libraries, and each has
one that uses it: not with --lean, for a build that leaves parts out.
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


def symbols(library, which):
    """(name, version) of what a library exports or takes from others."""
    lines = run("nm", "-D", which, library).splitlines()
    return {tuple(re.split("@+", line.split()[-1], maxsplit=1)) for line in lines if "@" in line and not re.search(" A ", line)}


def needed_by(library):
    return set(re.findall(r"\(NEEDED\).*\[(.*?)\]", run("readelf", "-d", library)))


def problems_of(library, allowed):
    file = os.path.basename(library)
    for name in sorted(needed_by(library)):
        if name.split(".so")[0] not in allowed:
            yield f"{name}: {file} needs it, which is not allowed here"
    if "NODELETE" not in run("readelf", "-d", library):
        yield f"{file} is not marked NODELETE"


def main():
    lean = "--lean" in sys.argv
    include, *libraries = (word for word in sys.argv[1:] if word != "--lean")
    public, private, used, problems = [], set(), set(), []
    for library, *allowed in (word.split(",") for word in libraries):
        exported = symbols(library, "--defined-only")
        public += [name for name, version in exported if not version.startswith("GM_PRIVATE")]
        private |= {name for name, version in exported if version.startswith("GM_PRIVATE")}
        used |= {name for name, _ in symbols(library, "--undefined-only")}
        problems += problems_of(library, allowed)
        print(f"{os.path.basename(library)}: {len(exported)} names, needs {' '.join(sorted(needed_by(library)))}")
    declared = declared_in(include)
    problems += [f"{name}: exported, but does not begin with gm_" for name in sorted(public)
                 if not re.match(r"gm_[a-z0-9]", name)]
    problems += [f"{name}: exported twice" for name in sorted(set(public)) if public.count(name) > 1]
    problems += [f"{name}: exported, but no public header declares it" for name in sorted(set(public) - declared)]
    problems += [f"{name}: declared GM_API, but not exported" for name in sorted(declared - set(public))]
    problems += [f"{name}: exported to gm's own libraries, and none uses it" for name in sorted(set() if lean else private - used)]
    for problem in problems:
        print(problem)
    print(f"{len(public)} names for programs, {len(private)} for gm's own libraries, {len(problems)} problems")
    return 1 if problems or not public else 0


if __name__ == "__main__":
    sys.exit(main())
