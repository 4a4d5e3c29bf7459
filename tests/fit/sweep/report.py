"""The findings of a sweep, as lines and as a table."""
import dataclasses

from compare import EXACT, INTERVAL, REFUSED, SETTINGS, UNKNOWN, WRONG, worst

PARTS = ("weights", "cache", "compute")
WIDEST = 0.25  # of its middle: the widest interval that says something
LEAST_EXACT, MOST_UNKNOWN = 0.9, 0.05


@dataclasses.dataclass
class Outcome:
    """One model: its runs, or why the engine does not load it."""

    model: dict
    runs: list
    refusal: str
    keys: dict = dataclasses.field(default_factory=dict)
    tensors: list = dataclasses.field(default_factory=list)  # names of the first layer's

    def name(self):
        variant = self.model.get("variant")
        return self.model["architecture"] + (f" ({variant})" if variant else "")

    def verdict(self, *names):
        verdicts = [run.verdict(*names) for run in self.runs]
        return worst([verdict for verdict in verdicts if verdict != REFUSED] or [REFUSED])

    def width(self):
        return max((run.width() for run in self.runs), default=0.0)

    def reasons(self):
        return sorted({run.reason for run in self.runs if run.reason})


def short(reason):
    text = reason.removeprefix("llama_model_load: error loading model: ").replace("|", "\\|")
    return text.removeprefix("error loading model hyperparameters: ")


def line(outcome):
    if outcome.refusal:
        return f"{outcome.name()}: refused by the engine: {short(outcome.refusal)}"
    said = ", ".join(f"{part} {outcome.verdict(part)}" for part in PARTS)
    return f"{outcome.name()}: {said}; widest interval {100 * outcome.width():.0f} %" + "".join(
        f"; {reason}" for reason in outcome.reasons()[:1])


def details(outcome):
    rows = []
    for run in outcome.runs:
        for part in run.parts:
            if part.verdict in (WRONG, INTERVAL):
                rows.append(f"  {run.setting}: {part.name}: {part.verdict}: engine {part.engine}, gm {part.value}, {part.low} to {part.high}\n")
        if run.reason:
            rows.append(f"  {run.setting}: {run.reason}\n")
    return "".join(rows)


def row(outcome):
    if outcome.refusal:
        return f"| {outcome.name()} | refused by the engine | | | | {short(outcome.refusal)} |"
    cells = [outcome.verdict(part) for part in PARTS]
    width = f"{100 * outcome.width():.0f} %" if outcome.width() else "0"
    return f"| {outcome.name()} | {' | '.join(cells)} | {width} | {'; '.join(map(short, outcome.reasons()))} |"


PAGE = """# gm's predictions beside the engine

`scripts/check-fit --write` makes this page. It writes a small model for each architecture that llama.cpp 0.5.0 names. The engine plans its memory
for it, without weights and on a stand-in for a card. `gmem fit --json --explain` is asked the same. The settings are:

{settings}

| word | what it means, over all settings of a model |
|---|---|
| exact | gm's figure is the engine's, to the byte |
| interval | gm's figure is another one, but the engine's is between `low` and `high` |
| unknown | gm gives no figure, and says why |
| wrong | the engine's figure is outside gm's interval, or the engine refuses what gm accepts |

"Widest interval" is that of weights, cache and compute buffers together, in parts of its middle. The models are small: {size}.
So compute buffers weigh more here than in models that people use.

{summary}.

| architecture | weights | cache and state | compute | widest interval | remark |
|---|---|---|---|---|---|
{rows}
"""


def page(data, outcomes):
    base = data["base"]
    size = f"{base['block_count']} layers of width {base['embedding_length']}, and a vocabulary of {base['vocab_size']}"
    settings = "\n".join(f"- {name}: `{' '.join(options)}`" for name, _, options in SETTINGS)
    rows = "\n".join(row(outcome) for each in outcomes.values() for outcome in each)
    return PAGE.format(settings=settings, size=size, rows=rows, summary=bars(outcomes)[0].splitlines()[0])


