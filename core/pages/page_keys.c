#include "core/pages/page_keys.h"

#include <string.h>

#include "core/base/alloc.h"

/* Invariant: the map has the pages whose `keyed` is not 0. Those of an earlier generation are dropped, and leave the
 * map when they are taken or get another key. */

bool gm__page_keys_begin(gm_pages *set) {
  gm__page_keys *keys = &set->keys;
  uint32_t buckets = 64;
  while (buckets < set->max_pages) buckets *= 2;
  keys->mask = buckets - 1;
  keys->generation = 1;
  keys->heads = gm__alloc_array(gm__pages_services(set), buckets, sizeof *keys->heads);
  if (!keys->heads) return false;
  keys->names = gm__alloc_array(gm__pages_services(set), set->max_pages, sizeof *keys->names);
  return keys->names != NULL;
}

void gm__page_keys_end(gm_pages *set) {
  gm__page_keys *keys = &set->keys;
  gm__release(gm__pages_services(set), keys->heads, (keys->mask + (size_t)1) * sizeof *keys->heads);
  gm__release(gm__pages_services(set), keys->names, set->max_pages * sizeof *keys->names);
}

/* Keys that differ in few bits go to different buckets: a program may number its contents. */
static uint32_t *keys_bucket(const gm__page_keys *keys, gm_page_key key) {
  const uint64_t high = key.hi * UINT64_C(0x94d049bb133111eb);
  uint64_t mixed = (key.lo ^ (high << 32 | high >> 32)) * UINT64_C(0x9e3779b97f4a7c15);
  mixed = (mixed ^ mixed >> 32) * UINT64_C(0xbf58476d1ce4e5b9);
  return &keys->heads[mixed >> 32 & keys->mask];
}

void gm__page_key_prefetch(const gm_pages *set, gm_page_key key) { __builtin_prefetch(keys_bucket(&set->keys, key)); }

gm_page gm__page_key_find(const gm_pages *set, gm_page_key key) {
  const gm__page_keys *keys = &set->keys;
  for (uint32_t name = *keys_bucket(keys, key); name; name = keys->names[name - 1].next) {
    const gm_page_key *there = &keys->names[name - 1].key;
    const bool same = there->lo == key.lo && there->hi == key.hi;
    if (same && set->pages[name - 1].keyed == keys->generation) return name - 1;
  }
  return GM_NO_PAGE;
}

void gm__page_key_put(gm_pages *set, gm_page page, gm_page_key key) {
  gm__page_keys *keys = &set->keys;
  uint32_t *head = keys_bucket(keys, key);
  keys->names[page] = (gm__page_name){key, *head};
  *head = page + 1;
  set->pages[page].keyed = keys->generation;
}

void gm__page_key_remove(gm_pages *set, gm_page page) {
  gm__page_keys *keys = &set->keys;
  uint32_t *place = keys_bucket(keys, keys->names[page].key);
  while (*place != page + 1) place = &keys->names[*place - 1].next;
  *place = keys->names[page].next;
  set->pages[page].keyed = 0;
}

void gm__page_keys_drop(gm_pages *set) {
  gm__page_keys *keys = &set->keys;
  if (++keys->generation) return;
  keys->generation = 1; /* 0 says that a page is not in the map, and earlier ones would come again */
  memset(keys->heads, 0, (keys->mask + (size_t)1) * sizeof *keys->heads);
  for (gm_page page = 0; page < set->max_pages; page++) set->pages[page].keyed = 0;
}
