/* The header of a safetensors file that is to be written. Pure. */
#ifndef GM_CORE_MODEL_SAFETENSORS_WRITE_H
#define GM_CORE_MODEL_SAFETENSORS_WRITE_H

#include "core/model/file_tensor.h"

/* Why the format cannot hold a tensor, for the end of a sentence. NULL: it can. */
const char *gm__safetensors_refuses(const gm__file_tensor *tensor);

/* Whether the format can hold a value: it has strings alone, in UTF-8. */
bool gm__safetensors_holds(const gm__file_value *value);

/* The order in which tensors lie in a file without holes: the widest types first, then by number, then by name. For
 * qsort. */
int gm__safetensors_order(const void *a, const void *b);

/* Make the beginning of a file: the header's length, the header, and spaces up to a multiple of GM__FILE_ALIGN. The
 * data of the tensors follow it, one after the other in that order. *out is `*out_bytes` of the table's services.
 * REQUIRES: they are in order, none is refused, and each value is held. Errors: OUT_OF_HOST_MEMORY, NOT_SUPPORTED: the
 * header is above the format's limit. */
gm_status gm__safetensors_begin(const gm__file_table *table, char **out, uint64_t *out_bytes, gm_error *err);

#endif
