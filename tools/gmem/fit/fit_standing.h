/* How far each figure can be trusted. */
#ifndef GM_TOOLS_GMEM_FIT_FIT_STANDING_H
#define GM_TOOLS_GMEM_FIT_FIT_STANDING_H

#include "tools/gmem/fit/fit.h"

/* True where gm does not know the rules of a part. */
bool fit_is_unknown(const fit_question *self, gm_estimate_part_kind part);

/* Why the whole is no better; "": it is exact. */
const char *fit_standing_reason(const fit_question *self);

void fit_standing_print(FILE *file, const fit_question *self);
void fit_standing_json(json_writer *out, const fit_question *self);

#endif
