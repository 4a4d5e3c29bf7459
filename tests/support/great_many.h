/* Counts that show how something grows. Under valgrind, where each instruction takes fifty, a fiftieth will do: its
 * tests run in full without it. */
#ifndef GM_TESTS_SUPPORT_GREAT_MANY_H
#define GM_TESTS_SUPPORT_GREAT_MANY_H

#include <stdlib.h>

/* cmake/GmTest.cmake sets TESTS_FEW for the twins under valgrind. */
static inline size_t great_many(size_t count) { return getenv("TESTS_FEW") ? count / 50 : count; }

#endif
