/* MemoryPressure: low below 60 %, medium from there, high from 80 %, critical above 95 %. */
#include "example.h"
#include "gm/pressure.h"

enum { MIB = 1 << 20 };

int main(int argc, char **argv) {
  static const struct {
    uint64_t percent;
    gm_pressure_level level;
  } steps[] = {{59, GM_PRESSURE_LOW},  {60, GM_PRESSURE_MEDIUM}, {79, GM_PRESSURE_MEDIUM},
               {80, GM_PRESSURE_HIGH}, {95, GM_PRESSURE_HIGH},   {96, GM_PRESSURE_CRITICAL}};
  const gm_pool_params params = {.struct_size = sizeof params, .max_bytes = 100 * MIB};
  const example e = example_open(argc > 1 ? argv[1] : "null", &params);
  for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
    gm_pressure pressure = {.struct_size = sizeof pressure};
    const gm_block block = example_alloc(e.pool, steps[i].percent * MIB, NULL);
    DO(gm_pool_pressure(e.pool, &pressure, &err));
    printf("%.0f%%: %s\n", pressure.ratio * 100, gm_pressure_level_name(pressure.level));
    CLAIM(pressure.level == steps[i].level);
    gm_free(e.pool, &block, NULL);
  }
  return example_close(e);
}
