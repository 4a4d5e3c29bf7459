#!/usr/bin/env python3
"""Fails when the pages and the code do not say the same.

usage: check_docs.py [--root ROOT] links               every relative link of every *.md leads somewhere
       check_docs.py [--root ROOT] functions           every public function is in a page of docs/
       check_docs.py [--root ROOT] names               every gm_name and GM_NAME of docs/ is somewhere in the code
       check_docs.py [--root ROOT] errors              docs/errors.md has each status with its number and text
       check_docs.py [--root ROOT] statistics          docs/statistics.md has each field
       check_docs.py [--root ROOT] fields GMEM WRITE_TIER
                                                       docs/gmem.md names each JSON field of each command that `gmem help` lists
       check_docs.py [--root ROOT] architectures       docs/fit.md has a measured row for each architecture of core/fit/op_rows.c, or
                                                       docs/fit-sweep.md one with an exact compute buffer
       check_docs.py [--root ROOT] options             docs/install.md names each option of cmake/GmOptions.cmake
       check_docs.py [--root ROOT] configuration PROGRAM [write]
                                                       docs/configuration.md has what print_config prints; or is given it
       check_docs.py [--root ROOT] pitfalls            docs/pitfalls.md names tests that there are, and each of the files
                                                       test_pitfalls_*.c
       check_docs.py [--root ROOT] samples             what `gmem info` prints is shown whole in README.md and docs/, or said to be
                                                       (shortened)
       check_docs.py [--root ROOT] engines             docs/engines.md shows code of integrations/ and examples/minilm/, with true line counts
       check_docs.py [--root ROOT] snippets COMPILER   each ```c block of docs/ and README.md compiles
"""
import json
import os
import re
import subprocess
import sys
import tempfile

LINK = re.compile(r"\[[^\]\n]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```.*?^```[ ]*$", re.S | re.M)
BEGIN, END = "<!-- begin: print_config -->\n", "<!-- end: print_config -->"


def read(*parts):
    with open(os.path.join(*parts), encoding="utf-8") as file:
        return file.read()


def pages(root):
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(f for f in folders if not f.startswith(".") and f != "build")
        yield from (os.path.join(folder, name) for name in sorted(names) if name.endswith(".md"))


def headers(root):
    folder = os.path.join(root, "include", "gm")
    return {name: read(folder, name) for name in sorted(os.listdir(folder)) if name.endswith(".h")}


def anchors(text):
    """The names that headings get on the pages of a code host."""
    titles = re.findall(r"^#+ +(.*)$", FENCE.sub("", text), re.M)
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}


def check_links(root):
    for page in pages(root):
        text = read(page)
        for target in LINK.findall(FENCE.sub("", text)):
            if re.match(r"[a-z]+:", target):
                continue
            path, _, anchor = target.partition("#")
            whole = os.path.join(os.path.dirname(page), path) if path else page
            if not os.path.exists(whole):
                yield f"{os.path.relpath(page, root)}: {target} leads nowhere"
            elif anchor and whole.endswith(".md") and anchor not in anchors(read(whole)):
                yield f"{os.path.relpath(page, root)}: {target}: there is no such heading"


def check_functions(root):
    text = "".join(read(page) for page in pages(os.path.join(root, "docs")))
    known = set(re.findall(r"\w+", text))
    for header, code in headers(root).items():
        for name in re.findall(r"^GM_API[^;(]*?(\w+)\s*\(", code, re.M):
            if name not in known:
                yield f"{header}: {name} is in no page of docs/"


def code_words(root):
    words = set()
    for top in ("include", "core", "backends", "tools", "tests", "examples", "integrations", "bench", "cmake", "scripts", ".ci"):
        for folder, _, names in os.walk(os.path.join(root, top)):
            for name in (n for n in names if not n.endswith((".md", ".gz", ".json"))):
                with open(os.path.join(folder, name), encoding="utf-8", errors="replace") as file:
                    words.update(re.findall(r"\w+", file.read()))
                words.add(name.partition(".")[0])
    return words


