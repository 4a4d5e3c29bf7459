#!/usr/bin/env python3
"""Loads a real model to one backend with gmem and checks the answer against the file itself.

usage: real_model.py GMEM FETCH_SCRIPT DIR BACKEND [PATH...]

FETCH_SCRIPT DIR prints the path of the model. Exit 77 (skipped, with the reason) only where a fetch fails outside CI, or a
backend has no device here and GM_REQUIRE_BACKENDS does not list it."""
import json
import os
import struct
import subprocess
import sys

TENSORS_OF_MINILM, BYTES_OF_MINILM = 104, 90856960


def skip(why):
    print("skipped:", why)
    sys.exit(77)


def fetch(script, folder):
    done = subprocess.run([script, folder], stdout=subprocess.PIPE, text=True)
    if done.returncode == 0:
        return done.stdout.strip()
    if os.environ.get("CI"):
        sys.exit("the model could not be fetched, and in CI this test is never skipped")
    skip("the model could not be fetched")


def read_header(path):
    """Tensors and their bytes, read without gm."""
    with open(path, "rb") as file:
        length, = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(length))
    header.pop("__metadata__", None)
    sizes = [tensor["data_offsets"][1] - tensor["data_offsets"][0] for tensor in header.values()]
    return len(sizes), sum(sizes)


def check_backend(gmem, backend):
    info = json.loads(subprocess.run([gmem, "info", "--json"], stdout=subprocess.PIPE, check=True).stdout)
    found = [entry for entry in info["backends"] if entry["type"] == backend]
    if found and found[0]["available"] and found[0]["devices"]:
        return
    why = "%s: %s" % (backend, found[0]["reason"] if found else "not built")
    if backend in os.environ.get("GM_REQUIRE_BACKENDS", "").split(","):
        sys.exit(why + " (and GM_REQUIRE_BACKENDS lists it)")
    skip(why)


def load(gmem, model, backend, path):
    command = [gmem, "load", model, "--backend", backend, "--path", path, "--verify", "--json"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit("%s: exit %d: %s" % (" ".join(command), done.returncode, done.stdout))
    return json.loads(done.stdout)


def check(answer, tensors, size, backend, path):
    expected = {
        "tensors": answer["tensors"] == tensors,
        "bytes": answer["bytes"] == size,
        "verified": answer["verified"] is True,
        "path": answer["path"] in (("read", "direct") if path == "auto" else (path,)),
        "seconds": answer["seconds"] > 0,
        "bytes_per_second": answer["bytes_per_second"] > 0,
        "fallback_bytes": answer["fallback_bytes"] == 0,
        "peak_host_bytes": 0 < answer["peak_host_bytes"] < size // 2,
        "placement": len(answer["placement"]) == 1 and answer["placement"][0]["backend"] == backend,
    }
    wrong = [name for name, right in expected.items() if not right]
    if wrong:
        sys.exit("%s, path %s: wrong %s in %s" % (backend, path, ", ".join(wrong), json.dumps(answer)))


def main():
    gmem, script, folder, backend, *paths = sys.argv[1:]
    model = fetch(script, folder)
    tensors, size = read_header(model)
    if (tensors, size) != (TENSORS_OF_MINILM, BYTES_OF_MINILM):
        sys.exit("the fetched file has %d tensors of %d bytes: not the one this test knows" % (tensors, size))
    check_backend(gmem, backend)
    for path in paths:
        check(load(gmem, model, backend, path), tensors, size, backend, path)
        print("%s, path %s: %d tensors, %d bytes, every byte verified" % (backend, path, tensors, size))


if __name__ == "__main__":
    main()
