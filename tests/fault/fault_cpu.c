/* Wrappers of every call of the system about memory, made from the CPU backend's table. */
#include "fault/fault.h"
#include "support/failing_cpu.h"

_Static_assert((int)CPU_ENTRIES <= (int)FAULT_ENTRIES_MAX, "room for every entry");

static const bool cpu_can_fail[CPU_ENTRIES] = {
#define X(fault, result, symbol, parameters, arguments) true,
#include "backends/cpu/cpu_syms.def"
#undef X
};

static const int32_t cpu_codes[] = {ENOMEM, EPERM, EMFILE, EFBIG, ENOSYS, 0};

static void *cpu_wrap(const char *symbol, void *real);
static fault_driver cpu_driver = {.backend = "cpu",
                                  .count = CPU_ENTRIES,
                                  .names = cpu_call_names,
                                  .can_fail = cpu_can_fail,
                                  .codes = cpu_codes,
                                  .wrap = cpu_wrap};
fault_driver *const fault_cpu = &cpu_driver;

static bool cpu_call_fails(unsigned entry, int *code) {
  *code = fault_now.code;
  return fault_hits(&cpu_driver, entry);
}

static void *cpu_wrap(const char *symbol, void *real) {
  cpu_call_live = &cpu_driver.live;
  return cpu_call_wrap(symbol, real);
}
