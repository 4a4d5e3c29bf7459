/* The orders that an environment variable gives a simulated driver: words and key=value, separated by commas. A later
 * item of the same key does not replace an earlier one; `fail` and `null` may come more than once. */
#ifndef GM_TESTS_SIMULATED_SHIM_SCRIPT_H
#define GM_TESTS_SIMULATED_SHIM_SCRIPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct shim_script {
  char text[1024];
} shim_script;

/* Reads the environment anew; no variable is an empty script. Text that does not fit ends the process: it is a mistake
 * in a test. */
void shim_script_read(shim_script *script, const char *variable);

/* Is there an item `word`, or `word=...`? */
bool shim_script_has(const shim_script *script, const char *word);

/* Is there an item `key=value`? */
bool shim_script_is(const shim_script *script, const char *key, const char *value);

/* The value of `key`, cut to the capacity; false: there is none, `out` is untouched. */
bool shim_script_text(const shim_script *script, const char *key, char *out, size_t capacity);

/* A number, also hexadecimal or negative (as its two's complement), with K, M or G for KiB, MiB, GiB. */
uint64_t shim_script_number(const shim_script *script, const char *key, uint64_t otherwise);

/* fail=NAME:N[:CODE]: must call `nth` (from 1) of `name` fail? N may be *: every one. *out_code is CODE or untouched.
 */
bool shim_script_fails(const shim_script *script, const char *name, uint64_t nth, int *out_code);

/* The driver was used as no driver may be: says so on stderr and ends the process, which fails the test. */
_Noreturn void shim_violation(const char *driver, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
