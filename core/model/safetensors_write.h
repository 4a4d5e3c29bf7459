/* The header of a safetensors file that is to be written. Pure. */
#ifndef GM_CORE_MODEL_SAFETENSORS_WRITE_H
#define GM_CORE_MODEL_SAFETENSORS_WRITE_H

#include "core/model/file_tensor.h"
#include "gm/services.h"

/* Why the format cannot hold a tensor of that name and type, for the end of a sentence. NULL: it can. */
const char *gm__safetensors_refuses(const char *name, gm_dtype dtype);

/* The order in which tensors lie in a file without holes: the widest types first, then by name. For qsort. */
int gm__safetensors_order(const void *a, const void *b);

/* Make the beginning of a file: the header's length, the header, and spaces up to a multiple of 8. The data of
 * `tensors` follow it, one after the other in that order. *out is `*out_bytes` of `services`. REQUIRES: they are in
 * order, and none is refused. Errors: OUT_OF_HOST_MEMORY, NOT_SUPPORTED: the header is above the format's limit. */
gm_status gm__safetensors_begin(const gm_services *services, const gm__file_tensor *tensors, uint64_t count, char **out,
                                uint64_t *out_bytes, gm_error *err);

#endif
