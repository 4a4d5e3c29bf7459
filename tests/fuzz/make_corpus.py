#!/usr/bin/env python3
"""Writes the seed files of all fuzzers but that of traces: make_corpus.py [--check] CORPUS_DIR.

With --check nothing is written: exit 1 when a file is missing or differs."""
import io
import math
import pathlib
import struct
import sys
import zipfile

DTYPES = {"BOOL": 8, "U8": 8, "I8": 8, "F8_E4M3": 8, "F8_E5M2": 8, "F8_E8M0": 8, "F8_E4M3FNUZ": 8,
          "F8_E5M2FNUZ": 8, "F4": 4, "F6_E2M3": 6,
          "F6_E3M2": 6, "I16": 16, "U16": 16, "F16": 16, "BF16": 16, "I32": 32, "U32": 32, "F32": 32,
          "I64": 64, "U64": 64, "F64": 64, "C64": 64}


def tensor(name, dtype, shape, begin, end):
    return '"%s":{"dtype":"%s","shape":%s,"data_offsets":[%d,%d]}' % (name, dtype, shape, begin, end)


def file(header, data=0, length=None):
    text = header.encode("utf-8", "surrogatepass")
    return struct.pack("<Q", len(text) if length is None else length) + text + bytes(i & 0xff for i in range(data))


def every_dtype():
    entries, at = [], 0
    for dtype, size in sorted(DTYPES.items(), key=lambda item: -item[1]):
        entries.append(tensor("t." + dtype, dtype, "[2,4]", at, at + size))
        at += size
    return file("{" + ",".join(entries) + "}", at)


SAFETENSORS = {
    "good_empty": file("{}"),
    "good_one": file("{" + tensor("weight", "F32", "[2,2]", 0, 16) + "}", 16),
    "good_order": file("{" + tensor("b", "U8", "[3]", 4, 7) + "," + tensor("a", "U8", "[4]", 0, 4) + "}", 7),
    "good_metadata": file('{"__metadata__":{"format":"pt","k\\u00e9y":"\\ud83d\\ude00"},'
                          + tensor("x", "BF16", "[2]", 0, 4) + "}   ", 4),
    "good_zero": file("{" + tensor("z", "F64", "[18446744073709551615,0]", 0, 0) + "}"),
    "good_unknown_key": file('{"a":{"note":[{"x":[null,true,-1.5e3]}],' + tensor("a", "U8", "[]", 0, 1)[5:] + "}", 1),
    "good_dtypes": every_dtype(),
    "bad_no_length": b"1234567",
    "bad_huge_length": file("{}", length=2**64 - 1),
    "bad_long_length": file("{}", length=3),
    "bad_limit": file("{}", length=100000001),
    "bad_start": file("[]"),
    "bad_deep": file('{"a":' + '{"a":[' * 200),
    "bad_duplicate": file("{" + tensor("a", "U8", "[1]", 0, 1) + "," + tensor("a", "U8", "[1]", 1, 2) + "}", 2),
    "bad_duplicate_escaped": file("{" + tensor("a", "U8", "[1]", 0, 1) + "," + tensor("\\u0061", "U8", "[1]", 1, 2)
                                  + "}", 2),
    "bad_duplicate_field": file('{"a":{"dtype":"U8","dtype":"U8"}}'),
    "bad_duplicate_metadata": file('{"__metadata__":{"k":"1","k":"2"}}'),
    "bad_overlap": file("{" + tensor("a", "U8", "[4]", 0, 4) + "," + tensor("b", "U8", "[4]", 2, 6) + "}", 6),
    "bad_hole": file("{" + tensor("a", "U8", "[4]", 0, 4) + "," + tensor("b", "U8", "[4]", 5, 9) + "}", 9),
    "bad_tail": file("{" + tensor("a", "U8", "[4]", 0, 4) + "}", 5),
    "bad_truncated": file("{" + tensor("a", "U8", "[4]", 0, 4) + "}", 3),
    "good_unaligned": file("{" + tensor("a", "U8", "[1]", 0, 1) + "," + tensor("b", "I16", "[1]", 1, 3) + "}", 3),
    "bad_overflow": file("{" + tensor("a", "F32", "[4611686018427387904,4]", 0, 0) + "}"),
    "bad_number": file("{" + tensor("a", "U8", "[18446744073709551616]", 0, 1) + "}", 1),
    "bad_negative": file("{" + tensor("a", "U8", "[-1]", 0, 1) + "}", 1),
    "bad_nan": file("{" + tensor("a", "U8", "[NaN]", 0, 1) + "}", 1),
    "bad_string_dim": file("{" + tensor("a", "U8", '["1"]', 0, 1) + "}", 1),
    "bad_dtype": file("{" + tensor("a", "Q4_K", "[1]", 0, 1) + "}", 1),
    "bad_rank": file("{" + tensor("a", "U8", str([1] * 17), 0, 1) + "}", 1),
    "bad_backwards": file("{" + tensor("a", "U8", "[1]", 1, 0) + "}", 1),
    "bad_nul_name": file('{"\\u0000":{}}'),
    "bad_surrogate": file('{"\\ud800":{}}'),
    "bad_utf8": struct.pack("<Q", 4) + b'{"\xff"',
}

