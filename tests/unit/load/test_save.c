/* A model's tensors in a new file: bit by bit, with what its files state, aligned, from blocks and from files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include "gm/model_value.h"
#include "gm/save.h"
#include "support/gguf_bytes.h"
#include "support/load_scene.h"

static const char *in_folder(const char *name) { return temp_folder_join(&f.folder, name); }

/* Paths that stay: temp_folder_join has one. */
static const char *kept(const char *name) {
  static char paths[4][512];
  static int next;
  char *path = paths[next++ % 4];
  snprintf(path, sizeof paths[0], "%s", in_folder(name));
  return path;
}

static int files_of_folder(void) {
  int count = 0;
  DIR *stream = opendir(f.folder.path);
  assert_non_null(stream);
  for (const struct dirent *at; (at = readdir(stream)) != NULL;) count += at->d_name[0] != '.';
  closedir(stream);
  return count;
}

static gm_model *opened(const char *path) {
  gm_model *model = NULL;
  gm_error err = {0};
  if (gm_model_open(NULL, path, &model, &err)) fail_msg("%s", err.message);
  return model;
}

static void saved(const gm_model *model, const gm_loaded_model *loaded, const char *path, gm_save_result *out) {
  gm_error err = {0};
  gm_save_result mine = {.struct_size = sizeof mine};
  if (gm_model_save(model, loaded, path, NULL, out ? out : &mine, &err)) fail_msg("%s", err.message);
}

static void refused(const gm_model *model, const char *path, gm_status wanted, const char *words) {
  gm_error err = {0};
  const gm_status status = gm_model_save(model, NULL, path, NULL, NULL, &err);
  if (status != wanted || !strstr(err.message, words)) fail_msg("%s \"%s\"", gm_status_name(status), err.message);
}

static unsigned char *read_file(const char *path, uint64_t *out_bytes) {
  FILE *file = fopen(path, "rb");
  assert_non_null(file);
  fseek(file, 0, SEEK_END);
  *out_bytes = (uint64_t)ftell(file);
  rewind(file);
  unsigned char *bytes = malloc(*out_bytes + 1);
  assert_non_null(bytes);
  assert_int_equal(fread(bytes, 1, *out_bytes, file), *out_bytes);
  fclose(file);
  return bytes;
}

static void same_tensor(const gm_model *a, const gm_model *b, uint64_t index, const unsigned char *file_b) {
  gm_tensor_info info[2] = {{.struct_size = sizeof *info}, {.struct_size = sizeof *info}};
  uint64_t at = 0, bytes = 0;
  assert_int_equal(gm_model_tensor(a, index, &info[0], NULL), GM_OK);
  assert_int_equal(gm_model_find(b, info[0].name, &at, NULL), GM_OK);
  assert_int_equal(gm_model_tensor(b, at, &info[1], NULL), GM_OK);
  assert_int_equal(info[0].dtype, info[1].dtype);
  assert_int_equal(info[0].rank, info[1].rank);
  assert_memory_equal(info[0].shape, info[1].shape, sizeof info[0].shape);
  unsigned char *file_a = read_file(gm_model_shard_path(a, info[0].shard), &bytes);
  assert_memory_equal(file_a + info[0].file_offset, file_b + info[1].file_offset, info[0].bytes);
  free(file_a);
}

/* Every tensor of `a` is in the one file of `b`, bit by bit. */
static void same_tensors(const gm_model *a, const gm_model *b) {
  uint64_t bytes = 0;
  assert_int_equal(gm_model_shard_count(b), 1);
  assert_int_equal(gm_model_tensor_count(a), gm_model_tensor_count(b));
  unsigned char *file = read_file(gm_model_shard_path(b, 0), &bytes);
  for (uint64_t i = 0; i < gm_model_tensor_count(a); i++) same_tensor(a, b, i, file);
  free(file);
}

