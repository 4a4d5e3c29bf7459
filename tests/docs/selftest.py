#!/usr/bin/env python3
"""Shows that check_docs.py and make_reference.py find what they are for: each mistake is made once, in a folder of its
own."""
import os
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
from run_here import run_here  # noqa: E402

CHECK, REFERENCE = os.path.join(HERE, "check_docs.py"), os.path.join(HERE, "make_reference.py")
HEADER = """/* About the header. */
#ifndef GM_A_H
#define GM_A_H
/* Does a. Twice. */
GM_API int gm_a(void);
GM_API int gm_b(void); /* Does b. */

GM_API int gm_c(void (*each)(int));
#endif
"""
STATUS = 'X(GM_OK, 0, "success") \\\nX(GM_ERR_X, 1, "wrong")\n'
STATS = '#define GM_STATS_FIELDS(X) X(allocs, "calls") \\\n  X(frees, "calls")\n'
COMMANDS = ("info", "select", "fit", "load", "store")
FIELDS_PAGE = "`error`\n" + "".join(f"\n## gmem {command}\n`a[]` `b`\n" for command in COMMANDS)
GMEM = f"""#!/bin/sh
if [ "$1" = help ]; then printf 'Commands:\n'; printf '  %s  x\n' {" ".join(COMMANDS)}; else echo '{{"a": [{{"b": 1}}]}}'; fi
"""
GOOD = {
    "include/gm/a.h": HEADER,
    "include/gm/status.h": STATUS,
    "include/gm/stats.h": STATS,
    "docs/README.md": "# Title of it\n[a](errors.md) [b](#title-of-it) [c](https://example.org) gm_a gm_b gm_c\n",
    "docs/errors.md": "| 0 | `GM_OK` | success |\n| 1 | `GM_ERR_X` | wrong |\n",
    "docs/pitfalls.md": "| `test_a` | `test_b` |\n",
    "tests/test_pitfalls_x.c": "cmocka_unit_test(test_a),\n",
    "tests/test_y.c": "cmocka_unit_test_setup(test_b, f),\n",
    "docs/statistics.md": "| `allocs` |\n| `frees` |\n",
    "docs/sample.md": "Of it (shortened):\n\n    === gm backends ===\n    \u2713 CPU\n",
    "docs/snippet.md": "```c\nint f(void);\n```\n",
    "docs/gmem.md": FIELDS_PAGE,
    "docs/install.md": "`GM_A` `GM_B`\n",
    "core/fit/op_rows.c": "".join(f'{{.architecture = "{name}"}},\n' for name in ("llama", "olmo2", "gemma", "command-r", "glm4")),
    "docs/fit-sweep.md": "| glm4 | exact | exact | exact | 20 % | |\n",
    "docs/fit.md": "| llama | 20 | operations | x |\n| t5 | 1 | formula | x |\n\n`olmo2` `gemma` `command-r`\n",
    "cmake/GmOptions.cmake": 'option(GM_A "A" ON)\nset(GM_B "" CACHE STRING "B")\nset(here ON)\n',
    "docs/configuration.md": "<!-- begin: print_config -->\nx\n<!-- end: print_config -->\n",
}
CASES = [  # what is run, file, its text when it is wrong
    (["links"], "docs/README.md", "[a](nowhere.md)\n"),
    (["links"], "docs/README.md", "[a](errors.md#nowhere)\n"),
    (["functions"], "docs/README.md", "gm_a gm_b\n"),
    (["names"], "docs/README.md", "gm_d\n"),
    (["errors"], "docs/errors.md", "| 0 | `GM_OK` | success |\n| 2 | `GM_ERR_X` | wrong |\n"),
    (["pitfalls"], "docs/pitfalls.md", "| `test_b` |\n"),
    (["pitfalls"], "docs/pitfalls.md", "| `test_a` | `test_c` |\n"),
    (["statistics"], "docs/statistics.md", "| `allocs` |\n"),
    (["configuration", "./print"], "docs/configuration.md", "<!-- begin: print_config -->\n<!-- end: print_config -->\n"),
    (["configuration", "./print"], "docs/configuration.md", "x\n"),
    (["fields", "./print_gmem", "./print_tier"], "docs/gmem.md", FIELDS_PAGE.replace("load\n`a[]` `b`", "load\n`a[]`")),
    (["fields", "./print_gmem", "./print_tier"], "print_gmem", GMEM.replace("store", "stare")),  # an unknown command
    (["fields", "./print_gmem", "./print_tier"], "print_gmem", GMEM.replace('"a"', '"error"').replace('"b"', '"error"')),
    (["architectures"], "docs/fit.md", "`olmo2` `gemma` `command-r`\n"),
    (["architectures"], "core/fit/op_rows.c", '{.architecture = "llama"},\n'),
    (["architectures"], "docs/fit-sweep.md", "| glm4 | exact | exact | interval | 20 % | |\n"),
    (["options"], "docs/install.md", "`GM_A`\n"),
    (["options"], "docs/install.md", "`GM_B`\n"),
    (["samples"], "docs/sample.md", "Of it:\n\n    === gm backends ===\n    \u2713 CPU\n"),
    (["snippets", "cc"], "docs/snippet.md", "```c\nint f(void) { return gm; }\n```\n"),
]


