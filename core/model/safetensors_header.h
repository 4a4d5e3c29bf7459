/* The JSON of a safetensors header into the table of gm__contents. */
#ifndef GM_CORE_MODEL_SAFETENSORS_HEADER_H
#define GM_CORE_MODEL_SAFETENSORS_HEADER_H

#include "core/model/safetensors.h"

/* Fill tensors, dims and metadata from contents->header, which is written to. Each tensor is checked by itself: its
 * keys, type, shape, size and offsets within the data. On failure what is filled so far stays for gm__contents_free.
 */
gm_status gm__safetensors_header_parse(const gm_services *services, const char *path, gm__contents *contents,
                                       gm_error *err);

#endif