static void same_value(const gm_model_value *a, const gm_model_value *b) {
  assert_int_equal(a->kind, b->kind);
  assert_int_equal(a->u64, b->u64);
  assert_int_equal(a->i64, b->i64);
  assert_memory_equal(&a->f64, &b->f64, sizeof a->f64);
  assert_int_equal(a->length, b->length);
  if (a->kind == GM_VALUE_STRING) assert_memory_equal(a->string, b->string, a->length + 1);
}

/* Value number `index` of shard 0 of `a` is in `b`, too. */
static void same_in(const gm_model *a, uint64_t index, const gm_model *b) {
  gm_model_value value[2] = {{.struct_size = sizeof *value}, {.struct_size = sizeof *value}};
  const char *key = NULL;
  assert_int_equal(gm_model_value_at(a, 0, index, &key, &value[0], NULL), GM_OK);
  assert_int_equal(gm_model_find_value(b, key, &value[1], NULL), GM_OK);
  if (strcmp(key, "general.alignment") == 0) return;
  same_value(&value[0], &value[1]);
  assert_int_equal(value[0].element_kind, value[1].element_kind);
  if (value[0].kind != GM_VALUE_ARRAY) return;
  for (uint64_t i = 0; i < value[0].length; i++) {
    gm_model_value element[2] = {{.struct_size = sizeof *element}, {.struct_size = sizeof *element}};
    assert_int_equal(gm_model_value_element(a, key, i, &element[0], NULL), GM_OK);
    assert_int_equal(gm_model_value_element(b, key, i, &element[1], NULL), GM_OK);
    same_value(&element[0], &element[1]);
  }
}

/* ---- GGUF ---- */

enum { GGUF_VALUES = 16 };

static void gguf_values(gguf_bytes *file) {
  gguf_bytes_text(file, "general.architecture", "llama");
  gguf_bytes_value(file, "u8", GGUF_U8, 200, 1);
  gguf_bytes_value(file, "i8", GGUF_I8, 0x80, 1);
  gguf_bytes_value(file, "u16", GGUF_U16, 65535, 2);
  gguf_bytes_value(file, "i16", GGUF_I16, 0x8001, 2);
  gguf_bytes_u32(file, "general.alignment", 64);
  gguf_bytes_value(file, "i32", GGUF_I32, 0xffffffff, 4);
  gguf_bytes_value(file, "f32", GGUF_F32, 0x7f800001, 4); /* a signalling NaN stays one */
  gguf_bytes_value(file, "yes", GGUF_BOOL, 1, 1);
  gguf_bytes_value(file, "u64", GGUF_U64, UINT64_MAX, 8);
  gguf_bytes_value(file, "i64", GGUF_I64, UINT64_MAX, 8);
  gguf_bytes_value(file, "f64", GGUF_F64, 0x3ff8000000000000, 8);
  gguf_bytes_text(file, "none", "");
  gguf_bytes_array(file, "numbers", GGUF_U16, 3);
  for (int i = 0; i < 3; i++) gguf_bytes_number(file, (uint64_t)i * 1000, 2);
  gguf_bytes_array(file, "tokens", GGUF_STRING, 4);
  gguf_bytes_string(file, "<s>");
  gguf_bytes_string(file, "");
  gguf_bytes_string(file, "\xff\xfe"); /* a token is bytes */
  gguf_bytes_size(file, 3);
  gguf_bytes_raw(file, "a\0b", 3);
  gguf_bytes_array(file, "nothing", GGUF_F32, 0);
}

