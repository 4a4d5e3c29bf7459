#include "core/store/folder.h"

#include "core/base/alloc.h"

/* Invariants. Each folder but the root has items, folders below it, or was declared; while a call works, one may be
 * empty. A prefix has a folder if a prefix below it has one. */

void gm__folders_init(gm__folders *folders, const gm_services *services) {
  *folders = (gm__folders){.root = {.parent = NULL}};
  gm__key_map_init(&folders->map, services);
}

void gm__folders_clear(gm__folders *folders) { gm__key_map_clear(&folders->map); }

gm__folder *gm__folder_find(gm__folders *folders, const char *prefix, size_t bytes) {
  return bytes ? (gm__folder *)gm__key_map_find(&folders->map, prefix, bytes) : &folders->root;
}

/* ---- making and ending ---- */

/* The bytes of the prefix right above. */
static size_t folder_above(const char *key, size_t bytes) {
  while (bytes > 0 && key[bytes - 1] != '/') bytes--;
  return bytes ? bytes - 1 : 0;
}

/* The bytes of the prefix right below that of `above` bytes, on the way to `bytes`. */
static size_t folder_below(const char *key, size_t above, size_t bytes) {
  size_t at = above ? above + 1 : 0;
  while (at < bytes && key[at] != '/') at++;
  return at;
}

static gm__folder *folder_new(gm__folders *folders, gm__folder *parent, const char *prefix, size_t bytes) {
  gm__folder *folder = gm__alloc(folders->map.services, sizeof *folder);
  if (!folder) return NULL;
  if (!gm__key_map_prepare(&folders->map, &folder->head, prefix, bytes)) {
    gm__release(folders->map.services, folder, sizeof *folder);
    return NULL;
  }
  gm__key_map_link(&folders->map, &folder->head);
  folder->parent = parent;
  folder->after = parent->first;
  if (parent->first) parent->first->before = folder;
  parent->first = folder;
  return folder;
}

static bool folder_is_empty(const gm__folder *folder) {
  return folder->parent && !folder->items && !folder->first && !folder->declared;
}

static void folder_end(gm__folders *folders, gm__folder *folder) {
  *(folder->before ? &folder->before->after : &folder->parent->first) = folder->after;
  if (folder->after) folder->after->before = folder->before;
  gm__key_map_remove(&folders->map, &folder->head);
  gm__release(folders->map.services, folder, sizeof *folder);
}

/* Ends the folder if it is empty, and those above it that are empty then. */
static void folder_tidy(gm__folders *folders, gm__folder *folder) {
  while (folder_is_empty(folder)) {
    gm__folder *parent = folder->parent;
    folder_end(folders, folder);
    folder = parent;
  }
}

/* The folder of a prefix, made with those above it where it is missing. It may be empty. NULL: no host memory. */
static gm__folder *folder_of(gm__folders *folders, const char *prefix, size_t bytes) {
  size_t has = bytes;
  gm__folder *folder = NULL;
  while (has && !(folder = gm__folder_find(folders, prefix, has))) has = folder_above(prefix, has);
  if (!has) folder = &folders->root;
  while (has < bytes) {
    has = folder_below(prefix, has, bytes);
    gm__folder *below = folder_new(folders, folder, prefix, has);
    if (!below) {
      folder_tidy(folders, folder);
      return NULL;
    }
    folder = below;
  }
  return folder;
}

/* ---- items ---- */

bool gm__folder_add(gm__folders *folders, gm__folder_item *item, const char *key, size_t bytes) {
  gm__folder *folder = folder_of(folders, key, folder_above(key, bytes));
  if (!folder) return false;
  *item = (gm__folder_item){.folder = folder, .after = folder->items};
  if (folder->items) folder->items->before = item;
  folder->items = item;
  return true;
}

void gm__folder_remove(gm__folders *folders, gm__folder_item *item) {
  *(item->before ? &item->before->after : &item->folder->items) = item->after;
  if (item->after) item->after->before = item->before;
  folder_tidy(folders, item->folder);
}

/* ---- declared prefixes ---- */

bool gm__folder_declare(gm__folders *folders, const char *prefix, size_t bytes) {
  gm__folder *folder = folder_of(folders, prefix, bytes);
  if (folder) folder->declared = true;
  return folder;
}

static gm__folder *folder_deepest(gm__folder *folder) {
  while (folder->first) folder = folder->first;
  return folder;
}

/* From the deepest ones upwards, so that those which are empty may end. */
void gm__folder_forget(gm__folders *folders, gm__folder *top) {
  for (gm__folder *folder = folder_deepest(top), *next; folder && folder != top; folder = next) {
    next = folder->after ? folder_deepest(folder->after) : folder->parent;
    folder->declared = false;
    if (folder_is_empty(folder)) folder_end(folders, folder);
  }
  top->declared = false;
  folder_tidy(folders, top);
}

gm__folder *gm__folder_next(const gm__folder *top, gm__folder *at) {
  if (at->first) return at->first;
  while (at != top && !at->after) at = at->parent;
  return at == top ? NULL : at->after;
}
