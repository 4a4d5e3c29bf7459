#!/usr/bin/env python3
"""Prints how many lines of glue an engine takes: code of its folder without comments, blank lines and checks.

usage: count_glue.py FOLDER
       count_glue.py FILE [FIRST-LAST...]      code of a file, or of some of its lines
"""
import io
import pathlib
import re
import sys
import tokenize

NOISE = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING,
         tokenize.ENDMARKER}


def lines_of_c(text):
    """The numbers of the lines that have code."""
    code = re.sub(r"/\*.*?\*/|//[^\n]*", lambda match: re.sub(r"[^\n]", "", match.group()), text, flags=re.S)
    return {number for number, line in enumerate(code.split("\n"), 1) if line.strip()}


def lines_of_python(text):
    lines, fresh = set(), True
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in NOISE:
            fresh = fresh or token.type in (tokenize.NEWLINE, tokenize.INDENT)
            continue
        if not (fresh and token.type == tokenize.STRING):  # a docstring
            lines.update(range(token.start[0], token.end[0] + 1))
        fresh = False
    return lines


def lines_of(path):
    text = path.read_text(encoding="utf-8")
    if path.suffix in (".py", ".pyx"):
        return lines_of_python(text)
    return lines_of_c(text) if path.suffix in (".c", ".h", ".cpp", ".hpp") else set()


def lines_among(path, ranges):
    wanted = [tuple(map(int, words.split("-"))) for words in ranges]
    return sum(not wanted or any(first <= line <= last for first, last in wanted) for line in lines_of(path))


def glue_of(folder):
    return sum(len(lines_of(path)) for path in sorted(folder.iterdir())
               if path.is_file() and not path.name.startswith(("check_", "record_", "gm_default")))


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    PATH = pathlib.Path(sys.argv[1])
    print(glue_of(PATH) if PATH.is_dir() else lines_among(PATH, sys.argv[2:]))
