#!/usr/bin/env python3
"""Prints "holds" when a replay with the settings that `gmem advise --json` printed does what it said.

usage: advice_holds.py ADVICE_JSON TRACE      with $GMEM set
"""
import json
import os
import subprocess
import sys


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        advice = json.load(file)
    environment, strategy = dict(os.environ), "auto"
    for item in advice["advice"]:
        key, _, value = (item["setting"] or "").partition(" = ")
        if key == "allocation_strategy":
            strategy = value
        elif key:
            environment["GM_" + key.upper().replace(".", "_")] = value
    command = [os.environ["GMEM"], "replay", sys.argv[2], "--backend", "null", "--runs", "1", "--json",
               "--strategy", strategy] + ([] if advice["mapped_pages"] else ["--no-vmm"])
    got = json.loads(subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout)
    before, after = advice["before"], advice["after"]
    problems = [name for name, good in [
        ("driver_allocs", got["driver_allocs_cold"] == after["driver_allocs"]),
        ("peak_reserved", got["peak_reserved_bytes"] == after["peak_reserved_bytes"]),
        ("failed", got["failed"] == after["failed"] == 0),
        ("warm_up", got["driver_allocs_cold"] + after["warm_up_driver_allocs"] >= after["driver_allocs"]),
        ("no driver call left", after["driver_allocs"] == 0 < before["driver_allocs"] or not advice["mapped_pages"]),
        ("little more reserved", after["peak_reserved_bytes"] <= before["peak_reserved_bytes"] * 9 / 8 + (3 << 20)),
    ] if not good]
    print(f"differs: {', '.join(problems)}: {advice} {got}" if problems else "holds")


main()
