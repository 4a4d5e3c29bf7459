#!/usr/bin/env python3
"""Runs command-line cases: run.py [--update] --gmem PROGRAM CASE_FOLDER...

A case is a folder with
  cmd          a bash script, run in an empty folder of its own, with $GMEM, $TRACES, $DATA, $TOOLS,
               $MODEL (the demo model) and $WRITE_TIER (write_tier.c) set
  exit         the exit code it must leave with (no file: 0)
  stdout       what it must print, exactly; or
  stdout.glob  the same line by line, with * and ? (a line of "..." stands for any number of lines); or
  shape.json   standard output must be one JSON object of this shape
  stderr.glob  as stdout.glob, for standard error; no file: it must stay empty
  needs        words, one to a line: a backend, or zlib, model: where that is missing the case is skipped

Shapes: "string", "number", "integer" (0 to 2^64-1), "bool", "any"; a leading "?" also allows null; {"=": value} is that
value; {"in": [...]} one of these; [shape] any number of elements of that shape; an object needs each key, more are fine.
With --update the file `stdout` of a case is written instead of compared. Leaves with 0, 1, or 77 when a case was skipped.
"""
import argparse
import fnmatch
import json
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent


class Skip(Exception):
    pass


def text_of(path, default=None):
    return path.read_text() if path.is_file() else default


def no_duplicates(pairs):
    names = [name for name, _ in pairs]
    if len(set(names)) != len(names):
        raise ValueError(f"a key twice in {names}")
    return dict(pairs)


def shape_problems(shape, value, at="$"):
    if isinstance(shape, str):
        if shape.startswith("?"):
            return [] if value is None else shape_problems(shape[1:], value, at)
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        good = {"string": isinstance(value, str), "number": number, "bool": isinstance(value, bool), "any": True,
                "integer": number and isinstance(value, int) and 0 <= value < 2**64}[shape]
        return [] if good else [f"{at} is {value!r}, not {shape}"]
    if isinstance(shape, list):
        if not isinstance(value, list):
            return [f"{at} is no array"]
        return [p for i, item in enumerate(value) for p in shape_problems(shape[0], item, f"{at}[{i}]")]
    if "=" in shape:
        return [] if value == shape["="] and type(value) is type(shape["="]) else [f"{at} is {value!r}"]
    if "in" in shape:
        return [] if value in shape["in"] else [f"{at} is {value!r}, none of {shape['in']}"]
    if not isinstance(value, dict):
        return [f"{at} is no object"]
    return [p for key, inner in shape.items() for p in
            (shape_problems(inner, value[key], f"{at}.{key}") if key in value else [f"{at}.{key} is missing"])]


def glob_matches(patterns, lines):
    if not patterns:
        return not lines
    if patterns[0] == "...":
        return any(glob_matches(patterns[1:], lines[i:]) for i in range(len(lines) + 1))
    return bool(lines) and fnmatch.fnmatchcase(lines[0], patterns[0].replace("[", "[[]")) and \
        glob_matches(patterns[1:], lines[1:])


def difference(what, wanted, got):
    return [f"{what} is not as wanted\n--- wanted\n{wanted}--- got\n{got}---"]


def json_problems(case, stdout):
    try:
        value = json.loads(stdout, object_pairs_hook=no_duplicates,
                           parse_constant=lambda word: (_ for _ in ()).throw(ValueError(word)))
    except ValueError as error:
        return [f"standard output is no JSON: {error}\n{stdout}"]
    return shape_problems(json.loads((case / "shape.json").read_text()), value)


def stdout_problems(case, stdout):
    exact, pattern = text_of(case / "stdout"), text_of(case / "stdout.glob")
    if (case / "shape.json").is_file():
        return json_problems(case, stdout)
    if pattern is not None:
        good = glob_matches(pattern.splitlines(), stdout.splitlines())
        return [] if good else difference("standard output", pattern, stdout)
    return [] if stdout == (exact or "") else difference("standard output", exact or "", stdout)


def stderr_problems(case, stderr):
    pattern = text_of(case / "stderr.glob", "")
    good = glob_matches(pattern.splitlines(), stderr.splitlines())
    return [] if good else difference("standard error", pattern, stderr)


def check_needs(case, gmem, environment):
    words = text_of(case / "needs", "").split()
    if not words:
        return
    info = json.loads(subprocess.run([gmem, "info", "--json"], env=environment, check=True, capture_output=True).stdout)
    have = {b["name"] for b in info["backends"] if b["available"]}
    have |= {o["library"] for o in info["optional"] if o["found"]}
    if os.path.exists(environment["MODEL"]):
        have.add("model")
    for word in words:
        if word in have:
            continue
        if word in os.environ.get("GM_REQUIRE_BACKENDS", "").split(","):
            raise AssertionError(f"{word} must be there (GM_REQUIRE_BACKENDS) and is not")
        raise Skip(f"{word} is not here")


def run_case(case, gmem, update):
    kept = {"GM_RESERVE_FOLDER", "GM_LINKS_FOLDER"}  # nobody else's promises, and nothing kept of links
    environment = {name: value for name, value in os.environ.items() if name in kept or not name.startswith("GM_")}
    environment.update(GMEM=gmem, TRACES=str(ROOT / "bench/traces"), DATA=str(ROOT / "tests"), TOOLS=str(HERE),
                       MODEL=os.environ.get("GM_DEMO_MODEL", ""))
    check_needs(case, gmem, environment)
    with tempfile.TemporaryDirectory(prefix="gm_cli_") as folder:
        done = subprocess.run(["bash", "-eu", str(case / "cmd")], cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                              capture_output=True, timeout=240)
    stdout, stderr = done.stdout.decode("utf-8"), done.stderr.decode("utf-8")
    wanted = int(text_of(case / "exit", "0"))
    problems = [] if done.returncode == wanted else [f"left with {done.returncode}, not {wanted}\n{stderr}"]
    if update and not problems and not any((case / name).exists() for name in ("shape.json", "stdout.glob")):
        (case / "stdout").write_text(stdout)
    return problems + stdout_problems(case, stdout) + stderr_problems(case, stderr)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--gmem", required=True)
    parser.add_argument("cases", nargs="+", type=pathlib.Path)
    arguments = parser.parse_args()
    failed = skipped = 0
    for case in (path.resolve() for path in arguments.cases):
        try:
            problems = run_case(case, os.path.abspath(arguments.gmem), arguments.update)
        except Skip as reason:
            print(f"{case.name}: skipped, {reason}")
            skipped += 1
            continue
        except (AssertionError, subprocess.SubprocessError, UnicodeDecodeError) as error:
            problems = [str(error)]
        for problem in problems:
            print(f"{case.name}: {problem}")
        failed += bool(problems)
    return 1 if failed else 77 if skipped else 0


if __name__ == "__main__":
    sys.exit(main())
