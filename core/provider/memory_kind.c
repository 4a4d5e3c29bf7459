#include "core/provider/memory_kind.h"

#include "core/base/saturate.h"

enum {
  KIND_LEAST_ALIGN = 4096, /* of a segment's memory */
  KIND_LEAST_GRANULE = 256,
};

static uint64_t kind_round_up_power(uint64_t at_least, uint64_t value) {
  while (at_least < value) at_least *= 2;
  return at_least;
}

void gm__memory_rules_init(gm__memory_rules *rules, const gm_device *device) {
  *rules = (gm__memory_rules){.ahead = UINT64_MAX, .all_local = true, .all_visible = true};
  rules->granule = kind_round_up_power(KIND_LEAST_GRANULE, device->info.alignment);
  for (uint32_t i = 0; i < device->type_count; i++) {
    const gm_memory_type *type = &device->types[i];
    rules->granule = kind_round_up_power(rules->granule, type->atom_bytes);
    rules->all_local &= device->info.unified || type->flags & GM_MEMORY_DEVICE_LOCAL;
    rules->all_visible &= (type->flags & (GM_MEMORY_HOST_VISIBLE | GM_MEMORY_HOST_POINTER)) != 0;
  }
}

gm__memory_kind gm__kind_of(const gm__memory_rules *rules, const gm__want *want) {
  const uint64_t least = gm__max(KIND_LEAST_ALIGN, rules->granule);
  gm__memory_kind kind = {.align = (uint32_t)gm__max(want->align, least),
                          .usage = want->usage,
                          .flags = want->flags & (GM_HOST_VISIBLE | GM_COMMIT),
                          .must_be = want->must_be,
                          .beside_device = want->beside_device,
                          .wish = want->wish};
  if (rules->all_visible) kind.flags &= ~(uint32_t)GM_HOST_VISIBLE;
  if (rules->all_local && !kind.beside_device) kind.must_be = GM_DEVICE_LOCAL;
  return kind;
}

bool gm__kind_serves(const gm__memory_kind *kind, const gm__memory_kind *asked) {
  return kind->must_be <= asked->must_be && !(asked->usage & ~kind->usage) && !(asked->flags & ~kind->flags) &&
         kind->beside_device == asked->beside_device && kind->align >= asked->align &&
         gm__type_wish_is_same(&kind->wish, &asked->wish);
}
