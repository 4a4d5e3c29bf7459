#!/usr/bin/env python3
"""docs/design.md: each function that a walk names is in the file that the row names, and "Read gm in an evening" names
files that have at most 3500 lines together.

usage: check_walks.py [ROOT]
"""
import os
import re
import sys

MOST_LINES = 3500
ROW = re.compile(r"^\| \d\w? \| `(\w+)` \| `([\w/.]+)` \|", re.M)
LINK = re.compile(r"\]\(\.\./([\w/.]+)\)")


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8") as file:
        return file.read()


def wrong_rows(root, rows):
    for function, path in rows:
        if not re.search(rf"^[a-zA-Z_].*\b{function}\([^;]*$", read(root, path), re.M):
            yield f"docs/design.md: {function} is not in {path}"


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(__file__), "..", "..")
    page = read(root, "docs/design.md")
    rows = ROW.findall(page)
    evening = LINK.findall(page[page.index("## Read gm in an evening"):page.index("## Where a new feature goes")])
    lines = sum(read(root, path).count("\n") for path in evening)
    problems = list(wrong_rows(root, rows))
    if len(rows) < 20 or len(evening) < 15:
        problems.append("docs/design.md: a walk, or the list for an evening, is missing")
    if lines > MOST_LINES:
        problems.append(f"docs/design.md: the files for an evening have {lines} lines, more than {MOST_LINES}")
    print("\n".join(problems + [f"{len(rows)} steps, {len(evening)} files of {lines} lines, {len(problems)} problems"]))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
