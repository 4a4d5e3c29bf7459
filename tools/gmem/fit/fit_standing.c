/* How far each figure can be trusted. */
#include "tools/gmem/fit/fit_standing.h"

#include <inttypes.h>
#include <string.h>

static const char *const standing_words[] = {"exact", "interval", "unknown"};
static const char *const standing_parts[GM_ESTIMATE_PARTS] = {"weights", "cache", "state", "compute"};

bool fit_is_unknown(const fit_question *self, gm_estimate_part_kind part) {
  return self->estimate.parts[part].standing == GM_STANDING_UNKNOWN;
}

/* The standing of the model, and of what is beside it. */
static gm_standing standing_whole(const fit_question *self) {
  return fit_unknown(self) ? GM_STANDING_UNKNOWN : self->estimate.standing;
}

const char *fit_standing_reason(const fit_question *self) {
  const gm_memory_estimate *estimate = &self->estimate;
  if (estimate->standing != standing_whole(self)) return fit_unknown(self);
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
  fprintf(file, "how sure: %s", standing_words[standing_whole(self)]);
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

/* In the words of the contract: the state of recurrent layers is part of the cache. */
static void standing_of(json_writer *out, const gm_estimate_part *parts) {
  const gm_standing state = parts[GM_ESTIMATE_STATE].standing, cache = parts[GM_ESTIMATE_CACHE].standing;
  writer_open(out, "standing_of", '{');
  writer_text(out, "weights", standing_words[parts[GM_ESTIMATE_WEIGHTS].standing]);
  writer_text(out, "cache", standing_words[state > cache ? state : cache]);
  writer_text(out, "compute", standing_words[parts[GM_ESTIMATE_COMPUTE].standing]);
  writer_close(out);
}

/* Every reason once: of the parts, and of what is beside the model. */
static void standing_why(json_writer *out, const fit_question *self) {
  const gm_estimate_part *parts = self->estimate.parts;
  const char *beside = fit_unknown(self);
  writer_open(out, "why", '[');
  for (int i = 0; i < GM_ESTIMATE_PARTS; i++) {
    bool is_new = parts[i].reason[0] != '\0';
    for (int k = 0; k < i; k++) is_new = is_new && strcmp(parts[i].reason, parts[k].reason) != 0;
    if (is_new) writer_text(out, NULL, parts[i].reason);
  }
  if (beside) writer_text(out, NULL, beside);
  writer_close(out);
}

void fit_standing_json(json_writer *out, const fit_question *self) {
  writer_text(out, "standing", standing_words[standing_whole(self)]);
  standing_of(out, self->estimate.parts);
  standing_why(out, self);
  writer_text_or_null(out, "standing_reason", fit_standing_reason(self));
  writer_open(out, "parts", '[');
  for (int i = 0; i < GM_ESTIMATE_PARTS; i++) standing_part(out, standing_parts[i], &self->estimate.parts[i]);
  writer_close(out);
}