def key_text(name, value):
    """A key for the test that reads a record: a number, a truth, or a list that is repeated over the layers."""
    if isinstance(value, dict):
        value = value.get("each") or value["layers"]
        return f"{name}=" + ",".join(str(int(each)) for each in value) + ","
    return f"{name}={str(value).lower() if isinstance(value, bool) else value}"


def deciding(outcome):
    """The tensors of the first layer on which core/fit/op_choice.c may look, of a variant that differs by tensors."""
    if not {"have", "drop", "fused"} & outcome.model.keys() or "variant" not in outcome.model:
        return []
    return [f"+{name}" for name in ("attn_q", "attn_qkv", "attn_norm_2", "ffn_norm") if f"blk.0.{name}.weight" in outcome.tensors]


def record(base, outcomes):
    """A line for each model whose compute buffers gm knows: keys beside those of `base`, behind "+" the tensors that decide
    about a variant, and the bytes at each setting, behind ":" where gm has them all exact, behind "~" where they are in its
    interval. Variants that differ by other tensors are left out there."""
    lines = ["base " + " ".join(key_text(*item) for item in base.items() if isinstance(item[1], int))]
    for outcome in (outcome for each in outcomes.values() for outcome in each if outcome.verdict("compute") in (EXACT, INTERVAL)):
        if outcome.verdict("compute") != EXACT and "variant" in outcome.model:
            continue
        mark = ":" if outcome.verdict("compute") == EXACT else "~"
        keys = [item for item in outcome.keys.items() if isinstance(item[1], (int, dict)) and base.get(item[0]) != item[1]]
        sums = {run.setting: sum(part.engine for part in run.parts if part.name.startswith("compute")) for run in outcome.runs if run.parts}
        figures = [f"{number}{mark}{sums[setting[0]]}" for number, setting in enumerate(SETTINGS) if setting[0] in sums]
        lines.append(" ".join([outcome.model["architecture"], *(key_text(*item) for item in keys), *deciding(outcome), *figures]))
    return "\n".join(dict.fromkeys(lines)) + "\n"


def changed(text, outcomes):
    """The rows that a page has not."""
    known = set(text.splitlines())
    return [mine for each in outcomes.values() for mine in map(row, each) if mine not in known]


def bars(outcomes):
    """(what the bars say, whether all are reached)."""
    loaded = {name: [outcome for outcome in each if not outcome.refusal] for name, each in outcomes.items()}
    loaded = {name: each for name, each in loaded.items() if each}
    whole = {name: worst([outcome.verdict(*PARTS) for outcome in each]) for name, each in loaded.items()}
    main = {name: worst([outcome.verdict("weights", "cache") for outcome in each]) for name, each in loaded.items()}
    exact, unknown, wrong = ([name for name, verdict in verdicts.items() if verdict == kind]
                             for verdicts, kind in ((main, EXACT), (whole, UNKNOWN), (whole, WRONG)))
    wide = [name for name, each in loaded.items() if max(outcome.width() for outcome in each) > WIDEST]
    count = max(len(loaded), 1)
    text = (f"{len(outcomes)} architectures, {len(loaded)} loaded by the engine: weights and cache exact {len(exact)} "
            f"({100 * len(exact) / count:.0f} %), compute within an interval {sum(v == INTERVAL for v in whole.values())}, unknown {len(unknown)}, "
            f"too wide {len(wide)}, wrong {len(wrong)}")
    for title, names in (("unknown", unknown), ("too wide", wide), ("wrong", wrong)):
        text += f"\n{title}: {' '.join(names)}" if names else ""
    reached = len(exact) >= LEAST_EXACT * count and len(unknown) <= MOST_UNKNOWN * count and not wide and not wrong and loaded
    return text, bool(reached)