def check_names(root):
    known = code_words(root)
    made = re.compile(r"GM_(BACKEND_\w+|\w+_(LIBRARY|OPTIONS))")  # from parts
    for page in pages(os.path.join(root, "docs")):
        for name in sorted(set(re.findall(r"\b(?:gm|GM)_\w*[A-Za-z0-9]", read(page)))):
            if name not in known and not made.fullmatch(name) and not any(w.startswith(name + "_") for w in known):
                yield f"{os.path.relpath(page, root)}: there is no {name}"


def check_pitfalls(root):
    named = set(re.findall(r"`(test_\w+)`", read(root, "docs", "pitfalls.md")))
    there, wanted = set(), set()
    for folder, _, names in os.walk(os.path.join(root, "tests")):
        for name in (n for n in names if n.endswith(".c")):
            tests = set(re.findall(r"cmocka_unit_test\w*\((test_\w+)", read(folder, name)))
            there |= tests
            if name.startswith("test_pitfalls_"):
                wanted |= tests
    yield from (f"pitfalls.md: there is no {name}" for name in sorted(named - there))
    yield from (f"pitfalls.md: {name} is missing" for name in sorted(wanted - named) if "every_output" not in name)


def check_errors(root):
    page = read(root, "docs", "errors.md")
    for name, number, text in re.findall(r'X\((GM_\w+), (\d+), "([^"]*)"\)', headers(root)["status.h"]):
        if f"| {number} | `{name}` | {text} |" not in page:
            yield f"docs/errors.md: no row `| {number} | `{name}` | {text} |`"


def check_statistics(root):
    page = read(root, "docs", "statistics.md")
    for name in re.findall(r'X\((\w+), *"', headers(root)["stats.h"]):
        if f"| `{name}` |" not in page:
            yield f"docs/statistics.md: no row for `{name}`"


def keys(value):
    if isinstance(value, dict):
        yield from value
    children = value.values() if isinstance(value, dict) else value if isinstance(value, list) else []
    for child in children:
        yield from keys(child)


DIMS = "4096,14336,32,32000,32,8"
TRACE = "gmtrace 1\nm start\na 1 4096 0\na 2 100000 1\nf 1\na 7 4096 0\nf 7 1\nm end\n"
LEAK = "gmtrace 1\nm start\n" + "".join(f"a {i} 4194304 0\n" for i in range(1, 1100)) + "m end\n"
IMAGE = b'{"model.diffusion_model.w":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}}'
TENSORS = b'{"t":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}}'
FIELDS = {  # of each command: lines that give every field, in a folder with the files that fields_files makes
    "info": ["info", "info --level active"],
    "select": ["select --bytes 1M", "select --bytes 8000T"],
    "fit": [f"fit --dims {DIMS} --devices 8G --explain", f"fit --dims {DIMS} --devices 80G,80G", "fit tiny.safetensors --devices 8G",
            "fit image.safetensors --devices 8G"],
    "load": ["load tiny.safetensors --backend cpu --verify", "load tiny.safetensors --backend null --check-fit"],
    "save": ["save tiny.safetensors out.gguf"],
    "replay": ["replay trace --backend null", "replay trace --backend null --min-capacity --record out"],
    "advise": ["advise trace", "advise leak --capacity 1G"],
    "report": ["report trace -o out.html"],
    "bench": ["bench calls metadata --trace trace --runs 1 --pairs 100"],
    "store": ["store ls kv.gmtier", "store stat kv.gmtier", "store check kv.gmtier", "store check cut.gmtier"],
    "help": [],  # it has no JSON
}


