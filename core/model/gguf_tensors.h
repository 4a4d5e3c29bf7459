/* The table of tensors in a GGUF header. */
#ifndef GM_CORE_MODEL_GGUF_TENSORS_H
#define GM_CORE_MODEL_GGUF_TENSORS_H

#include "core/model/gguf_reader.h"

/* Read `count` tensors: each checked by itself, its data at a multiple of `alignment`. False: the reader has the
 * failure. */
bool gm__gguf_read_tensors(gm__gguf_reader *reader, uint64_t count, uint64_t alignment);

/* With the place and size of the data known: order the tensors, and check that they lie within it without overlap. */
bool gm__gguf_place_tensors(gm__gguf_reader *reader);

#endif
