/* Counts that show how something grows. Under valgrind, where each instruction takes fifty, a fiftieth will do, and
 * in the builds of GM_TESTS_FEW. The tests run in full in the others. */
#ifndef GM_TESTS_SUPPORT_GREAT_MANY_H
#define GM_TESTS_SUPPORT_GREAT_MANY_H

#include <stdlib.h>

/* cmake/GmTest.cmake sets TESTS_FEW. */
static inline size_t great_many(size_t count) { return getenv("TESTS_FEW") ? count / 50 : count; }

#endif
