#!/usr/bin/env python3
"""Fails on a comment or a page that is hard to read.

usage: check_words.py [ROOT [FOLDER_OR_FILE...]]

A sentence has at most 25 words. It ends with a full stop, a question or exclamation mark, a paragraph, an item of a
list or a cell of a table. A semicolon or a colon ends none. `code`, a "quoted text" and a list of identifiers, such as
IO, NOT_FOUND or gm_alloc, are one word each. A paragraph of a comment that is indented is code. No comment and no
paragraph begins with "The same". None names a number of a feature or a target (F22, T4), or "the documents".

No sentence begins with What, Of, Who, Else, As, Also or And: it begins with its subject. A question may, and a
title in bold.

Read are the comments of C and C++ and the text of *.md. COVERED has the folders and files that are held to this.
"""
import os
import re
import sys

COVERED = ["include", "core", "backends", "docs", "tools", "examples", "integrations", "bench", "tests", "README.md",
           "CONTRIBUTING.md"]
NOT_HELD = {"docs/STATUS.md", "core/heap/object_sweep.c", "tests/data/view/RULES.md", "tests/data/view/SCHEMA.md"}
SOURCES = (".c", ".h", ".cpp", ".hpp")
MOST_WORDS = 25
COMMENT = re.compile(r'"(?:\\.|[^"\\\n])*"|/\*(.*?)\*/|//([^\n]*)', re.S)
IDENTIFIER = r"\*?(?:\w*_\w*[\w*]|[A-Z][A-Z0-9]+)(?:\(\)|\.h)?"
LIST = re.compile(rf"{IDENTIFIER}(?:(?:,| or| and|, or|, and) {IDENTIFIER})+(?![\w.])")
NUMBER = re.compile(r"\bF\d{1,2}\b|\bT[1-9]\b|\bthe documents\b")
BEGINNING = re.compile(r"[*_(\"]*(?:What|Of|Who|Else|As|Also|And)\b(?!.*(?:\?|[.:?]?\*\*)$)", re.S)
END = re.compile(r"(?<!e\.g)(?<!i\.e)(?<!\.\.)[.!?][\"')\]*]*(?=\s|$)")
SAMPLE = re.compile(r"(?<=\n\n)(?: {3,}\S.*\n)+")
FENCE = re.compile(r"^```.*?^```[ ]*$|^    .*?$|<!--.*?-->", re.S | re.M)


def blank(match):
    return re.sub(r"[^\n]", " ", match.group())


def comments(text):
    """(line, text) of each comment of C."""
    for match in COMMENT.finditer(text):
        body = match.group(1) if match.group(1) is not None else match.group(2)
        if body is not None:
            yield text.count("\n", 0, match.start()) + 1, SAMPLE.sub(blank, re.sub(r"(?m)^[ \t]*\*", "", body))


def blocks(line, text):
    """(line, text) of each paragraph, list item and table cell."""
    block, start = [], line
    for number, row in enumerate(text.split("\n"), line):
        stripped = row.strip()
        fresh = re.match(r"([-*]|\d+[.)]) ", stripped)
        if not stripped or fresh or stripped[0] in "|#":
            if block:
                yield start, " ".join(block)
            block = []
        if stripped.startswith("|"):
            yield from ((number, cell.strip()) for cell in re.split(r"(?<!\\)\|", stripped.strip("|")))
        elif stripped and not stripped.startswith("#"):
            start = start if block else number
            block.append(stripped[fresh.end():] if fresh else stripped)
    if block:
        yield start, " ".join(block)


def words(sentence):
    text = re.sub(r"`[^`]*`|\"[^\"]*\"", "CODE_", sentence)
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    return [word for word in LIST.sub("LIST_", text).split() if re.search(r"\w", word)]


def problems(line, text):
    if text.startswith("The same"):
        yield f'{line}: begins with "The same": name what it is'
    plain, at = re.sub(r"`[^`]*`", "CODE_", text), 0
    for name in NUMBER.findall(plain):
        yield f"{line}: {name}: say it in words"
    for end in [*(match.end() for match in END.finditer(plain)), len(plain)]:
        count = len(words(plain[at:end]))
        if count > MOST_WORDS:
            yield f"{line}: a sentence of {count} words: {plain[at:end].strip()[:70]}"
        if BEGINNING.match(plain[at:end].strip()):
            yield f"{line}: begins without its subject: {plain[at:end].strip()[:70]}"
        at = end


def texts(path):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    if path.endswith(SOURCES):
        return list(comments(text))
    return [(1, FENCE.sub(blank, text))] if path.endswith(".md") else []


def files(root, top):
    path = os.path.join(root, top)
    if os.path.isfile(path):
        yield path
    for folder, _, names in sorted(os.walk(path)):
        yield from (os.path.join(folder, name) for name in sorted(names) if name.endswith((*SOURCES, ".md")))


def check(root, tops):
    for path in (path for top in tops for path in files(root, top)):
        shown = os.path.relpath(path, root)
        if shown not in NOT_HELD:
            found = [p for line, text in texts(path) for b in blocks(line, text) for p in problems(*b)]
            yield from (f"{shown}:{problem}" for problem in found)


def main():
    found = list(check(sys.argv[1] if len(sys.argv) > 1 else ".", sys.argv[2:] or COVERED))
    print("\n".join([*found, f"{len(found)} problems"]))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
