#!/usr/bin/env python3
"""Fails when a file is under version control that is an output: one that .gitignore names.

usage: check_tracked.py [ROOT]      leaves with 77 where ROOT is no checkout
"""
import subprocess
import sys


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else "."
    command = ["git", "-C", root, "ls-files", "--cached", "--ignored", "--exclude-standard"]
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except FileNotFoundError:
        done = None
    if done is None or done.returncode:
        print("skipped: no git, or no checkout")
        return 77
    problems = [f"{path}: is an output, and under version control" for path in done.stdout.splitlines()]
    print("\n".join([*problems, f"{len(problems)} problems"]))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
