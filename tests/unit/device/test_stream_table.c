/* The table of named streams against a plain model, and read by threads while it changes. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
/* cmocka wants the ones above before it */
#include <cmocka.h>

#include "core/base/alloc.h"
#include "core/device/stream_table.h"
#include "support/random.h"

enum { NAMES = 300, STEPS = 20000, STEADY = 40, ROUNDS = 20000, READERS = 3 };

/* Nobody looks into a stream here: its address is the number. */
static gm_stream *stream_of(uint32_t number) { return (gm_stream *)(uintptr_t)(16 * (number + 1)); }

/* Few first words, so that names share them. */
static gm_stream_name name_of(uint32_t number) { return (gm_stream_name){{4096 + number / 4 * 64, number % 4}}; }

static void test_against_a_model(void **state) {
  (void)state;
  gm__stream_table table = {0};
  bool there[NAMES] = {false};
  uint64_t seed = 7;
  uint32_t count = 0;
  for (int step = 0; step < STEPS; step++) {
    const uint32_t number = (uint32_t)(test_random(&seed) % NAMES);
    const gm_stream_name name = name_of(number);
    assert_ptr_equal(gm__stream_table_find(&table, &name), there[number] ? stream_of(number) : NULL);
    if (there[number]) {
      gm__stream_table_remove(&table, &name);
    } else {
      assert_int_equal(gm__stream_table_add(&table, gm__default_services(), &name, stream_of(number)), GM_OK);
    }
    there[number] = !there[number];
    count += there[number] ? 1 : UINT32_MAX;
    assert_int_equal(table.count, count);
  }
  for (uint32_t number = 0; number < NAMES; number++) {
    const gm_stream_name name = name_of(number);
    assert_ptr_equal(gm__stream_table_find(&table, &name), there[number] ? stream_of(number) : NULL);
  }
  for (gm_stream_name name; gm__stream_table_any(&table, &name);) gm__stream_table_remove(&table, &name);
  assert_int_equal(table.count, 0);
  gm__stream_table_clear(&table, gm__default_services());
}

/* A handle that was used again: the older name differs in the second word only. */
static void test_older_names(void **state) {
  (void)state;
  gm__stream_table table = {0};
  gm_stream_name found;
  const gm_stream_name first = {{64, 5}}, second = {{64, 6}}, other = {{128, 6}};
  assert_null(gm__stream_table_older(&table, &second, &found));
  assert_int_equal(gm__stream_table_add(&table, gm__default_services(), &first, stream_of(0)), GM_OK);
  assert_null(gm__stream_table_older(&table, &first, &found));
  assert_null(gm__stream_table_older(&table, &other, &found));
  assert_ptr_equal(gm__stream_table_older(&table, &second, &found), stream_of(0));
  assert_int_equal(found.words[1], 5);
  gm__stream_table_clear(&table, gm__default_services());
}

static void *no_memory(void *user, size_t bytes, size_t align) {
  (void)user, (void)bytes, (void)align;
  return NULL;
}

static void test_without_host_memory(void **state) {
  (void)state;
  gm__stream_table table = {0};
  gm_services services = *gm__default_services();
  const gm_stream_name name = name_of(0);
  services.alloc = no_memory;
  assert_int_equal(gm__stream_table_add(&table, &services, &name, stream_of(0)), GM_ERR_OUT_OF_HOST_MEMORY);
  assert_null(gm__stream_table_find(&table, &name));
  assert_int_equal(table.count, 0);
}

static gm__stream_table shared;
static atomic_bool over;
static atomic_int wrong, seen;

/* Names below STEADY stay. A look-up may miss while the table changes, and never finds another stream. */
static void *read_often(void *user) {
  (void)user;
  for (uint32_t i = 0; !atomic_load(&over); i++) {
    const uint32_t number = i % (2 * STEADY);
    const gm_stream_name name = name_of(number);
    const gm_stream *found = gm__stream_table_find(&shared, &name);
    if (found && found != stream_of(number)) atomic_fetch_add(&wrong, 1);
    if (found) atomic_fetch_add(&seen, 1);
  }
  return NULL;
}

static void test_readers(void **state) {
  (void)state;
  pthread_t readers[READERS];
  for (uint32_t i = 0; i < STEADY; i++) {
    const gm_stream_name name = name_of(i);
    assert_int_equal(gm__stream_table_add(&shared, gm__default_services(), &name, stream_of(i)), GM_OK);
  }
  for (int i = 0; i < READERS; i++) assert_int_equal(pthread_create(&readers[i], NULL, read_often, NULL), 0);
  for (uint32_t round = 0; round < ROUNDS || !atomic_load(&seen); round++) {
    const uint32_t number = STEADY + round % STEADY;
    const gm_stream_name name = name_of(number);
    assert_int_equal(gm__stream_table_add(&shared, gm__default_services(), &name, stream_of(number)), GM_OK);
    gm__stream_table_remove(&shared, &name);
  }
  atomic_store(&over, true);
  for (int i = 0; i < READERS; i++) assert_int_equal(pthread_join(readers[i], NULL), 0);
  assert_int_equal(atomic_load(&wrong), 0);
  for (uint32_t i = 0; i < STEADY; i++) {
    const gm_stream_name name = name_of(i);
    assert_ptr_equal(gm__stream_table_find(&shared, &name), stream_of(i));
  }
  gm__stream_table_clear(&shared, gm__default_services());
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_against_a_model),
      cmocka_unit_test(test_older_names),
      cmocka_unit_test(test_without_host_memory),
      cmocka_unit_test(test_readers),
  };
  return cmocka_run_group_tests_name("stream_table", tests, NULL, NULL);
}
