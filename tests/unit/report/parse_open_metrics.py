#!/usr/bin/env python3
"""Prometheus' own parser reads the page of gm_report_open_metrics, hostile names among it, and finds every figure.

usage: parse_open_metrics.py TEST_OPEN_METRICS
Leaves with 77 where prometheus_client (Debian: python3-prometheus-client) is missing.
"""
import math
import subprocess
import sys
import tempfile

sys.path.append("/usr/lib/python3/dist-packages")  # another python3 than Debian's may come first
try:
    from prometheus_client.openmetrics.parser import text_string_to_metric_families
except ImportError:
    print("skipped: prometheus_client is missing (python3-prometheus-client)")
    sys.exit(77)

POOLS = {"3": 'a"b\\c?d</script>?\u00e9', "2": "plain"}
TAGS = {"": 1000, 'kv"': 1100, "w\\": 1200, "x?": 1300 + 1400}
LEFT_OUT = {"local_cache_hits"}
UNKNOWN = 2**64 - 1


def main():
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/page"
        subprocess.run([sys.argv[1], path], check=True)
        with open(path, encoding="utf-8", newline="\n") as file:
            page = file.read()
        with open(path + ".stats", encoding="utf-8") as file:
            stats = [line.split() for line in file]
    samples, types = {}, {}
    for family in text_string_to_metric_families(page):
        assert family.documentation, family.name
        assert family.name not in types, family.name
        types[family.name] = family.type
        for sample in family.samples:
            key = (sample.name, sample.labels.get("id"), sample.labels.get("tag"))
            assert key not in samples, key
            samples[key] = sample
    assert types["gm_build"] == types["gm_device"] == "info"
    for number, name, value in stats:
        ns = name == "driver_ns"
        family = "gm_pool_" + ("driver_seconds" if ns else name)
        if name in LEFT_OUT:
            assert family not in types, family
            continue
        sample = samples.pop((family + ("_total" if types[family] == "counter" else ""), number, None), None)
        if int(value) == UNKNOWN:
            assert sample is None, name
            continue
        want = int(value) / 1e9 if ns else int(value)
        assert math.isclose(sample.value, want, rel_tol=1e-12), (name, sample.value, want)
        assert sample.labels == {"pool": POOLS[number], "id": number, "device": "null:0"}, sample.labels
    for tag, value in TAGS.items():
        assert samples.pop(("gm_pool_tag_bytes", "3", tag)).value == value, tag
        samples.pop(("gm_pool_tag_peak_bytes", "3", tag))
        samples.pop(("gm_pool_tag_active", "3", tag))
    left = {name for name, _, _ in samples}
    assert left == {"gm_build_info", "gm_device_info", "gm_device_memory_bytes", "gm_device_up_bytes_total",
                    "gm_device_down_bytes_total", "gm_device_up_copies_total", "gm_device_down_copies_total",
                    "gm_device_useful_bytes_total"}, left
    print(f"{len(types)} families, {len(stats)} figures of pools")


if __name__ == "__main__":
    main()
