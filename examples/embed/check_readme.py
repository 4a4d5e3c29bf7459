#!/usr/bin/env python3
"""Fails when README.md does not show the file between its markers: check_readme.py README FILE.

The markers are <!-- FILE --> and <!-- end of FILE -->, around one block of code."""
import difflib
import sys


def main():
    readme, path = sys.argv[1:]
    with open(readme, encoding="utf-8") as file:
        page = file.read()
    with open(path, encoding="utf-8") as file:
        code = file.read()
    language = "cpp" if path.endswith(".cpp") else "c"
    begin, end = f"<!-- {path} -->\n```{language}\n", f"```\n<!-- end of {path} -->\n"
    if page.count(begin) != 1 or page.count(end) != 1:
        print(f"{readme}: the markers of {path} are not there once")
        return 1
    shown = page.split(begin)[1].split(end)[0]
    sys.stdout.writelines(difflib.unified_diff(code.splitlines(True), shown.splitlines(True), path, readme))
    return 0 if shown == code else 1


if __name__ == "__main__":
    sys.exit(main())
