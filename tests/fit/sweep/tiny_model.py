"""Writes small models that the engine loads: all of a model's file but its weights, which are a hole.

Rules, for every architecture: it has the keys of [base], and those that its loader asks for, with the values of [keys]. It
has the tensors that its loader creates from these keys, as far as the `gguf` package knows them for the architecture.
architectures.toml has what differs.
"""
import re
import tomllib

import gguf
import numpy

TRIES = 40  # keys and tensors that a loader may ask for, one at a time
OPTIONAL = re.compile(r"(?<!ssm_conv1d)(?<!ssm_dt)(?<!exp_probs_b)\.(bias|scale|input_scale)$")
FUSED_EXPERTS, SPLIT_EXPERTS = "ffn_gate_up_exps", ("ffn_gate_exps", "ffn_up_exps")  # files have the latter
ALWAYS_F32 = re.compile(r"ssm_(conv1d|a|d|dt|norm)|shortconv\.conv|ffn_gate_inp|time_mix_(?!key|value|receptance|output|gate\b)"
                        r"|token_types|position_embd|_norm|rope_f|altup|attn_sinks|per_layer_router")
QUANTISED = re.compile(r"\.(ffn_(up|gate|down)(_exps|_shexp)?|attn_output)\.weight$")


class Refused(Exception):
    """The engine does not load the model, and says why."""


def read_architectures(path):
    with open(path, "rb") as file:
        return tomllib.load(file)


def layered(value, layers):
    """A list for each layer from {each = [...]}, which is repeated, or {layers = [...]}."""
    if not isinstance(value, dict):
        return value
    if "layers" in value:
        return value["layers"]
    each = value["each"]
    return [each[i % len(each)] for i in range(layers)]


def keys_of(data, model):
    """The keys of a model without its architecture's name in front."""
    keys = {**data["base"], **model.get("keys", {})}
    for name in model.get("use", []):
        group = data["groups"].get(name, [name])
        keys |= {key: keys.get(key, data["keys"][key]) for key in group}
    for name in model.get("without", []):
        keys.pop(name, None)
    return keys


def add_key(writer, name, value):
    if isinstance(value, bool):
        writer.add_bool(name, value)
    elif isinstance(value, int):
        writer.add_uint32(name, value)
    elif isinstance(value, float):
        writer.add_float32(name, value)
    elif isinstance(value, str):
        writer.add_string(name, value)
    else:
        writer.add_array(name, value)


def type_of(name, shape):
    """The type that a tensor's name and shape call for: some of each kind, as in files that people use."""
    if len(shape) == 1 or ALWAYS_F32.search(name):
        return gguf.GGMLQuantizationType.F32
    if QUANTISED.search(name) and shape[0] % 32 == 0:
        return gguf.GGMLQuantizationType.Q8_0
    return gguf.GGMLQuantizationType.F16


def bytes_of(kind, shape):
    block, size = gguf.GGML_QUANT_SIZES[kind]
    return int(numpy.prod(shape)) // block * size


