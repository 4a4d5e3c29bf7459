#!/usr/bin/env python3
"""Writes the header of a GGUF file: tensors have places and no data.

usage: write_gguf.py OUT [KEY=VALUE...] [NAME:ROWSxCOLUMNS...]      a value is an unsigned number or a text; tensors are f16
"""
import struct
import sys


def text(word):
    return struct.pack("<Q", len(word)) + word.encode()


def main():
    out, *words = sys.argv[1:]
    values = [word.split("=", 1) for word in words if "=" in word]
    tensors = [word.split(":") for word in words if "=" not in word]
    data = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(values))
    for key, value in values:
        data += text(key) + (struct.pack("<II", 4, int(value)) if value.isdigit() else struct.pack("<I", 8) + text(value))
    at = 0
    for name, shape in tensors:
        dims = [int(size) for size in shape.split("x")]
        count = 1
        for size in dims:
            count *= size
        data += text(name) + struct.pack("<I", len(dims)) + b"".join(struct.pack("<Q", size) for size in dims)
        data += struct.pack("<IQ", 1, at)
        at += (2 * count + 31) // 32 * 32
    with open(out, "wb") as file:
        file.write(data)


main()
