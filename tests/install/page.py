#!/usr/bin/env python3
"""The lines of a page that install and link gm work as they stand: page.py PAGE BUILD AREA PROGRAM

Runs each ```sh block of PAGE that stands behind <!-- run by tests/install -->, in turn, in one fresh folder with nothing
in it but what the page takes for granted: build/release (BUILD), engine.c (PROGRAM), and a CMakeLists.txt with the first
```cmake block of the page. HOME is that folder. `$(pkg-config ...)` takes no path with a space, so where AREA has one the
folder is a temporary one. Fails, with the block, when one does."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

BLOCK = re.compile(r"^<!-- run by tests/install -->\n```sh\n(.*?)^```", re.S | re.M)
CMAKE = re.compile(r"^```cmake\n(.*?)^```", re.S | re.M)
PROJECT = """cmake_minimum_required(VERSION 3.22)
project(engine LANGUAGES C)
add_executable(engine engine.c)
"""


def prepare(page, build, area, program):
    shutil.rmtree(area, ignore_errors=True)
    (area / "build").mkdir(parents=True)
    (area / "build" / "release").symlink_to(build)
    shutil.copy(program, area / "engine.c")
    (area / "CMakeLists.txt").write_text(PROJECT + CMAKE.search(page)[1])


def main():
    page, build, area, program = sys.argv[1:]
    text, area = pathlib.Path(page).read_text(), pathlib.Path(area)
    blocks = BLOCK.findall(text)
    if not blocks:
        print(f"{page} has no block to run")
        return 1
    if " " in str(area):
        temporary = tempfile.TemporaryDirectory()  # gone at the end of the program
        area = pathlib.Path(temporary.name) / "area"
    prepare(text, build, area, program)
    environment = {**os.environ, "HOME": str(area)}
    for name in ("LD_LIBRARY_PATH", "PKG_CONFIG_PATH", "CMAKE_PREFIX_PATH", "DESTDIR"):
        environment.pop(name, None)
    # One shell: what a block exports holds for those that follow.
    script = "\n".join(["set -eu", *(f"cat <<'BLOCK'\n{block}BLOCK\n{block}" for block in blocks)])
    done = subprocess.run(["bash", "-c", script], cwd=area, env=environment)
    if done.returncode:
        print(f"{page}: the block printed last leaves with {done.returncode}")
    return 1 if done.returncode else 0


if __name__ == "__main__":
    sys.exit(main())
