/* A pool's table of addresses against a plain list, in a space so narrow that many of the ranges overlap, and at its
 * very end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/provider/address_map.h"
#include "support/counted_services.h"
#include "support/great_many.h"
#include "support/random.h"

enum { NODES = 100, SPACE = 20000 };

typedef struct scene {
  counted_services host;
  gm__address_map map;
  gm__allocation nodes[NODES];
  bool in[NODES];
  uint64_t first; /* address of the space */
  uint64_t random;
} scene;

static void begin(scene *s, uint64_t first) {
  *s = (scene){.first = first, .random = 5};
  counted_services_init(&s->host);
  gm__address_map_init(&s->map, &s->host.services);
}

static void end(scene *s) {
  gm__address_map_clear(&s->map);
  counted_services_check(&s->host);
}

static gm__allocation *plain_find(scene *s, uint64_t address) {
  for (int i = 0; i < NODES; i++) {
    if (s->in[i] && address - s->nodes[i].address < s->nodes[i].bytes) return &s->nodes[i];
  }
  return NULL;
}

static bool plain_overlaps(const scene *s, const gm__allocation *node) {
  for (int i = 0; i < NODES; i++) {
    const gm__allocation *other = &s->nodes[i];
    if (s->in[i] && (node->address - other->address < other->bytes || other->address - node->address < node->bytes)) {
      return true;
    }
  }
  return false;
}

static void put_or_take(scene *s) {
  const uint64_t at = test_random(&s->random) % NODES;
  gm__allocation *node = &s->nodes[at];
  if (s->in[at]) {
    gm__address_map_remove(&s->map, node);
    s->in[at] = false;
    return;
  }
  const uint64_t offset = test_random(&s->random) % SPACE;
  node->address = s->first + offset;
  node->bytes = 1 + test_random(&s->random) % (SPACE - offset < 400 ? SPACE - offset : 400);
  const bool overlaps = plain_overlaps(s, node);
  assert_int_equal(gm__address_map_insert(&s->map, node), overlaps ? GM_ERR_DRIVER : GM_OK);
  if (overlaps) gm__address_map_remove(&s->map, node); /* what it overlaps stays */
  s->in[at] = !overlaps;
}

static void test_as_a_plain_list_does(void **state) {
  (void)state;
  static const uint64_t firsts[] = {1, UINT64_C(1) << 46, UINT64_MAX - SPACE + 1};
  for (size_t f = 0; f < sizeof firsts / sizeof *firsts; f++) {
    scene s;
    begin(&s, firsts[f]);
    for (size_t step = 0; step < great_many(50000); step++) {
      put_or_take(&s);
      for (int i = 0; i < 4; i++) {
        const uint64_t address = s.first + test_random(&s.random) % SPACE;
        assert_ptr_equal(gm__address_map_find(&s.map, address), plain_find(&s, address));
      }
    }
    end(&s);
  }
}

static void test_what_ends_nowhere_is_refused(void **state) {
  (void)state;
  scene s;
  begin(&s, 0);
  s.nodes[0] = (gm__allocation){.address = UINT64_MAX - 9, .bytes = 11};
  s.nodes[1] = (gm__allocation){.address = 100, .bytes = 0};
  for (int i = 0; i < 2; i++) assert_int_equal(gm__address_map_insert(&s.map, &s.nodes[i]), GM_ERR_DRIVER);
  s.nodes[0].bytes = 10;
  assert_int_equal(gm__address_map_insert(&s.map, &s.nodes[0]), GM_OK);
  assert_ptr_equal(gm__address_map_find(&s.map, UINT64_MAX), &s.nodes[0]);
  assert_null(gm__address_map_find(&s.map, UINT64_MAX - 10));
  end(&s);
}

/* Each call for host memory fails once: the node is not there, the others are, and the next try succeeds. */
static void test_without_host_memory_nothing_changes(void **state) {
  (void)state;
  size_t failures = 0;
  for (size_t n = 1, calls = 1; n <= calls; n++) {
    scene s;
    begin(&s, 4096);
    s.host.fail_at = n;
    s.host.fail_count = 1;
    for (uint64_t i = 0; i < NODES; i++) {
      gm__allocation *node = &s.nodes[i];
      *node = (gm__allocation){.address = s.first + 4096 * i, .bytes = 4096};
      const gm_status status = gm__address_map_insert(&s.map, node);
      s.in[i] = !status;
      for (uint64_t k = 0; k <= i; k++) {
        const uint64_t address = s.nodes[k].address + 4095;
        assert_ptr_equal(gm__address_map_find(&s.map, address), plain_find(&s, address));
      }
      if (!status) continue;
      assert_int_equal(status, GM_ERR_OUT_OF_HOST_MEMORY);
      failures++;
      assert_int_equal(gm__address_map_insert(&s.map, node), GM_OK);
      s.in[i] = true;
    }
    calls = s.host.calls;
    end(&s);
  }
  assert_in_range(failures, 4, 20);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_as_a_plain_list_does),
      cmocka_unit_test(test_what_ends_nowhere_is_refused),
      cmocka_unit_test(test_without_host_memory_nothing_changes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
