#!/usr/bin/env python3
"""Fails when a block of C or C++ on a page is not a part of a file, to the letter: check_page.py PAGE FILE..."""
import re
import sys


def main():
    page, *paths = sys.argv[1:]
    code = []
    for path in paths:
        with open(path, encoding="utf-8") as file:
            code.append(file.read())
    with open(page, encoding="utf-8") as file:
        blocks = re.findall(r"^```c(?:pp)?\n(.*?)^```$", file.read(), re.S | re.M)
    missing = [block for block in blocks if not any(block in text for text in code)]
    for block in missing:
        print(f"{page}: {' and '.join(paths)} have not the block that begins with {block.splitlines()[0]}")
    return 1 if missing or not blocks else 0


if __name__ == "__main__":
    sys.exit(main())
