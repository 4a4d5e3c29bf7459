#!/usr/bin/env python3
"""Compares gm's predictions with the engine's own figures, for a small model of each architecture.

usage: sweep.py --measure PROGRAM --gmem GMEM [--light] [--page FILE [--write]] [--record FILE] [--keep FOLDER] [--verbose] [ARCHITECTURE...]
       sweep.py --measure PROGRAM --gmem GMEM --self-test

Exit code 1: some rows are not those of the page (with --write, it is made from the result), or without a page: the bars are
not reached. --light: the models that architectures.toml marks so. --record: writes the compute buffers that gm has exact, for the unit test that
holds gm to them. --self-test shows that a model that is not what gm is told
makes the comparison fail.
"""
import argparse
import collections
import pathlib
import sys
import tempfile

import compare
import report
import tiny_model
from engine import Engine

HERE = pathlib.Path(__file__).parent


def outcome_of(path, data, model, engine, gmem):
    try:
        keys, tensors = tiny_model.make(path, data, model, engine)
        widths = [shape[1] for name, shape in tensors if "ffn_up_exps" in name]
        keys |= {"expert_feed_forward_length": max(widths)} if widths else {}
    except tiny_model.Refused as refused:
        return report.Outcome(model, [], str(refused))
    windows = engine.memory(path, ["ctx=4096"])[0].get("window", 0)
    settings = [setting for setting in compare.SETTINGS if windows or "swa_full" not in setting[1]]
    return report.Outcome(model, compare.compare_all(path, engine, gmem, settings), "", keys,
                          [name for name, _ in tensors if name.startswith("blk.0.")])


def sweep(arguments, data, engine, gmem):
    outcomes = collections.defaultdict(list)
    with tempfile.TemporaryDirectory() as folder:
        for model in data["model"]:
            name = model["architecture"]
            if (arguments.light and not model.get("light")) or (arguments.names and name not in arguments.names):
                continue
            path = pathlib.Path(arguments.keep or folder) / f"{name}-{model.get('variant', 'plain')}.gguf".replace(" ", "-")
            outcome = outcome_of(str(path), data, model, engine, gmem)
            outcomes[name].append(outcome)
            print(report.line(outcome), flush=True)
            if arguments.verbose:
                print(report.details(outcome), end="")
            if not arguments.keep:
                path.unlink(missing_ok=True)
    return outcomes


# The falsehood that gm is told in place of the truth, and the figure that then has to be wrong: keys, or the rows of a tensor.
LIES = [
    ({}, None),
    ({"attention.head_count_kv": 8}, "cache"),
    ({"attention.key_length": 128}, "cache"),
    ({"block_count": 23}, "cache"),
    ({"blk.3.ffn_up.weight": 3104}, "weights"),
    ({"embedding_length": 4096}, "compute"),
]


def self_test(engine, gmem):
    """Each lie has to end in a wrong figure (or in a refusal of gm's), and the truth must not."""
    data, setting, problems = tiny_model.read_architectures(HERE / "architectures.toml"), compare.SETTINGS[0], 0
    with tempfile.TemporaryDirectory() as folder:
        honest, told = f"{folder}/model.gguf", f"{folder}/told.gguf"
        keys, tensors = tiny_model.make(honest, data, {"architecture": "llama"}, engine)
        measured = engine.memory(honest, [setting[1]])[0]
        for lie, part in LIES:
            lied = [(name, [shape[0], lie[name]] if name in lie else shape) for name, shape in tensors]
            names = {name for name, _ in tensors}
            others = {name: value for name, value in lie.items() if name not in names}
            tiny_model.write(told, "llama", keys | others, lied)
            run = compare.compare(setting, measured, gmem, told)
            verdict = run.verdict(part) if part else run.verdict(*report.PARTS)
            good = verdict in (compare.WRONG, compare.UNKNOWN) if part else verdict in (compare.EXACT, compare.INTERVAL)
            print(f"{lie or 'the truth'}: {part or 'everything'} {verdict}{'' if good else ': THAT IS NOT SEEN'}")
            problems += not good
    print(f"{len(LIES)} cases, {problems} problems")
    return 1 if problems else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--measure", required=True)
    parser.add_argument("--gmem", required=True)
    parser.add_argument("--light", action="store_true")
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--self-test", action="store_true")
    parser.add_argument("--page", type=pathlib.Path)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--record", type=pathlib.Path)
    parser.add_argument("--keep")
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    engine, gmem = Engine(arguments.measure), compare.Gmem(arguments.gmem)
    if arguments.self_test:
        return self_test(engine, gmem)
    data = tiny_model.read_architectures(HERE / "architectures.toml")
    outcomes = sweep(arguments, data, engine, gmem)
    text, reached = report.bars(outcomes)
    if arguments.record:
        arguments.record.write_text(report.record(data["base"], outcomes), encoding="utf-8")
    print(text)
    if not arguments.page:
        return 0 if reached else 1
    if arguments.write:
        arguments.page.write_text(report.page(data, outcomes), encoding="utf-8")
        return 0
    changed = report.changed(arguments.page.read_text(encoding="utf-8"), outcomes)
    print("\n".join(changed + [f"{len(changed)} rows are not those of {arguments.page}"]))
    return 1 if changed else 0


if __name__ == "__main__":
    sys.exit(main())
