#!/usr/bin/env python3
"""Holds what docs/performance.md tells of a shipped trace against replays of it.

usage: packing_told.py TRACE RESULT_JSON NO_PAGES_JSON      (gmem replay --min-capacity --json, the second with --no-vmm)

Prints "told" or what is different. With several streams capacities are held to 0.015, and calls are not held: gm
takes a slower way where two streams share a place of a table, which follows from their addresses in host memory."""
import json
import pathlib
import sys

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs/performance.md"
HEAD = ["trace", "capacity: bucket", "best_fit", "best_fit, no pages", "reserved: bucket", "best_fit", "calls: bucket",
        "best_fit"]


def row_of(trace):
    """The cells of the trace in the table of packing, without their bold marks."""
    found = False
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip().strip("*") for cell in line.strip("|").split("|")]
        found = cells == HEAD or (found and line.startswith("|"))
        if found and cells[0] == trace:
            return cells
    raise SystemExit(f"docs/performance.md has no row for {trace} in its table of packing")


def same(told, figures):
    """True when the capacity that is told is the replay's."""
    capacity = figures["min_capacity_bytes"] / figures["peak_live_bytes"]
    return abs(capacity - float(told)) < (0.015 if figures["streams"] > 1 else 0.0006)


def main():
    trace, *paths = sys.argv[1:]
    with_pages, without = (json.loads(pathlib.Path(path).read_text(encoding="utf-8")) for path in paths)
    cells = row_of(trace)
    wrong = [f"{name} told {told}, got {got['min_capacity_bytes'] / got['peak_live_bytes']:.4f}"
             for name, told, got in (("capacity", cells[2], with_pages), ("capacity without pages", cells[3], without))
             if not same(told, got)]
    if with_pages["streams"] == 1 and int(cells[7]) != with_pages["driver_allocs_cold"]:
        wrong.append(f"driver allocations told {cells[7]}, got {with_pages['driver_allocs_cold']}")
    print(f"{trace}: " + (", ".join(wrong) or "told"))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
