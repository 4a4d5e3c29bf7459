#!/usr/bin/env python3
"""Writes the seed files of the safetensors and shard_index fuzzers: make_corpus.py [--check] CORPUS_DIR.

With --check nothing is written: exit 1 when a file is missing or differs."""
import pathlib
import struct
import sys

DTYPES = {"BOOL": 8, "U8": 8, "I8": 8, "F8_E4M3": 8, "F8_E5M2": 8, "F8_E8M0": 8, "F8_E4M3FNUZ": 8,
          "F8_E5M2FNUZ": 8, "F4": 4, "F6_E2M3": 6,
          "F6_E3M2": 6, "I16": 16, "U16": 16, "F16": 16, "BF16": 16, "I32": 32, "U32": 32, "F32": 32,
          "I64": 64, "U64": 64, "F64": 64, "C64": 64}


def tensor(name, dtype, shape, begin, end):
    return '"%s":{"dtype":"%s","shape":%s,"data_offsets":[%d,%d]}' % (name, dtype, shape, begin, end)


def file(header, data=0, length=None):
    text = header.encode("utf-8", "surrogatepass")
    return struct.pack("<Q", len(text) if length is None else length) + text + bytes(i & 0xff for i in range(data))


def every_dtype():
    entries, at = [], 0
    for dtype, size in sorted(DTYPES.items(), key=lambda item: -item[1]):
        entries.append(tensor("t." + dtype, dtype, "[2,4]", at, at + size))
        at += size
    return file("{" + ",".join(entries) + "}", at)


SAFETENSORS = {
    "good_empty": file("{}"),
    "good_one": file("{" + tensor("weight", "F32", "[2,2]", 0, 16) + "}", 16),
    "good_order": file("{" + tensor("b", "U8", "[3]", 4, 7) + "," + tensor("a", "U8", "[4]", 0, 4) + "}", 7),
    "good_metadata": file('{"__metadata__":{"format":"pt","k\\u00e9y":"\\ud83d\\ude00"},'
                          + tensor("x", "BF16", "[2]", 0, 4) + "}   ", 4),
    "good_zero": file("{" + tensor("z", "F64", "[18446744073709551615,0]", 0, 0) + "}"),
    "good_unknown_key": file('{"a":{"note":[{"x":[null,true,-1.5e3]}],' + tensor("a", "U8", "[]", 0, 1)[5:] + "}", 1),
    "good_dtypes": every_dtype(),
    "bad_no_length": b"1234567",
    "bad_huge_length": file("{}", length=2**64 - 1),
    "bad_long_length": file("{}", length=3),
    "bad_limit": file("{}", length=100000001),
    "bad_start": file("[]"),
    "bad_deep": file('{"a":' + '{"a":[' * 200),
    "bad_duplicate": file("{" + tensor("a", "U8", "[1]", 0, 1) + "," + tensor("a", "U8", "[1]", 1, 2) + "}", 2),
    "bad_duplicate_escaped": file("{" + tensor("a", "U8", "[1]", 0, 1) + "," + tensor("\\u0061", "U8", "[1]", 1, 2)
                                  + "}", 2),
    "bad_duplicate_field": file('{"a":{"dtype":"U8","dtype":"U8"}}'),
    "bad_duplicate_metadata": file('{"__metadata__":{"k":"1","k":"2"}}'),
    "bad_overlap": file("{" + tensor("a", "U8", "[4]", 0, 4) + "," + tensor("b", "U8", "[4]", 2, 6) + "}", 6),
    "bad_hole": file("{" + tensor("a", "U8", "[4]", 0, 4) + "," + tensor("b", "U8", "[4]", 5, 9) + "}", 9),
    "bad_tail": file("{" + tensor("a", "U8", "[4]", 0, 4) + "}", 5),
    "bad_truncated": file("{" + tensor("a", "U8", "[4]", 0, 4) + "}", 3),
    "bad_misaligned": file("{" + tensor("a", "U8", "[1]", 0, 1) + "," + tensor("b", "I16", "[1]", 1, 3) + "}", 3),
    "bad_overflow": file("{" + tensor("a", "F32", "[4611686018427387904,4]", 0, 0) + "}"),
    "bad_number": file("{" + tensor("a", "U8", "[18446744073709551616]", 0, 1) + "}", 1),
    "bad_negative": file("{" + tensor("a", "U8", "[-1]", 0, 1) + "}", 1),
    "bad_nan": file("{" + tensor("a", "U8", "[NaN]", 0, 1) + "}", 1),
    "bad_string_dim": file("{" + tensor("a", "U8", '["1"]', 0, 1) + "}", 1),
    "bad_dtype": file("{" + tensor("a", "Q4_K", "[1]", 0, 1) + "}", 1),
    "bad_rank": file("{" + tensor("a", "U8", str([1] * 17), 0, 1) + "}", 1),
    "bad_backwards": file("{" + tensor("a", "U8", "[1]", 1, 0) + "}", 1),
    "bad_nul_name": file('{"\\u0000":{}}'),
    "bad_surrogate": file('{"\\ud800":{}}'),
    "bad_utf8": struct.pack("<Q", 4) + b'{"\xff"',
}

SHARD_INDEX = {
    "good_two": b'{"metadata":{"total_size":8},"weight_map":{"a":"1.safetensors","b":"2.safetensors"}}\n',
    "good_one": b'{"weight_map":{"a":"x"}}',
    "bad_empty": b'{"weight_map":{}}',
    "bad_missing": b'{"metadata":{}}',
    "bad_escape": b'{"weight_map":{"a":"../../etc/passwd"}}',
    "bad_slash": b'{"weight_map":{"a":"d\\u002fx"}}',
    "bad_dots": b'{"weight_map":{"a":".."}}',
    "bad_twice": b'{"weight_map":{"a":"x","a":"y"}}',
    "bad_map_twice": b'{"weight_map":{"a":"x"},"weight_map":{"b":"x"}}',
    "bad_type": b'{"weight_map":{"a":["x"]}}',
    "bad_deep": b'{"metadata":' + b"[" * 300,
}


def main():
    check = sys.argv[1] == "--check"
    root, wrong = pathlib.Path(sys.argv[-1]), []
    for folder, files in (("safetensors", SAFETENSORS), ("shard_index", SHARD_INDEX)):
        for name, content in files.items():
            path = root / folder / name
            if not check:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
            elif not path.is_file() or path.read_bytes() != content:
                wrong.append(str(path))
    for path in wrong:
        print("missing or not as the script makes it:", path, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
