#!/usr/bin/env python3
"""Holds what `gmem replay --json` says against the trace itself: trace_totals.py TRACE RESULT.json [THREADS].

Reads the trace with a few lines of its own. With several threads the peak is only bounded, on best_fit not known. Prints "agrees" or why not."""
import gzip
import json
import sys


def totals(path):
    sizes, live, peak, events, streams = {}, 0, 0, 0, 1
    with (gzip.open if path.endswith(".gz") else open)(path, "rt") as lines:
        for fields in (line.split() for line in lines):
            events += fields[0] in "af"
            if fields[0] == "a":
                sizes[fields[1]] = int(fields[2])
                live += int(fields[2])
                peak = max(peak, live)
                streams = max(streams, int(fields[3]) + 1)
            elif fields[0] == "f":
                live -= sizes.pop(fields[1])
    return events, peak, streams


def main():
    events, peak, streams = totals(sys.argv[1])
    threads = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    with open(sys.argv[2], encoding="utf-8") as file:
        got = json.load(file)
    live, parted = got["peak_live_bytes"], threads > 1 and got["strategy"] == "best_fit"
    facts = [("events", got["events"] == events), ("streams", got["streams"] == streams), ("failed", got["failed"] == 0),
             ("fallbacks", got["fallbacks"] == 0), ("threads", got["threads"] == threads),
             ("peak_live_bytes", live is None if parted else peak <= live <= peak * threads),
             ("peak_reserved_bytes", got["peak_reserved_bytes"] >= (live or peak)),
             ("driver_allocs", got["driver_allocs_cold"] >= got["driver_allocs_warm"] >= 0 or threads > 1),
             ("ns_per_event", got["ns_per_event"] > 0 and got["p99_ns"] > 0)]
    wrong = [f"{name}: {got.get(name)}" for name, good in facts if not good]
    print(", ".join(wrong) if wrong else "agrees")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
