#!/usr/bin/env python3
"""scripts/tidy keeps a clean verdict only, and passes over a file only while nothing changed that clang-tidy reads.
usage: check_tidy.py ROOT"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

CONFIG = "Checks: '-*,readability-else-after-return'\nWarningsAsErrors: '*'\nHeaderFilterRegex: '.*'\n"
BODY = "if (n) return 1; else return 2;"  # a finding
HEADER = f"static inline int part(int n) {{ {BODY} /* NOLINT */ }}\n"
SOURCE = '#include "part.h"\n#ifdef WORSE\nint worse(int n) { %s }\n#endif\nint whole(int n) { return part(n); }\n' % BODY


class Clone:
    """A small tree with scripts/tidy in it. Its folder has a space."""

    def __init__(self, base, name, script, cache):
        self.root, self.cache, self.flags, self.path = base / name, cache, "", "/nowhere"
        (self.root / "scripts").mkdir(parents=True)
        shutil.copy(script, self.root / "scripts")
        self.write(".clang-tidy", CONFIG)
        self.write("part.h", HEADER)
        self.write("whole.c", SOURCE)

    def write(self, name, text):
        (self.root / name).write_text(text)

    def tidy(self, cache=None):
        """(exit code, how many files were known to be clean)"""
        file = self.root / "whole.c"
        words = f"clang {self.flags} -I'{self.root}' -o whole.o -c '{file}'"
        self.write("compile_commands.json", json.dumps([{"directory": str(self.root), "command": words, "file": str(file)}]))
        done = subprocess.run([self.root / "scripts/tidy", self.root, "whole.c"], stdout=subprocess.PIPE, text=True, timeout=60,
                              env=dict(os.environ, GM_TIDY_CACHE=str(self.cache) if cache is None else cache,
                                       PATH=f"{self.path}:{os.environ['PATH']}"))
        return done.returncode, int(done.stdout.rpartition("clang-tidy: ")[2].split()[0])


def tried(base, script):
    """(what was done, what scripts/tidy answered, what it must answer)"""
    one, other = (Clone(base, name, script, base / "cache") for name in ("a clone", "another one"))
    yield "a clean file", one.tidy(), (0, 0)
    yield "the same again", one.tidy(), (0, 1)
    yield "the same in another folder", other.tidy(), (0, 1)
    yield "the cache is off", one.tidy(cache=""), (0, 0)
    yield "the cache is no folder", one.tidy(cache="/dev/null/cache"), (0, 0)
    for name, text, back in (("part.h", HEADER.replace("NOLINT", ""), HEADER), ("whole.c", SOURCE.replace("#ifdef", "#ifndef"), SOURCE),
                             (".clang-tidy", CONFIG + "CheckOptions: []\n", CONFIG)):
        one.write(name, text)
        bad = name != ".clang-tidy"
        yield f"{name} changed", one.tidy(), (bad, 0)
        yield f"{name} changed, once more", one.tidy(), (bad, not bad)
        one.write(name, back)
        yield f"{name} as it was", one.tidy(), (0, 1)
    one.flags = "-DWORSE"
    yield "another flag", one.tidy(), (1, 0)
    yield "another flag, once more", one.tidy(), (1, 0)
    one.write("part.h", '#include "none.h"\n')
    yield "a header is missing", one.tidy(), (1, 0)
    one.flags = ""
    (one.root / "part.h").write_text(HEADER + "/* \N{SNOWMAN} */\n")
    yield "a comment in a header", one.tidy(), (0, 0)
    one.write("clang-tidy", '#!/bin/sh\n[ "$1" = --version ] && exec echo newer\nexec "%s" "$@"\n' % shutil.which("clang-tidy"))
    (one.root / "clang-tidy").chmod(0o755)
    (one.root / "clang-scan-deps").symlink_to(pathlib.Path(shutil.which("clang-tidy")).resolve().with_name("clang-scan-deps"))
    one.path = str(one.root)
    yield "another clang-tidy", one.tidy(), (0, 0)
    yield "another clang-tidy, once more", one.tidy(), (0, 1)
    for number in range(20000):
        (one.cache / f"old{number}").touch()
        os.utime(one.cache / f"old{number}", (1, 1))
    yield "20 000 older verdicts", (one.tidy(), len(list(one.cache.iterdir()))), ((0, 1), 20000)


if __name__ == "__main__":
    if not shutil.which("clang-tidy"):
        print("skipped: there is no clang-tidy")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as folder:
        tries = list(tried(pathlib.Path(folder), pathlib.Path(sys.argv[1]) / "scripts/tidy"))
    wrong = [f"{what}: exit code and files known are {is_}, not {must}" for what, is_, must in tries if is_ != must]
    print("\n".join(wrong + [f"{len(tries)} tries, {len(wrong)} wrong"]))
    sys.exit(1 if wrong else 0)
