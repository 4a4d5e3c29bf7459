/* The header of a GGUF file that is to be written, in version 3. Pure. */
#ifndef GM_CORE_MODEL_GGUF_WRITE_H
#define GM_CORE_MODEL_GGUF_WRITE_H

#include "core/model/file_tensor.h"

/* Why the format, as ggml reads it, cannot hold a tensor, for the end of a sentence. NULL: it can. */
const char *gm__gguf_refuses(const gm__file_tensor *tensor);

/* Whether the format can hold a value. Not those that say how the file itself is made: its alignment, its parts. */
bool gm__gguf_holds(const gm__file_value *value);

/* Whether that value says how a file is made, so that a new file has its own. */
bool gm__gguf_is_of_file(const gm__json_text *key);

/* Make the beginning of a file: the header, and zeros up to a multiple of GM__FILE_ALIGN, which is the file's
 * alignment. The data of each tensor follow, with zeros up to the next multiple. *out is `*out_bytes` of the table's
 * services. REQUIRES: no tensor is refused, and each value is held. Errors: OUT_OF_HOST_MEMORY, NOT_SUPPORTED: the
 * header is above gm's limit. */
gm_status gm__gguf_begin(const gm__file_table *table, char **out, uint64_t *out_bytes, gm_error *err);

#endif
