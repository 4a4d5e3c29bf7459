/* The prediction for a load, beside what it took: `gmem load --check-fit`. */
#ifndef GM_TOOLS_GMEM_LOAD_LOAD_CHECK_H
#define GM_TOOLS_GMEM_LOAD_LOAD_CHECK_H

#include "gm/fit_check.h"
#include "gm/load.h"
#include "tools/gmem/output/json.h"
#include "tools/gmem/session/session.h"

/* Zeroed: nothing was checked. */
typedef struct load_check {
  bool done;
  gm_fit_part predicted;
  uint64_t free_before, free_after; /* GM_UNKNOWN_BYTES: nobody knows, or the host's, which everybody takes from */
  uint64_t reserved_bytes;          /* which the pool took from the driver */
  gm_fit_check_result result;
} load_check;

/* Before anything is loaded: the bytes that the tensors take, and what is free. */
void load_check_begin(load_check *self, const session *with, uint64_t bytes);

/* While everything is loaded. */
gm_status load_check_end(load_check *self, const session *with, const gm_load_result *loaded, gm_error *err);

void load_check_print(FILE *file, const load_check *self);
void load_check_json(json_writer *out, const load_check *self);

#endif
