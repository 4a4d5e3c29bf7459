#!/usr/bin/env python3
"""gm's counts in the recorded configurations of families: families.py PROGRAM [write]

Reads tests/data/families.jsonl, which scripts/record-families made. PROGRAM is print_parameters. A count that calls
itself exact must be that of the model class; any other must call itself unknown. The table of docs/fit-families.md must
say what came out; with `write` it is written."""
import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PAGE = ROOT / "docs" / "fit-families.md"
HEAD = "| `model_type` | class | parameters of the class | gm counts |\n|---|---|---|---|\n"


def ask(program, configs):
    """Parameters, standing and reason of each."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [pathlib.Path(folder) / f"{number}.json" for number in range(len(configs))]
        for path, config in zip(paths, configs):
            path.write_text(json.dumps(config))
        run = subprocess.run([program, *paths], capture_output=True, text=True, timeout=120, check=True)
        lines = [line.split("\t") for line in run.stdout.splitlines()]
        if len(lines) != len(configs):
            sys.exit(f"{len(lines)} answers to {len(configs)} configurations")
        return [(int(count), standing, why.replace(f"{path}: ", ""))
                for path, (count, standing, why) in zip(paths, lines)]


def row(line, count, standing, why):
    told = "equal" if standing == "exact" and count == line["parameters"] else f"{standing}: {why}"
    return f"| `{line['family']}` | `{line['class']}` | {line['parameters']:,} | {told} |\n"


def main(program, write):
    lines = [json.loads(text) for text in (ROOT / "tests" / "data" / "families.jsonl").read_text().splitlines()]
    tries = [(line, which) for line in lines for which in ("", "varied") if not which or which in line]
    answers = ask(program, [line[which]["config"] if which else line["config"] for line, which in tries])
    table, wrong = HEAD, []
    for (line, which), (count, standing, why) in zip(tries, answers):
        right = line[which]["parameters"] if which else line["parameters"]
        if standing == "interval" or (standing == "exact" and count != right):
            wrong.append(f"{line['family']} {which}: {count} is called {standing}, {right} is right")
        if not which:
            table += row(line, count, standing, why)
    text = PAGE.read_text()
    start = text.index(HEAD)
    if write:
        PAGE.write_text(text[:start] + table)
    elif text[start:] != table:
        wrong.append("docs/fit-families.md does not say what gm says: write it anew with families.py PROGRAM write")
    print(f"{table.count('| equal |')} of {len(lines)} families have the parameters of their class")
    if wrong:
        sys.exit("\n".join(wrong))


main(sys.argv[1], sys.argv[2:] == ["write"])
