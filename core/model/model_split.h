/* Models in several files: NAME-00001-of-00005.gguf or .safetensors. */
#ifndef GM_CORE_MODEL_MODEL_SPLIT_H
#define GM_CORE_MODEL_MODEL_SPLIT_H

#include "core/model/model.h"

typedef struct gm__split_name {
  uint64_t stem;   /* bytes before "-00001-of-00005" */
  uint32_t number; /* from 1 */
  uint32_t count;
} gm__split_name;

/* True when the file's name, with or without folders before it, is that of a part with this extension, such as ".gguf":
 * 1 <= number <= count. */
bool gm__split_name_parse(const char *name, const char *extension, gm__split_name *out);

/* For a model whose only shard states that it is one part of several: open the others, and check that they belong
 * together. GM_ERR_NOT_FOUND names a missing part; GM_ERR_FORMAT. */
gm_status gm__model_open_split(gm_model *model, gm_error *err);

#endif
