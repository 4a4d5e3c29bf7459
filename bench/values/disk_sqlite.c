/* SQLite with a write-ahead log, as its manual advises: synchronous=FULL waits for the disk at each commit, NORMAL at
 * a checkpoint. Values are read by its blob calls, which copy once. Pages are 64 KiB for values of a megabyte and more.
 */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>

#include "disk_peer.h"

typedef struct sqlite_side {
  sqlite3 *db;
  sqlite3_stmt *put, *find;
  sqlite3_blob *blob;
} sqlite_side;

static bool side_failed(const sqlite_side *side, const char *what) {
  return disk_peer_fail("SQLite", what, sqlite3_errmsg(side->db));
}

static bool side_open(void **self, const char *folder, bool each, size_t value_bytes) {
  char path[512], set_up[256];
  sqlite_side *side = calloc(1, sizeof *side);
  if (!side) return false;
  *self = side;
  snprintf(path, sizeof path, "%s/values.sqlite", folder);
  snprintf(set_up, sizeof set_up,
           "PRAGMA page_size=%d; PRAGMA journal_mode=WAL; PRAGMA synchronous=%s;"
           "CREATE TABLE kept (k TEXT PRIMARY KEY, v BLOB);",
           value_bytes >= 1 << 20 ? 65536 : 4096, each ? "FULL" : "NORMAL");
  if (sqlite3_open(path, &side->db)) return side_failed(side, "open");
  if (sqlite3_exec(side->db, set_up, NULL, NULL, NULL)) return side_failed(side, "set-up");
  if (sqlite3_prepare_v2(side->db, "INSERT OR REPLACE INTO kept VALUES (?,?)", -1, &side->put, NULL) ||
      sqlite3_prepare_v2(side->db, "SELECT rowid FROM kept WHERE k=?", -1, &side->find, NULL)) {
    return side_failed(side, "prepare");
  }
  return true;
}

static bool side_put(void *self, const char *key, const void *value, size_t bytes) {
  sqlite_side *side = self;
  if (side->blob) sqlite3_blob_close(side->blob);
  side->blob = NULL;
  sqlite3_bind_text(side->put, 1, key, -1, SQLITE_STATIC);
  sqlite3_bind_blob64(side->put, 2, value, bytes, SQLITE_STATIC);
  const int answer = sqlite3_step(side->put);
  sqlite3_reset(side->put);
  return answer == SQLITE_DONE || side_failed(side, "put");
}

static bool side_get(void *self, const char *key, void *value, size_t bytes) {
  sqlite_side *side = self;
  sqlite3_bind_text(side->find, 1, key, -1, SQLITE_STATIC);
  const bool found = sqlite3_step(side->find) == SQLITE_ROW;
  const sqlite3_int64 row = found ? sqlite3_column_int64(side->find, 0) : 0;
  sqlite3_reset(side->find);
  const int opened = side->blob ? sqlite3_blob_reopen(side->blob, row)
                                : sqlite3_blob_open(side->db, "main", "kept", "v", row, 0, &side->blob);
  if (!found || opened) return side_failed(side, "get");
  return !sqlite3_blob_read(side->blob, value, (int)bytes, 0) || side_failed(side, "read");
}

static bool side_flush(void *self) {
  sqlite_side *side = self;
  if (side->blob) sqlite3_blob_close(side->blob);
  side->blob = NULL;
  return !sqlite3_wal_checkpoint_v2(side->db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL) ||
         side_failed(side, "checkpoint");
}

static bool side_close(void *self) {
  sqlite_side *side = self;
  if (side->blob) sqlite3_blob_close(side->blob);
  sqlite3_finalize(side->put);
  sqlite3_finalize(side->find);
  const bool good = !sqlite3_close(side->db) || side_failed(side, "close");
  free(side);
  return good;
}

const disk_peer disk_peer_sqlite = {"SQLite", side_open, side_put, side_get, side_flush, side_close};
