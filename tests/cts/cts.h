/* The conformance suite: what every backend must do, checked through the seam alone (gm/backend.h), on each device.
 *
 * A case is a function that gets an open device. Memory that it takes through cts_memory and cts_stream is given back
 * after it, so a case may simply return when a check fails. */
#ifndef GM_TESTS_CTS_CTS_H
#define GM_TESTS_CTS_CTS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "gm/backend.h"

/* The needs of a case. The table tells most of it; a mode adds what its devices lack. */
typedef enum cts_need {
  CTS_CONTENTS = 1, /* what was written can be read back */
  CTS_STREAMS = 2,
  CTS_POINTS = 4,
  CTS_MAP = 8,
  CTS_VIEW = 16,
  CTS_COMMIT = 32,
  CTS_RECT = 64,
  CTS_MANY = 128,
  CTS_REGISTER = 256,
  CTS_VMM = 512,
  CTS_ADOPT = 1024,
  CTS_OPENS = 2048,      /* gm may open the device by index as often as it likes: not an adopted one */
  CTS_MEM_NATIVE = 4096, /* blocks have native objects */
  CTS_ENGINE = 8192,     /* the device is an engine's, which can make points */
  CTS_PEER = 16384,
  CTS_SHARE = 32768,
  CTS_MANAGED = 65536,
  CTS_NO_LEAVE = 131072,  /* the engine lent its queue, and gm may submit nothing to it */
  CTS_FENCES = 262144,    /* the engine's points are fences: the host can wait for them, queues cannot */
  CTS_CLOCK = 524288,     /* a time-out is real time */
  CTS_EACH_TYPE = 1 << 30 /* always there: the case runs once for each memory type, in cts.type */
} cts_need;

typedef struct cts cts;

typedef struct cts_case {
  const char *name; /* "copy.random" */
  void (*run)(cts *t);
  uint32_t needs; /* cts_need */
} cts_case;

typedef struct cts_suite {
  const cts_case *cases;
  uint32_t count;
} cts_suite;

typedef struct cts_reason {
  const char *what; /* name of a case, or its beginning up to a dot: "mapping." */
  const char *why;
} cts_reason;

typedef struct cts_lack {
  uint32_t need;
  const char *why;
} cts_lack;

/* A small engine that a mode plays: its devices are adopted. All functions but the last are set. */
typedef struct cts_engine {
  gm_status (*open)(cts *t, uint32_t index); /* makes the engine's objects for device `index` and adopts them */
  gm_status (*open_stream)(cts *t, void **out, gm_stream_kind *out_kind, uint32_t slot);
  const gm_native_stream *(*lent)(uint32_t slot); /* the stream of that slot; static storage, one for all slots */
  bool one_queue;                                 /* the streams of all slots are on one queue */
  void (*close_stream)(cts *t, uint32_t slot);    /* after gm let go of it */
  void (*close)(cts *t);                          /* the same for the device */
  const gm_native_point *(*point)(cts *t);        /* of the engine's making, not passed */
  bool (*reach)(cts *t);                          /* lets it pass */
  /* Adopts the calling thread's own stream. NULL: the API has none. */
  gm_status (*thread_stream)(cts *t, void **out, gm_stream_kind *out_kind);
} cts_engine;

/* A way to get devices of a backend: opened by gm, or adopted from an engine. Lists end with a zeroed entry and may be
 * NULL. */
typedef struct cts_mode {
  const char *backend; /* name in the table */
  const char *name;    /* "opened", "adopted", … */
  const gm_backend_ops *ops;
  const char *options;  /* gm_backend_host.options */
  const cts_lack *lack; /* what these devices cannot do, and why */
  const cts_reason *unsupported;
  const cts_reason *expected_failures; /* a case that passes all the same is a failure: the list is stale */
  const cts_engine *engine;            /* NULL: gm opens the devices */
  void (*settle)(cts *t);              /* may be NULL; after each case, when the device has nothing to do */
  /* May be NULL. Fails the run: engine objects that did not survive, validation messages. Returns how many. */
  uint32_t (*finish)(cts *t);
  uint32_t native_memory_bytes; /* size of the API's native memory struct, where it has one */
  /* May be NULL. Are the native objects of [offset, offset + bytes) of `memory` what they should be? */
  bool (*check_native)(cts *t, const gm_memory *memory, uint64_t offset, uint64_t bytes);
  bool no_leave; /* streams are adopted without leave to submit */
  bool fences;   /* no queue can wait for the engine's points */
} cts_mode;

/* Host memory lent to the backend: counted, and failing on demand. */
typedef struct cts_heap {
  atomic_llong live_bytes, live_blocks, calls;
  atomic_llong warnings; /* lines that the backend logged as warnings or errors */
  atomic_llong fail_at;  /* the call that fails; 0: none */
} cts_heap;