SHARD_INDEX = {
    "good_two": b'{"metadata":{"total_size":8},"weight_map":{"a":"1.safetensors","b":"2.safetensors"}}\n',
    "good_one": b'{"weight_map":{"a":"x"}}',
    "bad_empty": b'{"weight_map":{}}',
    "bad_missing": b'{"metadata":{}}',
    "bad_escape": b'{"weight_map":{"a":"../../etc/passwd"}}',
    "bad_slash": b'{"weight_map":{"a":"d\\u002fx"}}',
    "bad_dots": b'{"weight_map":{"a":".."}}',
    "bad_twice": b'{"weight_map":{"a":"x","a":"y"}}',
    "bad_map_twice": b'{"weight_map":{"a":"x"},"weight_map":{"b":"x"}}',
    "bad_type": b'{"weight_map":{"a":["x"]}}',
    "bad_deep": b'{"metadata":' + b"[" * 300,
}


def text(value, version=3):
    raw = value if isinstance(value, bytes) else value.encode()
    return struct.pack("<I" if version == 1 else "<Q", len(raw)) + raw


def value(key, kind, raw, version=3):
    return text(key, version) + struct.pack("<I", kind) + raw


def number(key, amount):
    return value(key, 4, struct.pack("<I", amount))


def array(key, kind, items, count=None, version=3):
    head = struct.pack("<II" if version == 1 else "<IQ", kind, len(items) if count is None else count)
    return value(key, 9, head + b"".join(items), version)


def info(name, dims, kind, offset, version=3):
    size = "I" if version == 1 else "Q"
    return text(name, version) + struct.pack("<I%d%sIQ" % (len(dims), size), len(dims), *dims, kind, offset)


def gguf(values=(), infos=(), data=0, version=3, tensors=None, count=None, alignment=32):
    counts = (len(infos) if tensors is None else tensors, len(values) if count is None else count)
    head = b"GGUF" + struct.pack("<III" if version == 1 else "<IQQ", version, *counts) + b"".join(values) + b"".join(infos)
    return head + bytes(-len(head) % alignment) + bytes(i & 0xff for i in range(data)) if data else head


def llama(*more):
    return [value("general.architecture", 8, text("llama")), number("llama.embedding_length", 64),
            number("llama.block_count", 2), number("llama.attention.head_count", 4)] + list(more)


