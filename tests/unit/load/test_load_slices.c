/* Parts of tensors: every element of a part arrives at its place, by every way, and no more is read than that. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "gm/save.h"
#include "support/load_scene.h"
#include "support/played_reads.h"
#include "support/random.h"

enum { SHARED = 3, MATRIX = 70 * 333 * 2, CUBE = 5 * 40 * 77 * 2, LINE = 1000, PARTS_BYTES = MATRIX + CUBE + LINE };

static const char parts_header[] =
    "{\"matrix\":{\"dtype\":\"F16\",\"shape\":[70,333],\"data_offsets\":[0,46620]},"
    "\"cube\":{\"dtype\":\"BF16\",\"shape\":[5,40,77],\"data_offsets\":[46620,77420]},"
    "\"line\":{\"dtype\":\"U8\",\"shape\":[1000],\"data_offsets\":[77420,78420]}}";

static gm_model *parts;

static int parts_setup(void **state) {
  setup(state);
  write_shard("parts", parts_header, PARTS_BYTES, 9);
  assert_int_equal(gm_model_open(&f.host.services, temp_folder_join(&f.folder, "parts"), &parts, NULL), GM_OK);
  played_reads_begin();
  return 0;
}

static int parts_teardown(void **state) {
  played_reads_end();
  gm_model_close(parts);
  return teardown(state);
}

typedef struct slicer {
  gm_tensor_slice each[SHARED];
  bool out[SHARED];
} slicer;

static void cut(void *user, uint64_t index, const gm_tensor_info *tensor, gm_load_place *place) {
  const slicer *self = user;
  (void)tensor;
  assert_int_equal(place->slice.count, 0);
  place->slice = self->each[index];
  if (self->out[index]) place->pool = NULL;
}

/* The bytes of a slice, element by element. */
static uint64_t wanted_bytes(const gm_tensor_info *info, const gm_tensor_slice *slice, unsigned char *out) {
  const uint64_t first_of_all = sizeof parts_header - 1 + 8;
  uint64_t count = 0, elements = 1, inner = 1, size = 2;
  if (info->dtype == GM_DTYPE_U8) size = 1;
  for (uint32_t i = 0; i < info->rank; i++) elements *= info->shape[i];
  for (uint32_t i = slice->dim + 1; i < info->rank; i++) inner *= info->shape[i];
  for (uint64_t e = 0; e < elements; e++) {
    const uint64_t place = e / inner % info->shape[slice->dim];
    if (slice->count && (place < slice->first || place >= slice->first + slice->count)) continue;
    for (uint64_t b = 0; b < size; b++) {
      out[count++] = safetensors_bytes_at(info->file_offset - first_of_all + e * size + b, 9);
    }
  }
  return count;
}

static uint64_t check_slices(const gm_loaded_model *loaded, const slicer *s) {
  static unsigned char wanted[PARTS_BYTES], found[PARTS_BYTES];
  uint64_t all = 0;
  for (uint64_t i = 0; i < SHARED; i++) {
    gm_tensor_info info = {.struct_size = sizeof info};
    gm_block block;
    assert_int_equal(gm_model_tensor(parts, i, &info, NULL), GM_OK);
    assert_int_equal(gm_loaded_model_block(loaded, i, &block, NULL), GM_OK);
    if (s->out[i]) continue;
    const uint64_t bytes = wanted_bytes(&info, &s->each[i], wanted);
    assert_true(block.bytes >= bytes && block.bytes < bytes + 4096);
    assert_int_equal(gm_block_read(f.pool, &block, 0, found, bytes, NULL, NULL, NULL), GM_OK);
    if (memcmp(found, wanted, bytes) != 0) fail_msg("tensor %d differs", (int)i);
    all += bytes;
  }
  return all;
}

