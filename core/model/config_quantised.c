#include "core/model/config_quantised.h"

#include <stdio.h>
#include <string.h>

/* A number that is not negative is taken; null, -1 ("one group for each row") and what else may stand there is not. */
static bool quantised_number(gm__json_scan *scan, uint64_t *out) {
  const uint64_t at = gm__json_next_at(scan);
  const int first = at < scan->length ? (unsigned char)scan->text[at] : -1;
  if (first < '0' || first > '9') return gm__json_skip(scan);
  uint64_t number = 0;
  if (!gm__json_integer(scan, &number)) return false;
  *out = number;
  return true;
}

static bool quantised_word(gm__json_scan *scan, char *out, size_t capacity) {
  gm__json_text text;
  const uint64_t at = gm__json_next_at(scan);
  if (at >= scan->length || scan->text[at] != '"') return gm__json_skip(scan);
  if (!gm__json_string(scan, &text)) return false;
  snprintf(out, capacity, "%s", text.text);
  for (char *letter = out; *letter; letter++) {
    if (*letter >= 'A' && *letter <= 'Z') *letter = (char)(*letter - 'A' + 'a');
  }
  return true;
}

static bool quantised_flag(gm__json_scan *scan, bool *out) {
  const uint64_t at = gm__json_next_at(scan);
  *out = at < scan->length && scan->text[at] == 't';
  return gm__json_skip(scan);
}

static bool quantised_object(gm__json_scan *scan, gm__quantised *out);

/* Objects within are those of compressed-tensors: config_groups, group_0, weights. */
static bool quantised_key(gm__json_scan *scan, const gm__json_text *key, gm__quantised *out) {
  static const char *const inner[] = {"config_groups", "group_0", "weights"};
  if (gm__json_text_is(key, "quant_method")) {
    if (out->method[0]) return gm__json_skip(scan);
    return quantised_word(scan, out->method, sizeof out->method);
  }
  if (gm__json_text_is(key, "quant_algo")) return quantised_word(scan, out->method, sizeof out->method);
  if (gm__json_text_is(key, "bits") || gm__json_text_is(key, "num_bits") || gm__json_text_is(key, "w_bit")) {
    return quantised_number(scan, &out->bits);
  }
  if (gm__json_text_is(key, "group_size") || gm__json_text_is(key, "q_group_size")) {
    return quantised_number(scan, &out->group);
  }
  if (gm__json_text_is(key, "load_in_4bit")) return quantised_flag(scan, &out->four);
  if (gm__json_text_is(key, "load_in_8bit")) return quantised_flag(scan, &out->eight);
  for (size_t i = 0; i < sizeof inner / sizeof *inner; i++) {
    const uint64_t at = gm__json_next_at(scan);
    const bool is_object = at < scan->length && scan->text[at] == '{';
    if (is_object && gm__json_text_is(key, inner[i])) return quantised_object(scan, out);
  }
  return gm__json_skip(scan);
}

static bool quantised_object(gm__json_scan *scan, gm__quantised *out) {
  gm__json_text key;
  if (!gm__json_object_begin(scan)) return false;
  while (gm__json_object_next(scan, &key)) {
    if (!quantised_key(scan, &key, out)) return false;
  }
  return !scan->problem;
}

bool gm__quantised_read(gm__json_scan *scan, gm__quantised *out) { return quantised_object(scan, out); }

static double quantised_grouped(const gm__quantised *stated) {
  const double bits = (double)stated->bits;
  if (stated->bits == 0 || stated->bits > 16) return 0;
  return stated->group ? bits + (16 + bits) / (double)stated->group : bits;
}

double gm__quantised_bits(const gm__quantised *stated, bool *experts_only) {
  static const struct {
    const char *method;
    double bits; /* 0: as `bits` and `group_size` say */
    bool experts_only;
  } rows[] = {{"fp8", 8, false},          {"fbgemm_fp8", 8, false}, {"mxfp4", 4.25, true},
              {"nvfp4", 4.5, false},      {"gptq", 0, false},       {"gptq_marlin", 0, false},
              {"awq", 0, false},          {"auto-round", 0, false}, {"compressed-tensors", 0, false},
              {"int8", 8, false},         {"hqq", 0, false},        {"quanto", 0, false},
              {"w4a16_awq", 4.156, false}};
  *experts_only = false;
  if (strcmp(stated->method, "bitsandbytes") == 0) return stated->four ? 4.5 : stated->eight ? 8 : 0;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    if (strcmp(rows[i].method, stated->method) != 0) continue;
    *experts_only = rows[i].experts_only;
    return rows[i].bits > 0 ? rows[i].bits : quantised_grouped(stated);
  }
  return 0;
}