def write(root, path, text):
    os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
    with open(os.path.join(root, path), "w", encoding="utf-8") as file:
        file.write(text)


def run(root, command):
    command = [os.path.join(root, c) if c.startswith("./print") else c for c in command]
    return run_here(CHECK, ["--root", root, *command])[0]


def run_case(command, path, wrong):
    with tempfile.TemporaryDirectory() as root:
        files = dict(GOOD)
        if command[0] == "snippets":  # the headers above are none that compile
            files = {"include/gm/a.h": "", "docs/snippet.md": GOOD["docs/snippet.md"]}
        for name, text in files.items():
            write(root, name, text)
        for name, script in (("print", "#!/bin/sh\necho x\n"), ("print_gmem", GMEM), ("print_tier", '#!/bin/sh\n: >"$1"\n')):
            write(root, name, script)
            os.chmod(os.path.join(root, name), 0o755)
        good = run(root, command)
        write(root, path, wrong)
        return good == 0 and run(root, command) == 1


def run_reference():
    with tempfile.TemporaryDirectory() as root:
        write(root, "include/gm/a.h", HEADER)
        write(root, "include/gm/z.h", "#ifndef Z\nGM_API int gm_z(void); /* Does z. */\n")
        write(root, "include/gm/y.h", '#ifndef Y\n#include "gm/z.h"\nGM_API int gm_y(void); /* Does y. */\n')
        write(root, "include/gm/gm.h", '#include "gm/a.h"\n#include "gm/y.h"\n#include "gm/z.h"\n')
        for name in ("model_all", "store_all", "pages_all", "trace_all", "tools", "backend"):
            write(root, f"include/gm/{name}.h", "#ifndef T\n")
        write(root, "docs/reference.md", "")
        stale, _ = run_here(REFERENCE, ["--check", root])
        made, _ = run_here(REFERENCE, [root])
        with open(os.path.join(root, "docs/reference.md"), encoding="utf-8") as file:
            text = file.read()
        rows = ["| `int gm_a(void)` | Does a. |", "| `int gm_b(void)` | Does b. |", "| `int gm_c(void (*each)(int))` |  |"]
        rows += ["| `int gm_z(void)` | Does z. |\n\n### gm/y.h\n"]
        known, _ = run_here(REFERENCE, ["--check", root])
        return (stale, made, known) == (1, 0, 0) and all(row in text for row in rows)


def main():
    failed = [f"{command[0]}: {wrong!r}" for command, path, wrong in CASES if not run_case(command, path, wrong)]
    if not run_reference():
        failed.append("make_reference")
    print("\n".join([*failed, f"{len(CASES) + 1 - len(failed)} passed, {len(failed)} failed"]))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
