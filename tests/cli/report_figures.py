#!/usr/bin/env python3
"""Holds the data of a report's page against a plain model: report_figures.py GMEM COUNT.

Makes COUNT random recordings, with hostile labels, and reads them with a few lines of its own. It takes the data out of each page as its script does:
base64, zlib, columns. Prints "agrees" or why not."""
import base64
import hashlib
import json
import pathlib
import random
import re
import subprocess
import sys
import zlib

LABELS = ["step", "</script><script>alert(1)</script>", "\u202eevil", '"><img src=x>', "a,b;'", "\u00e9\u4e2d", "@data@", "\\u0000"]


def make_trace(seed, events):
    rand, lines, live, next_id = random.Random(seed), ["gmtrace 1", "# made by a test"], [], 1
    few = [rand.randrange(1, 1 << rand.randrange(1, 40)) for _ in range(rand.choice((1, 5, 500)))]
    streams = rand.choice((1, 1, 3, 4095))
    for i in range(events):
        if rand.random() < 0.02:
            lines.append(f"m {rand.choice(LABELS)}{i if rand.random() < 0.5 else ''}")
        elif live and rand.random() < rand.choice((0.3, 0.6)):
            ended = live.pop(rand.randrange(len(live)))
            lines.append(f"f {ended}" + (f" {rand.randrange(streams)}" if rand.random() < 0.2 else ""))
        else:
            lines.append(f"a {next_id} {rand.choice(few)} {rand.randrange(streams)}")
            live.append(next_id)
            next_id += rand.choice((1, 1, 1, 7))
    return "\n".join(lines) + "\n"


def plain_model(text):
    """Every event as (kind, bytes or label, stream, number of the block)."""
    events, blocks = [], {}
    for line in text.splitlines():
        kind, _, rest = line.partition(" ")
        words = rest.split(" ")
        if kind == "a":
            blocks[words[0]] = (int(words[1]), int(words[2]), len(blocks))
            events.append((0, int(words[1]), int(words[2]), len(blocks) - 1))
        elif kind == "f":
            size, stream, number = blocks[words[0]]
            events.append((1, size, int(words[1]) if len(words) > 1 else stream, number))
        elif kind == "m":
            events.append((2, rest, 0, None))
    return events


def cut(events, start, end):
    """The blocks that are alive at `start`, then the events of the range, with new numbers of blocks."""
    alive = {}
    for event in events[:start]:
        if event[0] == 0:
            alive[event[3]] = event
        elif event[0] == 1:
            del alive[event[3]]
    numbers, out = {}, []
    for kind, value, stream, block in list(alive.values()) + events[start:end]:
        if kind == 0:
            numbers[block] = len(numbers)
        out.append((kind, value, stream, None if block is None else numbers[block]))
    return out, len(alive)


def numbers_of(data):
    out, value, shift = [], 0, 0
    for byte in data:
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            out.append(value)
            value, shift = 0, 0
    assert shift == 0
    return out


def check_policy(page):
    """One style, one script and one place for data; the policy has the hashes of the first two."""
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page).group(1)
    for name in ("script", "style"):
        parts = re.findall(rf"<{name}>(.*?)</{name}>", page, re.S)
        assert len(parts) == 1, (name, len(parts))
        digest = base64.b64encode(hashlib.sha256(parts[0].encode()).digest()).decode()
        assert f"{name}-src 'sha256-{digest}'" in policy, (name, digest, policy)
    assert policy.startswith("default-src 'none';") and "http" not in policy, policy
    assert page.count("<script") == 2 and "innerHTML" not in page and "://" not in page.replace("http://www.w3.org/2000/svg", "")


def read_page(path):
    page = path.read_text(encoding="utf-8")
    check_policy(page)
    packed, text = re.search(r'id="data" data-packed="(\w+)">([^<]*)</script>', page).groups()
    data = base64.b64decode(text, validate=True)
    data = zlib.decompress(data) if packed == "deflate" else data
    length = int.from_bytes(data[:4], "little")
    head, at, columns = json.loads(data[4:4 + length]), 4 + length, {}
    for column in head["columns"]:
        columns[column["name"]] = data[at:at + column["bytes"]]
        at += column["bytes"]
    assert at == len(data)
    return packed, head, columns


def events_of(head, columns):
    columns = {name: iter(data if name == "kind" else numbers_of(data)) for name, data in columns.items()}
    sizes, known, marks, stream, out = [], [], iter(head["marks"]), 0, []
    for kind in columns.get("kind", ()):
        if kind == 2:
            out.append((2, next(marks), 0, None))
            continue
        step = next(columns["stream"]) if "stream" in columns else 0
        stream = step - 1 if step else stream
        if kind == 0:
            place = next(columns["size"])
            if place == 0:
                known.append(next(columns["sizes"]))
            sizes.append(known[place - 1])
            out.append((0, sizes[-1], stream, len(sizes) - 1))
        else:
            block = len(sizes) - 1 - next(columns["free"])
            out.append((1, sizes[block], stream, block))
    assert all(next(rest, None) is None for rest in columns.values()) and next(marks, None) is None
    assert len(set(known)) == len(known)
    return out


def check_figures(head, events, before, carried):
    live, peak, at, blocks = 0, 0, 0, 0
    for i, (kind, value, _, _) in enumerate(events):
        live += (value, -value, 0)[kind] if kind < 2 else 0
        blocks += (1, -1, 0)[kind]
        if live > peak:
            peak, at = live, i
    wanted = {"version": 1, "events": len(events), "blocks": sum(e[0] == 0 for e in events), "before": before, "carried": carried,
              "peak_bytes": peak, "peak_event": at, "end_bytes": live, "end_blocks": blocks}
    assert all(head[key] == value for key, value in wanted.items()), (head, wanted)


def check(gmem, trace, options=(), start=0, end=None):
    page = trace.with_suffix(".html")
    text = trace.read_text()
    said = json.loads(subprocess.run([gmem, "report", trace, "-o", page, "--json", *options], check=True, capture_output=True).stdout)
    all_events = plain_model(text)
    events, carried = cut(all_events, start, len(all_events) if end is None else end)
    packed, head, columns = read_page(page)
    assert events_of(head, columns) == events
    check_figures(head, events, start, carried)
    assert said["events"] == len(events) - carried and said["peak_live_bytes"] == head["peak_bytes"], said
    return packed


def main():
    gmem, folder = sys.argv[1], pathlib.Path(".")
    trace = folder / "random.gmtrace"
    for seed in range(int(sys.argv[2])):
        trace.write_text(make_trace(seed, (0, 1, 30, 900)[seed % 4]))
        check(gmem, trace)
        count = len(plain_model(trace.read_text()))
        start, end = count // 3, count * 2 // 3
        check(gmem, trace, ("--from", str(start), "--to", str(end)), start, end)
    trace.write_text("gmtrace 1\na 1 5 0\nm one\na 2 6 0\nf 1\nm two\nf 2\nm one\n")
    check(gmem, trace, ("--from", "one", "--to", "two"), 1, 4)
    print("agrees")


if __name__ == "__main__":
    main()