GGUF = {
    "good_empty": gguf(),
    "good_v1": gguf([value("a", 8, text("b", 1), 1)], [info("t", [4], 0, 0, 1)], 16, 1),
    "good_v2": gguf([value("a", 0, b"x")], [info("t", [4], 0, 0)], 16, 2),
    "good_model": gguf(llama(array("llama.attention.head_count_kv", 5, [struct.pack("<i", 2)] * 2)),
                       [info("token_embd.weight", [64, 8], 2, 0), info("output.weight", [64, 8], 2, 288)], 576),
    "good_scalars": gguf([value("k%d" % kind, kind, bytes([1] + [0] * (size - 1)))
                          for kind, size in ((0, 1), (1, 1), (2, 2), (3, 2), (4, 4), (5, 4), (6, 4), (7, 1), (10, 8),
                                             (11, 8), (12, 8))]),
    "good_strings": gguf([array("s", 8, [text(""), text("one"), text(b"\0\xff")])]),
    "good_windows": gguf(llama(number("llama.attention.sliding_window", 16),
                               array("llama.attention.sliding_window_pattern", 7, [b"\1", b"\0"]))),
    "good_alignment": gguf([number("general.alignment", 64)], [info("a", [1], 24, 0), info("b", [1], 24, 64)], 65,
                           alignment=64),
    "good_zero": gguf([], [info("z", [0, 2**63], 1, 0)]),
    "good_scalar": gguf([], [info("s", [], 28, 0)], 8),
    "good_only_scalars": gguf([number("a", 1)], [info("s", [], 28, 0)], 8),
    "good_types": gguf([], [info("t%d" % kind, [256], kind, 4096 * i)
                            for i, kind in enumerate([0, 1, 2, 3, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20,
                                                      21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 34, 35, 39, 40, 41, 42])]),
    "bad_version": gguf(version=4),
    "bad_big_endian": b"GGUF\0\0\0\3" + bytes(16),
    "bad_tensor_count": gguf(tensors=2**64 - 1),
    "bad_value_count": gguf(count=2**63),
    "bad_array_count": gguf([array("a", 8, [], 2**61)]),
    "bad_array_array": gguf([array("a", 9, [struct.pack("<IQ", 0, 0)])]),
    "bad_string_length": gguf([value("a", 8, struct.pack("<Q", 2**64 - 1))]),
    "bad_type": gguf([value("a", 13, bytes(8))]),
    "bad_bool": gguf([value("a", 7, b"\2")]),
    "bad_key_twice": gguf([value("a", 0, b"x"), value("a", 0, b"x")]),
    "bad_key_empty": gguf([value("", 0, b"x")]),
    "bad_key_nul": gguf([value(b"a\0b", 0, b"x")]),
    "bad_alignment": gguf([number("general.alignment", 0)]),
    "bad_alignment_type": gguf([value("general.alignment", 5, struct.pack("<i", 32))]),
    "bad_name_twice": gguf([], [info("a", [1], 24, 0), info("a", [1], 24, 32)], 33),
    "bad_overlap": gguf([], [info("a", [33], 24, 0), info("b", [1], 24, 32)], 33),
    "bad_misaligned": gguf([], [info("a", [1], 24, 1)], 33),
    "bad_outside": gguf([], [info("a", [34], 24, 0)], 33),
    "bad_offset": gguf([], [info("a", [1], 24, 2**64 - 32)], 33),
    "bad_overflow": gguf([], [info("a", [2**32, 2**32, 2], 24, 0)], 33),
    "bad_row": gguf([], [info("a", [16, 2], 2, 0)], 33),
    "bad_rank": gguf([], [info("a", [1] * 5, 24, 0)], 33),
    "bad_removed": gguf([], [info("a", [32], 4, 0)], 33),
    "bad_unknown": gguf([], [info("a", [32], 99, 0)], 33),
    "bad_config_float": gguf(llama(value("llama.context_length", 6, struct.pack("<f", float("nan"))))),
    "bad_config_string": gguf(llama(value("llama.context_length", 8, text("4096")))),
    "bad_config_missing": gguf([value("general.architecture", 8, text("llama"))]),
}

def array(descr="'<f4'", shape="(2,)", data=8, order="False", version=1, rest=", }"):
    header = "{'descr': %s, 'fortran_order': %s, 'shape': %s%s" % (descr, order, shape, rest)
    length = struct.pack("<H" if version == 1 else "<I", len(header))
    return b"\x93NUMPY" + bytes([version, 0]) + length + header.encode() + bytes(i & 0xff for i in range(data))


def archive(*members, force_zip64=False, comment=b""):
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as out:
        for name, content in members:
            about = zipfile.ZipInfo(name)  # of 1980: always the same bytes
            with out.open(about, "w", force_zip64=force_zip64) as member:
                member.write(content)
        out.comment = comment
    return written.getvalue()


def wide(stored):
    """The sizes of the first member stand behind its header, as ZIP64 has it. Python before 3.11.4 says less of that."""
    out, listed = bytearray(stored), stored.index(b"PK\1\2")
    out[4] = out[listed + 4] = out[listed + 6] = 45  # the version of the format that reads it
    out[18:26] = b"\xff" * 8
    return bytes(out)


def deflated(stored):
    """The list says that a member is compressed."""
    method = stored.index(b"PK\1\2") + 10
    return stored[:method] + b"\x08" + stored[method + 1:]


