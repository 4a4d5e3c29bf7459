#!/usr/bin/env python3
"""A kit is made of a build, its first part runs on the simulated card, and the results become tables. A program that
fails or hangs ends no part; a part with a result is not run again; a kit that is too large is refused.

usage: check_gpu_kit.py ROOT BUILD LIBCUDA
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import zipfile

ROOT, BUILD, LIBCUDA = (pathlib.Path(word).resolve() for word in sys.argv[1:])
PART_1 = ["device-cuda", "cts-cuda-opened", "cts-cuda-adopted", "cts-cuda-default_stream", *(f"model-cuda-adopted-{adopted}-no-pages-{pages}"
                                               for adopted in (0, 1) for pages in (0, 1))]
FAILS = '#!/bin/sh\ncase "$*" in *"--adopted 1 --no-vmm 0") sleep 600 ;; *) exit 3 ;; esac\n'


def run(*words, want, **settings):
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("GM_", "SIMCUDA_"))}
    environment |= {"GM_CUDA_LIBRARY": str(LIBCUDA), "GM_GPU_CHECK_BRIEF": "1"} | settings
    done = subprocess.run([ROOT / words[0], *words[1:]], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          env=environment, timeout=120)
    assert done.returncode == want, f"{words}: {done.returncode}, not {want}\n{done.stdout}{done.stderr}"
    return done.stdout + done.stderr


def part(out, number):
    data = json.loads((out / f"gpu-check-part-{number}.json").read_text())
    assert data["complete"] and data["part"] == number, data
    return data


def make(kit):
    said = run("scripts/gpu-kit", "--build", BUILD, "--no-fetch", kit, want=0)
    assert "in all" in said and "left out: compute-sanitizer" in said, said
    for name in ("gm_cts", "gm_model_test", "gm_gpu_bench", "gm_card_bench", "gm_torch_play"):
        assert os.access(kit / "bin" / name, os.X_OK), name
    assert (kit / "icd/opencl/nvidia.icd").read_text() == "libnvidia-opencl.so.1\n"
    for icd in (kit / "icd/vulkan").iterdir():
        assert json.loads(icd.read_text())["ICD"]["library_path"].endswith("_nvidia.so.0")


def check_first_part(kit, out):
    run("scripts/gpu-check", "--kit", kit, "--part", "1", "--out", out, want=77)  # passed, and no card
    data = part(out, 1)
    assert data["simulated"] and data["gpus"] == 0 and data["ok"] and data["failed"] == 0, data
    assert [one["name"] for one in data["results"]] == PART_1, data["results"]
    assert {one["result"] for one in data["results"]} == {"passed"}, data["results"]
    tables = run("scripts/gpu-results", out / "gpu-check-part-1.json", want=0)
    assert "| Simulated GPU 0, cuda | simulated CUDA" in tables and "device-cuda: simulated." in tables, tables
    assert "GiB/s" not in tables and " us |" not in tables, tables


def check_again(kit, out):
    """Parts 2 to 5 have a result, too: part 6 alone runs."""
    for number in (2, 3, 4, 5):
        (out / f"gpu-check-part-{number}.json").write_text('{"complete": true}')
    (out / "gpu-check-part-6.json").write_text('{"complete": false}')
    before = (out / "gpu-check-part-1.json").stat().st_mtime_ns
    run("scripts/gpu-check", "--kit", kit, "--out", out, want=77)
    assert (out / "gpu-check-part-1.json").stat().st_mtime_ns == before
    assert any("compute-sanitizer" in why for why in part(out, 6)["absent"]), part(out, 6)
    run("scripts/gpu-results", out / "gpu-check-part-2.json", want=1)  # is no such file


def check_failing(kit, out):
    program = kit / "bin/gm_model_test"
    program.unlink()
    program.write_text(FAILS)
    program.chmod(0o755)
    run("scripts/gpu-check", "--kit", kit, "--part", "1", "--out", out, want=1, GM_GPU_CHECK_ITEM_SECONDS="3")
    data = part(out, 1)
    codes = {one["name"]: one["exit"] for one in data["results"]}
    assert list(codes) == PART_1 and not data["ok"], codes
    assert [codes[name] in (124, 137) for name in PART_1[4:]] == [False, False, True, False], codes
    assert "failed (" in run("scripts/gpu-results", out / "gpu-check-part-1.json", want=0)


def check_refused(folder, kit):
    (folder / "other").mkdir()
    (folder / "other/mine").write_text("mine")
    run("scripts/gpu-kit", "--build", BUILD, "--no-fetch", folder / "other", want=2)
    assert (folder / "other/mine").read_text() == "mine"
    run("scripts/gpu-check", "--kit", folder / "other", want=2)
    run("scripts/gpu-check", "--kit", kit, "--part", "7", want=2)
    with zipfile.ZipFile(folder / "wheel.zip", "w") as wheel:
        wheel.writestr("nvidia/cuda_sanitizer_api/bin/compute-sanitizer", "")
        wheel.writestr("nvidia/cuda_sanitizer_api/lib/large", bytes(48 << 20))
    said = run("scripts/gpu-kit", "--build", BUILD, "--no-fetch", kit, want=1, GM_SANITIZER_WHEEL=str(folder / "wheel.zip"))
    assert "larger than 48 MB" in said, said


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        kit = folder / "a kit"
        make(kit)
        check_first_part(kit, folder / "out")
        check_again(kit, folder / "out")
        check_failing(kit, folder / "failing")
        check_refused(folder, kit)
    print("a kit, its first part, a failing one, tables")


if __name__ == "__main__":
    main()
