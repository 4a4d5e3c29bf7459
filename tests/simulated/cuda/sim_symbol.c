#include "tests/simulated/cuda/sim_symbol.h"

#include <string.h>

#include "tests/simulated/cuda/sim_name.h"
#include "tests/simulated/cuda/sim_script.h"

const sim_symbol sim_symbols[SIM_ID_COUNT] = {
#define SIM_SYMBOL(name, since, needs) {#name, since, needs},
#include "tests/simulated/cuda/sim_symbols.def"
};

typedef void (*symbol_function)(void);

typedef struct symbol_entry {
  const char *name;
  int since;
  bool per_thread;
  symbol_function function;
} symbol_entry;

static const symbol_entry symbol_entries[] = {
#define SIM_SYMBOL(name, since, needs) {#name, since, false, (symbol_function)name},
#define SIM_PTSZ_SYMBOL(name, alias_of, since) {#name, since, true, (symbol_function)name},
#include "tests/simulated/cuda/sim_symbols.def"
};

/* The newest form that is not newer than `version`; per-thread forms only when asked for, and then before others. */
static const symbol_entry *symbol_find(const char *base, int version, bool per_thread, bool *known) {
  const symbol_entry *best = NULL;
  *known = false;
  for (size_t i = 0; i < sizeof symbol_entries / sizeof symbol_entries[0]; i++) {
    const symbol_entry *entry = &symbol_entries[i];
    if (!sim_name_matches(base, entry->name) || (entry->per_thread && !per_thread)) continue;
    if (entry->since > sim_script_now.version) continue;
    *known = true;
    if (entry->since > version) continue;
    bool better = !best || (entry->per_thread && !best->per_thread) ||
                  (entry->per_thread == best->per_thread && entry->since >= best->since);
    if (better) best = entry;
  }
  return best;
}

static CUresult symbol_answer(const char *base, void **out, int version, uint64_t flags,
                              CUdriverProcAddressQueryResult *status) {
  if (!base || !out || flags > CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) return CUDA_ERROR_INVALID_VALUE;
  if (version > sim_script_now.version) return CUDA_ERROR_INVALID_VALUE;
  bool known = false;
  bool per_thread = flags == CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
  const symbol_entry *found = symbol_find(base, version, per_thread, &known);
  CUdriverProcAddressQueryResult answer = CU_GET_PROC_ADDRESS_SUCCESS;
  if (!found) answer = known ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  *out = NULL;
  if (found) memcpy(out, &found->function, sizeof *out);
  if (status) *status = answer;
  return CUDA_SUCCESS;
}

CUresult cuGetProcAddress_v2(const char *symbol, void **out, int version, uint64_t flags,
                             CUdriverProcAddressQueryResult *status) {
  CUresult result = sim_enter(sim_id_cuGetProcAddress_v2);
  if (result) return result;
  return sim_leave(symbol_answer(symbol, out, version, flags, status));
}

CUresult cuGetProcAddress(const char *symbol, void **out, int version, uint64_t flags) {
  CUresult result = sim_enter(sim_id_cuGetProcAddress);
  if (result) return result;
  result = symbol_answer(symbol, out, version, flags, NULL);
  if (!result && !*out) result = CUDA_ERROR_NOT_FOUND;
  return sim_leave(result);
}
