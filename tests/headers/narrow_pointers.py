#!/usr/bin/env python3
"""Pointers of 32 bits: every public header refuses them, and so does CMake, each in a plain sentence.

    narrow_pointers.py CC CXX CMAKE FOLDER      run in the root of the tree; FOLDER is emptied

-m32 is tried where the compiler has it: no file of a 32-bit C library is needed. The headers are compiled for this
machine with the compiler's own word for the size of a pointer changed, so that each of them is seen everywhere.
"""
import pathlib
import shutil
import subprocess
import sys

SENTENCE = "gm needs 64-bit pointers"
PRETEND = ["-ffreestanding", "-U__UINTPTR_MAX__", "-D__UINTPTR_MAX__=4294967295U", "-w"]
REALLY = ["-ffreestanding", "-m32"]


def compile_text(compiler, language, text, flags):
    """The exit status and the messages of a compiler that only reads."""
    run = subprocess.run([compiler, "-x", language, "-fsyntax-only", "-Iinclude", *flags, "-"], input=text, text=True,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return run.returncode, run.stdout


def check(compiler, language, header, flags, refused):
    status, said = compile_text(compiler, language, f'#include "{header}"\n', flags)
    if refused == (status != 0 and SENTENCE in said) and refused == (status != 0):
        return 0
    print(f"{header}, {compiler} {' '.join(flags)}: status {status}, {'a refusal' if refused else 'none'} expected")
    print(said)
    return 1


def configure(cmake, compiler, folder):
    """CMake asks the compiler for the size of a pointer; it need not link for that."""
    shutil.rmtree(folder, ignore_errors=True)
    run = subprocess.run([cmake, "-S", ".", "-B", folder, "-G", "Ninja", f"-DCMAKE_C_COMPILER={compiler}",
                          "-DCMAKE_C_FLAGS=-m32", "-DCMAKE_TRY_COMPILE_TARGET_TYPE=STATIC_LIBRARY"],
                         text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    shutil.rmtree(folder, ignore_errors=True)
    if run.returncode != 0 and SENTENCE in run.stdout:
        return 0
    print(f"cmake: status {run.returncode}, a refusal expected")
    print(run.stdout)
    return 1


def main():
    cc, cxx, cmake, folder = sys.argv[1:]
    headers = sorted(path.relative_to("include") for path in pathlib.Path("include/gm").glob("*.h"))
    wrong = 0
    for header in [*headers, "gm/gm.hpp"]:
        if str(header).endswith(".h"):
            wrong += check(cc, "c", header, ["-std=c11"], False) + check(cc, "c", header, ["-std=c11", *PRETEND], True)
        wrong += check(cxx, "c++", header, ["-std=c++17", *PRETEND], True)
    really = compile_text(cc, "c", "int works;\n", REALLY)[0] == 0
    if really:
        wrong += check(cc, "c", "gm/gm.h", ["-std=c11", *REALLY], True) + configure(cmake, cc, folder)
    print(f"{len(headers) + 1} headers, -m32 {'tried' if really else 'unknown to ' + cc}, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
