"""Runs one of the twins that valgrind runs by chance, and leaves as it does.

usage: by_chance.py BUILD PART PARTS

Of the tests with the label by_chance, in the order of their names, each PARTS-th from PART on may be it. The first line
names it and its seed. GM_TEST_SEED repeats the choice.
"""
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile


def twins(build):
    """ctest is asked from another folder: it would write over the log of the ctest that runs us."""
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "CTestTestfile.cmake").write_text(f'subdirs("{build}")\n', encoding="utf-8")
        words = ["ctest", "--test-dir", folder, "--show-only=json-v1", "-L", "^by_chance$"]
        told = subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout
    return sorted(json.loads(told)["tests"], key=lambda test: test["name"])


def main(build, part, parts):
    mine = twins(build)[int(part) - 1 :: int(parts)]
    if not mine:
        print("no test has the label by_chance")
        return 1
    seed = os.environ.get("GM_TEST_SEED") or str(random.SystemRandom().getrandbits(48))
    test = random.Random(int(seed)).choice(mine)
    print(f"by chance: GM_TEST_SEED={seed} {test['name']}", flush=True)
    about = {entry["name"]: entry["value"] for entry in test["properties"]}
    environment = dict(os.environ, **dict(pair.split("=", 1) for pair in about["ENVIRONMENT"]))
    return subprocess.run(test["command"], cwd=about["WORKING_DIRECTORY"], env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
