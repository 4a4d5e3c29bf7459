#!/usr/bin/env python3
"""Fails on a call that the library must not make, on an internal constant with a public name, and on work that is left
in a comment.

usage: check_calls.py [ROOT]

The library never ends or forks the host's process, never prints, takes host memory from the services' allocator alone
(so that tests can refuse each allocation), and reaches the environment and dlopen through core/base.
"""
import os
import re
import sys

# backends/template plays a driver with malloc: what it takes there is device memory.
RULES = [  # names, where they are allowed, why not elsewhere
    ("abort exit _exit _Exit quick_exit atexit", (), "the library never ends the host's process"),
    ("fork vfork system popen", (), "programs are started with posix_spawn"),
    ("assert", ("core/base/rank.c",), "input is answered with a status"),
    ("printf vprintf puts putchar fputs fprintf vfprintf perror psignal", (), "the library does not print"),
    ("sprintf vsprintf strcpy strcat gets strtok", (), "without a bound"),
    ("rand srand random srandom", (), "state that is the host program's"),
    ("malloc calloc realloc free aligned_alloc posix_memalign strdup strndup asprintf vasprintf getline getdelim",
     ("core/base/alloc.c", "backends/template/"), "host memory comes through core/base/alloc.h"),
    ("getenv secure_getenv setenv putenv unsetenv", ("core/base/posix/env.c", "core/base/windows/env.c"),
     "the environment is read through core/base/env.h"),
    ("dlopen LoadLibrary", ("core/base/",), "libraries are opened through core/base/dynlib.h"),
    ("sleep usleep nanosleep clock_nanosleep", ("core/base/posix/", "core/discovery/helper.c", "backends/template/"),
     "who waits does so through core/base/clock.h or core/base/poll.h"),
]
# The calls of a backend that submit or wait, and so may come back into the engine.
SUBMITS = re.compile(r"->ops->((?:point_record|point_wait|point_wait_on|stream_barrier|stream_flush|stream_sync|fill|copy"
                     r"|copy_to_device|copy_to_host|copy_many|rect_copy|rect_to_device|rect_to_host|peer_copy|map|unmap"
                     r"|commit|managed_prefetch|vmm_map|vmm_unmap))\s*\(")
LEFT = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
NOISE = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'', re.S)


ENUM = re.compile(r"\benum\b[^{};]*\{([^}]*)\}")
MACRO = re.compile(r"^#define (GM_(?!_)\w*(?<!_H))\b", re.M)


def public_names(code):
    for enum in ENUM.finditer(code):
        for part in enum.group(1).split(","):
            name = re.match(r"\s*(GM_[A-Z]\w*)", part)
            if name:
                yield name.group(1), enum.start()
    for macro in MACRO.finditer(code):
        yield macro.group(1), macro.start()


def blank(match):
    return re.sub(r"[^\n]", " ", match.group())


def check(path, text):
    for number, line in enumerate(text.splitlines(), 1):
        if LEFT.search(line):
            yield f"{path}:{number}: unfinished work belongs to an issue, not into the code"
    if not path.startswith(("core/", "backends/")):
        return
    code = NOISE.sub(blank, text)
    for name, at in public_names(code):
        yield f"{path}:{code.count(chr(10), 0, at) + 1}: {name}: what is gm's own is named GM__"
    for match in SUBMITS.finditer(code):
        yield (f"{path}:{code.count(chr(10), 0, match.start()) + 1}: {match.group(1)}: called through gm__submitting, "
               "which checks that no lock is held")
    for names, allowed, why in RULES:
        if path.startswith(allowed):
            continue
        for match in re.finditer(r"(?<![\w.>])(%s)\s*\(" % "|".join(names.split()), code):
            yield f"{path}:{code.count(chr(10), 0, match.start()) + 1}: {match.group(1)}: {why}"


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else "."
    problems, files = [], 0
    for top in ("core", "backends", "include", "tools", "examples", "bench", "integrations"):
        for folder, _, names in sorted(os.walk(os.path.join(root, top))):
            for name in sorted(names):
                if name.endswith((".c", ".h", ".cpp", ".hpp")):
                    path = os.path.join(folder, name)
                    with open(path, encoding="utf-8") as file:
                        problems += check(os.path.relpath(path, root), file.read())
                    files += 1
    for problem in problems:
        print(problem)
    print(f"{files} files, {len(problems)} problems")
    return 1 if problems or files == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
