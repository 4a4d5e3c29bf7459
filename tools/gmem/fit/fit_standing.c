/* How far each figure can be trusted. */
#include "tools/gmem/fit/fit_standing.h"

#include <inttypes.h>

static const char *const standing_words[] = {"exact", "interval", "unknown"};
static const char *const standing_parts[GM_ESTIMATE_PARTS] = {"weights", "cache", "state", "compute"};

bool fit_is_unknown(const fit_question *self, gm_estimate_part_kind part) {
  return self->estimate.parts[part].standing == GM_STANDING_UNKNOWN;
}

const char *fit_standing_reason(const fit_question *self) {
  const gm_memory_estimate *estimate = &self->estimate;
  for (int i = 0; i < GM_ESTIMATE_PARTS; i++) {
    if (estimate->parts[i].standing == estimate->standing) return estimate->parts[i].reason;
  }
  return "";
}

/* A model without recurrent layers has no state to speak of. */
static bool standing_counts(const gm_memory_estimate *estimate, int part) {
  return part != GM_ESTIMATE_STATE || estimate->parts[part].range.bytes > 0;
}

void fit_standing_print(FILE *file, const fit_question *self) {
  const gm_memory_estimate *estimate = &self->estimate;
  const char *reason = fit_standing_reason(self);
  fprintf(file, "how sure: %s", standing_words[estimate->standing]);
  for (int i = 0; i < GM_ESTIMATE_PARTS; i++) {
    if (!standing_counts(estimate, i)) continue;
    fprintf(file, "%s%s %s", i == 0 ? " (" : ", ", standing_parts[i], standing_words[estimate->parts[i].standing]);
  }
  fprintf(file, ")%s%s\n", reason[0] ? ": " : "", reason);
}

static void standing_part(json_writer *out, const char *name, const gm_estimate_part *part) {
  const bool known = part->standing != GM_STANDING_UNKNOWN;
  writer_open(out, NULL, '{');
  writer_text(out, "part", name);
  writer_text(out, "standing", standing_words[part->standing]);
  writer_bytes(out, "bytes", known ? part->range.bytes : GM_UNKNOWN_BYTES);
  writer_bytes(out, "low_bytes", known ? part->range.low : GM_UNKNOWN_BYTES);
  writer_bytes(out, "high_bytes", known ? part->range.high : GM_UNKNOWN_BYTES);
  writer_text_or_null(out, "reason", part->reason);
  writer_close(out);
}

void fit_standing_json(json_writer *out, const fit_question *self) {
  writer_text(out, "standing", standing_words[self->estimate.standing]);
  writer_text_or_null(out, "standing_reason", fit_standing_reason(self));
  writer_open(out, "parts", '[');
  for (int i = 0; i < GM_ESTIMATE_PARTS; i++) standing_part(out, standing_parts[i], &self->estimate.parts[i]);
  writer_close(out);
}