def write(path, architecture, keys, tensors):
    """`tensors` are pairs of name and shape; the file ends in a hole as large as their weights."""
    writer = gguf.GGUFWriter(path, architecture)
    layers = keys["block_count"]
    for name, value in keys.items():
        full = name if name.startswith(("tokenizer.", "general.", "xielu.")) else f"{architecture}.{name}"
        add_key(writer, full, layered(value, layers))
    end = 0
    for name, shape in tensors:
        kind = type_of(name, shape)
        size = bytes_of(kind, shape)
        rows = gguf.quant_shape_to_byte_shape(shape[::-1], kind) if kind == gguf.GGMLQuantizationType.Q8_0 else shape[::-1]
        dtype = {gguf.GGMLQuantizationType.F32: numpy.float32, gguf.GGMLQuantizationType.F16: numpy.float16}
        raw = kind if kind not in dtype else None
        writer.add_tensor_info(name, rows, numpy.dtype(dtype.get(kind, numpy.uint8)), size, raw_dtype=raw)
        end += -(-size // 32) * 32
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    writer.close()
    with open(path, "r+b") as file:
        begin = -(-file.seek(0, 2) // 32) * 32
        file.truncate(begin + end)


def known_tensors(architecture):
    """Matches names of tensors that the package knows for an architecture; None: it does not know the architecture."""
    names = {name: kind for kind, name in gguf.MODEL_ARCH_NAMES.items()}
    if architecture not in names:
        return None
    listed = (gguf.TENSOR_NAMES[tensor] for tensor in gguf.MODEL_TENSORS[names[architecture]])
    patterns = [re.escape(name).replace(re.escape("{bid}"), r"\d+") for name in listed]
    return re.compile("(" + "|".join(patterns) + r")(\.\w+)?$")


def wanted(name, known, model):
    """Whether a tensor that the loader would take is one that such models have."""
    if any(re.search(pattern, name) for pattern in model.get("drop", [])):
        return False
    if any(re.search(pattern, name) for pattern in model.get("have", [])):
        return True
    if OPTIONAL.search(name):
        return False
    return known is None or bool(known.match(name))


def make(path, data, model, engine):
    """Writes the model, asks `engine` for what is missing, and returns its keys and tensors. Raises Refused with the
    engine's reason."""
    architecture, keys = model["architecture"], keys_of(data, model)
    listed = ask_tensors(path, data, architecture, keys, engine)
    if is_fused(architecture, model):
        listed = fused(listed)
    known = known_tensors(architecture)
    chosen = {name for name, _ in listed if wanted(name, known, model)}
    for _ in range(TRIES):
        tensors = [(name, shape) for name, shape in listed if name in chosen]
        write(path, architecture, keys, tensors)
        reason = engine.refusal(path)
        missing = re.search(r"tensor '([^']+)' not found", reason or "")
        if not missing:
            break
        siblings = re.compile(re.sub(r"\d+", r"\\d+", re.escape(missing.group(1))) + "$")
        more = {name for name, _ in listed if siblings.match(name)} - chosen
        if not more:
            break
        chosen |= more
    if reason:
        raise Refused(reason)
    return keys, tensors


def separated(listed):
    """The tensors with those of experts as files have them."""
    for name, shape in listed:
        if FUSED_EXPERTS in name and not name.endswith("scale"):
            for part in SPLIT_EXPERTS:
                yield name.replace(FUSED_EXPERTS, part), [shape[0], shape[1] // 2, *shape[2:]]
        else:
            yield name, shape


def fused(listed):
    """The tensors with those of queries, keys and values as one, where a layer has all three."""
    names, out = dict(listed), {}
    for name, shape in listed:
        parts = [re.sub(r"\.attn_[qkv]\.", f".attn_{part}.", name) for part in "qkv"]
        if parts[0] == parts[1] or not all(part in names for part in parts):
            out[name] = shape
        elif name == parts[0]:
            out[name.replace(".attn_q.", ".attn_qkv.")] = [*shape[:-1], sum(names[part][-1] for part in parts)]
    return list(out.items())


def is_fused(architecture, model):
    """Whether files of an architecture have one projection: the package knows no other, or the model says so."""
    kinds = [kind for kind, name in gguf.MODEL_ARCH_NAMES.items() if name == architecture]
    listed = gguf.MODEL_TENSORS[kinds[0]] if kinds else []
    only = gguf.MODEL_TENSOR.ATTN_QKV in listed and gguf.MODEL_TENSOR.ATTN_Q not in listed
    return model.get("fused", only)


def ask_tensors(path, data, architecture, keys, engine):
    """Names and shapes of the tensors that the loader creates. Completes `keys` by those that it asks for."""
    for _ in range(TRIES):
        write(path, architecture, keys, [])
        listed, reason = engine.tensors(path)
        if not reason:
            return list(dict(separated(listed)).items())
        missing = re.search(r"(?<!array )key not found in model: (\S+)", reason)
        name = missing and missing.group(1).removeprefix(architecture + ".")
        if not name or name in keys or name not in data["keys"]:
            raise Refused(reason)
        keys[name] = data["keys"][name]
    raise Refused("it asks for ever more keys")
