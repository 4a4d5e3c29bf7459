#!/usr/bin/env python3
"""The scripts say what they do when asked, refuse what they do not know, and start nothing in either case; the presets
that .ci/run names are there. usage: check_scripts.py ROOT"""
import json
import pathlib
import re
import subprocess
import sys


def run(root, *words):
    done = subprocess.run([root / words[0], *words[1:]], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout, done.stderr


def problems(root):
    for script in ("scripts/check", "scripts/check-abi", "scripts/check-engines", "scripts/check-fit", "scripts/check-spaces",
                   "scripts/gpu-check", "scripts/gpu-kit", "scripts/gpu-results", "scripts/mutate", "scripts/quickstart", "scripts/tidy",
                   "tests/seeded/run"):
        for option in ("--help", "-h"):
            code, out, _ = run(root, script, option)
            if code or script not in out:
                yield f"{script} {option}: exit code {code}, {len(out)} characters"
        code, out, err = run(root, script, "--no-such-option")
        if code != 2 or out or "usage" not in err:
            yield f"{script} --no-such-option: exit code {code}: {out}{err}"
    presets = json.loads((root / "CMakePresets.json").read_text())
    known = {preset["name"] for preset in presets["testPresets"]}
    calls = re.findall(r"(?:scripts/check --again|for preset in) ([a-z -]+)", (root / ".ci/run").read_text())
    if not calls:
        yield ".ci/run does not call scripts/check"
    for name in " ".join(calls).split():
        if name not in known:
            yield f".ci/run: there is no test preset {name}"


if __name__ == "__main__":
    found = list(problems(pathlib.Path(sys.argv[1]).resolve()))
    print("\n".join(found + [f"{len(found)} problems"]))
    sys.exit(1 if found else 0)
