/* LevelDB without compression, with its checksums verified at a get, as those of gm are. Its flush is a last put with
 * `sync`. It does not wait for a memory table that is still being written, which is in favour of LevelDB. */
#include <leveldb/c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "disk_peer.h"

typedef struct leveldb_side {
  leveldb_t *db;
  leveldb_options_t *options;
  leveldb_writeoptions_t *plain, *synced;
  leveldb_readoptions_t *read;
  bool each;
} leveldb_side;

/* Frees what LevelDB said, if it said something. */
static bool side_said(char *why, const char *what) {
  if (!why) return true;
  disk_peer_fail("LevelDB", what, why);
  leveldb_free(why);
  return false;
}

static bool side_open(void **self, const char *folder, bool each, size_t value_bytes) {
  (void)value_bytes;
  char path[512], *why = NULL;
  leveldb_side *side = calloc(1, sizeof *side);
  if (!side) return false;
  *self = side;
  side->each = each;
  side->options = leveldb_options_create();
  side->plain = leveldb_writeoptions_create();
  side->synced = leveldb_writeoptions_create();
  side->read = leveldb_readoptions_create();
  leveldb_options_set_create_if_missing(side->options, 1);
  leveldb_options_set_compression(side->options, leveldb_no_compression);
  leveldb_writeoptions_set_sync(side->synced, 1);
  leveldb_readoptions_set_verify_checksums(side->read, 1);
  snprintf(path, sizeof path, "%s/leveldb", folder);
  side->db = leveldb_open(side->options, path, &why);
  return side_said(why, "open");
}

static bool side_put(void *self, const char *key, const void *value, size_t bytes) {
  const leveldb_side *side = self;
  char *why = NULL;
  leveldb_put(side->db, side->each ? side->synced : side->plain, key, strlen(key), value, bytes, &why);
  return side_said(why, "put");
}

static bool side_get(void *self, const char *key, void *value, size_t bytes) {
  const leveldb_side *side = self;
  char *why = NULL;
  size_t has = 0;
  char *found = leveldb_get(side->db, side->read, key, strlen(key), &has, &why);
  if (!side_said(why, "get")) return false;
  if (!found || has != bytes) return disk_peer_fail("LevelDB", "get", "a value is not there");
  memcpy(value, found, bytes);
  leveldb_free(found);
  return true;
}

static bool side_flush(void *self) {
  const leveldb_side *side = self;
  char *why = NULL;
  leveldb_put(side->db, side->synced, "flush", 5, "", 0, &why);
  return side_said(why, "flush");
}

static bool side_close(void *self) {
  leveldb_side *side = self;
  leveldb_close(side->db);
  leveldb_options_destroy(side->options);
  leveldb_writeoptions_destroy(side->plain);
  leveldb_writeoptions_destroy(side->synced);
  leveldb_readoptions_destroy(side->read);
  free(side);
  return true;
}

const disk_peer disk_peer_leveldb = {"LevelDB", side_open, side_put, side_get, side_flush, side_close};
