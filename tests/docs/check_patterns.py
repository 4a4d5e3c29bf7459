#!/usr/bin/env python3
"""Compares a column of the table "Flag by flag" of docs/manual.md with what a backend gives.

usage: check_patterns.py COLUMN PROGRAM BACKEND [cpu]     PROGRAM: print_patterns
"""
import os
import subprocess
import sys


def table(page):
    """The head and the rows of the first table below the heading."""
    lines = page.split("\n## Flag by flag\n")[1].split("\n|", 1)[1].split("\n\n")[0].splitlines()
    rows = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in lines]
    return rows[0], {row[0]: row for row in rows[2:]}


def main():
    column, command = sys.argv[1], sys.argv[2:]
    done = subprocess.run(command, capture_output=True, text=True)
    required = os.environ.get("GM_REQUIRE_BACKENDS", "").split(",")
    if done.returncode == 77:
        print(done.stderr.strip())
        return 1 if command[1] in required and "no " + command[1] in done.stderr else 77
    if done.returncode:
        print(done.stdout + done.stderr)
        return 1
    with open("docs/manual.md", encoding="utf-8") as page:
        head, rows = table(page.read())
    given = dict(line.split("|") for line in done.stdout.splitlines())
    wrong = [f"{name}: the page says \"{rows[name][head.index(column)] if name in rows else 'nothing'}\", "
             f"{command[1]} gives \"{words}\"" for name, words in given.items()
             if name not in rows or rows[name][head.index(column)] != words]
    wrong += [f"{name}: no such pattern in print_patterns.c" for name in rows if name not in given]
    print("\n".join(wrong) or f"{column}: {len(given)} rows")
    return 1 if wrong else 0


sys.exit(main())
