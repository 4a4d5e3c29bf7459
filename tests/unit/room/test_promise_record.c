/* The records of the file of promises: what is packed comes back, and nothing else passes for a promise. */
#include "core/room/promise_record.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "support/random.h"

static const gm__promise promise = {.card = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 255},
                                    .bytes = UINT64_C(0x123456789abcdef0),
                                    .owner = {.space = UINT64_MAX, .start = 77, .pid = UINT32_MAX}};

static void test_a_promise_comes_back(void **state) {
  (void)state;
  unsigned char record[GM__PROMISE_RECORD_BYTES];
  gm__promise back;
  gm__promise_pack(&promise, record);
  assert_true(gm__promise_unpack(record, &back));
  assert_memory_equal(back.card, promise.card, sizeof back.card);
  assert_true(back.bytes == promise.bytes && back.owner.space == promise.owner.space);
  assert_true(back.owner.start == promise.owner.start && back.owner.pid == promise.owner.pid);
}

static void test_one_wrong_bit(void **state) {
  (void)state;
  unsigned char record[GM__PROMISE_RECORD_BYTES];
  gm__promise back;
  gm__promise_pack(&promise, record);
  for (int bit = 0; bit < 8 * GM__PROMISE_RECORD_BYTES; bit++) {
    record[bit / 8] ^= (unsigned char)(1 << bit % 8);
    assert_false(gm__promise_unpack(record, &back));
    record[bit / 8] ^= (unsigned char)(1 << bit % 8);
  }
  assert_true(gm__promise_unpack(record, &back));
}

static void test_half_a_record(void **state) {
  (void)state;
  unsigned char old[GM__PROMISE_RECORD_BYTES], fresh[GM__PROMISE_RECORD_BYTES], record[GM__PROMISE_RECORD_BYTES];
  gm__promise other = promise, back;
  other.bytes--;
  other.owner.start++;
  gm__promise_pack(&promise, old);
  gm__promise_pack(&other, fresh);
  for (size_t cut = 0; cut < sizeof record; cut++) {
    memcpy(record, old, sizeof record);
    memcpy(record, fresh, cut);
    const bool is_one = memcmp(record, old, sizeof record) == 0 || memcmp(record, fresh, sizeof record) == 0;
    assert_int_equal(gm__promise_unpack(record, &back), is_one);
  }
}

static void test_what_is_no_promise(void **state) {
  (void)state;
  unsigned char record[GM__PROMISE_RECORD_BYTES], zeros[GM__PROMISE_RECORD_BYTES] = {0};
  gm__promise free_record = promise, back;
  uint64_t seed = 1;
  free_record.bytes = 0;
  gm__promise_pack(&free_record, record);
  assert_memory_equal(record, zeros, sizeof record);
  assert_false(gm__promise_unpack(record, &back));
  memset(record, 0xff, sizeof record);
  assert_false(gm__promise_unpack(record, &back));
  for (int i = 0; i < 10000; i++) {
    for (size_t k = 0; k < sizeof record; k++) record[k] = (unsigned char)test_random(&seed);
    assert_false(gm__promise_unpack(record, &back));
  }
}

static void test_heads(void **state) {
  (void)state;
  unsigned char head[GM__PROMISE_RECORD_BYTES], expected[GM__PROMISE_RECORD_BYTES];
  gm_error err;
  gm__promise_head(expected);
  assert_int_equal(gm__promise_head_check("file", expected, &err), GM_OK);
  for (size_t i = 0; i < sizeof head; i++) {
    memcpy(head, expected, sizeof head);
    head[i] ^= 1;
    assert_int_equal(gm__promise_head_check("file", head, &err), GM_ERR_FORMAT);
    assert_non_null(strstr(err.message, i < 16 ? "no file of promises" : "another version"));
  }
}

static void test_places(void **state) {
  (void)state;
  const uint8_t other[GM__PROMISE_CARD_BYTES] = {1};
  assert_int_equal(gm__promise_at(0), GM__PROMISE_RECORD_BYTES);
  assert_int_equal(gm__promise_at(GM__PROMISE_RECORDS - 1) + GM__PROMISE_RECORD_BYTES, GM__PROMISE_FILE_BYTES);
  assert_true(gm__promise_hash(promise.card) != gm__promise_hash(other));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_a_promise_comes_back),
                                     cmocka_unit_test(test_one_wrong_bit),
                                     cmocka_unit_test(test_half_a_record),
                                     cmocka_unit_test(test_what_is_no_promise),
                                     cmocka_unit_test(test_heads),
                                     cmocka_unit_test(test_places)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
