/* The tree of a store's prefixes: what is below one is found without a look at other keys. A folder is a prefix that
 * has keys below it or was declared. The key "a/b" is an item of the folder "a"; the keys below it are in the folder
 * "a/b". The caller synchronises. */
#ifndef GM_CORE_STORE_FOLDER_H
#define GM_CORE_STORE_FOLDER_H

#include "core/base/key_map.h"

/* A key. Part of what the caller keeps. */
typedef struct gm__folder_item {
  struct gm__folder *folder;
  struct gm__folder_item *before, *after;
} gm__folder_item;

typedef struct gm__folder {
  gm__key_entry head;                                 /* its prefix */
  struct gm__folder *parent, *first, *before, *after; /* `first` of the folders right below; those beside it */
  gm__folder_item *items;
  bool declared;
} gm__folder;

typedef struct gm__folders {
  gm__key_map map; /* all but the root */
  gm__folder root; /* has no key of its own, and is always there */
} gm__folders;

void gm__folders_init(gm__folders *folders, const gm_services *services);
/* Frees the memory of the map. REQUIRES: there are neither items nor declared prefixes. */
void gm__folders_clear(gm__folders *folders);

/* The folder of a prefix. NULL: there is none. 0 bytes: the root. */
gm__folder *gm__folder_find(gm__folders *folders, const char *prefix, size_t bytes);

/* Add an item to the folder of its key, which is made where it is missing. False: no host memory, nothing changed. */
bool gm__folder_add(gm__folders *folders, gm__folder_item *item, const char *key, size_t bytes);
/* Take it out again. Folders that are empty then go. */
void gm__folder_remove(gm__folders *folders, gm__folder_item *item);

/* Declare a prefix. False: no host memory, nothing changed. */
bool gm__folder_declare(gm__folders *folders, const char *prefix, size_t bytes);
/* Declare the prefix of a folder, and all below it, no more. The folder may be gone afterwards. */
void gm__folder_forget(gm__folders *folders, gm__folder *folder);

/* The folder after `at` of those at and below `top`; the first one is `top` itself. NULL: there are no more. */
gm__folder *gm__folder_next(const gm__folder *top, gm__folder *at);

#endif
