#include "gm/fit_check.h"

#include <stdio.h>

#include "core/base/cancel.h"
#include "core/base/error.h"
#include "core/base/saturate.h"
#include "core/base/sized.h"
#include "gm/size.h"

enum { CHECK_WEIGHTS, CHECK_CACHE, CHECK_COMPUTE, CHECK_OVERHEAD, CHECK_TOTAL, CHECK_SIZE = 16 };

static gm_fit_check_row check_row(const char *name, uint64_t predicted, uint64_t actual) {
  gm_fit_check_row row = {.name = name, .predicted_bytes = predicted, .actual_bytes = actual};
  if (actual == GM_UNKNOWN_BYTES) return row;
  row.outcome = actual < predicted ? GM_FIT_OUTCOME_LESS : GM_FIT_OUTCOME_MORE;
  if (actual == predicted) row.outcome = GM_FIT_OUTCOME_EQUAL;
  return row;
}

/* The rest of the total, which is in no part. */
static uint64_t check_rest(const gm_fit_taken *taken) {
  const uint64_t parts[] = {taken->weight_bytes, taken->kv_bytes, taken->compute_bytes, taken->total_bytes};
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
    if (parts[i] == GM_UNKNOWN_BYTES) return GM_UNKNOWN_BYTES;
  }
  return gm__sub_sat(parts[3], gm__add_sat(parts[0], gm__add_sat(parts[1], parts[2])));
}

static void check_text(gm_fit_check_result *result, uint64_t margin) {
  const gm_fit_check_row *total = &result->rows[CHECK_TOTAL];
  char predicted[CHECK_SIZE], actual[CHECK_SIZE], kept[CHECK_SIZE], over[CHECK_SIZE];
  gm_format_bytes(total->predicted_bytes, predicted, sizeof predicted);
  gm_format_bytes(total->actual_bytes, actual, sizeof actual);
  gm_format_bytes(margin, kept, sizeof kept);
  gm_format_bytes(result->over_bytes, over, sizeof over);
  if (total->actual_bytes == GM_UNKNOWN_BYTES) {
    snprintf(result->text, sizeof result->text, "%s were predicted, and the total was not measured", predicted);
  } else if (result->within) {
    snprintf(result->text, sizeof result->text, "within the margin: it took %s; %s were predicted, with a margin of %s",
             actual, predicted, kept);
  } else {
    snprintf(result->text, sizeof result->text,
             "more than predicted: it took %s, which is %s above the %s predicted and the margin of %s", actual, over,
             predicted, kept);
  }
}

static void check_fill(const gm_fit_part *predicted, uint64_t margin, const gm_fit_taken *taken, uint64_t overhead,
                       gm_fit_check_result *out) {
  const uint64_t rest = check_rest(taken), total = taken->total_bytes;
  const uint64_t most = gm__add_sat(predicted->bytes, margin);
  out->rows[CHECK_WEIGHTS] = check_row("weights", predicted->weight_bytes, taken->weight_bytes);
  out->rows[CHECK_CACHE] = check_row("cache", predicted->kv_bytes, taken->kv_bytes);
  out->rows[CHECK_COMPUTE] = check_row("compute", predicted->compute_bytes, taken->compute_bytes);
  out->rows[CHECK_OVERHEAD] = check_row("overhead", overhead, rest);
  out->rows[CHECK_TOTAL] = check_row("total", predicted->bytes, total);
  out->unaccounted_bytes = rest;
  out->within = total != GM_UNKNOWN_BYTES && total <= most;
  out->over_bytes = total == GM_UNKNOWN_BYTES ? 0 : gm__sub_sat(total, most);
  check_text(out, margin);
}

gm_status gm_fit_check(const gm_fit_part *predicted, uint64_t margin_bytes, const gm_fit_taken *taken,
                       gm_fit_check_result *out, gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_fit_check";
  gm_fit_taken measured;
  gm_fit_check_result result = {.struct_size = sizeof result};
  if (!predicted) return gm__bad_argument(err, op, "`predicted` is NULL");
  gm_status status = gm__sized_in(&measured, sizeof measured, taken, op, "taken", err);
  if (status == GM_OK) status = gm__sized_check(out, sizeof *out, op, "out", err);
  if (status != GM_OK) return status;
  const uint64_t parts =
      gm__add_sat(predicted->weight_bytes, gm__add_sat(predicted->kv_bytes, predicted->compute_bytes));
  if (parts > predicted->bytes) return gm__bad_argument(err, op, "`predicted->bytes` is below the sum of its parts");
  check_fill(predicted, margin_bytes, &measured, predicted->bytes - parts, &result);
  gm__sized_out(out, &result, sizeof result);
  return GM_OK;
}