static gm_load_result load_slices(slicer *s, gm_load_params params) {
  gm_loaded_model *loaded = NULL;
  gm_load_result result = {.struct_size = sizeof result};
  gm_error err = {0};
  params.struct_size = sizeof params;
  params.place = cut;
  params.user = s;
  if (gm_model_load(parts, f.pool, &params, &loaded, &result, &err) != GM_OK) fail_msg("%s", err.message);
  assert_int_equal(check_slices(loaded, s), result.bytes);
  assert_int_equal(gm_loaded_model_release(loaded, params.request.stream), GM_OK);
  assert_int_equal(in_use(), 0);
  return result;
}

static slicer random_slices(uint64_t *seed) {
  static const uint64_t shapes[SHARED][3] = {{70, 333}, {5, 40, 77}, {1000}}, ranks[SHARED] = {2, 3, 1};
  slicer s = {{{0}}, {false}};
  for (int i = 0; i < SHARED; i++) {
    gm_tensor_slice *slice = &s.each[i];
    s.out[i] = test_random(seed) % 5 == 0;
    if (test_random(seed) % 5 == 0) continue; /* the whole tensor */
    slice->dim = (uint32_t)(test_random(seed) % ranks[i]);
    const uint64_t all = shapes[i][slice->dim];
    slice->first = test_random(seed) % all;
    slice->count = 1 + test_random(seed) % (all - slice->first);
  }
  return s;
}

static void test_every_element_of_a_part(void **state) {
  (void)state;
  static const gm_load_path paths[] = {GM_LOAD_PATH_AUTO, GM_LOAD_PATH_MMAP, GM_LOAD_PATH_READ, GM_LOAD_PATH_DIRECT};
  static const uint64_t chunks[] = {0, 4096, 300000};
  gm_stream *stream = NULL;
  uint64_t seed = 11;
  assert_int_equal(gm_stream_create(f.device, &stream, NULL), GM_OK);
  for (int i = 0; i < 96; i++) {
    slicer s = random_slices(&seed);
    gm_load_params params = {.verify = true, .path = paths[i % 4], .chunk_bytes = chunks[i / 4 % 3]};
    params.request.stream = i / 12 % 2 ? stream : NULL; /* through slots */
    params.threads = (uint64_t)i % 5 % 3;
    played_reads_begin();
    played_reads.short_reads = i % 7 == 1;
    played_reads.resident = i % 2 ? 1000 : 0;
    assert_true(load_slices(&s, params).verified);
  }
  assert_int_equal(gm_stream_close(stream, NULL), GM_OK);
}

/* Two ranks, split by rows and by columns, read as much as the model has. */
static void test_a_rank_reads_its_part_alone(void **state) {
  (void)state;
  long long read = 0;
  for (uint64_t rank = 0; rank < 2; rank++) {
    slicer s = {.each = {{.first = rank * 35, .count = 35}, {.first = rank * 38, .count = 38 + rank, .dim = 2}}};
    s.out[2] = true;
    played_reads_begin();
    const gm_load_result result = load_slices(&s, (gm_load_params){.path = GM_LOAD_PATH_READ});
    assert_int_equal(result.tensors, 2);
    assert_int_equal(result.left_out, 1);
    assert_int_equal(played_reads.cached_bytes, result.bytes);
    read += played_reads.cached_bytes;
  }
  assert_int_equal(read, MATRIX + CUBE);
}

static void check_refused(const gm_model *model, gm_tensor_slice slice, const char *words) {
  slicer s = {.each = {slice}};
  const gm_load_params params = {.struct_size = sizeof params, .place = cut, .user = &s};
  gm_loaded_model *loaded = NULL;
  gm_error err = {0};
  assert_int_equal(gm_model_load(model, f.pool, &params, &loaded, NULL, &err), GM_ERR_INVALID_ARGUMENT);
  if (!strstr(err.message, words)) fail_msg("got \"%s\", not \"%s\"", err.message, words);
  assert_null(loaded);
  assert_int_equal(in_use(), 0);
}

