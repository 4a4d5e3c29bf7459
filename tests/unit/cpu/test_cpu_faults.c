/* Virtual memory and sharing of the CPU backend: every call of the system fails at its N-th time, and every request for
 * host memory too. Nothing crashes, there is a reason, all is given back, and afterwards it works. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <unistd.h>

#include "support/cpu_fixture.h"
#include "support/failing_cpu.h"

static struct {
  unsigned calls[CPU_ENTRIES];
  unsigned entry, at; /* the call that fails; at 0: none */
  int code;
  atomic_long live;
} world;

static bool cpu_call_fails(unsigned entry, int *code) {
  *code = world.code;
  return ++world.calls[entry] == world.at && entry == world.entry;
}

static void *hook(void *user, const char *backend, const char *symbol, void *real) {
  (void)user, (void)backend;
  cpu_call_live = &world.live;
  return cpu_call_wrap(symbol, real);
}

typedef struct session {
  cpu_fixture f;
  gm_status status; /* the first failure */
  gm_error err;
} session;

static bool good(session *s, gm_status status) {
  if (status != GM_OK && s->status == GM_OK) {
    s->status = status;
    s->err = s->f.err;
  }
  return status == GM_OK;
}

/* Giving back a range may be refused once, as the failure is played once. */
static void gives_back(session *s, gm_status first, gm_status (*again)(session *s, uint64_t a), uint64_t a) {
  if (!good(s, first)) assert_int_equal(again(s, a), GM_OK);
}

static gm_status unmap(session *s, uint64_t where) {
  return s->f.ops->vmm_unmap(s->f.device, where, s->f.granule, &s->f.err);
}

static gm_status unreserve(session *s, uint64_t where) {
  return s->f.ops->vmm_unreserve(s->f.device, where, 3 * s->f.granule, GM_CLOSE_NORMAL, &s->f.err);
}

static void map_two(session *s, uint64_t where, uint64_t handle) {
  const gm_backend_ops *ops = s->f.ops;
  const uint64_t g = s->f.granule;
  if (!good(s, ops->vmm_map(s->f.device, where, g, handle, 0, &s->f.err))) return;
  if (good(s, ops->vmm_map(s->f.device, where + 2 * g, g, handle, g, &s->f.err))) {
    gives_back(s, unmap(s, where + 2 * g), unmap, where + 2 * g);
  }
  gives_back(s, unmap(s, where), unmap, where);
}

static void share_physical(session *s, uint64_t handle) {
  const gm_backend_ops *ops = s->f.ops;
  gm_shared shared = {.struct_size = sizeof shared};
  uint64_t other;
  if (!good(s, ops->share_export_vmm(s->f.device, handle, 2 * s->f.granule, &shared, &s->f.err))) return;
  if (good(s, ops->share_import_vmm(s->f.device, &shared, &other, &s->f.err))) {
    ops->vmm_destroy(s->f.device, other, 2 * s->f.granule, GM_CLOSE_NORMAL, NULL);
  }
  close(shared.fd);
}

static void virtual_memory(session *s) {
  const gm_backend_ops *ops = s->f.ops;
  const gm_vmm_props props = {.shareable = true};
  uint64_t where, handle;
  if (!good(s, ops->vmm_reserve(s->f.device, 3 * s->f.granule, 0, &where, &s->f.err))) return;
  if (good(s, ops->vmm_create(s->f.device, &props, 2 * s->f.granule, &handle, &s->f.err))) {
    map_two(s, where, handle);
    share_physical(s, handle);
    ops->vmm_destroy(s->f.device, handle, 2 * s->f.granule, GM_CLOSE_NORMAL, NULL);
  }
  gives_back(s, unreserve(s, where), unreserve, where);
}

static gm_status unmap_two(session *s, uint64_t where) {
  return s->f.ops->vmm_unmap(s->f.device, where, 2 * s->f.granule, &s->f.err);
}

/* Taken back wherever it was when a call failed, with what is in it. */
static void move(session *s, uint64_t where, uint64_t handle) {
  const gm_backend_ops *ops = s->f.ops;
  const uint64_t g = s->f.granule;
  unsigned char *first = (unsigned char *)(uintptr_t)where;
  if (!good(s, ops->vmm_map(s->f.device, where, 2 * g, handle, 0, &s->f.err))) return;
  first[g] = 41;
  gives_back(s, unmap_two(s, where), unmap_two, where);
  if (!good(s, ops->vmm_map(s->f.device, where + g, 2 * g, handle, 0, &s->f.err))) return;
  assert_int_equal(first[2 * g], 41);
  gives_back(s, unmap_two(s, where + g), unmap_two, where + g);
}

static void exclusive_memory(session *s) {
  const gm_backend_ops *ops = s->f.ops;
  const gm_vmm_props props = {.exclusive = true};
  uint64_t where, handle, granule;
  const gm_status status = ops->vmm_granularity(s->f.device, &props, &granule, &s->f.err);
  if (status == GM_ERR_NOT_SUPPORTED && s->f.err.native_code == EINVAL) return; /* valgrind moves no pages */
  if (!good(s, status)) return;
  if (!good(s, ops->vmm_reserve(s->f.device, 3 * granule, 0, &where, &s->f.err))) return;
  if (good(s, ops->vmm_create(s->f.device, &props, 2 * granule, &handle, &s->f.err))) {
    move(s, where, handle);
    ops->vmm_destroy(s->f.device, handle, 2 * granule, GM_CLOSE_NORMAL, NULL);
  }
  gives_back(s, unreserve(s, where), unreserve, where);
}

