/* Each figure of an estimate, as recorded: a table's number or a formula's factor cannot change unseen. A line of
 * tests/data/estimates.txt is one model, with a digest of all that gm says about it in all the runs below. Whether the
 * figures are those of an engine is for test_compute_buffers.c, tests/fit and test_components.c to say.
 *
 * A commit that changes figures on purpose writes the record anew, and says why they changed:
 *
 *   test_estimate_record --print                       the record
 *   test_estimate_record --show gguf gemma2 windows    the figures of one line, to compare with those of another build
 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/fit/op_list.h"
#include "gm/components.h"
#include "gm/estimate.h"
#include "support/component_files.h"
#include "support/estimate_digest.h"
#include "support/gguf_words.h"
#include "test_data.h"

enum { FEW = 10, SHOWN_MOST = 20, LINE = 1024, FAMILY = 65536, LAYERS = GM_MODEL_LAYERS_MAX + 1 };

/* ---- operations ---- */

gm__op_tensor __real_gm__op_add(gm__op_list *list, uint64_t bytes, gm__op_operands operands);
gm__op_tensor __wrap_gm__op_add(gm__op_list *list, uint64_t bytes, gm__op_operands operands);

static digest *walked; /* of the estimate that is being made */

/* Each operation counts: most of its operands decide nothing about the whole buffer. */
gm__op_tensor __wrap_gm__op_add(gm__op_list *list, uint64_t bytes, gm__op_operands operands) {
  const gm__op_tensor made = __real_gm__op_add(list, bytes, operands);
  put(walked, "op", bytes);
  for (int i = 0; i < 2; i++) put(walked, "over", operands.over[i]);
  for (int i = 0; i < GM__OP_READS; i++) put(walked, "", operands.reads[i]);
  return made;
}

/* ---- estimates ---- */

static const gm_estimate_settings runs[] = {
    {.context = 0},
    {.context = 4096, .batch = 512, .plain_attention = true},
    {.context = 8192, .batch = 512, .sequences = 4, .outputs = 9},
    {.context = 8192, .batch = 512, .sequences = 4, .separate_sequences = true},
    {.context = 40960, .batch = 512, .sequences = 20, .separate_sequences = true},
    {.context = 4096, .batch = 512, .key_type = GM_DTYPE_Q8_0, .value_type = GM_DTYPE_Q8_0, .kv_copies = true},
    {.context = 5000, .micro_batch = 300, .key_type = GM_DTYPE_F32, .value_type = GM_DTYPE_F32},
    {.context = 5000, .key_type = GM_DTYPE_BF16, .value_type = GM_DTYPE_Q4_0, .kv_copies = true},
    {.context = 8192, .batch = 512, .full_windows = true, .embeddings = true},
    {.context = 16384, .batch = 256, .plain_attention = true, .weight_type = GM_DTYPE_Q4_K},
    {.context = 4096, .device_alignment = 4096, .weight_type = GM_DTYPE_BF16},
    {.context = 4096, .place = GM_ESTIMATE_HOST},
    {.context = 3000, .place = GM_ESTIMATE_HOST, .plain_attention = true, .sequences = 3, .batch = 100},
    {.context = 4096, .place = GM_ESTIMATE_HOST, .key_type = GM_DTYPE_F32, .value_type = GM_DTYPE_F32},
    {.context = 4096, .place = GM_ESTIMATE_SPLIT},
    {.context = 4096, .place = GM_ESTIMATE_SPLIT, .device_layers = 1},
    {.context = 4096, .place = GM_ESTIMATE_SPLIT, .device_layers = 7, .kv_copies = true, .plain_attention = true},
    {.context = 4096, .place = GM_ESTIMATE_SPLIT, .device_layers = 7, .batch = 16},
    {.context = 4096, .place = GM_ESTIMATE_SPLIT, .device_layers = 999},
    {.context = 4096, .kv_on_host = true, .micro_batch = 128},
};

static void put_estimate(digest *self, const gm_memory_estimate *out) {
  put_range(self, "total", &out->total);
  const uint64_t of[] = {out->method,         out->weights_exact, out->parameters,   out->host_weights,
                         out->device_weights, out->host_kv,       out->device_kv,    out->output,
                         out->context,        out->cells,         out->window_cells, out->streams,
                         out->micro_batch,    out->standing,      out->tied_weights};
  for (size_t i = 0; i < sizeof of / sizeof *of; i++) put(self, "", of[i]);
  put_range(self, "host_compute", &out->host_compute);
  put_range(self, "device_compute", &out->device_compute);
  for (int i = 0; i < GM_ESTIMATE_PARTS; i++) put_part(self, "part", &out->parts[i]);
}

