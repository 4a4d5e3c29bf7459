#!/usr/bin/env python3
"""Fails on modules that call each other in a circle.

usage: check_circles.py [ROOT]

A module is x.c with its x.h, in core/ or backends/. It calls another one if its code names a function of that one.
Names in x.c count wherever they stand, also in tables; of x.h the bodies of its inline functions count. A circle ends
when the struct and its leaf helpers stay in x.c, and its life moves to x_open.c above.

Reads C as clang-format leaves it: a function begins with a word in the first column and ends with a brace there.
"""
import os
import re
import sys

FOLDERS = ("core", "backends")
NOISE = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\''
                   r"|^#.*?(?<!\\)$|__attribute__\(\(.*?\)\)", re.S | re.M)
FUNCTION = re.compile(r"^(?!typedef\b)([A-Za-z_][^;{}=]*?\b(\w+)\([^;{}=]*\)) \{([^\n]*\}|\n.*?^\})$", re.S | re.M)


def functions_of(code):
    """(name, is static, body) of each function."""
    for match in FUNCTION.finditer(code):
        yield match.group(2), match.group(1).startswith("static"), match.group(3)


def files_of(root):
    for top in FOLDERS:
        for folder, _, names in sorted(os.walk(os.path.join(root, top))):
            for name in sorted(names):
                if name.endswith((".c", ".h")):
                    path = os.path.join(folder, name)
                    with open(path, encoding="utf-8") as file:
                        yield os.path.relpath(path, root), NOISE.sub(" ", file.read())


def arrows_of(files):
    """Of each module: the modules that it calls, each with the name of one function."""
    homes, texts, own = {}, {}, {}
    for path, code in files:
        module, header = os.path.splitext(path)[0], path.endswith(".h")
        functions = list(functions_of(code))
        own.setdefault(module, set()).update(name for name, _, _ in functions)
        homes.update((name, module) for name, static, _ in functions if header or not static)
        texts[module] = texts.get(module, "") + (" ".join(body for _, _, body in functions) if header else code)
    arrows = {module: {} for module in texts}
    for module, text in texts.items():
        for name in set(re.findall(r"\b\w+\b", text)) - own[module]:
            if name in homes:
                arrows[module][homes[name]] = name
    return arrows


def circles_of(arrows):
    """The groups of modules that reach each other (Tarjan)."""
    index, low, stack, found = {}, {}, [], []

    def visit(module):
        index[module] = low[module] = len(index)
        stack.append(module)
        for other in arrows[module]:
            if other not in index:
                visit(other)
            if other in stack:
                low[module] = min(low[module], low[other])
        if low[module] == index[module]:
            group = stack[stack.index(module):]
            del stack[-len(group):]
            if len(group) > 1:
                found.append(sorted(group))

    for module in sorted(arrows):
        if module not in index:
            visit(module)
    return found


def main():
    sys.setrecursionlimit(10000)
    arrows = arrows_of(files_of(sys.argv[1] if len(sys.argv) > 1 else "."))
    circles = circles_of(arrows)
    for group in circles:
        print(f"{group[0]}: {len(group)} modules call each other in a circle:")
        print("\n".join(f"  {module} calls {name} of {other}" for module in group
                        for other, name in sorted(arrows[module].items()) if other in group))
    print(f"{len(arrows)} modules, {sum(map(len, arrows.values()))} arrows, {len(circles)} circles")
    return 1 if circles or not arrows else 0


if __name__ == "__main__":
    sys.exit(main())
