#!/usr/bin/env python3
"""Fails on a configuration key that nobody reads.

usage: check_keys.py [ROOT]

A key of core/context/config_keys.h is read where a file of core/ or backends/ that asks the configuration names it in
code. The configuration's own files, with its presets, do not count. A key whose row says that it has no effect, or comes later, must be read nowhere.
"""
import os
import re
import sys

LIST = "core/context/config_keys.h"
OWN = re.compile(r"core/context/(config|preset)\w*\.[ch]$")
ROW = re.compile(r'X\(\s*"([\w.]+)",\s*"\w+",\s*"\w+",\s*"[^"]*",\s*(?:"[^"]*"|\w+),\s*(true|false),\s*"((?:[^"\\]|\\.)*)"')
COMMENT = re.compile(r"/\*.*?\*/", re.S)


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8") as file:
        return file.read()


def literals(root):
    """Of each text in code that asks the configuration: a file that has it."""
    found = {}
    for top in ("core", "backends"):
        for folder, _, names in sorted(os.walk(os.path.join(root, top))):
            for name in sorted(n for n in names if n.endswith((".c", ".h"))):
                path = os.path.relpath(os.path.join(folder, name), root)
                code = COMMENT.sub("", read(root, path))
                if not OWN.search(path) and re.search(r"\bgm__config_\w+\(", code):
                    for text in re.findall(r'"((?:[^"\\\n]|\\.)*)"', code):
                        found.setdefault(text, path)
    return found


def problems(rows, found):
    for key, effective, meaning in rows:
        has_effect = effective == "true" and not meaning.startswith("has no effect")
        if has_effect and key not in found:
            yield f"{LIST}: nobody reads `{key}`"
        if not has_effect and key in found:
            yield f"{LIST}: `{key}` is said to have no effect, and {found[key]} reads it"


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else "."
    text = re.sub(r"\s*\\\n\s*", " ", read(root, LIST))
    rows = ROW.findall(text)
    found = list(problems(rows, literals(root)))
    if len(rows) != len(re.findall(r'\bX\(\s*"', text)) or not rows:
        found.append(f"{LIST}: a row that check_keys.py cannot read")
    print("\n".join([*found, f"{len(rows)} keys, {len(found)} problems"]))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
