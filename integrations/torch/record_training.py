"""Records tests/data/torch/training.txt: the memory of a small transformer, two steps of Adam, batches on a copy stream.

usage: record_training.py LIBRARY OUTPUT     LIBRARY is record_training.cpp, compiled
"""
import ctypes
import sys

import torch

MAIN, COPY = 0, 1
library = ctypes.CDLL(sys.argv[1])
library.record_begin.argtypes = [ctypes.c_char_p]
library.record_use.argtypes = [ctypes.c_void_p, ctypes.c_int]
torch.manual_seed(1)
torch.set_num_threads(1)
library.record_install()
library.record_begin(sys.argv[2].encode())

model = torch.nn.Sequential(torch.nn.Embedding(300, 64),
                            torch.nn.TransformerEncoderLayer(64, 4, 128, dropout=0.0, batch_first=True),
                            torch.nn.TransformerEncoderLayer(64, 4, 128, dropout=0.0, batch_first=True),
                            torch.nn.Linear(64, 300))
optimizer = torch.optim.Adam(model.parameters(), foreach=False)
for step in range(2):
    library.record_on_stream(COPY)  # as a loader copies the next batch while the last one is computed
    batch = torch.randint(300, (4, 33))
    library.record_on_stream(MAIN)
    library.record_use(batch.data_ptr(), MAIN)
    logits = model(batch[:, :-1])
    loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    del batch, logits
del model, optimizer, loss
library.record_end()