NPY = {
    "good_array": array(),
    "good_version_3": array(version=3),
    "good_scalar": array(shape="()", data=4),
    "good_columns": array(shape="(2, 1)", order="True"),
    "good_archive": archive(("a.npy", array()), ("layer/b.npy", array(shape="(1, 1)", data=4))),
    "good_archive_wide": wide(archive(("a.npy", array()), force_zip64=True)),
    "good_archive_comment": archive(("a.npy", array()), comment=b"PK\5\6"),
    "good_archive_empty": archive(),
    "bad_version": array(version=9),
    "bad_structure": array(descr="[('a', '<f4')]"),
    "bad_object": array(descr="'|O'"),
    "bad_high_byte_first": array(descr="'>f4'"),
    "bad_columns": array(shape="(1, 2, 2)", order="True", data=16),
    "bad_short": array(data=7),
    "bad_long": array(data=9),
    "bad_end": array(rest=", } x"),
    "bad_no_end": array(rest=""),
    "bad_dimension": array(shape="(18446744073709551615, 2)"),
    "bad_archive_deflated": deflated(archive(("a.npy", array()))),
    "bad_archive_pickle": archive(("archive/data.pkl", b"\x80\2}q\0.")),
    "bad_archive_cut": archive(("a.npy", array()))[:-1],
    "bad_archive_array": archive(("a.npy", array(data=7))),
    "bad_archive_no_list": archive(("a.npy", array()))[:60] + archive()[-22:],
}

CONFIG_JSON = {
    "good_llama": b'{"model_type":"llama","hidden_size":4096,"num_hidden_layers":32,"num_attention_heads":32,'
                  b'"num_key_value_heads":8,"vocab_size":32000,"tie_word_embeddings":false,"rope_theta":1e4}',
    "good_nested": b'{"model_type":"gemma3","text_config":{"model_type":"gemma3_text","hidden_size":2560,'
                   b'"num_hidden_layers":34,"sliding_window":1024},"vision_config":{"hidden_size":1}}',
    "good_layers": b'{"model_type":"gpt_oss","hidden_size":64,"num_hidden_layers":2,"num_attention_heads":4,'
                   b'"sliding_window":128,"layer_types":["sliding_attention","full_attention"]}',
    "good_mamba": b'{"model_type":"mamba","d_model":768,"n_layer":24,"expand":2,"time_step_limit":[0.0,Infinity]}',
    "good_t5": b'{"model_type":"t5","d_model":8,"num_layers":2,"num_decoder_layers":3,"num_heads":2,"d_kv":4}',
    "good_mla": b'{"model_type":"deepseek_v3","hidden_size":64,"num_hidden_layers":2,"num_attention_heads":4,'
                b'"kv_lora_rank":512,"qk_rope_head_dim":64,"qk_nope_head_dim":128,"v_head_dim":128}',
    "good_dsa": b'{"model_type":"glm_moe_dsa","hidden_size":64,"num_hidden_layers":2,"num_attention_heads":4,'
                b'"q_lora_rank":32,"kv_lora_rank":16,"index_head_dim":8,"index_n_heads":4,"index_topk":64}',
    "good_experts": b'{"model_type":"jamba","hidden_size":64,"num_hidden_layers":8,"num_attention_heads":4,'
                    b'"num_experts":16,"num_experts_per_tok":2,"expert_layer_period":2,"expert_layer_offset":1,'
                    b'"attn_layer_period":8,"attn_layer_offset":4,"mamba_d_state":16,"mamba_d_conv":4}',
    "good_linear": b'{"model_type":"qwen3_next","hidden_size":64,"num_hidden_layers":4,"num_attention_heads":4,'
                   b'"full_attention_interval":4,"linear_conv_kernel_dim":4,"linear_key_head_dim":8,'
                   b'"linear_num_key_heads":2,"linear_num_value_heads":4,"linear_value_head_dim":8}',
    "good_shared_kv": b'{"model_type":"gemma3n_text","hidden_size":64,"num_hidden_layers":4,"num_attention_heads":4,'
                      b'"num_kv_shared_layers":2,"intermediate_size":[8,8,16,16],"_sliding_window_pattern":2}',
    "good_blocks": b'{"model_type":"nemotron_h","hidden_size":64,"num_attention_heads":4,'
                   b'"hybrid_override_pattern":"M-M*E-"}',
    "good_idxs": b'{"model_type":"lfm2","hidden_size":64,"num_hidden_layers":4,"num_attention_heads":4,'
                 b'"full_attn_idxs":[1,3],"conv_L_cache":3,"block_auto_adjust_ff_dim":true}',
    "good_quantised": b'{"model_type":"llama","hidden_size":64,"num_hidden_layers":2,"num_attention_heads":4,'
                      b'"dtype":"bfloat16","quantization_config":{"quant_method":"fp8","weight_block_size":[128,128]}}',
    "bad_empty": b"",
    "bad_missing": b'{"model_type":"llama"}',
    "bad_true": b'{"vocab_size":true}',
    "bad_dtypes": b'{"dtype":"float32","torch_dtype":"bfloat16"}',
    "bad_experts": b'{"num_experts":8,"num_local_experts":9}',
    "bad_true_in_list": b'{"num_key_value_heads":[1,true]}',
    "bad_string": b'{"hidden_size":"4096"}',
    "bad_nan": b'{"hidden_size":NaN}',
    "bad_negative": b'{"hidden_size":-1}',
    "bad_float": b'{"hidden_size":1.5}',
    "bad_large": b'{"hidden_size":99999999999999999999}',
    "bad_twice": b'{"hidden_size":1,"hidden_size":2}',
    "bad_type": b'{"model_type":["llama"]}',
    "bad_long_type": b'{"model_type":"' + b"x" * 40 + b'"}',
    "bad_deep": b'{"a":' + b"[" * 300,
    "bad_tail": b'{"hidden_size":1}}',
}