/* Types of blocks, ranks from 0 to 4, and tensors that end beside the alignment. */
static const char *write_gguf(const char *name, uint32_t version) {
  gguf_bytes file;
  gguf_bytes_begin(&file, version, 5, GGUF_VALUES);
  gguf_values(&file);
  gguf_bytes_tensor(&file, "q", 2, 0, 2, (uint64_t)64, (uint64_t)150); /* q4_0: 5400 bytes */
  gguf_bytes_tensor(&file, "one", 0, 5440, 0);                         /* f32 */
  gguf_bytes_tensor(&file, "deep", 30, 5504, 4, (uint64_t)3, (uint64_t)1, (uint64_t)5, (uint64_t)2); /* bf16: 60 */
  gguf_bytes_tensor(&file, "page", 24, 5568, 1, (uint64_t)4096);                                     /* i8 */
  gguf_bytes_tensor(&file, "\xc3\xa4.last", 14, 9664, 1, (uint64_t)256);                             /* q6_K: 210 */
  gguf_bytes_data(&file, 64, 9664 + 210, 3);
  const char *path = temp_folder_write(&f.folder, name, file.bytes, file.length);
  gguf_bytes_free(&file);
  return path;
}

static void expect_aligned(const gm_model *model, uint64_t align) {
  gm_tensor_info info = {.struct_size = sizeof info};
  uint64_t least = UINT64_MAX;
  for (uint64_t i = 0; i < gm_model_tensor_count(model); i++) {
    assert_int_equal(gm_model_tensor(model, i, &info, NULL), GM_OK);
    assert_int_equal(info.file_offset % align, 0);
    if (info.file_offset < least) least = info.file_offset;
  }
  assert_int_equal(least % 4096, 0);
}

static void test_a_gguf_model_as_gguf(void **state) {
  (void)state;
  for (uint32_t version = 1; version <= 3; version++) {
    gm_save_result result = {.struct_size = sizeof result};
    gm_model *model = opened(write_gguf("in.gguf", version));
    const char *paths[] = {kept("out.gguf"), kept("again.gguf")};
    uint64_t bytes[2] = {0};
    saved(model, NULL, paths[0], &result);
    assert_int_equal(result.tensors, 5);
    assert_int_equal(result.bytes, 5400 + 4 + 60 + 4096 + 210);
    assert_int_equal(result.values, GGUF_VALUES - 1);
    assert_int_equal(result.values_left_out, 0);
    gm_model *out = opened(paths[0]);
    same_tensors(model, out);
    expect_aligned(out, 4096);
    assert_int_equal(gm_model_value_count(out, 0), GGUF_VALUES);
    for (uint64_t i = 0; i < GGUF_VALUES; i++) same_in(model, i, out);
    gm_model_value alignment = {.struct_size = sizeof alignment};
    assert_int_equal(gm_model_find_value(out, "general.alignment", &alignment, NULL), GM_OK);
    assert_int_equal(alignment.u64, 4096);
    saved(out, NULL, paths[1], NULL);
    unsigned char *files[] = {read_file(paths[0], &bytes[0]), read_file(paths[1], &bytes[1])};
    assert_int_equal(bytes[0], bytes[1]);
    assert_int_equal(bytes[0] % 4096, 0); /* readers expect the last tensor's padding, too */
    assert_memory_equal(files[0], files[1], bytes[0]);
    for (int i = 0; i < 2; i++) free(files[i]);
    gm_model_close(out);
    gm_model_close(model);
  }
}

