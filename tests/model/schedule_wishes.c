#include "model/schedule_parts.h"

static const gm_request wishes[] = {{.must_be = GM_ANYWHERE},
                                    {.memory_types = 1 << LATE_OWN},
                                    {.memory_types = 1 << LATE_WINDOW},
                                    {.flags = GM_HOST_VISIBLE},
                                    {.flags = GM_MAPPED},
                                    {.require = GM_MEMORY_HOST_VISIBLE, .must_be = GM_ANYWHERE},
                                    {.prefer = GM_MEMORY_HOST_COHERENT},
                                    {.usage = GM_USAGE_UNIFORM},
                                    {.flags = GM_MAPPED, .usage = GM_USAGE_READBACK},
                                    {.usage = GM_USAGE_TRANSFER},
                                    {.flags = GM_COMMIT},
                                    {.usage = GM_USAGE_INDIRECT, .memory_types = 1 << LATE_WINDOW | 1 << LATE_OWN},
                                    {.usage = GM_USAGE_UNIFORM | GM_USAGE_STORAGE, .memory_types = 1 << LATE_OWN}};

enum { WISHES = sizeof wishes / sizeof wishes[0] };

void draw_wishes(schedule *s) {
  static const uint32_t percents[] = {0, 30, 90};
  s->wishes = percents[below(s, 3)];
  s->first_wish = (uint32_t)below(s, WISHES);
  s->wish_count = 1 + (uint32_t)below(s, chance(s, 80) ? 4 : WISHES);
}

void wish_for_memory(schedule *s, gm_request *request) {
  if (!chance(s, s->wishes)) return;
  const gm_request *wish = &wishes[(s->first_wish + below(s, s->wish_count)) % WISHES];
  request->flags |= wish->flags;
  request->must_be = wish->must_be;
  request->usage = wish->usage;
  request->memory_types = wish->memory_types;
  request->require = wish->require;
  request->prefer = wish->prefer;
}

void check_wish(schedule *s, const gm_request *request, const gm_block *block) {
  gm_memory memory;
  uint64_t offset;
  must(s, "gm_block_memory", gm_block_memory(s->pool, block, &memory, &offset));
  const bool seen = request->flags & (GM_HOST_VISIBLE | GM_MAPPED) || request->require & GM_MEMORY_HOST_VISIBLE;
  const uint32_t types = request->memory_types ? request->memory_types : UINT32_MAX;
  if (seen && memory.type != LATE_WINDOW) wrong(s, "the host cannot see the block", memory.type);
  if (!(types >> memory.type & 1)) wrong(s, "a block of another type", memory.type);
  if (request->flags & GM_MAPPED && !late_is_seen(s->driver, block->address, block->bytes)) {
    wrong(s, "a block that should be mapped is not", block->address);
  }
}
