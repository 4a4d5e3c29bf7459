#!/usr/bin/env python3
"""Fails on modules that call each other in a circle.

usage: check_circles.py [ROOT [BUILD]]

A module is x.c with its x.h, in core/ or backends/. It calls another one if its code names a function of that one.
Names in x.c count wherever they stand, also in tables; of x.h the bodies of its inline functions count. A circle ends
when the struct and its leaf helpers stay in x.c, and its life moves to x_open.c above.

Arrows come from two places. The objects of BUILD, a build tree, have every function and table that one file defines
and another one uses (nm). The text has the inline functions of headers, which have no symbol. It is read as
clang-format leaves it: a function begins with a word in the first column and ends with a brace there.
"""
import os
import re
import subprocess
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


def objects_of(root, build):
    """(module, path) of each object of a source that is there."""
    for folder, _, names in sorted(os.walk(build)):
        for name in sorted(n for n in names if n.endswith(".c.o")):
            path = os.path.join(folder, name)
            for top in FOLDERS:
                source = re.search(rf"/({top}/.*)\.c\.o$", re.sub(r"/CMakeFiles/\w+\.dir/", "/", path))
                if source and os.path.exists(os.path.join(root, source[1] + ".c")):
                    yield source[1], path


def symbols_of(objects):
    """Of each module: the names that its object defines, and those that it uses."""
    modules = {path: module for module, path in objects}
    symbols = {module: (set(), set()) for module in modules.values()}
    printed = subprocess.run(["nm", "-A", "-P", *modules], check=True, capture_output=True, text=True).stdout if modules else ""
    for line in printed.splitlines():
        path, name, kind = re.match(r"(.*?): (\S+) (\S)", line).groups()
        if kind in "TDBRVW":
            symbols[modules[path]][0].add(name)
        elif kind in "Uw":
            symbols[modules[path]][1].add(name)
    return symbols


def add_objects(arrows, objects):
    """Adds the arrows that the objects have. Returns how many objects there are."""
    symbols = symbols_of(list(objects))
    homes = {name: module for module, (defined, _) in symbols.items() for name in defined}
    for module, (_, used) in symbols.items():
        for name in used:
            if homes.get(name, module) != module:
                arrows.setdefault(module, {}).setdefault(homes[name], name)
                arrows.setdefault(homes[name], {})
    return len(symbols)


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
    root = sys.argv[1] if len(sys.argv) > 1 else "."
    arrows = arrows_of(files_of(root))
    objects = add_objects(arrows, objects_of(root, sys.argv[2])) if len(sys.argv) > 2 else None
    circles = circles_of(arrows)
    for group in circles:
        print(f"{group[0]}: {len(group)} modules call each other in a circle:")
        print("\n".join(f"  {module} calls {name} of {other}" for module in group
                        for other, name in sorted(arrows[module].items()) if other in group))
    print(f"{len(arrows)} modules, {objects} objects, {sum(map(len, arrows.values()))} arrows, {len(circles)} circles")
    return 1 if circles or not arrows or objects == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