static void share_memory(session *s, const gm_memory *memory) {
  const gm_backend_ops *ops = s->f.ops;
  gm_shared shared = {.struct_size = sizeof shared};
  gm_memory imported;
  if (!good(s, ops->share_export(s->f.device, memory, GM_SHARE_FD, &shared, &s->f.err))) return;
  if (good(s, ops->share_import(s->f.device, &shared, &imported, &s->f.err))) {
    ((unsigned char *)imported.host)[3000] = 5;
    assert_int_equal(((unsigned char *)memory->host)[3000], 5);
    good(s, ops->share_close(s->f.device, &imported, GM_CLOSE_NORMAL, &s->f.err));
  }
  close(shared.fd);
}

static void memory(session *s, gm_share_kind share) {
  const gm_backend_ops *ops = s->f.ops;
  const gm_memory_params params = {
      .struct_size = sizeof params, .bytes = 70000, .flags = GM_ALLOC_COMMIT, .align = 1 << 20, .share = share};
  gm_memory made;
  if (!good(s, ops->memory_alloc(s->f.device, &params, &made, &s->f.err))) return;
  if (share != GM_SHARE_NONE) share_memory(s, &made);
  good(s, ops->memory_free(s->f.device, &made, GM_CLOSE_NORMAL, &s->f.err));
}

/* One run; the N-th request for host memory fails, too, where `host` is not 0. Returns how many there were. */
static size_t run(session *s, const char *options, size_t host) {
  memset(world.calls, 0, sizeof world.calls);
  atomic_store(&world.live, 0);
  memset(s, 0, sizeof *s);
  const gm_status started = cpu_try(&s->f, options, hook);
  if (!good(s, started)) {
    counted_services_check(&s->f.host);
    assert_int_equal(atomic_load(&world.live), 0);
    return 0;
  }
  if (host) s->f.host.fail_at = atomic_load(&s->f.host.calls) + host;
  s->f.host.fail_count = 1;
  const size_t before = atomic_load(&s->f.host.calls);
  virtual_memory(s);
  exclusive_memory(s);
  memory(s, GM_SHARE_FD);
  memory(s, GM_SHARE_NONE);
  const size_t calls = atomic_load(&s->f.host.calls) - before;
  cpu_end(&s->f);
  assert_int_equal(atomic_load(&world.live), 0);
  return calls;
}

static void sweep_calls(const char *options, int code) {
  static session s;
  unsigned calls[CPU_ENTRIES];
  run(&s, options, 0);
  if (s.status == GM_ERR_NOT_SUPPORTED) return; /* the system does not place memory */
  assert_int_equal(s.status, GM_OK);
  memcpy(calls, world.calls, sizeof calls);
  for (unsigned entry = 0; entry < CPU_ENTRIES; entry++) {
    for (unsigned at = 1; at <= calls[entry]; at++) {
      world.entry = entry, world.at = at, world.code = code;
      run(&s, options, 0);
      world.at = 0;
      if (s.status != GM_OK) assert_true(s.err.message[0]);
      if (s.status != GM_OK && code == ENOMEM) assert_int_not_equal(s.status, GM_ERR_DRIVER);
    }
  }
  run(&s, options, 0);
  assert_int_equal(s.status, GM_OK);
}

static void test_every_call_fails(void **state) {
  (void)state;
  sweep_calls("", ENOMEM);
  sweep_calls("memfd", ENOMEM);
  sweep_calls("numa=node:0", EPERM);
}

static void test_every_host_allocation_fails(void **state) {
  (void)state;
  static session s;
  const size_t calls = run(&s, "", 0);
  assert_true(calls > 3);
  for (size_t at = 1; at <= calls; at++) {
    run(&s, "", at);
    assert_int_equal(s.status, GM_ERR_OUT_OF_HOST_MEMORY);
  }
}

/* A signal in the middle of taking pages is no failure. */
static void test_interrupted(void **state) {
  (void)state;
  static session s;
  world.entry = CPU_fallocate, world.at = 1, world.code = EINTR;
  run(&s, "", 0);
  world.at = 0;
  assert_int_equal(s.status, GM_OK);
}

static void *hook_takes_away(void *user, const char *backend, const char *symbol, void *real) {
  (void)user, (void)backend;
  return strcmp(symbol, "memfd_create") == 0 ? NULL : real;
}

static void test_what_a_hook_takes_away(void **state) {
  (void)state;
  cpu_fixture f;
  assert_int_equal(cpu_try(&f, "", hook_takes_away), GM_ERR_UNAVAILABLE);
  counted_services_check(&f.host);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_every_call_fails),
      cmocka_unit_test(test_every_host_allocation_fails),
      cmocka_unit_test(test_interrupted),
      cmocka_unit_test(test_what_a_hook_takes_away),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