def fields_files(folder, write_tier):
    tensors = len(TENSORS).to_bytes(8, "little") + TENSORS + bytes(16)
    image = len(IMAGE).to_bytes(8, "little") + IMAGE + bytes(16)
    for name, content in (("trace", TRACE.encode()), ("leak", LEAK.encode()), ("tiny.safetensors", tensors),
                          ("image.safetensors", image)):
        with open(os.path.join(folder, name), "wb") as file:
            file.write(content)
    for name in ("kv.gmtier", "cut.gmtier"):
        subprocess.run([write_tier, name, "a=3000000", "b=24"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    with open(os.path.join(folder, "cut.gmtier"), "r+b") as file:  # its first value is not what was put
        file.seek(100000)
        file.write(b"damage")


def fields_of(gmem, folder, line):
    done = subprocess.run([gmem, *line.split(), "--json"], cwd=folder, capture_output=True, text=True)
    try:
        return set(keys(json.loads(done.stdout)))
    except ValueError:
        return {f"(no JSON: {done.stderr.strip()[:200]})"}


def check_fields(root, gmem, write_tier):
    page, gmem, write_tier = read(root, "docs", "gmem.md"), os.path.abspath(gmem), os.path.abspath(write_tier)
    general = set(re.findall(r"`\"?(\w+)\"?`", page[:page.index("\n## ")]))
    listed = subprocess.run([gmem, "help"], capture_output=True, text=True).stdout
    commands = re.findall(r"^  (\w+) ", listed[listed.index("Commands:"):], re.M)
    if len(commands) < 5:
        yield "`gmem help` lists no commands"
    with tempfile.TemporaryDirectory() as folder:
        fields_files(folder, write_tier)
        for command in commands:
            if command not in FIELDS:
                yield f"check_docs.py: FIELDS has no line for `gmem {command}`"
            section = re.search(rf"^## gmem {command}$(.*?)(?=^## |\Z)", page, re.S | re.M)
            named = set(re.findall(r"`(\w+)(?:\[\])?`", section[1])) if section else set()
            found = set()
            if command == "bench" and not os.path.exists(os.path.join(os.path.dirname(gmem), "gm_bench")):
                print("gmem bench: not looked at, this build has no gm_bench")
                continue
            for line in FIELDS.get(command, []):
                keys_of_line = fields_of(gmem, folder, line)
                if keys_of_line <= {"error"}:
                    yield f"`gmem {line} --json` gives no fields"
                found |= keys_of_line
            for key in sorted(found - named - general):
                yield f"docs/gmem.md: `gmem {command} --json` has `{key}`, which is not in its section"


UNMEASURED = {"olmo2", "gemma", "command-r"}  # the list may only shrink


def check_architectures(root):
    page = read(root, "docs", "fit.md")
    measured = set(re.findall(r"^\| ([\w-]+) \| \d+ \| operations \|", page, re.M))
    listed = re.findall(r'\{\.architecture = "([^"]+)"([^}]*)\}', read(root, "core", "fit", "op_rows.c"))
    rows = {name for name, traits in listed if not re.search(r"\.(unordered|loose)", traits)}
    swept = set(re.findall(r"^\| ([\w-]+)(?: \([^)]*\))? \|(?: \w+ \|){2} exact \|", read(root, "docs", "fit-sweep.md"), re.M))
    for name in sorted(rows - measured - swept - UNMEASURED):
        yield f"docs/fit.md: op_rows.c has `{name}`, and nobody has measured it: a case for gm_fit_cases, and its row here"
    for name in sorted(measured - rows):
        yield f"docs/fit.md: `{name}` is said to have operations, and is not in op_rows.c"
    for name in sorted(n for n in UNMEASURED if n in measured or n not in rows or f"`{n}`" not in page):
        yield f"docs/fit.md: `{name}` is said to be the one without a measured file, and is not"


def check_options(root):
    named = set(re.findall(r"`(\w+)`", read(root, "docs", "install.md")))
    code = read(root, "cmake", "GmOptions.cmake")
    options = set(re.findall(r"^\s*(?:option|set)\((\w+) [^\n]*?(?:ON|OFF|CACHE|\})", code, re.M))
    listed = re.search(r"foreach\(name ([A-Z ]+)\)", code)
    options |= {f"GM_BACKEND_{name}" for name in listed[1].split()} if listed else set()
    for name in sorted(o for o in options if re.match(r"GM_|BUILD_", o)):
        if name not in named:
            yield f"docs/install.md: no `{name}` of cmake/GmOptions.cmake"


def check_configuration(root, program, mode="check"):
    wanted = subprocess.run([program], check=True, capture_output=True, text=True).stdout
    page = read(root, "docs", "configuration.md")
    if BEGIN not in page or END not in page:
        yield "docs/configuration.md: the marks of the generated part are missing"
        return
    (head, rest), tail = page.split(BEGIN), page.split(END)[1]
    if rest.split(END)[0] == wanted:
        return
    if mode == "write":
        with open(os.path.join(root, "docs", "configuration.md"), "w", encoding="utf-8") as file:
            file.write(head + BEGIN + wanted + END + tail)
    else:
        yield ("docs/configuration.md: the part between the marks is not what print_config prints; "
               f"run tests/docs/check_docs.py configuration {program} write")


def check_samples(root):
    rows = ("CPU", "CUDA", "HIP", "OpenCL", "Vulkan", "Metal", "null", "Recommended:", "Host:")
    for page in (p for p in [os.path.join(root, "README.md"), *pages(os.path.join(root, "docs"))] if os.path.exists(p)):
        for sample in re.finditer(r"(.*)\n\n((?:    .*\n)*    === gm backends ===\n(?:    .*\n)*)", read(page)):
            missing = [row for row in rows if not re.search(rf"^    (?:\S )?{row}", sample[2], re.M)]
            if missing and "(shortened)" not in sample[1]:
                yield f"{os.path.relpath(page, root)}: a sample without {', '.join(missing)} is not said to be (shortened)"


def flat(text):
    return "\n".join(line.strip() for line in text.strip().splitlines())


def check_engines(root):
    folder = os.path.join(root, "integrations")
    files = [os.path.join(top, name) for place in (folder, os.path.join(root, "examples", "minilm"))
             for top, _, names in os.walk(place) for name in names if not name.endswith(".md")]
    code = [flat(read(path)) for path in files if not path.endswith(".pyc")]
    page = read(root, "docs", "engines.md")
    for block in re.finditer(r"^```(?:python|cpp)\n(.*?)^```", page, re.S | re.M):
        if not any(flat(block[1]) in text for text in code):
            yield f"docs/engines.md:{page.count(chr(10), 0, block.start()) + 1}: this code is in no file of integrations/ or examples/minilm/"
    rows = re.findall(r"^\| \[([\w ]+)\]\(#.*\| (\d+) \|$", page, re.M) + re.findall(
        r"^\| \[`(\w+)`\].*\| (\d+) \|$", read(folder, "README.md"), re.M)
    rows += [("shared", count) for count in re.findall(r"on top, once: (\d+) lines", page)]
    for name, count in rows:
        path = os.path.join(folder, {"pytorch": "torch"}.get(name.lower(), name.lower().replace(" ", "")))
        true = subprocess.run([sys.executable, os.path.join(folder, "count_glue.py"), path], capture_output=True, text=True)
        if true.stdout.strip() != count:
            yield f"{name}: {true.stdout.strip()} lines of glue, the page says {count}"


def check_snippets(root, compiler):
    prelude = "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n"
    prelude += "".join(f'#include "gm/{name}"\n' for name in headers(root))
    command = [compiler, "-std=c11", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-Wno-unused-function",
               "-I", os.path.join(root, "include"), "-x", "c", "-"]
    candidates = [os.path.join(root, "README.md"), *pages(os.path.join(root, "docs"))]
    for page in (p for p in candidates if os.path.exists(p)):
        text = read(page)
        for block in re.finditer(r"^```c\n(.*?)^```", text, re.S | re.M):
            line = text.count("\n", 0, block.start(1)) + 1
            source = f'{prelude}#line {line} "{os.path.relpath(page, root)}"\n{block.group(1)}'
            done = subprocess.run(command, input=source, capture_output=True, text=True)
            if done.returncode:
                yield done.stderr.strip()


CHECKS = {"links": check_links, "functions": check_functions, "names": check_names, "errors": check_errors,
          "pitfalls": check_pitfalls, "samples": check_samples, "statistics": check_statistics, "fields": check_fields, "options": check_options,
          "architectures": check_architectures,
          "configuration": check_configuration, "engines": check_engines,
          "snippets": check_snippets}


def main():
    arguments, root = sys.argv[1:], "."
    if arguments[:1] == ["--root"]:
        root, arguments = arguments[1], arguments[2:]
    if not arguments or arguments[0] not in CHECKS:
        print(__doc__, file=sys.stderr)
        return 2
    problems = list(CHECKS[arguments[0]](root, *arguments[1:]))
    print("\n".join([*problems, f"{len(problems)} problems"]))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