static void test_what_one_format_has_and_the_other_has_not(void **state) {
  (void)state;
  gm_save_result result = {.struct_size = sizeof result};
  gguf_bytes file;
  gguf_bytes_begin(&file, 3, 1, 4);
  gguf_bytes_text(&file, "general.name", "a \"name\"\n");
  gguf_bytes_u32(&file, "layers", 3);
  gguf_bytes_text(&file, "bytes", "\xff");
  gguf_bytes_array(&file, "tokens", GGUF_U8, 0);
  gguf_bytes_tensor(&file, "w", 0, 0, 2, (uint64_t)2, (uint64_t)3);
  gguf_bytes_data(&file, 32, 24, 3);
  gm_model *model = opened(temp_folder_write(&f.folder, "in.gguf", file.bytes, file.length));
  gguf_bytes_free(&file);
  const char *path = kept("out.safetensors"), *key = NULL, *text = NULL;
  saved(model, NULL, path, &result);
  assert_int_equal(result.values, 1);
  assert_int_equal(result.values_left_out, 3);
  gm_model *out = opened(path);
  same_tensors(model, out);
  expect_aligned(out, 4);
  assert_int_equal(gm_model_metadata_count(out, 0), 1);
  assert_int_equal(gm_model_metadata(out, 0, 0, &key, &text, NULL), GM_OK);
  assert_string_equal(key, "general.name");
  assert_string_equal(text, "a \"name\"\n");
  saved(out, NULL, kept("back.gguf"), &result); /* its string goes back */
  assert_int_equal(result.values, 1);
  gm_model *back = opened(in_folder("back.gguf"));
  gm_model_value name = {.struct_size = sizeof name};
  assert_int_equal(gm_model_find_value(back, "general.name", &name, NULL), GM_OK);
  assert_string_equal(name.string, "a \"name\"\n");
  saved(out, NULL, kept("w.npy"), &result);
  assert_int_equal(result.values_left_out, 1);
  gm_model_close(back);
  gm_model_close(out);
  gm_model_close(model);
  model = opened(write_gguf("in.gguf", 3));
  refused(model, path, GM_ERR_NOT_SUPPORTED, "tensor \"q\"");
  out = opened(path); /* the earlier file is there */
  assert_int_equal(gm_model_tensor_count(out), 1);
  gm_model_close(out);
  gm_model_close(model);
}

static const char *write_tensors(const char *header, uint64_t data) {
  safetensors_bytes file = safetensors_bytes_make(header, strlen(header), data, 1);
  const char *path = temp_folder_write(&f.folder, "in.safetensors", file.bytes, file.length);
  safetensors_bytes_free(&file);
  return path;
}

static void test_what_gguf_cannot_hold(void **state) {
  (void)state;
  static const char *const tensors[][2] = {
      {"\"w\":{\"dtype\":\"U8\",\"shape\":[8]", "a type that GGUF does not know"},
      {"\"w\":{\"dtype\":\"I8\",\"shape\":[1,2,1,2,2]", "more than the four dimensions"},
      {"\"\":{\"dtype\":\"I8\",\"shape\":[8]", "a name that is empty"},
      {"\"a\\u0001\":{\"dtype\":\"I8\",\"shape\":[8]", "control characters"},
      {"\"0123456789012345678901234567890123456789012345678901234567890123\":{\"dtype\":\"I8\",\"shape\":[8]",
       "more than 63 bytes"}};
  char header[512];
  for (size_t i = 0; i < sizeof tensors / sizeof *tensors; i++) {
    snprintf(header, sizeof header, "{%s,\"data_offsets\":[0,8]}}", tensors[i][0]);
    gm_model *model = opened(write_tensors(header, 8));
    refused(model, in_folder("out.gguf"), GM_ERR_NOT_SUPPORTED, tensors[i][1]);
    gm_model_close(model);
  }
  gm_model *empty = opened(write_tensors("{\"w\":{\"dtype\":\"I8\",\"shape\":[8,0],\"data_offsets\":[0,0]}}", 0));
  refused(empty, in_folder("out.gguf"), GM_ERR_NOT_SUPPORTED, "a dimension of 0");
  gm_model_close(empty);
  assert_int_not_equal(access(in_folder("out.gguf"), F_OK), 0);
  snprintf(header, sizeof header,
           "{\"__metadata__\":{\"\":\"no key\",\"split.count\":\"2\",\"general.alignment\":\"a text\",\"k\":\"v\"},"
           "\"w\":{\"dtype\":\"I8\",\"shape\":[8],\"data_offsets\":[0,8]}}");
  gm_model *model = opened(write_tensors(header, 8));
  gm_save_result result = {.struct_size = sizeof result};
  saved(model, NULL, kept("out.gguf"), &result);
  assert_int_equal(result.values, 1);
  assert_int_equal(result.values_left_out, 1);
  gm_model_close(model);
  gm_model_close(opened(in_folder("out.gguf")));
}

