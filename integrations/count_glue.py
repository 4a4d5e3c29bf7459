#!/usr/bin/env python3
"""Prints how many lines of glue an engine takes: code of its folder without comments, blank lines and checks.

usage: count_glue.py FOLDER
"""
import io
import pathlib
import re
import sys
import tokenize

NOISE = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING,
         tokenize.ENDMARKER}


def lines_of_c(text):
    code = re.sub(r"/\*.*?\*/|//[^\n]*", lambda match: re.sub(r"[^\n]", "", match.group()), text, flags=re.S)
    return sum(bool(line.strip()) for line in code.splitlines())


def lines_of_python(text):
    lines, fresh = set(), True
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in NOISE:
            fresh = fresh or token.type in (tokenize.NEWLINE, tokenize.INDENT)
            continue
        if not (fresh and token.type == tokenize.STRING):  # a docstring
            lines.update(range(token.start[0], token.end[0] + 1))
        fresh = False
    return len(lines)


def glue_of(folder):
    count = 0
    for path in sorted(pathlib.Path(folder).iterdir()):
        if path.name.startswith(("check_", "record_", "gm_default")):
            continue
        if path.suffix in (".c", ".h", ".cpp"):
            count += lines_of_c(path.read_text(encoding="utf-8"))
        elif path.suffix == ".py":
            count += lines_of_python(path.read_text(encoding="utf-8"))
    return count


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    print(glue_of(sys.argv[1]))
