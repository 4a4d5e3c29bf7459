#!/usr/bin/env python3
"""Writes docs/reference.md: the prototype of every public function, by tier and header, with the first sentence of its
contract. A header follows those that it includes.

usage: make_reference.py [--check] [ROOT]

--check: writes nothing, fails when the page is not what would be written.
"""
import os
import re
import sys

HEAD = """# Every public function

Generated from `include/gm` by `tests/docs/make_reference.py`; a test holds it against the headers. The header has the
whole contract: units, NULL, ownership, each failure, threads. Headers stand in the order in which one reads them.
"""
TIERS = {"gm.h": "For every program", "model_all.h": "For model files", "store_all.h": "For values that are kept",
         "pages_all.h": "For pages of KV caches", "trace_all.h": "For traces, profiles and the summary",
         "tools.h": "For tools, tuning and larger engines", "backend.h": "For backends alone"}
TOKEN = re.compile(r"/\*.*?\*/|^[ ]*#[^\n]*|\bGM_API\b[^;{]*;|[;{}]", re.S | re.M)


def words(comment):
    text = re.sub(r"\n\s*\*", "\n", comment[2:-2])
    return " ".join(text.split())


def sentence(comment):
    text = words(comment)
    end = re.search(r"\.(?= [A-Z`*~]| gm)", text)
    text = (text[: end.end()] if end else text).split(": - ")[0].replace("|", "\\|")
    # Outside of `code` a star would be emphasis.
    return "`".join(part.replace("*", "\\*") if i % 2 == 0 else part for i, part in enumerate(text.split("`")))


def prototype(declaration):
    text = re.sub(r"/\*.*?\*/", " ", declaration, flags=re.S)
    text = re.sub(r"\bGM_(API\b|PRINTF\([^)]*\))", " ", text)
    return " ".join(text.rstrip(";").split()).replace(" )", ")")


def functions(text):
    """[prototype, sentence] of each GM_API declaration, in order. Declarations without a blank line between them share the
    comment above; one with a comment of its own behind it has that."""
    found, comment, declared_at = [], "", None
    body = text.index("#ifndef")  # what stands before is about the whole header
    for match in TOKEN.finditer(text, body):
        token, gap = match.group(), text[declared_at or match.start():match.start()]
        if token.startswith("GM_API"):
            if "\n\n" in gap:
                comment = ""
            found.append([prototype(token), sentence(comment) if comment else ""])
            declared_at = match.end()
        elif token.startswith("/*") and declared_at and "\n" not in gap:
            found[-1][1] = sentence(token)
        else:
            comment, declared_at = token if token.startswith("/*") else "", None
    return found


def includes(text):
    return re.findall(r'^#include "gm/(\w+\.h)"$', text, re.M)


def depth(texts, name):
    """How many headers stand below it, one on the other."""
    return 1 + max((depth(texts, target) for target in includes(texts[name])), default=0)


def page(root):
    folder = os.path.join(root, "include", "gm")
    texts = {}
    for name in sorted(os.listdir(folder)):
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            texts[name] = file.read()
    lines = [HEAD]
    for tier, title in TIERS.items():
        lines.append(f"\n## {title}: gm/{tier}\n")
        names = [name for name in includes(texts[tier]) if name not in TIERS] if tier != "backend.h" else [tier]
        for name in sorted(names, key=lambda name: (depth(texts, name), name)):
            found = functions(texts[name])
            if found:
                lines.append(f"\n### gm/{name}\n\n| function | what |\n|---|---|\n")
                lines += [f"| `{function}` | {what} |\n" for function, what in found]
    return "".join(lines)


def main():
    arguments = [a for a in sys.argv[1:] if a != "--check"]
    root = arguments[0] if arguments else "."
    path, wanted = os.path.join(root, "docs", "reference.md"), page(root)
    if "--check" not in sys.argv:
        with open(path, "w", encoding="utf-8") as file:
            file.write(wanted)
        return 0
    with open(path, encoding="utf-8") as file:
        if file.read() == wanted:
            return 0
    print("docs/reference.md is not what the headers say: run tests/docs/make_reference.py")
    return 1


if __name__ == "__main__":
    sys.exit(main())