/* ---- from blocks ---- */

static void leave_out_odd(void *user, uint64_t index, const gm_tensor_info *tensor, gm_load_place *place) {
  (void)user;
  (void)index;
  if (strcmp(tensor->name, "odd") == 0) place->pool = NULL;
}

static void test_blocks_and_files_together(void **state) {
  (void)state;
  const gm_load_params params = {.struct_size = sizeof params, .place = leave_out_odd};
  gm_loaded_model *loaded = NULL;
  gm_block block;
  uint64_t big = 0, bytes = 0;
  unsigned char fresh[10000];
  assert_int_equal(gm_model_load(f.model, f.pool, &params, &loaded, NULL, NULL), GM_OK);
  assert_int_equal(gm_model_find(f.model, "big", &big, NULL), GM_OK);
  assert_int_equal(gm_loaded_model_block(loaded, big, &block, NULL), GM_OK);
  for (size_t i = 0; i < sizeof fresh; i++) fresh[i] = (unsigned char)(i * 7);
  assert_int_equal(gm_block_write(f.pool, &block, 0, fresh, sizeof fresh, NULL, NULL, NULL), GM_OK);
  saved(f.model, loaded, kept("blocks.safetensors"), NULL);
  saved(f.model, NULL, kept("files.safetensors"), NULL);
  gm_model *blocks = opened(in_folder("blocks.safetensors")), *files = opened(in_folder("files.safetensors"));
  same_tensors(f.model, files);
  unsigned char *content = read_file(in_folder("blocks.safetensors"), &bytes);
  for (uint64_t i = 0; i < TENSORS; i++) {
    gm_tensor_info info = {.struct_size = sizeof info};
    assert_int_equal(gm_model_tensor(blocks, i, &info, NULL), GM_OK);
    if (strcmp(info.name, "big") == 0) {
      assert_memory_equal(content + info.file_offset, fresh, sizeof fresh);
    } else {
      same_tensor(files, blocks, i, content);
    }
  }
  free(content);
  gm_model_close(blocks);
  gm_model_close(files);
  assert_int_equal(gm_loaded_model_release(loaded, NULL), GM_OK);
}

static void test_a_model_saved_to_its_own_path(void **state) {
  (void)state;
  const char *path = kept("own.gguf");
  gm_model *model = opened(write_gguf("own.gguf", 3));
  saved(model, NULL, kept("copy.gguf"), NULL);
  saved(model, NULL, path, NULL);
  gm_model *copy = opened(in_folder("copy.gguf")), *own = opened(path);
  same_tensors(copy, own);
  refused(model, path, GM_ERR_IO, "has changed since"); /* the header is another file's */
  gm_model_close(copy);
  gm_model_close(own);
  gm_model_close(model);
}

/* ---- pieces ---- */

/* Whether the file system takes writes past its cache. */
static bool takes_direct(const char *path) {
  const int fd = open(path, O_WRONLY | O_DIRECT | O_CLOEXEC);
  if (fd >= 0) close(fd);
  return fd >= 0;
}

