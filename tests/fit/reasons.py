#!/usr/bin/env python3
"""A case that fails says why: reasons.py PROGRAM CASE

Copies CASE, spoils one thing at a time, and wants gm_fit_cases to leave with 1 and to print FAILED with words that name
that thing. Before that the copy as it is must pass."""
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile


def edit(change):
    """Change measured.json: `change` gets the document."""

    def spoil(case):
        path = case / "measured.json"
        document = json.loads(path.read_text())
        change(document)
        path.write_text(json.dumps(document))

    return spoil


def every_run(**members):
    def change(document):
        for run in document["runs"]:
            run.update(members)

    return edit(change)


def first_run(change):
    return edit(lambda document: change(next(run for run in document["runs"] if "error" not in run)))


def first_gpu(change):
    return edit(lambda document: change(next(run for run in document["runs"]
                                             if run["mode"] == "sim-gpu" and "error" not in run)))


def add(member, buffer):
    """One byte more in a buffer of the first run on a device."""

    def change(run):
        run[member][buffer] += 1

    return first_gpu(change)


def as_it_is(_):
    pass


SPOILS = {
    "no header": (lambda case: (case / "header.gguf").unlink(), ["header.gguf", "no such file"]),
    "a header that ends": (lambda case: (case / "header.gguf").write_bytes(b"GGUF\3\0"), ["header.gguf"]),
    "no measurement": (lambda case: (case / "measured.json").unlink(), ["measured.json", "No such file"]),
    "no JSON": (lambda case: (case / "measured.json").write_text('{"runs": ['), ["measured.json", "JSON"]),
    "no parameters": (edit(lambda document: document["model"].pop("n_params")), ["model.n_params"]),
    "no runs": (edit(lambda document: document.pop("runs")), ["runs"]),
    "an empty list": (edit(lambda document: document["runs"].clear()), ["no run that counts"]),
    "only failed runs": (every_run(error="out of memory"), ["no run that counts"]),
    "a run without total": (first_run(lambda run: run.pop("total")), ["`total`", '"n_ctx"']),
    "a run without cache": (first_run(lambda run: run.pop("kv")), ["`kv`"]),
    "an unknown type": (first_run(lambda run: run.update(type_k="q9_9")), ["`type_k`", "q9_9"]),
    "a context that is text": (first_run(lambda run: run.update(n_ctx="4096")), ["`n_ctx`"]),
    "a refused run": (first_run(lambda run: run.update(n_ctx=1 << 40)), ["no estimate", "context"]),
    "other parameters": (edit(lambda document: document["model"].update(n_params=7)), ["parameters", "not exact"]),
    "other weights": (add("weights", "SIM0"), ["weights: not exact", '"sim-gpu"']),
    "another cache": (add("kv", "SIM0"), ["cache: not exact", '"sim-gpu"']),
    "another output": (first_gpu(lambda run: run.update(output=3)), ["output: not exact", "predicted", "measured 3"]),
    "other inputs": (add("compute", "SIM_Host"), ["host inputs: not exact"]),
    "another compute buffer": (first_gpu(lambda run: run["compute"].update(SIM0=1 << 40)), ["device compute: too far off"]),
    "another total": (first_gpu(lambda run: run.update(total=1)), ["total: 1 is outside", "total: off by more than 2 %"]),
}


def run(program, folder):
    answer = subprocess.run([program, str(folder)], capture_output=True, text=True)
    return answer.returncode, answer.stdout


def check(program, original, name, spoil, words):
    with tempfile.TemporaryDirectory() as folder:
        case = pathlib.Path(folder) / "case"
        shutil.copytree(original, case)
        for path in [case, *case.iterdir()]:
            path.chmod(0o755)
        spoil(case)
        code, printed = run(program, folder)
    if not words:
        return [] if code == 0 and "FAILED" not in printed else [f"{name}: leaves with {code}:\n{printed}"]
    reasons = "\n".join(line for line in printed.splitlines() if "FAILED" in line)
    missing = [word for word in words if word not in reasons]
    if code == 1 and not missing:
        return []
    return [f"{name}: leaves with {code}, without {missing}:\n{printed}"]


def main():
    program, original = sys.argv[1:]
    problems = check(program, original, "as it is", as_it_is, [])
    for name, (spoil, words) in SPOILS.items():
        problems += check(program, original, name, spoil, words)
    with tempfile.TemporaryDirectory() as folder:
        code, printed = run(program, folder)
        if code != 1 or "no case" not in printed:
            problems.append(f"an empty folder: leaves with {code}: {printed}")
    print("\n".join(problems) or f"{len(SPOILS) + 2} cases")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
