#!/usr/bin/env python3
"""Writes the header of a safetensors file: tensors have places and no data.

usage: write_safetensors.py OUT NAME:AxBxC...      dimensions are outermost first; tensors are f16
"""
import json
import math
import struct
import sys


def main():
    out, *words = sys.argv[1:]
    header, at = {}, 0
    for name, shape in (word.split(":") for word in words):
        dims = [int(size) for size in shape.split("x")]
        end = at + 2 * math.prod(dims)
        header[name] = {"dtype": "F16", "shape": dims, "data_offsets": [at, end]}
        at = end
    text = json.dumps(header).encode()
    with open(out, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)


main()