enum { CTS_MEMORIES = 192, CTS_STREAMS_MAX = 12, CTS_TYPES_MAX = 32 };

struct cts {
  const cts_mode *mode;
  gm_backend_ops prepared;
  const gm_backend_ops *ops; /* prepared: as gm calls it */
  gm_backend_host host;
  gm_services services;
  cts_heap heap;
  void *driver, *device;
  void *engine; /* the mode's own objects */
  gm_device_info info;
  uint32_t type_count;
  gm_memory_type types[CTS_TYPES_MAX];
  uint32_t has; /* cts_need */

  /* The name of the case that runs. */
  const char *name;
  bool failed;
  char why[600]; /* of the failure or of the skip */
  bool skipped;
  uint32_t type; /* that the case is about; 0 unless it has CTS_EACH_TYPE */
  gm_error err;  /* of the last call */
  uint64_t random;
  uint32_t memory_count, stream_count;
  gm_memory memories[CTS_MEMORIES];
  void *streams[CTS_STREAMS_MAX];
  gm_stream_kind kinds[CTS_STREAMS_MAX];
};

/* harness.c */
bool cts_start(cts *t, const cts_mode *mode);         /* init; false: `why` says what is missing */
bool cts_open(cts *t, uint32_t index);                /* false: `failed` */
void cts_close(cts *t, gm_close_mode mode);           /* device and what a case left */
void cts_stop(cts *t, gm_close_mode mode);            /* driver */
void cts_clean(cts *t, gm_close_mode mode);           /* memories and streams of the case */
const char *cts_missing(const cts *t, uint32_t need); /* why the first missing need is; NULL: all there */

/* guard.c: no case prints, changes the calling thread or ends the process. False: the system gives no files. */
bool cts_guard_start(void);
void cts_guard_begin(const char *name);
void cts_guard_end(cts *t, bool may_print); /* may fail the case */
extern FILE *cts_out;                       /* for the suite's own lines, also while a case runs */

bool cts_check(cts *t, bool good, const char *what, const char *file, int line);
bool cts_status(cts *t, gm_status got, gm_status want, const char *what, const char *file, int line);
void cts_skip(cts *t, const char *why); /* the device at hand lacks something that only the case can see */

#define CTS_CHECK(t, good) \
  if (!cts_check(t, good, #good, __FILE__, __LINE__)) return
#define CTS_IS(t, call, want) \
  if (!cts_status(t, call, want, #call, __FILE__, __LINE__)) return
#define CTS_OK(t, call) CTS_IS(t, call, GM_OK)

/* Memory of `type` that the case need not free; false: the check has failed. */
bool cts_memory(cts *t, uint32_t type, uint64_t bytes, gm_memory *out);
void cts_memory_free(cts *t, const gm_memory *memory);

/* `bytes`, or less where `count` memories of them would not fit in the type's heap. */
uint64_t cts_room(const cts *t, uint32_t type, uint64_t bytes, uint32_t count);

/* A stream that the case need not close. True with *out NULL where the backend has no streams. */
bool cts_stream(cts *t, void **out);
void cts_close_last_stream(cts *t, gm_close_mode mode); /* the one that was opened last */

/* Later work of `stream` follows the earlier: a barrier where the order of the stream alone does not say so. */
gm_status cts_order(cts *t, void *stream);

/* Waits for `point` and gives it back. */
gm_status cts_reach(cts *t, gm_backend_point *point);

/* The outputs that an entry that fails must leave alone: cts_paint fills it, cts_painted says whether it is as it
 * was. */
void cts_paint(void *out, size_t bytes);
bool cts_painted(const void *out, size_t bytes);

/* oracle.c: a plain copy of what a backend should have done, and numbers that look random but never change. */
uint64_t cts_random(cts *t, uint64_t below);
void cts_noise(cts *t, unsigned char *bytes, uint64_t count);
void cts_oracle_fill(unsigned char *dst, uint64_t bytes, const unsigned char *pattern, uint32_t pattern_bytes);
void cts_oracle_rect(unsigned char *dst, const unsigned char *src, const gm_rect *rect);
bool cts_same(cts *t, const unsigned char *got, const unsigned char *want, uint64_t bytes, const char *what);

extern const cts_suite cts_info_suite, cts_memory_suite, cts_mapping_suite, cts_stream_suite, cts_copy_suite,
    cts_rect_suite, cts_thread_suite, cts_vmm_suite, cts_lifecycle_suite, cts_adopt_suite, cts_peer_suite,
    cts_share_suite, cts_point_suite, cts_output_suite, cts_kernel_suite;

#endif
