#!/usr/bin/env python3
"""Fails on a function over 60 lines, a file of 500 lines or more, or a median function of 15 lines or more.

usage: check_sizes.py [ROOT]

Reads C as clang-format leaves it: a function begins with a word in the first column and ends with a lone brace there.
"""
import os
import re
import statistics
import sys

FOLDERS = ("core", "backends", "include", "tools", "examples", "bench", "integrations", "tests")
LONGEST_FUNCTION, LONGEST_FILE, MEDIAN = 60, 499, 15
BEGIN = re.compile(r"^[A-Za-z_]")
LABEL = re.compile(r"^\w+:\s*$")
ONE_LINE = re.compile(r"^[A-Za-z_].*\) \{.*\}$")


def functions_of(lines):
    """(first line number, length) of each function."""
    start = None
    for number, line in enumerate(lines, 1):
        if ONE_LINE.match(line):
            yield number, 1
        elif line == "}" and start:
            yield start, number - start + 1
        elif BEGIN.match(line) and not LABEL.match(line):
            start = number


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else "."
    problems, lengths, files = [], [], 0
    for top in FOLDERS:
        for folder, _, names in sorted(os.walk(os.path.join(root, top))):
            for name in sorted(names):
                if not name.endswith((".c", ".h", ".cpp", ".hpp")):
                    continue
                path = os.path.join(folder, name)
                with open(path, encoding="utf-8") as text:
                    lines = text.read().splitlines()
                shown = os.path.relpath(path, root)
                files += 1
                if len(lines) > LONGEST_FILE:
                    problems.append(f"{shown}: {len(lines)} lines, {LONGEST_FILE} are allowed")
                for number, length in functions_of(lines):
                    if top in ("core", "backends"):
                        lengths.append(length)
                    if length > LONGEST_FUNCTION:
                        problems.append(f"{shown}:{number}: function of {length} lines, {LONGEST_FUNCTION} are allowed")
    median = statistics.median(lengths) if lengths else 0
    if median >= MEDIAN:
        problems.append(f"core and backends: the median function has {median} lines, it must stay under {MEDIAN}")
    for problem in problems:
        print(problem)
    print(f"{files} files, {len(lengths)} functions in core and backends of {median} lines (median), "
          f"{len(problems)} problems")
    return 1 if problems or files == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