# 100 bytes in a frame of zstd: packed literals and nothing else, as the codec makes it.
FRAME = bytes.fromhex(
    "28b52ffd206465010042060a08e0e929493900006147f1774feb24ab435b5be7b1e2badf83ebd7e5fec759930a3c6b7d7a89"
    "555f00")
FRAME_PLAIN = bytes.fromhex("28b52ffd2004210000") + b"abcd"  # 4 bytes as they are
FRAME_RUN = bytes.fromhex("28b52ffd2014") + struct.pack("<I", 20 << 3 | 3)[:3] + b"z"  # 20 times one byte


def planes_chunk(stored, kind):
    return struct.pack("<IIQ", len(stored), kind, 0) + stored


def planes_piece(plain, *chunks, magic=b"gmplanes", version=1):
    return magic + struct.pack("<IIQ", version, 1, plain) + b"".join(chunks)


PLANES = {
    "good_empty": planes_piece(0),
    "good_plain": planes_piece(5, planes_chunk(b"12345", 0)),
    "good_packed": planes_piece(200, planes_chunk(bytes(range(100)) + FRAME, 1)),
    "good_frame_plain": planes_piece(8, planes_chunk(b"efgh" + FRAME_PLAIN, 1)),
    "good_frame_run": planes_piece(40, planes_chunk(bytes(20) + FRAME_RUN, 1)),
    "bad_magic": planes_piece(0, magic=b"gmplanet"),
    "bad_version": planes_piece(0, version=2),
    "bad_huge": planes_piece(2**64 - 1, planes_chunk(b"12345", 0)),
    "bad_long_chunk": planes_piece(5, struct.pack("<IIQ", 2**32 - 1, 0, 0) + b"12345"),
    "bad_kind": planes_piece(5, planes_chunk(b"12345", 7)),
    "bad_odd": planes_piece(7, planes_chunk(b"efg" + FRAME_PLAIN, 1)),
    "bad_no_frame": planes_piece(8, planes_chunk(b"efgh", 1)),
    "bad_short_frame": planes_piece(10, planes_chunk(b"efghi" + FRAME_PLAIN, 1)),
    "bad_long_frame": planes_piece(6, planes_chunk(b"efg" + FRAME_PLAIN, 1)),
    "bad_tail": planes_piece(5, planes_chunk(b"12345", 0), b"6"),
}


def shapes(*tensors):
    """A header without data: tensors of f16 with these names and shapes."""
    parts, at = [], 0
    for name, *dims in tensors:
        end = at + 2 * math.prod(dims)
        parts.append(tensor(name, "F16", str(list(dims)), at, end))
        at = end
    return file("{" + ",".join(parts) + "}")


def flux(prefix=""):
    return [(prefix + "img_in.weight", 256, 64), (prefix + "vector_in.in_layer.weight", 256, 768),
            (prefix + "single_blocks.0.linear1.weight", 1792, 256), (prefix + "single_blocks.0.norm.key_norm.scale", 128)]


def vae(prefix=""):
    return [(prefix + "decoder.mid.block_1.conv1.weight", 64, 64, 3, 3), (prefix + "decoder.up.0.block.0.conv1.weight", 32, 64, 3, 3),
            (prefix + "decoder.up.2.upsample.conv.weight", 64, 64, 3, 3), (prefix + "decoder.conv_out.weight", 3, 32, 3, 3)]


