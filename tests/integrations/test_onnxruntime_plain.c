/* A process without libstdc++ has no ONNX Runtime that could catch an exception: a refusal is a NULL pointer there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above before it */
#include <cmocka.h>

#include "integrations/onnxruntime/gm_onnxruntime.h"
#include "integrations/shared/engines.h"
#include "tests/integrations/played_ort.h"

static void test_a_refusal_without_cpp_is_null(void **state) {
  (void)state;
  struct OrtAllocator *it = gm_ort_allocator_create(played_base(), NULL);
  assert_non_null(it);
  assert_null(played_alloc(it, SIZE_MAX));
  assert_null(played_reserve(it, SIZE_MAX / 2));
  void *block = played_alloc(it, 1000);
  assert_non_null(block);
  played_free(it, block);
  assert_int_equal(gm_engines_host_figure("active"), 0);
  gm_ort_allocator_destroy(it);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_a_refusal_without_cpp_is_null)};
  played_reset();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
