#!/usr/bin/env python3
"""Fails when a thread may be cancelled inside of a public call: the call's body does not begin with GM__UNCANCELLED(),
and tests/house/cancellable.txt does not name it; also when that list names a call that is not there or does begin so.

usage: check_cancel.py [ROOT]
"""
import pathlib
import re
import sys

DECLARED = re.compile(r"GM_API\s[^;{]*?\b(gm_\w+)\(")
DEFINED = re.compile(r"^(?!static)[A-Za-z_][^;{}()]*?\(?\b(gm_\w+)\)?\([^;{}]*?\)\s*\{(\s*GM__UNCANCELLED\(\);)?", re.M)


def check(public, sources, allowed):
    """Problems of `sources` (path to text)."""
    found = {}
    for path, text in sources.items():
        for match in DEFINED.finditer(text):
            if match.group(1) in public:
                found[match.group(1)] = (path, bool(match.group(2)))
    for name, (path, begins) in sorted(found.items()):
        if begins and name in allowed:
            yield f"{path}: {name} begins with GM__UNCANCELLED(): cancellable.txt need not name it"
        elif not begins and name not in allowed:
            yield f"{path}: {name} does not begin with GM__UNCANCELLED(), and cancellable.txt does not name it"
    for name in sorted(allowed - set(found)):
        yield f"tests/house/cancellable.txt: {name}: there is no such call"
    for name in sorted(public - set(found)):
        yield f"{name}: declared, and found nowhere in core/"


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    public = {name for path in root.glob("include/gm/*.h") for name in DECLARED.findall(path.read_text())}
    sources = {str(path.relative_to(root)): path.read_text() for path in sorted(root.glob("core/**/*.c"))}
    lines = (root / "tests/house/cancellable.txt").read_text().splitlines()
    allowed = {line for line in lines if line and not line.startswith("#")}
    problems = list(check(public, sources, allowed))
    for problem in problems:
        print(problem)
    print(f"{len(public)} calls, {len(problems)} problems")
    return 1 if problems or not public else 0


if __name__ == "__main__":
    sys.exit(main())