static void put_layers(digest *self, const gm_model_config *config, const gm_model *model,
                       const gm_estimate_settings *settings) {
  static gm_fit_layer layers[LAYERS];
  gm_fit_request request = {.struct_size = sizeof request};
  put_head(self, "layers", 0);
  if (gm_estimate_layers(NULL, config, model, settings, layers, LAYERS, &request, NULL)) return;
  put(self, "fixed", request.host_fixed_bytes);
  put(self, "partial", request.partial_bytes);
  for (uint32_t i = 0; i < request.layer_count; i++) {
    put(self, "weights", layers[i].weight_bytes);
    put(self, "experts", layers[i].expert_bytes);
    put(self, "kv", layers[i].kv_bytes);
    put(self, "compute", layers[i].compute_bytes);
  }
}

/* A refusal counts, with its words. */
static void put_runs(digest *self, const gm_model_config *config, const gm_model *model) {
  walked = self;
  for (int i = 0; i < (int)(sizeof runs / sizeof *runs); i++) {
    gm_memory_estimate out = {.struct_size = sizeof out};
    gm_error err = {.status = GM_OK};
    gm_estimate_settings asked = runs[i];
    asked.struct_size = sizeof asked;
    put_head(self, "run", i);
    if (gm_estimate_memory(NULL, config, model, &asked, &out, &err) == GM_OK) {
      put_estimate(self, &out);
    } else {
      put_text(self, "refused", err.message);
    }
    if (i < 2) put_layers(self, config, model, &asked);
  }
}

/* ---- models by keys: "gguf ARCHITECTURE SET" ---- */

static const char usual_keys[] =
    "vocab_size=8192 context_length=32768 embedding_length=1024 block_count=8 "
    "feed_forward_length=3072 attention.head_count=16 attention.head_count_kv=4 ";

static const struct {
  const char *name, *keys;
} key_sets[] = {
    {"plain", ""},
    {"few",
     "block_count=3 attention.head_count=8 attention.key_length=80 attention.value_length=72 nextn_predict_layers=1"},
    {"experts",
     "expert_count=8 expert_used_count=2 expert_feed_forward_length=768 expert_shared_count=1 "
     "leading_dense_block_count=1"},
    {"many_experts",
     "expert_count=64 expert_used_count=6 expert_shared_feed_forward_length=2048 "
     "interleave_moe_layer_step=2 feed_forward_length=4096"},
    {"windows",
     "attention.sliding_window=1024 attention.key_length=192 attention.value_length=128 "
     "attention.key_length_swa=96 attention.value_length_swa=64"},
    {"period",
     "attention.sliding_window=512 attention.sliding_window_pattern=3 attention.shared_kv_layers=4 "
     "embedding_length_per_layer_input=256"},
    {"listed",
     "attention.sliding_window=2048 attention.sliding_window_pattern=1,0,1,1 attention.head_count=16,8 "
     "feed_forward_length=3072,2048,0"},
    {"compressed",
     "attention.kv_lora_rank=512 attention.q_lora_rank=768 attention.key_length_mla=192 "
     "attention.value_length_mla=128 rope.dimension_count=64 expert_count=16 expert_used_count=4 "
     "expert_feed_forward_length=512 leading_dense_block_count=3"},
    {"indexed",
     "attention.kv_lora_rank=256 attention.key_length_mla=192 attention.value_length_mla=128 "
     "rope.dimension_count=32 attention.indexer.key_length=128 attention.indexer.top_k=2048 "
     "attention.indexer.types=1,0,1 attention.sliding_window=1000 attention.kv_lora_rank_swa=128 "
     "attention.key_length_mla_swa=64 attention.value_length_mla_swa=48"},
    {"blocks",
     "attention.indexer.key_length=64 attention.indexer.top_k=16 attention.indexer.block_size=128 "
     "leading_dense_block_count=2"},
    {"recurrent",
     "ssm.conv_kernel=4 ssm.state_size=128 ssm.inner_size=2048 ssm.group_count=2 ssm.time_step_rank=32 "
     "attention.head_count_kv=0,4 feed_forward_length=0,0,3072 full_attention_interval=6"},
    {"heads",
     "kda.head_dim=128 wkv.head_size=64 token_shift_count=3 shortconv.l_cache=3 ssm.conv_kernel=4 "
     "attention.head_count_kv=4,0,0 attention.kv_lora_rank=512 attention.key_length_mla=192 "
     "attention.value_length_mla=128 rope.dimension_count=64"},
    {"all_blocks", "attention.indexer.key_length=64 attention.indexer.top_k=16 attention.indexer.block_size=64"},
    {"thirty_two", "block_count=32"},
    {"sixty_four", "block_count=64 attention.sliding_window=1024"},
    {"stacks", "decoder_block_count=6 attention.causal=false context_length=512"},
};

