/* The statements of a model's files about themselves, for a new file. */
#ifndef GM_CORE_LOAD_SAVE_VALUES_H
#define GM_CORE_LOAD_SAVE_VALUES_H

#include "core/load/save_format.h"
#include "core/model/model.h"

typedef struct gm__save_values {
  gm__file_value *values;
  uint64_t count, capacity, left_out;
} gm__save_values;

/* Lists the values of all files, each key once, in the order of the files. Those that the format cannot hold are left
 * out, and counted. gm__save_values_end ends it, also after a failure. OUT_OF_HOST_MEMORY. */
gm_status gm__save_values_make(gm__save_values *list, const gm_model *model, const gm__save_format *format,
                               gm_error *err);
void gm__save_values_end(gm__save_values *list, const gm_services *services);

#endif
