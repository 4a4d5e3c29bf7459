"""Runs Python programs in this process: most of the time of a short one is Python's start."""
import contextlib
import functools
import io
import sys
import traceback


@functools.lru_cache(None)
def compiled(script):
    with open(script, encoding="utf-8") as file:
        return compile(file.read(), script, "exec")


def run_here(script, words):
    """(exit code, all output). A program that raises has exit code 70."""
    before, output, code = sys.argv, io.StringIO(), 0
    sys.argv = [script, *words]
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
        try:
            exec(compiled(script), {"__name__": "__main__", "__file__": script})
        except SystemExit as end:
            code = end.code or 0
        except Exception:
            code = 70
            traceback.print_exc()
    sys.argv = before
    return code, output.getvalue()
