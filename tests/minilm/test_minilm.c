/* The engine of examples/minilm with the real model: right numbers, all memory from gm, and nothing left after a
 * failure.
 *
 *   test_minilm cpu|opencl|opencl-gm */
#include "minilm/scene.h"

#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gm/quota.h"
#include "support/test_folder.h"
#include "wordpiece.h"

#ifdef GM_TEST_SANITIZED
enum { COMPARED = 5 }; /* the longest three take a sanitizer ten seconds */
#else
enum { COMPARED = SCENE_SENTENCES };
#endif

static const char *model;
static scene recorded;

/* ---- what this program asks the C library for: calls of libgm.so do not come by here ---- */

static size_t asked;

void *__real_malloc(size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__real_realloc(void *old, size_t bytes);
void *__wrap_realloc(void *old, size_t bytes);
void *__real_aligned_alloc(size_t align, size_t bytes);
void *__wrap_aligned_alloc(size_t align, size_t bytes);

void *__wrap_malloc(size_t bytes) {
  asked++;
  return __real_malloc(bytes);
}

void *__wrap_calloc(size_t count, size_t bytes) {
  asked++;
  return __real_calloc(count, bytes);
}

void *__wrap_realloc(void *old, size_t bytes) {
  asked++;
  return __real_realloc(old, bytes);
}

void *__wrap_aligned_alloc(size_t align, size_t bytes) {
  asked++;
  return __real_aligned_alloc(align, bytes);
}

/* Where gm is linked statically its host memory comes by here, uncounted. */
static void *services_alloc(void *user, size_t bytes, size_t align) {
  (void)user;
  align = align < sizeof(void *) ? sizeof(void *) : align;
  return __real_aligned_alloc(align, (bytes + align - 1) / align * align);
}

static void services_release(void *user, void *ptr, size_t bytes) {
  (void)user;
  (void)bytes;
  free(ptr);
}

/* ---- */

static float difference(const float *got, const float *want) {
  float largest = 0;
  for (int i = 0; i < SCENE_WIDTH; i++) {
    const float one = fabsf(got[i] - want[i]);
    if (!(one <= largest)) largest = isnan(one) ? INFINITY : one;
  }
  return largest;
}

/* The bytes that live at once in the attention of a sentence, where most do. */
static uint64_t attention_bytes(const minilm *m, uint32_t tokens) {
  const uint64_t rows = (uint64_t)tokens * m->dims.width;
  return sizeof(float) * (tokens + 6 * rows + (uint64_t)m->dims.heads * tokens * tokens);
}

static void test_reference(void **state) {
  const minilm_params params = scene_params(model);
  float got[SCENE_WIDTH], largest = 0;
  minilm m;
  (void)state;
  scene_open(&m, &params);
  assert_int_equal(m.dims.width, SCENE_WIDTH);
  assert_int_equal(m.dims.heads, 12);
  for (int i = 0; i < COMPARED; i++) {
    memset(got, 0xff, sizeof got); /* not numbers */
    assert_int_equal(minilm_embed(&m, recorded.ids[i], recorded.counts[i], got, NULL), GM_OK);
    largest = fmaxf(largest, difference(got, recorded.embeddings[i]));
  }
  scene_close(&m);
  printf("%s: %d sentences, largest difference from the reference %.2g\n", scene_backend, COMPARED, (double)largest);
  assert_true(largest <= 1e-4F);
}

/* The check above must see a wrong token. */
static void test_another_sentence_differs(void **state) {
  const minilm_params params = scene_params(model);
  float got[SCENE_WIDTH];
  int32_t ids[SCENE_TOKENS];
  minilm m;
  (void)state;
  memcpy(ids, recorded.ids[1], sizeof ids);
  ids[2]++;
  scene_open(&m, &params);
  assert_int_equal(minilm_embed(&m, ids, recorded.counts[1], got, NULL), GM_OK);
  assert_true(difference(got, recorded.embeddings[1]) > 1e-3F);
  scene_close(&m);
}

static void test_all_memory_is_gms(void **state) {
  const gm_services services = {.alloc = services_alloc, .release = services_release};
  minilm_params params = scene_params(model);
  float got[SCENE_WIDTH];
  minilm m;
  (void)state;
  params.services = &services;
  asked = 0;
  scene_open(&m, &params);
  const gm_stats weights = scene_stats(m.weights_pool);
  const gm_stats before = scene_stats(m.work_pool);
  assert_int_equal(minilm_embed(&m, recorded.ids[4], recorded.counts[4], got, NULL), GM_OK);
  const gm_stats first = scene_stats(m.work_pool);
  assert_int_equal(minilm_embed(&m, recorded.ids[4], recorded.counts[4], got, NULL), GM_OK);
  const gm_stats second = scene_stats(m.work_pool);
  const uint64_t expected = attention_bytes(&m, recorded.counts[4]);
  scene_close(&m);
  assert_int_equal(asked, 0);
  assert_int_equal(weights.active, 104);
  assert_int_equal(weights.requested_bytes, 90856960);
  assert_int_equal(before.allocs, 0);
  assert_int_equal(first.peak_requested_bytes, expected);
  assert_int_equal(second.peak_requested_bytes, expected);
  assert_int_equal(second.active, 0);
  assert_int_equal(second.misses, first.misses); /* the second time there is nothing new */
  assert_true(second.allocs == 2 * first.allocs && first.allocs > 0);
}

static void test_the_count_counts(void **state) {
  wordpiece vocab;
  char path[4096];
  (void)state;
  asked = 0;
  snprintf(path, sizeof path, "%.*svocab.txt", (int)(strrchr(model, '/') - model) + 1, model);
  assert_int_equal(wordpiece_open(&vocab, path, NULL), GM_OK);
  assert_true(asked > 0);
  wordpiece_close(&vocab);
}

static void test_tokens(void **state) {
  int32_t ids[SCENE_TOKENS];
  uint32_t count = 0;
  wordpiece vocab;
  char path[4096];
  (void)state;
  snprintf(path, sizeof path, "%.*svocab.txt", (int)(strrchr(model, '/') - model) + 1, model);
  assert_int_equal(wordpiece_open(&vocab, path, NULL), GM_OK);
  for (int i = 0; i < SCENE_SENTENCES; i++) {
    assert_int_equal(wordpiece_split(&vocab, recorded.text[i], ids, SCENE_TOKENS, &count, NULL), GM_OK);
    assert_int_equal(count, recorded.counts[i]);
    assert_memory_equal(ids, recorded.ids[i], count * sizeof *ids);
  }
  assert_int_equal(wordpiece_split(&vocab, "caf\xc3\xa9", ids, SCENE_TOKENS, &count, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(wordpiece_split(&vocab, "one two three", ids, 4, &count, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(wordpiece_split(&vocab, "", ids, 2, &count, NULL), GM_OK);
  assert_int_equal(count, 2);
  wordpiece_close(&vocab);
}

/* A failed sentence leaves nothing, and the next one is right. */
static void expect_sound(minilm *m) {
  float got[SCENE_WIDTH];
  assert_int_equal(scene_stats(m->work_pool).active, 0);
  assert_int_equal(minilm_embed(m, recorded.ids[1], recorded.counts[1], got, NULL), GM_OK);
  assert_true(difference(got, recorded.embeddings[1]) <= 1e-4F);
  assert_int_equal(scene_stats(m->work_pool).active, 0);
}

static void test_wrong_ids(void **state) {
  const minilm_params params = scene_params(model);
  static int32_t many[513];
  float got[SCENE_WIDTH];
  gm_error err;
  minilm m;
  (void)state;
  scene_open(&m, &params);
  const int32_t below[] = {101, -1, 102}, above[] = {101, (int32_t)m.dims.words, 102};
  assert_int_equal(minilm_embed(&m, below, 3, got, &err), GM_ERR_INVALID_ARGUMENT);
  assert_non_null(strstr(err.message, "token 1 is -1"));
  assert_int_equal(minilm_embed(&m, above, 3, got, &err), GM_ERR_INVALID_ARGUMENT);
  assert_non_null(strstr(err.message, "30522"));
  assert_int_equal(minilm_embed(&m, many, 513, got, &err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(minilm_embed(&m, many, 0, got, &err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(scene_stats(m.work_pool).allocs, 0);
  expect_sound(&m);
  scene_close(&m);
}

/* A growing quota refuses one request after the other, until the whole sentence fits. */
static void test_no_memory_in_the_middle(void **state) {
  const minilm_params params = scene_params(model);
  float got[SCENE_WIDTH];
  gm_status status = GM_ERR_OVER_LIMIT;
  unsigned refused = 0;
  minilm m;
  (void)state;
  scene_open(&m, &params);
  const uint64_t peak = attention_bytes(&m, recorded.counts[2]);
  for (uint64_t quota = 1; status == GM_ERR_OVER_LIMIT && quota < 2 * peak; quota += peak / 12) {
    assert_int_equal(gm_pool_set_quota(m.work_pool, m.activations, quota, 0, 0, NULL), GM_OK);
    status = minilm_embed(&m, recorded.ids[2], recorded.counts[2], got, NULL);
    refused += status != GM_OK;
    assert_int_equal(scene_stats(m.work_pool).active, 0);
  }
  assert_int_equal(status, GM_OK);
  assert_true(refused >= 12); /* rounding makes a sentence larger, never smaller */
  assert_true(difference(got, recorded.embeddings[2]) <= 1e-4F);
  assert_int_equal(gm_pool_set_quota(m.work_pool, m.activations, GM_NO_QUOTA, 0, 0, NULL), GM_OK);
  expect_sound(&m);
  scene_close(&m);
}

/* The cap of the pool of work holds one layer of a short sentence, and none of a long one. */
static void test_pool_limit(void **state) {
  minilm_params params = scene_params(model);
  float got[SCENE_WIDTH];
  gm_error err;
  minilm m;
  (void)state;
  params.work_max_bytes = 512 << 10;
  scene_open(&m, &params);
  expect_sound(&m);
  assert_int_equal(minilm_embed(&m, recorded.ids[7], recorded.counts[7], got, &err), GM_ERR_OVER_LIMIT);
  expect_sound(&m);
  scene_close(&m);
}

static void test_no_memory_for_weights(void **state) {
  minilm_params params = scene_params(model);
  gm_error err;
  minilm m;
  (void)state;
  params.weights_max_bytes = 60 << 20;
  assert_int_equal(minilm_open(&m, &params, &err), GM_ERR_OVER_LIMIT);
  assert_null(m.ctx);
}

/* The header says what is missing, so the data need not be there: the file has a hole. */
static void test_cut_short(void **state) {
  const char *path = temp_folder_join(&folder, "cut.safetensors");
  const off_t lengths[] = {0, 7, 1000, 20000, 1 << 20, 90868375};
  static char header[16384];
  FILE *file = fopen(model, "rb");
  (void)state;
  assert_non_null(file);
  assert_int_equal(fread(header, 1, sizeof header, file), sizeof header);
  fclose(file);
  for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
    const minilm_params params = scene_params(path);
    gm_error err;
    minilm m;
    temp_folder_write(&folder, "cut.safetensors", header, sizeof header);
    assert_int_equal(truncate(path, lengths[i]), 0);
    assert_int_equal(minilm_open(&m, &params, &err), GM_ERR_FORMAT);
    assert_non_null(strstr(err.message, "cut.safetensors"));
    assert_null(m.ctx);
  }
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_reference),
      cmocka_unit_test(test_another_sentence_differs),
      cmocka_unit_test(test_all_memory_is_gms),
      cmocka_unit_test(test_the_count_counts),
      cmocka_unit_test(test_tokens),
      cmocka_unit_test(test_wrong_ids),
      cmocka_unit_test(test_no_memory_in_the_middle),
      cmocka_unit_test(test_pool_limit),
      cmocka_unit_test(test_no_memory_for_weights),
      cmocka_unit_test_setup_teardown(test_cut_short, folder_setup, folder_teardown),
  };
  model = getenv("GM_DEMO_MODEL");
  if (!model) return fprintf(stderr, "GM_DEMO_MODEL must name the model\n"), 1;
  const int absent = scene_begin(argc, argv, model);
  if (absent) return absent;
  scene_read(&recorded);
  return cmocka_run_group_tests(tests, NULL, NULL);
}