/* Files of many small pieces are those of one. */
static void test_the_size_of_a_piece_changes_nothing(void **state) {
  (void)state;
  static const char *const ends[] = {"safetensors", "npz"};
  gm_loaded_model *loaded = NULL;
  gm_error err = {0};
  assert_int_equal(gm_model_load(f.model, f.pool, NULL, &loaded, NULL, NULL), GM_OK);
  for (int i = 0; i < 4; i++) {
    char whole[32], parts[32];
    snprintf(whole, sizeof whole, "whole.%s", ends[i / 2]);
    snprintf(parts, sizeof parts, "parts.%s", ends[i / 2]);
    gm_save_result result[2] = {{.struct_size = sizeof *result}, {.struct_size = sizeof *result}};
    const gm_save_params params = {.struct_size = sizeof params, .chunk_bytes = 4096};
    const gm_loaded_model *from = i % 2 ? loaded : NULL;
    saved(f.model, from, kept(whole), &result[0]);
    if (gm_model_save(f.model, from, kept(parts), &params, &result[1], &err)) fail_msg("%s", err.message);
    uint64_t bytes[2];
    unsigned char *files[] = {read_file(in_folder(whole), &bytes[0]), read_file(in_folder(parts), &bytes[1])};
    for (int k = 0; k < 2; k++) {
      assert_int_equal(bytes[k], result[k].file_bytes);
      assert_int_equal(result[k].direct_bytes, takes_direct(in_folder(parts)) ? bytes[k] / 4096 * 4096 : 0);
      assert_int_equal(result[k].why[0] == '\0', takes_direct(in_folder(parts)));
    }
    assert_int_equal(bytes[0], bytes[1]);
    assert_memory_equal(files[0], files[1], bytes[0]);
    assert_int_equal(result[0].peak_host_bytes, 4 << 20);
    for (int j = 0; j < 2; j++)
      assert_true(result[j].write_seconds > 0 && result[j].write_seconds <= result[j].seconds);
    assert_true(result[1].peak_host_bytes >= 4096 && result[1].peak_host_bytes <= 6 * 4096);
    for (int k = 0; k < 2; k++) free(files[k]);
  }
  assert_int_equal(gm_loaded_model_release(loaded, NULL), GM_OK);
}

/* Whole pages of large blocks go from where they are, and the rest of each by way of a piece. */
static void test_large_blocks_with_a_rest(void **state) {
  (void)state;
  static const char header[] =
      "{\"a\":{\"dtype\":\"U8\",\"shape\":[1048676],\"data_offsets\":[0,1048676]},"
      "\"b\":{\"dtype\":\"U8\",\"shape\":[1048577],\"data_offsets\":[1048676,2097253]}}";
  gm_loaded_model *loaded = NULL;
  write_shard("large", header, 2097253, 3);
  gm_model *model = opened(in_folder("large"));
  assert_int_equal(gm_model_load(model, f.pool, NULL, &loaded, NULL, NULL), GM_OK);
  saved(model, loaded, kept("out.safetensors"), NULL);
  gm_model *copy = opened(in_folder("out.safetensors"));
  same_tensors(model, copy);
  gm_model_close(copy);
  assert_int_equal(gm_loaded_model_release(loaded, NULL), GM_OK);
  gm_model_close(model);
}

/* ---- progress, and what ends a save ---- */

typedef struct watch {
  uint64_t calls, most, end_at;
} watch;

static bool watched(void *user, const gm_save_progress *progress) {
  watch *self = user;
  assert_int_equal(progress->total_bytes, BYTES);
  assert_true(progress->done_bytes >= self->most && progress->done_bytes <= BYTES);
  assert_non_null(progress->tensor);
  self->most = progress->done_bytes;
  return ++self->calls != self->end_at;
}

static void test_progress_and_cancel(void **state) {
  (void)state;
  watch self = {0};
  const char *path = kept("out.safetensors");
  gm_error err = {0};
  const gm_save_params params = {.struct_size = sizeof params, .progress = watched, .user = &self};
  const int files = files_of_folder();
  gm_status status = GM_ERR_CANCELLED;
  for (uint64_t end = 1; status; end++) {
    self = (watch){.end_at = end};
    status = gm_model_save(f.model, NULL, path, &params, NULL, &err);
    assert_true(status == GM_OK || status == GM_ERR_CANCELLED);
    assert_int_equal(files_of_folder(), files + (status == GM_OK));
  }
  assert_int_equal(self.most, BYTES);
  assert_true(self.calls >= TENSORS + 4); /* before each tensor, and after its chunks */
}