static void test_slices_that_a_tensor_has_not(void **state) {
  (void)state;
  check_refused(parts, (gm_tensor_slice){.first = 0, .count = 1, .dim = 2},
                "the slice [0, 1) of dimension 2 of tensor \"matrix\": the tensor has no such dimension");
  check_refused(parts, (gm_tensor_slice){.first = 0, .count = 71}, "it ends behind the tensor");
  check_refused(parts, (gm_tensor_slice){.first = 70, .count = 1}, "it ends behind the tensor");
  check_refused(parts, (gm_tensor_slice){.first = 333, .count = UINT64_MAX, .dim = 1}, "it ends behind the tensor");
}

/* Rows of 64 elements in blocks of 32, which take 34 bytes. */
static void test_a_type_with_blocks(void **state) {
  (void)state;
  const gm_tensor_info info = {.struct_size = sizeof info,
                               .dtype = GM_DTYPE_Q8_0,
                               .rank = 2,
                               .shape = {4, 64},
                               .file_offset = 100,
                               .name = "blocks"};
  slicer s = {.each = {{.first = 32, .count = 32, .dim = 1}}};
  const gm_load_params params = {.struct_size = sizeof params, .place = cut, .user = &s, .verify = true};
  gm_model *model = NULL;
  gm_loaded_model *loaded = NULL;
  gm_block block;
  unsigned char found[4 * 34], file[4 * 68 + 100];
  for (size_t i = 0; i < sizeof file; i++) file[i] = safetensors_bytes_at(i, 3);
  const char *path = temp_folder_write(&f.folder, "raw", file, sizeof file);
  assert_int_equal(gm_model_open_raw(&f.host.services, path, &info, &model, NULL), GM_OK);
  assert_int_equal(gm_model_load(model, f.pool, &params, &loaded, NULL, NULL), GM_OK);
  assert_int_equal(gm_loaded_model_block(loaded, 0, &block, NULL), GM_OK);
  assert_int_equal(gm_block_read(f.pool, &block, 0, found, sizeof found, NULL, NULL, NULL), GM_OK);
  for (size_t i = 0; i < sizeof found; i++) assert_int_equal(found[i], file[100 + i / 34 * 68 + 34 + i % 34]);
  assert_int_equal(gm_loaded_model_release(loaded, NULL), GM_OK);
  check_refused(model, (gm_tensor_slice){.first = 16, .count = 32, .dim = 1},
                "it does not begin and end at blocks of the tensor's type");
  check_refused(model, (gm_tensor_slice){.first = 0, .count = 31, .dim = 1}, "blocks of the tensor's type");
  gm_model_close(model);
}

/* A file of a model has whole tensors. */
static void test_parts_are_not_saved_as_tensors(void **state) {
  (void)state;
  slicer s = {.each = {{.first = 0, .count = 69}}};
  const gm_load_params params = {.struct_size = sizeof params, .place = cut, .user = &s};
  gm_loaded_model *loaded = NULL;
  gm_error err = {0};
  assert_int_equal(gm_model_load(parts, f.pool, &params, &loaded, NULL, NULL), GM_OK);
  assert_int_equal(gm_model_save(parts, loaded, temp_folder_join(&f.folder, "new.safetensors"), NULL, NULL, &err),
                   GM_ERR_INVALID_ARGUMENT);
  assert_non_null(strstr(err.message, "`loaded` has slices of tensors"));
  assert_int_equal(gm_loaded_model_release(loaded, NULL), GM_OK);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_every_element_of_a_part, parts_setup, parts_teardown),
      cmocka_unit_test_setup_teardown(test_a_rank_reads_its_part_alone, parts_setup, parts_teardown),
      cmocka_unit_test_setup_teardown(test_slices_that_a_tensor_has_not, parts_setup, parts_teardown),
      cmocka_unit_test_setup_teardown(test_a_type_with_blocks, parts_setup, parts_teardown),
      cmocka_unit_test_setup_teardown(test_parts_are_not_saved_as_tensors, parts_setup, parts_teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
