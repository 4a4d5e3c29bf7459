#!/usr/bin/env python3
"""Holds every command line that gmem fit prints to what llama.cpp's programs accept.

usage: commands.py GMEM [--parser PROGRAM]

Without --parser the lines are held to engine_options.txt, which was recorded from the engine's own parser. With it that
parser (integrations/ggml/engine/arguments.cpp) reads each line, too. Prints how many lines were held. GM_FIT_EVERY=1: all
models of tests/data/fit, not three.
"""
import itertools
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
MODELS = ["llama-3.2-1b.BF16", "mixtral-8x7b.F16", "all-minilm-l6-v2.F16"]
DEVICES = ["--devices 8G --host 99G", "--devices 2G,2G --host 99G", "--devices 0 --host 99G",
           "--devices " + ",".join(["900M"] * 15) + " --spread", "--devices " + ",".join(["99G"] * 16)]
SETTINGS = ["", "--kv-type q8_0", "--seqs 4 --batch 256", "--seqs 4 --separate --no-flash", "--ctx 8K --batch 2048 --micro-batch 512",
            "--n-cpu-moe 3", "--full-windows",
            "--mmproj @/projector.gguf --draft @/draft.gguf", "--lora @/adapter.gguf --lora @/its,\"second\".gguf",
            "--override-tensor blk.[0-9].ffn_(up|down)_exps=CPU,output=CPU"]
FILES = {"projector.gguf": "general.architecture=clip clip.projector_type=mlp v.a:1x32", "its,\"second\".gguf": None,
         "adapter.gguf": "general.architecture=llama general.type=adapter blk.0.attn_q.weight.lora_a:1x32"}


def recorded():
    """{program: {word: (kind, allowed values, most elements)}}"""
    options = {}
    for line in (HERE / "engine_options.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            continue
        program, word, *rest = line.split()
        kinds = options.setdefault(program, {})
        if rest[0] == "=":
            kinds[word][1].add(rest[1])
        elif rest[0] == "<":
            kinds[word][2] = int(rest[1])
        else:
            kinds[word] = [rest[0], set(), None]
    return options


def value_problem(word, kind, allowed, count, value):
    if kind == "int" and not (re.fullmatch(r"-?[0-9]+", value) and -2**31 <= int(value) < 2**31):
        return f"{word} takes an int, not {value}"
    if allowed and value not in allowed:
        return f"{word} takes {sorted(allowed)}, not {value}"
    if count and len(value.split(",")) >= count:
        return f"{word} takes fewer than {count} elements, not {value}"
    return None


def problem_of(words, options):
    """Why the program would refuse the line; None: it would not."""
    program, *rest = words
    if program not in options:
        return f"there is no program {program}"
    rest, seen = list(rest), set()
    while rest:
        word = rest.pop(0)
        if word not in options[program]:
            return f"{program} has no {word}"
        if word in seen:
            return f"{word} comes twice, and the last one alone counts"
        seen.add(word)
        kind, allowed, count = options[program][word]
        values = {"none": 0, "int": 1, "text": 1, "two": 2}[kind]
        if len(rest) < values:
            return f"{word} has no value"
        for value in [rest.pop(0) for _ in range(values)]:
            problem = value_problem(word, kind, allowed, count, value)
            if problem:
                return problem
    return None


def selftest(options):
    """Lines that the engine refuses, and refused when they were tried: a check that takes one of them is worth nothing."""
    for line in ["llama-cli -m x -kvu", "llama-cli -m x --draft 4", "llama-cli -m x -c 3000000000", "llama-cli -m x -ctk f8_e4m3",
                 "llama-cli -m x -ts " + ",".join(["1"] * 16), "llama-cli -m x -c", "llama-run -m x", "llama-cli -m x -fa maybe"]:
        if problem_of(line.split(), options) is None:
            raise SystemExit(f"taken, and the engine refuses it: {line}")


def same_version():
    check = (ROOT / "integrations/ggml/check").read_text(encoding="utf-8")
    version = re.search(r"^version=(\S+)$", check, re.M).group(1)
    if f"(llama-cpp-python {version})" not in (HERE / "engine_options.txt").read_text(encoding="utf-8").splitlines()[0]:
        raise SystemExit(f"engine_options.txt is not of {version}: run integrations/ggml/check_commands")


def write_files(place, folder):
    for name, words in FILES.items():
        writer = [sys.executable, str(ROOT / "tests/cli/write_gguf.py"), f"{place}/{name}"]
        subprocess.run(writer + (words or FILES["adapter.gguf"]).split(), check=True)
    pathlib.Path(place, "draft.gguf").symlink_to(folder / "smollm2-135m.Q8_0/header.gguf")


def command_of(gmem, model, words):
    place = str(pathlib.Path(model).parent)
    words = [word.replace("@", place) for word in words.split()]
    done = subprocess.run([gmem, "fit", model, *words, "--json"], capture_output=True, text=True)
    answer = json.loads(done.stdout)
    if done.returncode and "another architecture" in answer["error"]:
        return None
    if done.returncode:
        raise SystemExit(f"gmem fit {model} {words}: {answer['error']}")
    return answer["command"]


def main():
    gmem = sys.argv[1]
    parser = sys.argv[sys.argv.index("--parser") + 1] if "--parser" in sys.argv else None
    options = recorded()
    selftest(options)
    same_version()
    folder = ROOT / "tests/data/fit"
    models = sorted(path.name for path in folder.iterdir()) if os.environ.get("GM_FIT_EVERY") else MODELS
    lines, problems = {}, []
    with tempfile.TemporaryDirectory(prefix="gm_commands_") as place:
        name = pathlib.Path(place) / "it's a model.gguf"
        write_files(place, folder)
        for model, devices, settings in itertools.product(models, DEVICES, SETTINGS):
            name.unlink(missing_ok=True)
            name.symlink_to(folder / model / "header.gguf")
            line = command_of(gmem, str(name), f"{devices} {settings}")
            if line:
                lines[line] = f"{model} {devices} {settings}"
    for line, origin in lines.items():
        words = shlex.split(line)
        problem = problem_of(words, options)
        if not problem and parser:
            done = subprocess.run([parser, *words], capture_output=True, text=True)
            problem = f"the parser: {done.stderr}" if done.returncode else None
        if problem:
            problems.append(f"{origin}: {line}: {problem}")
    print("\n".join(problems))
    used = {word for line in lines for word in shlex.split(line) if word.startswith("-")}
    wanted = {"-ngl", "-ts", "-c", "-b", "-ub", "-ctk", "-ctv", "-fa", "-np", "-kvu", "-ncmoe", "--embedding", "--swa-full",
              "--mmproj", "-md", "-ngld", "--spec-type", "--lora", "-ot"}
    if not wanted <= used:
        print(f"no line has {sorted(wanted - used)}")
    print(f"{len(lines)} lines held to {'the parser' if parser else 'what was recorded'}, {len(problems)} refused")
    return 0 if lines and not problems and wanted <= used else 1


if __name__ == "__main__":
    sys.exit(main())
