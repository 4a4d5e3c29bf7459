#!/usr/bin/env python3
"""The work of `gmem fit` for each family's default configuration: work.py PROGRAM | work.py time GMEM

PROGRAM is fit_work. `gmem fit` shall take at most 100 ms. A test must not read a clock: it counts what the time goes
into. The limits are about twice the most that a family takes today. `time GMEM` is for people, with a release build: it
prints the families that take longest: processor time, each in its best of five runs."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
DEVICES = ("8G", "24G,24G,24G,24G")
LIMITS = {"tensors": 250_000, "layers": 20_000, "names": 3_000}


def write_configs(folder, lines):
    paths = [pathlib.Path(folder) / f"{number}.json" for number in range(len(lines))]
    for path, line in zip(paths, lines):
        path.write_text(json.dumps(line["config"]))
    return paths


def count(program, devices, paths):
    """Of each file the exit code, and the counts."""
    run = subprocess.run([program, devices, *paths], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                         timeout=300, check=True)
    rows = [line.split("\t") for line in run.stderr.splitlines() if line.count("\t") == len(LIMITS)]
    if len(rows) != len(paths):
        sys.exit(f"{len(rows)} answers to {len(paths)} configurations")
    return [[int(number) for number in row] for row in rows]


def check(program, lines, paths):
    wrong, most = [], dict.fromkeys(LIMITS, 0)
    for devices in DEVICES:
        for line, (_, *counts) in zip(lines, count(program, devices, paths)):
            for (what, limit), counted in zip(LIMITS.items(), counts):
                most[what] = max(most[what], counted)
                if counted > limit:
                    wrong.append(f"{line['family']} on {devices}: {counted} {what}, more than {limit}")
    wrong += [f"no family has {what}: they are not counted" for what, counted in most.items() if not counted]
    print(", ".join(f"at most {counted} {what}" for what, counted in most.items()))
    return wrong


def seconds(gmem, path, devices):
    """Processor time, which other programs of the machine hardly change."""
    child = subprocess.Popen([gmem, "fit", path, "--devices", devices], stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL)
    _, _, used = os.wait4(child.pid, 0)
    child.returncode = 0
    return used.ru_utime + used.ru_stime


def show_time(gmem, lines, paths):
    taken = [(min(seconds(gmem, path, devices) for _ in range(5)), line["family"], devices)
             for devices in DEVICES for line, path in zip(lines, paths)]
    for took, family, devices in sorted(taken, reverse=True)[:5]:
        print(f"{1000 * took:.1f} ms {family} --devices {devices}")
    return []


def main(words):
    lines = [json.loads(text) for text in (ROOT / "tests" / "data" / "families.jsonl").read_text().splitlines()]
    with tempfile.TemporaryDirectory() as folder:
        paths = write_configs(folder, lines)
        wrong = show_time(words[1], lines, paths) if words[0] == "time" else check(words[0], lines, paths)
    if wrong:
        sys.exit("\n".join(wrong))


main(sys.argv[1:])
