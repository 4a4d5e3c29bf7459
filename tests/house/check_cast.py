#!/usr/bin/env python3
"""Holds tests/support/README.md against the folder: it names each file, and no other.

usage: check_cast.py [ROOT]
"""
import os
import re
import sys


def main():
    folder = os.path.join(sys.argv[1] if len(sys.argv) > 1 else ".", "tests", "support")
    with open(os.path.join(folder, "README.md"), encoding="utf-8") as page:
        named = set(re.findall(r"`(\w+\.(?:h|c|py|supp))`", page.read()))
    there = {name for name in os.listdir(folder) if name.endswith((".h", ".c", ".py", ".supp"))}
    problems = [f"tests/support/{name}: README.md there does not name it" for name in sorted(there - named)]
    problems += [f"tests/support/README.md: there is no {name}" for name in sorted(named - there)]
    print("\n".join([*problems, f"{len(problems)} problems"]))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
