"""pyopencl's own test suite, with arrays in memory of its own and in memory of gm: each test ends alike.

The tests are those of the source package. GM_PYOPENCL_SUITE says which: "all", "quick", or words for pytest. How they end
without gm is kept beside them, by driver and words, as it takes minutes.
"""
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import xml.etree.ElementTree

import pyopencl

FILES = "test_array.py test_wrapper.py test_enqueue_copy.py test_arrays_in_structs.py"
SLOW = ("test_div_type_matches_numpy", "test_pow_array", "test_bitwise")  # they compile half of all kernels
SUITES = {"all": "", "quick": FILES + "".join(f" --deselect test/test_array.py::{name}" for name in SLOW)}


def outcomes(path):
    """Each test with its outcome. PoCL names devices by their address, so a test's name ends at its first bracket."""
    ends = {}
    for case in xml.etree.ElementTree.parse(path).getroot().iter("testcase"):
        words = [child.tag for child in case if child.tag in ("failure", "error", "skipped")]
        name = case.get("classname") + "." + case.get("name").split("[")[0]
        ends.setdefault(name, []).append(words[0] if words else "passed")
    return {name: sorted(words) for name, words in ends.items()}


def kept_name(files):
    """Names the outcomes without gm."""
    drivers = [f"{platform.name} {platform.version}" for platform in pyopencl.get_platforms()]
    return "plain-" + hashlib.sha256(repr((drivers, files, sys.version)).encode()).hexdigest()[:12] + ".xml"


def plain_outcomes(files):
    kept = pathlib.Path(os.environ["GM_PYOPENCL_TESTS"]) / kept_name(files)
    if not kept.exists():
        run("plain", files)
        shutil.copy(pathlib.Path(os.environ["GM_ENGINES_OUT"]) / "plain.xml", kept)
    return outcomes(kept)


def run(name, files, *plugin):
    out = pathlib.Path(os.environ["GM_ENGINES_OUT"])
    (out / f"{name}.xml").unlink(missing_ok=True)
    environment = dict(os.environ, GM_DEFAULT_COUNT=str(out / "arrays"))
    command = [sys.executable, "-m", "pytest", "-q", "--tb=short", "-p", "no:cacheprovider", *plugin,
               f"--junit-xml={out / name}.xml", *files]
    subprocess.run(command, cwd=pathlib.Path(os.environ["GM_PYOPENCL_TESTS"]) / "test", env=environment, check=False)
    return outcomes(out / f"{name}.xml")


def main():
    wanted = os.environ.get("GM_PYOPENCL_SUITE", FILES)
    files = SUITES.get(wanted, wanted).split()
    plain, with_gm = plain_outcomes(files), run("gm", files, "-p", "gm_default")
    arrays = int((pathlib.Path(os.environ["GM_ENGINES_OUT"]) / "arrays").read_text(encoding="utf-8"))
    for name in sorted(set(plain) | set(with_gm)):
        if plain.get(name) != with_gm.get(name):
            print(f"{name}: {plain.get(name)} without gm, {with_gm.get(name)} with it")
    ends = [word for words in with_gm.values() for word in words]
    if plain != with_gm or ends.count("passed") < 100 or arrays < 100:
        print(f"{len(ends)} tests, {ends.count('passed')} passed, {arrays} arrays of gm")
        return 1
    failed = ends.count("failure") + ends.count("error")
    print(f"{pyopencl.VERSION_TEXT} {ends.count('passed')} tests of its suite pass with and without gm, {failed} with neither;",
          f"{arrays} arrays asked gm")
    return 0


if __name__ == "__main__":
    sys.exit(main())