static void test_wrong_arguments(void **state) {
  (void)state;
  const char *path = kept("out");
  gm_loaded_model *loaded = NULL;
  gm_model *other = opened(write_gguf("in.gguf", 3)), *header = NULL;
  gm_save_result result = {.struct_size = 3};
  const gm_save_params params = {.struct_size = 3};
  gm_save_params odd = {.struct_size = sizeof odd, .chunk_bytes = 4097};
  assert_int_equal(gm_model_save(f.model, NULL, path, &odd, NULL, NULL), GM_ERR_INVALID_ARGUMENT);
  odd.chunk_bytes = UINT64_C(1) << 40;
  assert_int_equal(gm_model_save(f.model, NULL, path, &odd, NULL, NULL), GM_ERR_INVALID_ARGUMENT);
  refused(NULL, path, GM_ERR_INVALID_ARGUMENT, "`model`");
  refused(f.model, NULL, GM_ERR_INVALID_ARGUMENT, "`path` is NULL");
  refused(f.model, "", GM_ERR_INVALID_ARGUMENT, "`path` is empty");
  refused(f.model, f.folder.path, GM_ERR_IO, "");
  refused(f.model, "/nobody/here", GM_ERR_NOT_FOUND, "/nobody");
  assert_int_equal(gm_model_save(f.model, NULL, path, &params, NULL, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_model_save(f.model, NULL, path, NULL, &result, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_model_load(f.model, f.pool, NULL, &loaded, NULL, NULL), GM_OK);
  assert_int_equal(gm_model_save(other, loaded, path, NULL, NULL, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_loaded_model_release(loaded, NULL), GM_OK);
  assert_int_equal(gm_model_open_header(NULL, in_folder("in.gguf"), &header, NULL), GM_OK);
  refused(header, path, GM_ERR_INVALID_ARGUMENT, "gm_model_open_header");
  gm_model_close(header);
  gm_model_close(other);
  unlink(in_folder("2"));
  refused(f.model, path, GM_ERR_NOT_FOUND, "\"byte\"");
  assert_int_not_equal(access(path, F_OK), 0);
}

/* Each host allocation of a save fails once. */
static void test_host_memory_that_is_missing(void **state) {
  (void)state;
  gm_status status = GM_ERR_OUT_OF_HOST_MEMORY;
  for (size_t n = 1; status; n++) {
    f.host.fail_at = atomic_load(&f.host.calls) + n;
    f.host.fail_count = 1;
    status = gm_model_save(f.model, NULL, in_folder("out"), NULL, NULL, NULL);
    f.host.fail_at = 0;
    assert_true(status == GM_OK || status == GM_ERR_OUT_OF_HOST_MEMORY);
    assert_int_equal(access(in_folder("out"), F_OK) == 0, status == GM_OK);
    assert_true(n < 100);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_a_gguf_model_as_gguf, setup, teardown),
      cmocka_unit_test_setup_teardown(test_what_one_format_has_and_the_other_has_not, setup, teardown),
      cmocka_unit_test_setup_teardown(test_what_gguf_cannot_hold, setup, teardown),
      cmocka_unit_test_setup_teardown(test_blocks_and_files_together, setup, teardown),
      cmocka_unit_test_setup_teardown(test_a_model_saved_to_its_own_path, setup, teardown),
      cmocka_unit_test_setup_teardown(test_the_size_of_a_piece_changes_nothing, setup, teardown),
      cmocka_unit_test_setup_teardown(test_large_blocks_with_a_rest, setup, teardown),
      cmocka_unit_test_setup_teardown(test_progress_and_cancel, setup, teardown),
      cmocka_unit_test_setup_teardown(test_wrong_arguments, setup, teardown),
      cmocka_unit_test_setup_teardown(test_host_memory_that_is_missing, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