static void cut_words(char *text, gguf_words *out) {
  char *rest = NULL;
  for (char *word = strtok_r(text, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
    assert_true(out->key_count < GGUF_WORDS);
    out->keys[out->key_count++] = word;
  }
}

/* Without tensors, as gm_model_config tells it. */
static void record_keys(digest *self, const char *architecture, const char *set) {
  char text[LINE];
  gm_model *model = NULL;
  gguf_words words = {.key_count = 0};
  size_t which = 0;
  while (which < sizeof key_sets / sizeof *key_sets && strcmp(key_sets[which].name, set) != 0) which++;
  assert_true(which < sizeof key_sets / sizeof *key_sets);
  snprintf(text, sizeof text, "%s%s", usual_keys, key_sets[which].keys);
  cut_words(text, &words);
  gguf_bytes file = gguf_words_file(&words, architecture);
  gm_model_config config = {.struct_size = sizeof config};
  gm_error err = {.status = GM_OK};
  assert_int_equal(gm__model_open_memory(NULL, file.bytes, file.length, "m.gguf", true, &model, &err), GM_OK);
  if (gm_model_read_config(model, &config, &err) == GM_OK) {
    put_config(self, &config);
    put_runs(self, &config, NULL);
  } else {
    put_text(self, "refused", err.message);
  }
  gm_model_close(model);
  gguf_bytes_free(&file);
}

/* ---- headers of published models: "file NAME" ---- */

static void record_file(digest *self, const char *name) {
  char path[LINE];
  gm_model *model = NULL;
  gm_model_config config = {.struct_size = sizeof config};
  uint64_t stored = 0, unique = 0;
  snprintf(path, sizeof path, GM_TEST_DATA "/fit/%s/header.gguf", name);
  assert_int_equal(gm_model_open_header(NULL, path, &model, NULL), GM_OK);
  assert_int_equal(gm_model_read_config(model, &config, NULL), GM_OK);
  assert_int_equal(gm_model_parameter_count(model, &stored, &unique, NULL), GM_OK);
  put(self, "stored", stored);
  put(self, "unique", unique);
  put_config(self, &config);
  put_runs(self, &config, model);
  gm_model_close(model);
}

/* ---- a config.json of each family: "json FAMILY" ---- */

/* The place behind the value that begins here. */
static const char *json_behind(const char *at) {
  int depth = 0;
  bool inside = false;
  for (; *at; at++) {
    if (*at == '"' && at[-1] != '\\') inside = !inside;
    if (inside) continue;
    if (depth == 0 && (*at == ',' || *at == '}' || *at == ']')) return at;
    depth += *at == '{' || *at == '[' ? 1 : *at == '}' || *at == ']' ? -1 : 0;
  }
  return at;
}

/* Messages begin with the path of the file. */
static void record_text(digest *self, const char *text, bool with_runs) {
  gm_model_config config = {.struct_size = sizeof config};
  gm_error err = {.status = GM_OK};
  const char *path = temp_folder_write(&folder, "config.json", text, strlen(text));
  if (gm_model_config_load(NULL, path, &config, &err)) {
    const char *words = strstr(err.message, "config.json");
    put_text(self, "refused", words ? words : err.message);
    return;
  }
  put_config(self, &config);
  if (with_runs) put_runs(self, &config, NULL);
}

/* The configuration, then again without each of its keys: a default or a refusal takes its place. */
static void record_json(digest *self, const char *object) {
  static char text[FAMILY];
  const char *end = json_behind(object);
  int member = 0;
  snprintf(text, sizeof text, "%.*s", (int)(end - object), object);
  record_text(self, text, true);
  for (const char *at = object + 1; at < end - 1; member++) {
    const char *behind = json_behind(at);
    const bool last = *behind == '}';
    snprintf(text, sizeof text, "%.*s%.*s", (int)(at - object - (last ? 1 : 0)), object,
             (int)(end - behind - (last ? 0 : 1)), behind + (last ? 0 : 1));
    put_head(self, "without member", member);
    record_text(self, text, false);
    at = behind + 1;
  }
}

static void record_family(digest *self, const char *family) {
  static char line[FAMILY];
  char wanted[128];
  bool found = false;
  FILE *file = fopen(GM_TEST_DATA "/families.jsonl", "r");
  assert_non_null(file);
  snprintf(wanted, sizeof wanted, "{\"family\":\"%s\",", family);
  while (!found && fgets(line, sizeof line, file)) found = strncmp(line, wanted, strlen(wanted)) == 0;
  fclose(file);
  assert_true(found);
  for (const char *at = strstr(line, "\"config\":"); at; at = strstr(at, "\"config\":")) {
    at += strlen("\"config\":");
    record_json(self, at);
  }
}

/* ---- what makes images and text of sound: "part MODEL" ---- */

static void record_component(digest *self, const char *name) {
  static const gm_component_settings asked[] = {
      {.width = 0},
      {.plain_attention = true},
      {.width = 512, .height = 768, .images = 3, .beams = 1},
      {.width = 1337, .height = 999, .beams = 7, .plain_attention = true},
      {.width = 64, .height = 64, .images = 2, .beams = 2},
      {.width = 4096, .height = 4096}, /* the scores of attention are the largest buffer */
      {.width = 4096, .height = 4096, .plain_attention = true},
  };
  gm_component out[GM_COMPONENTS_MAX];
  for (int i = 0; i < (int)(sizeof asked / sizeof *asked); i++) {
    static header file;
    uint32_t count = 0;
    gm_component_settings run = asked[i];
    run.struct_size = sizeof run;
    component_model(&file, name);
    gm_model *model = header_open(&file);
    put_head(self, "run", i);
    assert_int_equal(gm_estimate_components(model, &run, out, GM_COMPONENTS_MAX, &count, NULL), GM_OK);
    for (uint32_t k = 0; k < count; k++) {
      put_text(self, out[k].name, out[k].family);
      put(self, "parameters", out[k].parameters);
      put(self, "weights", out[k].weight_bytes);
      put_part(self, "cache", &out[k].cache);
      put_part(self, "compute", &out[k].compute);
    }
    gm_model_close(model);
  }
}

/* ---- the record ---- */

static uint64_t record_of(const char *source, const char *name, const char *set, bool shows) {
  digest out = digest_none;
  out.shows = shows;
  if (strcmp(source, "gguf") == 0) record_keys(&out, name, set);
  if (strcmp(source, "file") == 0) record_file(&out, name);
  if (strcmp(source, "json") == 0) record_family(&out, name);
  if (strcmp(source, "part") == 0) record_component(&out, name);
  return out.sum;
}

/* A line without its digest, cut into words; the digest that is recorded. */
typedef struct record_line {
  char text[LINE];
  char *words[3];
  uint64_t sum;
} record_line;

/* False: it is a comment. */
static bool cut_line(const char *line, record_line *out) {
  char *rest = NULL;
  int count = 0;
  *out = (record_line){.words = {"", "", ""}};
  snprintf(out->text, sizeof out->text, "%s", line);
  if (line[0] == '#') return false;
  for (char *word = strtok_r(out->text, " \n", &rest); word; word = strtok_r(NULL, " \n", &rest)) {
    assert_true(count < 4);
    if (word[0] == '=') {
      out->sum = strtoull(word + 1, NULL, 16);
    } else {
      out->words[count++] = word;
    }
  }
  return true;
}

static FILE *record_open(void) {
  FILE *file = fopen(GM_TEST_DATA "/estimates.txt", "r");
  assert_non_null(file);
  return file;
}

static void all_figures_are_those_of_the_record(void **state) {
  (void)state;
  char line[LINE];
  int wrong = 0, lines = 0;
  const int step = getenv("TESTS_FEW") ? FEW : 1;
  FILE *file = record_open();
  while (fgets(line, sizeof line, file) && wrong < SHOWN_MOST) {
    record_line one;
    if (!cut_line(line, &one) || lines++ % step) continue;
    if (record_of(one.words[0], one.words[1], one.words[2], false) == one.sum) continue;
    wrong++;
    print_message("other figures: test_estimate_record --show %s %s %s\n", one.words[0], one.words[1], one.words[2]);
  }
  fclose(file);
  assert_int_equal(wrong, 0);
  assert_true(lines > 1000);
}

static void print_record(void) {
  char line[LINE];
  FILE *file = record_open();
  while (fgets(line, sizeof line, file)) {
    record_line one;
    if (!cut_line(line, &one)) {
      printf("%s", line);
      continue;
    }
    const uint64_t sum = record_of(one.words[0], one.words[1], one.words[2], false);
    printf("%s %s%s%s =%016" PRIx64 "\n", one.words[0], one.words[1], *one.words[2] ? " " : "", one.words[2], sum);
  }
  fclose(file);
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(all_figures_are_those_of_the_record)};
  if (argc == 1) return cmocka_run_group_tests(tests, folder_setup, folder_teardown);
  folder_setup(NULL);
  if (argc == 2 && strcmp(argv[1], "--print") == 0) print_record();
  if (argc >= 4) record_of(argv[2], argv[3], argc > 4 ? argv[4] : "", true);
  if (argc >= 4) printf("\n");
  return folder_teardown(NULL);
}
