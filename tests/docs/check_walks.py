#!/usr/bin/env python3
"""docs/design.md: each function that a walk names is in the file that the row names, and "Read gm in an evening" names
files that have at most 3500 lines together. With a PROGRAM, tests/docs/walk.c, the page has the files that its walks
enter beside these: callgrind traces them.

usage: check_walks.py [ROOT]
       check_walks.py [ROOT] --trace VALGRIND PROGRAM [write]      write: put what was traced into the page
"""
import collections
import os
import re
import subprocess
import sys
import tempfile

MOST_LINES = 3500
ROW = re.compile(r"^\| \d\w? \| `(\w+)` \| `([\w/.]+)` \|", re.M)
WALKS = ("empty_walk", "hit_walk", "quick_walk", "slow_walk")  # callgrind mixes up names that begin alike
BEGIN, END = "<!-- begin: check_walks -->\n", "<!-- end: check_walks -->"
LINK = re.compile(r"\]\(\.\./([\w/.]+)\)")


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8") as file:
        return file.read()


def wrong_rows(root, rows):
    for function, path in rows:
        if not re.search(rf"^[a-zA-Z_].*\b{function}\([^;]*$", read(root, path), re.M):
            yield f"docs/design.md: {function} is not in {path}"


def evening_of(page):
    return LINK.findall(page[page.index("## Read gm in an evening"):page.index("## Where a new feature goes")])


def trace(valgrind, program):
    """Of each walk: the files of core/ and include/ that it enters."""
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "out")
        options = [f"--{word}={walk}" for walk in WALKS for word in ("dump-before", "dump-after")]
        subprocess.run([valgrind, "--tool=callgrind", "-q", "--compress-strings=no", "--compress-pos=no", *options,
                        f"--callgrind-out-file={out}", program], check=True, stderr=subprocess.DEVNULL)
        dumps = [read(folder, name) for name in os.listdir(folder)]
    return [entered(next(dump for dump in dumps if f"Trigger: --dump-after={walk}\n" in dump)) for walk in WALKS]


def entered(dump):
    """The files that have a line of their own cost, not those of calls."""
    files, here = set(), ""
    for line in dump.splitlines():
        if re.match("f[lie]=", line):
            ours = re.match(r".*/((?:core|include/gm)/.*)", line)
            here = ours[1] if ours else ""
        elif here and re.match(r"\d", line):
            files.add(here)
    return files


def table(evening, walks):
    """What the page says of the traced files that are not in the list for an evening."""
    first, hit, free, slow = (sorted(path for path in walk - set(evening) if not path.startswith("core/base/"))
                              for walk in walks)
    floors = collections.defaultdict(list)
    for path in (p for p in first if p.endswith(".c")):
        floors[os.path.dirname(path)].append(os.path.basename(path))
    rows = ["| walk | files that it enters beside those above |", "|---|---|"]
    rows += [f"| {name} | {', '.join(f'`{path}`' for path in files)} |"
             for name, files in (("a hit", hit), ("a quick free", free), ("the free of a dedicated block", slow))]
    rows += [f"| the first request, in `{floor}` | {', '.join(f'`{name}`' for name in names)} |"
             for floor, names in sorted(floors.items())]
    count = sum(map(len, floors.values()))
    return "\n".join(rows) + f"\n\nHeaders are left out for the first request, and `core/base` everywhere. The first request enters {count} such files.\n"


def check_trace(root, valgrind, program, mode="check"):
    page = read(root, "docs/design.md")
    evening, walks = evening_of(page), trace(valgrind, program)
    wanted = table(evening, walks)
    (head, rest), tail = page.split(BEGIN), page.split(END)[1]
    every = set().union(*walks)
    for path in (p for p in evening if p.endswith(".c") and p not in every):
        yield f"docs/design.md: no walk enters {path}, which is in the list for an evening"
    if rest.split(END)[0] == wanted:
        return
    if mode == "write":
        with open(os.path.join(root, "docs/design.md"), "w", encoding="utf-8") as file:
            file.write(head + BEGIN + wanted + END + tail)
    else:
        print(wanted)
        yield ("docs/design.md: a walk enters other files than the page says; run "
               f"tests/docs/check_walks.py --trace {valgrind} {program} write")


def check_page(root):
    page = read(root, "docs/design.md")
    rows, evening = ROW.findall(page), evening_of(page)
    lines = sum(read(root, path).count("\n") for path in evening)
    yield from wrong_rows(root, rows)
    if len(rows) < 20 or len(evening) < 15:
        yield "docs/design.md: a walk, or the list for an evening, is missing"
    if lines > MOST_LINES:
        yield f"docs/design.md: the files for an evening have {lines} lines, more than {MOST_LINES}"
    print(f"{len(rows)} steps, {len(evening)} files of {lines} lines")


def main():
    arguments, root = sys.argv[1:], os.path.join(os.path.dirname(__file__), "..", "..")
    if arguments and arguments[0] != "--trace":
        root = arguments.pop(0)
    problems = list(check_trace(root, *arguments[1:]) if arguments else check_page(root))
    print("\n".join([*problems, f"{len(problems)} problems"]))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
