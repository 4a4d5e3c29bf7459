/* Archives of NumPy's arrays: every rule, each broken in turn. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/counted_services.h"
#include "support/fail_each.h"
#include "support/npy_bytes.h"

/* ---- archives ---- */

typedef struct member {
  const char *name;
  uint64_t flags, method, packed_more;
  bool wide; /* its sizes and place stand in 64 bits */
} member;

typedef struct archive {
  npy_bytes file;
  npy_bytes list;
  uint64_t count;
  bool wide; /* so do the numbers of the list */
} archive;

static const char archive_literal[] = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}";

static void archive_list(archive *self, const member *what, uint64_t at, uint64_t size) {
  const uint64_t none = UINT32_MAX;
  npy_add(&self->list, "PK\001\002", 4);
  npy_add_number(&self->list, 0, 4);
  npy_add_number(&self->list, what->flags, 2);
  npy_add_number(&self->list, what->method, 2);
  npy_add_number(&self->list, 0, 8);
  npy_add_number(&self->list, what->wide ? none : size + what->packed_more, 4);
  npy_add_number(&self->list, what->wide ? none : size, 4);
  npy_add_number(&self->list, strlen(what->name), 2);
  npy_add_number(&self->list, what->wide ? 33 : 0, 2);
  npy_add_number(&self->list, 3, 2);
  npy_add_number(&self->list, 0, 8);
  npy_add_number(&self->list, what->wide ? none : at, 4);
  npy_add(&self->list, what->name, strlen(what->name));
  if (what->wide) {
    npy_add_number(&self->list, 0x7075, 2); /* another field comes first */
    npy_add_number(&self->list, 1, 2);
    npy_add_number(&self->list, 0, 1);
    npy_add_number(&self->list, 1, 2);
    npy_add_number(&self->list, 24, 2);
    npy_add_number(&self->list, size, 8);
    npy_add_number(&self->list, size + what->packed_more, 8);
    npy_add_number(&self->list, at, 8);
  }
  npy_add(&self->list, "abc", 3);
  self->count++;
}

static void archive_add(archive *self, const member *what) {
  npy_bytes array = {.length = 0};
  const uint64_t at = self->file.length;
  npy_add_array(&array, 1, archive_literal, 8);
  npy_add(&self->file, "PK\003\004", 4);
  npy_add_number(&self->file, 0, 22);
  npy_add_number(&self->file, strlen(what->name), 2);
  npy_add_number(&self->file, 4, 2);
  npy_add(&self->file, what->name, strlen(what->name));
  npy_add(&self->file, "more", 4);
  npy_add(&self->file, array.at, array.length);
  archive_list(self, what, at, array.length);
}

/* The list, and the records behind it; `count` and `list_at` are what they say. */
static npy_bytes archive_end_as(archive *self, uint64_t count, uint64_t list_at, const char *comment) {
  npy_bytes file = self->file;
  const uint64_t end64 = file.length + self->list.length;
  npy_add(&file, self->list.at, self->list.length);
  if (self->wide) {
    npy_add(&file, "PK\006\006", 4);
    npy_add_number(&file, 44, 8);
    npy_add_number(&file, 0, 20 - 8);
    npy_add_number(&file, count, 8);
    npy_add_number(&file, count, 8);
    npy_add_number(&file, self->list.length, 8);
    npy_add_number(&file, list_at, 8);
    npy_add(&file, "PK\006\007", 4);
    npy_add_number(&file, 0, 4);
    npy_add_number(&file, end64, 8);
    npy_add_number(&file, 1, 4);
  }
  npy_add(&file, "PK\005\006", 4);
  npy_add_number(&file, 0, 4);
  npy_add_number(&file, self->wide ? UINT16_MAX : count, 2);
  npy_add_number(&file, self->wide ? UINT16_MAX : count, 2);
  npy_add_number(&file, self->wide ? UINT32_MAX : self->list.length, 4);
  npy_add_number(&file, self->wide ? UINT32_MAX : list_at, 4);
  npy_add_number(&file, strlen(comment), 2);
  npy_add(&file, comment, strlen(comment));
  return file;
}

static npy_bytes archive_end(archive *self) { return archive_end_as(self, self->count, self->file.length, ""); }

static npy_bytes archive_of_one(member what) {
  archive self = {.count = 0};
  archive_add(&self, &what);
  return archive_end(&self);
}

static void check_two_members(const npy_bytes *file) {
  gm_model *model = NULL;
  gm_error err = {0};
  if (npy_open(NULL, file, false, &model, &err)) fail_msg("%s", err.message);
  assert_int_equal(gm_model_tensor_count(model), 2);
  assert_int_equal(gm_model_tensor_bytes(model), 16);
  const gm_tensor_info first = npy_tensor_of(model, 0), second = npy_tensor_of(model, 1);
  assert_string_equal(first.name, "layer/b");
  assert_string_equal(second.name, "a");
  assert_true(second.file_offset > first.file_offset + 8);
  for (unsigned i = 0; i < 8; i++) {
    assert_int_equal(file->at[first.file_offset + i], i + 1);
    assert_int_equal(file->at[second.file_offset + i], i + 1);
  }
  gm_model_close(model);
}

