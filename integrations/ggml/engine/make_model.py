#!/usr/bin/env python3
"""Writes a small llama model with random f16 weights, always the same.

usage: make_model.py VOCABULARY.gguf MODEL.gguf

The vocabulary and all other keys are those of VOCABULARY.gguf, byte for byte. Only the Python library is needed.
"""
import random
import struct
import sys

# A head of 12 is none of flash attention's in ggml-vulkan, whose shader lavapipe compiles for minutes.
EMBEDDING, HEADS, LAYERS, FEED_FORWARD = 120, 10, 2, 256
F32, F16 = 0, 1  # ggml's types of tensors
UINT32, FLOAT32, STRING, ARRAY = 4, 6, 8, 9  # GGUF's types of values
WIDTH = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
ALIGNMENT = 32


def text(value):
    return struct.pack("<Q", len(value)) + value.encode()


class Reader:
    """Walks over the keys of a GGUF file."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def number(self, form):
        value, = struct.unpack_from(form, self.data, self.at)
        self.at += struct.calcsize(form)
        return value

    def skip(self, kind):
        if kind == STRING:
            length = self.number("<Q")
            self.at += length
        elif kind == ARRAY:
            inner, count = self.number("<I"), self.number("<Q")
            if inner in WIDTH:
                self.at += count * WIDTH[inner]
            else:
                for _ in range(count):
                    self.skip(inner)
        else:
            self.at += WIDTH[kind]

    def keys(self):
        """(name, the whole entry as bytes, its value's type, where that begins) of each key."""
        self.at = 16
        for _ in range(self.number("<Q")):
            begin = self.at
            length = self.number("<Q")
            name = self.data[self.at:self.at + length].decode()
            self.at += length
            kind = self.number("<I")
            value = self.at
            self.skip(kind)
            yield name, self.data[begin:self.at], kind, value


def vocabulary(data):
    entries, words = [], 0
    for name, entry, kind, value in Reader(data).keys():
        if name.startswith("tokenizer."):
            entries.append(entry)
        if name == "tokenizer.ggml.tokens":
            words, = struct.unpack_from("<Q", data, value + 4)
    return entries, words


def settings():
    numbers = {"context_length": 512, "embedding_length": EMBEDDING, "block_count": LAYERS,
               "feed_forward_length": FEED_FORWARD, "attention.head_count": HEADS, "attention.head_count_kv": HEADS,
               "rope.dimension_count": EMBEDDING // HEADS}
    yield text("general.architecture") + struct.pack("<I", STRING) + text("llama")
    for name, value in numbers.items():
        yield text(f"llama.{name}") + struct.pack("<II", UINT32, value)
    yield text("llama.attention.layer_norm_rms_epsilon") + struct.pack("<If", FLOAT32, 1e-5)


def tensors(words):
    """(name, shape, type) of each tensor."""
    yield "token_embd.weight", (EMBEDDING, words), F16
    yield "output_norm.weight", (EMBEDDING,), F32
    yield "output.weight", (EMBEDDING, words), F16
    for layer in range(LAYERS):
        for norm in "attn_norm", "ffn_norm":
            yield f"blk.{layer}.{norm}.weight", (EMBEDDING,), F32
        for part in "attn_q", "attn_k", "attn_v", "attn_output":
            yield f"blk.{layer}.{part}.weight", (EMBEDDING, EMBEDDING), F16
        yield f"blk.{layer}.ffn_gate.weight", (EMBEDDING, FEED_FORWARD), F16
        yield f"blk.{layer}.ffn_up.weight", (EMBEDDING, FEED_FORWARD), F16
        yield f"blk.{layer}.ffn_down.weight", (FEED_FORWARD, EMBEDDING), F16


def weights(count, kind, source):
    """F32: ones. F16: between 1/16 and 1/8, of either sign."""
    if kind == F32:
        return struct.pack("<f", 1) * count
    mask, exponent = (int.from_bytes(pair * count, "little") for pair in (b"\xff\x83", b"\x00\x2c"))
    return (int.from_bytes(source.randbytes(2 * count), "little") & mask | exponent).to_bytes(2 * count, "little")


def padding(length):
    return bytes(-length % ALIGNMENT)


def main(vocabulary_path, model_path):
    with open(vocabulary_path, "rb") as file:
        entries, words = vocabulary(file.read())
    entries = [*settings(), *entries]
    source, listed, data = random.Random(18), [], bytearray()
    for name, shape, kind in tensors(words):
        listed.append(text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, kind, len(data)))
        count = shape[0] * (shape[1] if len(shape) > 1 else 1)
        data += weights(count, kind, source)
        data += padding(len(data))
    head = b"GGUF" + struct.pack("<IQQ", 3, len(listed), len(entries)) + b"".join(entries + listed)
    with open(model_path, "wb") as file:
        file.write(head + padding(len(head)) + data)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
