#!/usr/bin/env python3
"""Relations that `gmem info --json` must keep on every machine: info_facts.py LEVEL < JSON."""
import json
import re
import sys


def device_problems(backend, device):
    where = f"{backend['name']} {device['index']}"
    total, free = device["total_bytes"], device["free_bytes"]
    if (free is None) != (device["free_state"] == "unknown"):
        yield f"{where}: free_bytes {free}, free_state {device['free_state']}"
    if None not in (total, free) and free > total:
        yield f"{where}: more free than there is"
    if (free is None) != (device["free_source"] == "none"):
        yield f"{where}: free_bytes {free}, free_source {device['free_source']}"
    if not re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", device["uuid"]):
        yield f"{where}: uuid {device['uuid']}"
    if device["alignment"] is None or device["alignment"] & (device["alignment"] - 1):
        yield f"{where}: alignment {device['alignment']}"


def backend_problems(backend, level):
    asked = level != "passive"
    if backend["available"] != (backend["reason"] is None):
        yield f"{backend['name']}: available {backend['available']}, reason {backend['reason']}"
    if asked and backend["available"] != bool(backend["devices"]):
        yield f"{backend['name']}: available {backend['available']}, {len(backend['devices'])} devices"
    if not asked and backend["devices"]:
        yield f"{backend['name']}: devices without having asked"
    if [d["index"] for d in backend["devices"]] != list(range(len(backend["devices"]))):
        yield f"{backend['name']}: devices are not numbered from 0"
    for device in backend["devices"]:
        yield from device_problems(backend, device)


def problems(info, level):
    backends = {backend["name"]: backend for backend in info["backends"]}
    for backend in backends.values():
        yield from backend_problems(backend, level)
    if not {"cpu", "cuda", "hip", "opencl", "vulkan", "metal", "null"} <= set(backends):
        yield f"backends {sorted(backends)}"
    if not backends["cpu"]["available"] or not backends["null"]["simulated"]:
        yield "the CPU is not available, or null is not called simulated"
    best = info["recommended"]
    if level == "passive":
        if best["backend"] is not None:
            yield "a recommendation without having asked"
    elif best["backend"] is None or best["backend"] == "null" or not backends[best["backend"]]["available"]:
        yield f"recommended {best}"
    host = info["host"]
    if not host["free_bytes"] <= host["total_bytes"] or host["page_bytes"] & (host["page_bytes"] - 1):
        yield f"host {host}"


def main():
    found = list(problems(json.load(sys.stdin), sys.argv[1]))
    print("\n".join(found) if found else "as it should be")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