static void test_an_archive_becomes_a_table(void **state) {
  (void)state;
  for (int wide = 0; wide < 2; wide++) {
    archive self = {.wide = wide};
    archive_add(&self, &(member){.name = "layer/b.npy", .wide = wide});
    archive_add(&self, &(member){.name = "a.npy"});
    npy_bytes file = archive_end(&self);
    check_two_members(&file);
    file = archive_end_as(&self, 2, self.file.length, "PK\005\006 a comment");
    check_two_members(&file);
  }
  archive empty = {.count = 0};
  const npy_bytes file = archive_end(&empty);
  gm_model *model = NULL;
  assert_int_equal(npy_open(NULL, &file, false, &model, NULL), GM_OK);
  assert_int_equal(gm_model_tensor_count(model), 0);
  gm_model_close(model);
}

static void test_an_archive_that_gm_refuses(void **state) {
  (void)state;
  npy_bytes file = archive_of_one((member){.name = "a.npy", .method = 8});
  npy_check_refused(&file, GM_ERR_NOT_SUPPORTED, "\"a\" is compressed: save it by numpy.savez");
  file = archive_of_one((member){.name = "a.npy", .flags = 1});
  npy_check_refused(&file, GM_ERR_NOT_SUPPORTED, "is encrypted");
  file = archive_of_one((member){.name = "archive/data.pkl"});
  npy_check_refused(&file, GM_ERR_FORMAT, "PyTorch's checkpoints");
  file = archive_of_one((member){.name = ".npy"});
  npy_check_refused(&file, GM_ERR_FORMAT, "PyTorch's checkpoints");
  file = archive_of_one((member){.name = "\377.npy"});
  npy_check_refused(&file, GM_ERR_FORMAT, "is not UTF-8");
  file = archive_of_one((member){.name = "a.npy", .packed_more = 1});
  npy_check_refused(&file, GM_ERR_FORMAT, "has two sizes");
  file = archive_of_one((member){.name = "a.npy", .packed_more = 1, .wide = true});
  npy_check_refused(&file, GM_ERR_FORMAT, "has two sizes");
}

static void test_lists_that_lie(void **state) {
  (void)state;
  archive self = {.count = 0};
  archive_add(&self, &(member){.name = "a.npy"});
  npy_bytes file = archive_end_as(&self, 2, self.file.length, "");
  npy_check_refused(&file, GM_ERR_FORMAT, "a member must be listed here");
  file = archive_end_as(&self, 0, self.file.length, "");
  npy_check_refused(&file, GM_ERR_FORMAT, "more members are listed");
  file = archive_end_as(&self, 1, self.file.length + 1, "");
  npy_check_refused(&file, GM_ERR_FORMAT, "not where it says");
  self.wide = true;
  file = archive_end_as(&self, 1, UINT64_MAX, "");
  npy_check_refused(&file, GM_ERR_FORMAT, "not where it says");
  self.wide = false;
  archive_list(&self, &(member){.name = "b.npy"}, 0, self.file.length - 30 - 5 - 4);
  file = archive_end(&self);
  npy_check_refused(&file, GM_ERR_FORMAT, "two members overlap");
  archive twice = {.count = 0};
  archive_add(&twice, &(member){.name = "a.npy"});
  archive_add(&twice, &(member){.name = "a.npy"});
  file = archive_end(&twice);
  npy_check_refused(&file, GM_ERR_FORMAT, "tensor \"a\" is there twice");
}

static void test_members_that_are_elsewhere(void **state) {
  (void)state;
  static const uint64_t places[] = {1, 70, 4000, UINT32_MAX - 1};
  for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
    archive self = {.count = 0};
    archive_add(&self, &(member){.name = "a.npy"});
    archive_list(&self, &(member){.name = "b.npy"}, places[i], 80);
    const npy_bytes file = archive_end(&self);
    npy_check_refused(&file, GM_ERR_FORMAT, i < 2 ? "a member must be here" : "outside of the file");
  }
  archive self = {.count = 0};
  archive_add(&self, &(member){.name = "a.npy"});
  archive_list(&self, &(member){.name = "b.npy", .wide = true}, 0, UINT64_MAX - 10);
  const npy_bytes file = archive_end(&self);
  npy_check_refused(&file, GM_ERR_FORMAT, "outside of the file");
}

static void test_an_archive_cut_anywhere(void **state) {
  (void)state;
  archive self = {.wide = true};
  archive_add(&self, &(member){.name = "layer/b.npy", .wide = true});
  archive_add(&self, &(member){.name = "a.npy"});
  const npy_bytes whole = archive_end(&self);
  for (size_t length = 8; length < whole.length; length++) {
    npy_bytes cut = whole;
    cut.length = length;
    npy_check_refused(&cut, GM_ERR_FORMAT, "a zip file: it is cut off");
  }
}

static gm_status attempt_archive(const gm_services *services) {
  archive self = {.count = 0};
  gm_model *model = NULL;
  archive_add(&self, &(member){.name = "a.npy"});
  archive_add(&self, &(member){.name = "b.npy"});
  const npy_bytes file = archive_end(&self);
  const gm_status status = npy_open(services, &file, false, &model, NULL);
  gm_model_close(model);
  return status;
}

static void test_host_memory_fails(void **state) {
  (void)state;
  fail_each_allocation(attempt_archive, 8);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_an_archive_becomes_a_table),
      cmocka_unit_test(test_an_archive_that_gm_refuses),
      cmocka_unit_test(test_lists_that_lie),
      cmocka_unit_test(test_members_that_are_elsewhere),
      cmocka_unit_test(test_an_archive_cut_anywhere),
      cmocka_unit_test(test_host_memory_fails),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
