#!/usr/bin/env python3
"""Writes the public headers as a program of another version has them.

usage: make_headers.py INCLUDE OUT

OUT/older has each struct that begins with struct_size without its last members, OUT/newer with one more, `later`. A
struct with `reserved` keeps its size for ever and stays as it is, and so do the structs of gm/backend.h and
gm/raw_figures.h. OUT/gaps.c fails to compile where a struct that may grow has a gap at its end. Files are written only when they
change.
"""
import os
import re
import sys

STRUCT = re.compile(r"typedef struct (gm_\w+) \{(.*?)\n\} \1;", re.S)
SMALL = re.compile(r"^\s*(\w+) \w+(, \w+)*;$")
ENUM = re.compile(r"typedef enum (gm_\w+) ")
MARK = re.compile(r"/\*.*?\*/", re.S)


def lines_of(body):
    """One member a line, without comments."""
    return [line.rstrip() for line in MARK.sub("", body).split("\n") if line.strip()]


def grows(header, name, body):
    first = MARK.sub("", body).strip()
    sized = first.startswith("uint32_t struct_size;") or re.match(r"gm_native_\w+ head;", first)
    if not sized or "reserved[" in body or name.startswith("gm_native_"):
        return False
    return header not in ("backend.h", "raw_figures.h")


def older(members, small):
    """Without the last member, or all of the small ones at the end: the size must become another."""
    def is_small(line):
        match = SMALL.match(line)
        return match is not None and match.group(1) in small

    left = members[:-1]
    while is_small(members[len(left)]) and is_small(left[-1]) and len(left) > 3:
        left = left[:-1]
    return left


def change(header, text, variant, small):
    def one(match):
        name, body = match.group(1), match.group(2)
        if name == "gm_stats" or not grows(header, name, body):
            return match.group(0)
        members = lines_of(body)
        members = older(members, small) if variant == "older" else [*members, "  uint64_t later;"]
        return "typedef struct %s {\n%s\n} %s;" % (name, "\n".join(members), name)

    text = STRUCT.sub(one, text)
    if header == "stats.h":  # its members are a list
        entry = re.search(r' *\\\n  X\((\w+), "[^"]*"\)\n(?=\n)', text)
        if variant == "older":
            return text[:entry.start()] + "\n" + text[entry.end():]
        return text.replace("#undef X\n} gm_stats;", "#undef X\n  uint64_t later;\n} gm_stats;")
    return text


def last_member(members):
    name = re.search(r"\(\*(\w+)(\[\w+\])?\)|(\w+)(\[\w+\])*;$", members[-1])
    return name.group(1) or name.group(3)


def gaps(headers):
    lines = ["/* Written by make_headers.py. */", "#include <stddef.h>", ""]
    lines += [f'#include "gm/{header}"' for header in headers]
    for header, text in headers.items():
        for match in STRUCT.finditer(text):
            name, body = match.group(1), match.group(2)
            if not grows(header, name, body):
                continue
            if name == "gm_stats":  # its members are a list
                last = re.findall(r"^  X\((\w+),", text, re.M)[-1]
            else:
                last = last_member(lines_of(body))
            lines.append(f"_Static_assert(offsetof({name}, {last}) + sizeof((({name} *)0)->{last}) == sizeof({name}),")
            lines.append(f'               "{name} has a gap at its end, into which a new member would fall");')
    return "\n".join(lines) + "\n"


def write(path, text):
    try:
        with open(path, encoding="utf-8") as file:
            if file.read() == text:
                return
    except FileNotFoundError:
        pass
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def main():
    include, out = sys.argv[1], sys.argv[2]
    headers = {}
    for header in sorted(name for name in os.listdir(os.path.join(include, "gm")) if name.endswith(".h")):
        with open(os.path.join(include, "gm", header), encoding="utf-8") as file:
            headers[header] = file.read()
    small = {"bool", "int32_t", "uint32_t", "uint8_t", *ENUM.findall("".join(headers.values()))}
    for variant in ("older", "newer"):
        folder = os.path.join(out, variant, "gm")
        os.makedirs(folder, exist_ok=True)
        for header, text in headers.items():
            write(os.path.join(folder, header), change(header, text, variant, small))
    write(os.path.join(out, "gaps.c"), gaps(headers))


if __name__ == "__main__":
    main()
