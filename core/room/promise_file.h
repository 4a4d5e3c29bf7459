/* The promises of one user's processes on each card, in a small file that they share. A process that wants to promise
 * bytes, or to take bytes from the driver, takes the card's turn. Then others wait until that turn has ended.
 *
 *   gm__promise_turn turn;
 *   status = gm__promise_file_begin(file, card, create, &turn, &others, err);
 *   ... is there room beside what others promise? take memory, or none ...
 *   status = gm__promise_file_end(file, &turn, own_bytes, err);    // or gm__promise_file_abandon(file, &turn)
 *
 * A record of the file counts while its owner lives: the owner keeps a lock on it, and the kernel frees that. Whoever
 * comes next overwrites what a dead process left. Nothing is mapped, so nobody can make gm fault.
 *
 * A turn costs an open, two locks and no read while nobody promises anything, and one read while somebody does.
 *
 * Two limits. A process that forks in a turn, and is killed in it, leaves the turn to its child: it ends with the
 * child. A process takes no turn where there is no file. It may still be taking memory when another one makes the first
 * promise. */
#ifndef GM_CORE_ROOM_PROMISE_FILE_H
#define GM_CORE_ROOM_PROMISE_FILE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/base/data_file.h"
#include "core/base/thread.h"
#include "core/room/promise_record.h"

enum { GM__PROMISE_PATH_SIZE = 320 };

/* The promise of this process on one card. */
typedef struct gm__promise_own {
  uint8_t card[GM__PROMISE_CARD_BYTES];
  uint64_t bytes;
  int32_t record; /* its number in the file; -1: it is not there yet */
} gm__promise_own;

/* One for each process and file: two of one process are strangers to each other. Must not move. Thread-safe. */
typedef struct gm__promise_file {
  char path[GM__PROMISE_PATH_SIZE];
  uint64_t generation; /* of the process: core/context/process.h */
  gm__task self;
  _Atomic bool hurried;  /* somebody held a lock for too long: until one is free again, gm waits briefly */
  _Atomic bool promises; /* own_count is not 0 */
  gm__mutex lock;        /* what follows; a leaf */
  gm__data_file keeper;  /* open while own_count is not 0: it holds the locks on own records */
  uint32_t own_count;
  gm__promise_own own[GM__PROMISE_RECORDS];
  unsigned char image[GM__PROMISE_FILE_BYTES]; /* the file, when it was read last */
} gm__promise_file;

/* A card's turn. It belongs to one thread. */
typedef struct gm__promise_turn {
  gm__data_file file; /* holds the lock on the card; -1: there is no file, and nothing is locked */
  uint8_t card[GM__PROMISE_CARD_BYTES];
  bool beside; /* another process keeps the lock for too long, and this turn goes on without it */
} gm__promise_turn;

/* The promises of living others on a card. */
typedef struct gm__promise_others {
  uint64_t bytes; /* all of them */
  uint64_t most;  /* one record's: the largest */
  uint32_t pid;   /* whose that is; 0: a process that has no number here */
} gm__promise_others;

/* How long gm waits for a turn: a second. A test sets it before threads begin. */
extern uint64_t gm__promise_patience_ns;

/* Sets `file` up, and touches no file. `folder` NULL or "": /dev/shm where this process may write, else
 * $XDG_RUNTIME_DIR. INVALID_ARGUMENT: `folder` is no absolute path, or too long. NOT_FOUND: there is no such folder.
 * SYSTEM: no state of the process. After a failure there is nothing to close. */
gm_status gm__promise_file_init(gm__promise_file *file, const char *folder, gm_error *err);

/* Frees this process's records. In a forked child it leaves those of the parent alone. */
void gm__promise_file_close(gm__promise_file *file);

/* Begins the turn of `card`, and says what living others promise there. Without a file that is nothing, unless
 * `create` makes it. It waits for at most gm__promise_patience_ns, or 10 ms if the last wait was in vain. TIMEOUT:
 * another process kept the turn for so long. NOT_FOUND, IO: gm__shared_file_open says why. FORMAT: the file is not
 * gm's, or of another version. BUSY: the file has no free record for what this process promises already, or was
 * replaced just now. FORKED: only the parent may. After a failure the turn has not begun. */
gm_status gm__promise_file_begin(gm__promise_file *file, const uint8_t card[GM__PROMISE_CARD_BYTES], bool create,
                                 gm__promise_turn *turn, gm__promise_others *others, gm_error *err);

/* After a TIMEOUT: begins a turn beside that of the process which keeps it. It waits for nobody. Others see what this
 * turn tells. Only what that process decides in its own turn is not known here. The answers of begin. */
gm_status gm__promise_file_begin_beside(gm__promise_file *file, const uint8_t card[GM__PROMISE_CARD_BYTES], bool create,
                                        gm__promise_turn *turn, gm__promise_others *others, gm_error *err);

/* Writes what this process promises on the card now, in place of what it did before. It cannot fail for 0 bytes. Then
 * it looks once more what others promise (`others` NULL: it does not look): more, where another turn went beside this
 * one. BUSY: no record is free. IO: it cannot be written. INVALID_ARGUMENT: there is no file, and `create` was false.
 * After a failure what this process promised before may count still. */
gm_status gm__promise_file_tell(gm__promise_file *file, const gm__promise_turn *turn, uint64_t own_bytes,
                                gm__promise_others *others, gm_error *err);

/* Tells, and ends the turn, also after a failure. */
gm_status gm__promise_file_end(gm__promise_file *file, gm__promise_turn *turn, uint64_t own_bytes, gm_error *err);

/* Ends the turn, and changes no promise. */
void gm__promise_file_abandon(gm__promise_file *file, gm__promise_turn *turn);

/* Reads the promises of living others on `card`; none without a file. It waits for at most 10 ms: TIMEOUT. Its other
 * errors are those of gm__promise_file_begin. */
gm_status gm__promise_file_read(gm__promise_file *file, const uint8_t card[GM__PROMISE_CARD_BYTES],
                                gm__promise_others *others, gm_error *err);

#endif