WHISPER = [("model.encoder.conv1.weight", 64, 80, 3), ("model.encoder.embed_positions.weight", 1500, 64),
           ("model.decoder.embed_positions.weight", 448, 64), ("model.decoder.embed_tokens.weight", 100, 64),
           ("model.decoder.layers.0.fc1.weight", 256, 64)]
T5_PARTS = [("encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight", 32, 8),
            ("encoder.block.0.layer.1.DenseReluDense.wi_0.weight", 128, 64)]
COMPONENTS = {
    "good_flux": shapes(*flux()),
    "good_diffusers": shapes(("x_embedder.weight", 256, 64), ("time_text_embed.text_embedder.linear_1.weight", 256, 768),
                             ("single_transformer_blocks.0.proj_mlp.weight", 1024, 256),
                             ("single_transformer_blocks.0.attn.norm_k.weight", 128)),
    "good_chroma": shapes(("distilled_guidance_layer.in_proj.weight", 16, 64), *(one for one in flux() if "vector" not in one[0])),
    "good_flux2": shapes(("img_in.weight", 256, 128), ("double_stream_modulation_img.lin.weight", 1536, 256),
                         ("single_blocks.0.linear1.weight", 2304, 256), ("single_blocks.0.norm.key_norm.scale", 128)),
    "good_qwen_image": shapes(("img_in.weight", 256, 64), ("transformer_blocks.0.img_mlp.net.0.proj.weight", 1024, 256),
                              ("transformer_blocks.0.txt_mlp.net.2.weight", 256, 1024),
                              ("transformer_blocks.0.attn.norm_added_k.weight", 128)),
    "good_sd3": shapes(("x_embedder.proj.weight", 128, 16, 2, 2), ("joint_blocks.0.x_block.mlp.fc1.weight", 512, 128)),
    "good_vae": shapes(*vae()),
    "good_unet": shapes(("input_blocks.0.0.weight", 32, 4, 3, 3), ("input_blocks.3.0.op.weight", 32, 32, 3, 3),
                        ("middle_block.0.in_layers.2.weight", 64, 64, 3, 3), ("output_blocks.2.1.conv.weight", 64, 64, 3, 3),
                        ("output_blocks.0.0.in_layers.2.weight", 64, 128, 3, 3),
                        ("input_blocks.1.1.transformer_blocks.0.attn1.to_q.weight", 64, 64),
                        ("input_blocks.1.1.transformer_blocks.0.attn2.to_k.weight", 64, 768)),
    "good_unet_diffusers": shapes(("conv_in.weight", 32, 4, 3, 3), ("mid_block.resnets.0.conv1.weight", 64, 64, 3, 3),
                                  ("down_blocks.0.resnets.0.conv1.weight", 32, 32, 3, 3),
                                  ("up_blocks.0.resnets.0.conv1.weight", 64, 128, 3, 3),
                                  ("down_blocks.1.resnets.0.conv1.weight", 64, 32, 3, 3),
                                  ("up_blocks.1.attentions.0.transformer_blocks.0.attn1.to_q.weight", 64, 64),
                                  ("up_blocks.1.attentions.0.transformer_blocks.0.attn2.to_k.weight", 64, 128)),
    "good_clip": shapes(("text_model.encoder.layers.0.mlp.fc1.weight", 256, 64)),
    "good_t5": shapes(*T5_PARTS),
    "good_whisper": shapes(*WHISPER),
    "good_several": shapes(*flux("model.diffusion_model."), *vae("first_stage_model."), ("alphas_cumprod", 10),
                           *[("text_encoders.t5xxl.transformer." + name, *dims) for name, *dims in T5_PARTS]),
    "good_other": shapes(("model.embed_tokens.weight", 4, 4)),
    "good_gguf": gguf([value("general.architecture", 8, text("flux"))], [info("img_in.weight", [64, 32], 0, 0)], 0),
    "bad_nothing": b"",
}


def main():
    check = sys.argv[1] == "--check"
    root, wrong = pathlib.Path(sys.argv[-1]), []
    for folder, files in (("safetensors", SAFETENSORS), ("shard_index", SHARD_INDEX), ("gguf", GGUF),
                          ("npy", NPY), ("config_json", CONFIG_JSON), ("planes", PLANES),
                          ("components", COMPONENTS)):
        for name, content in files.items():
            path = root / folder / name
            if not check:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
            elif not path.is_file() or path.read_bytes() != content:
                wrong.append(str(path))
    for path in wrong:
        print("missing or not as the script makes it:", path, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
