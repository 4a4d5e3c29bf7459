"""Compares what `gmem fit --json` predicts with what the engine takes, for one model at several settings."""
import dataclasses
import json
import subprocess

# (name, for the engine, for gmem). Every setting is tried on the stand-in for a card.
SETTINGS = [
    ("one sequence", "ctx=4096", ["--ctx", "4096"]),
    ("no flash attention", "ctx=4096,flash=0", ["--ctx", "4096", "--no-flash"]),
    ("4 sequences", "ctx=8192,seqs=4", ["--ctx", "8192", "--seqs", "4"]),
    ("4 separate", "ctx=8192,seqs=4,unified=0", ["--ctx", "8192", "--seqs", "4", "--separate"]),
    ("q8_0 cache", "ctx=4096,k=q8_0,v=q8_0", ["--ctx", "4096", "--kv-type", "q8_0"]),
    ("full windows", "ctx=8192,swa_full=1", ["--ctx", "8192", "--full-windows"]),
    ("long, small batch, no flash", "ctx=16384,batch=256,flash=0", ["--ctx", "16384", "--batch", "256", "--no-flash"]),
]
FIXED = ["--devices", "9999G", "--no-kv-copies", "--explain", "--json"]
EXACT, INTERVAL, UNKNOWN, WRONG, REFUSED = "exact", "interval", "unknown", "wrong", "refused"
BADNESS = [EXACT, REFUSED, INTERVAL, UNKNOWN, WRONG]  # what a whole is, if its parts are so


def worst(verdicts):
    return max(verdicts, key=BADNESS.index, default=UNKNOWN)


@dataclasses.dataclass
class Part:
    """One figure: what the engine takes and what gm says."""

    name: str
    verdict: str
    engine: int
    value: int
    low: int
    high: int


@dataclasses.dataclass
class Run:
    """One model at one setting."""

    setting: str
    parts: list
    reason: str = ""  # why one of the two gives no figures

    def verdict(self, *names):
        chosen = [part.verdict for part in self.parts if part.name.split(" ")[0] in names]
        return worst(chosen) if chosen else (UNKNOWN if self.reason and not self.parts else REFUSED)

    def width(self):
        """The width of gm's interval for everything together, in parts of its middle."""
        low, high = (sum(getattr(part, side) for part in self.parts) for side in ("low", "high"))
        return 2 * (high - low) / (low + high) if high else 0.0


class Gmem:
    def __init__(self, program):
        self.program = program

    def fit(self, path, options):
        """(the answer, None), or (None, why there is none)."""
        done = subprocess.run([self.program, "fit", path, *options, *FIXED], capture_output=True, text=True, check=False)
        try:
            answer = json.loads(done.stdout)
        except ValueError:
            return None, f"gmem: exit code {done.returncode}: {done.stderr.strip()[:200]}"
        if done.returncode not in (0, 1) or not isinstance(answer.get("terms"), dict):
            return None, answer.get("error") or answer.get("reason") or f"gmem: exit code {done.returncode}"
        return answer, None


def figure(name, engine, value, low=None, high=None):
    """The verdict on one of gm's figures; None is "unknown"."""
    if value is None and low is None:
        return Part(name, UNKNOWN, engine, 0, 0, 0)
    low, high = (value if side is None else side for side in (low, high))
    verdict = EXACT if value == engine else INTERVAL if low <= engine <= high else WRONG
    return Part(name, verdict, engine, value, low, high)


def parts(measured, answer):
    terms, out = answer["terms"], []
    for place in ("host", "device"):
        for ours, theirs in (("weight", "weights"), ("kv_cache", "cache"), ("compute", "compute")):
            fields = [terms.get(f"{place}_{ours}{end}_bytes") for end in ("", "_low", "_high")]
            out.append(figure(f"{theirs} {place}", measured[theirs][place], *fields))
    return out


def compare(setting, measured, gmem, path):
    name, _, options = setting
    answer, why = gmem.fit(path, options)
    if "error" in measured or "refused" in measured:
        engine = measured.get("error") or measured.get("refused")
        if answer is None:
            return Run(name, [], "")
        return Run(name, [Part("cache refused", WRONG, 0, 0, 0, 0)], f"the engine refuses: {engine}")
    if answer is None:
        return Run(name, [], f"gm: {why.replace(path + ': ', '')}")
    return Run(name, parts(measured, answer))


def compare_all(path, engine, gmem, settings):
    measured = engine.memory(path, [setting[1] for setting in settings])
    return [compare(setting, answer, gmem, path) for setting, answer in zip(settings, measured)]
