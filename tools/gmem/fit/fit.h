/* "Will it fit": what gmem fit asks of the library, and what it found. */
#ifndef GM_TOOLS_GMEM_FIT_FIT_H
#define GM_TOOLS_GMEM_FIT_FIT_H

#include "gm/estimate.h"
#include "gm/fit.h"
#include "tools/gmem/fit/fit_beside.h"
#include "tools/gmem/fit/fit_components.h"
#include "tools/gmem/output/json.h"
#include "tools/gmem/session/session.h"

enum {
  FIT_DEVICES = 16,
  FIT_CHANGES = GM_FIT_CHANGES,
  FIT_NAME = 160,
  FIT_KV_CHOICES = 3,
  FIT_COMMAND = 8192,
  FIT_VERDICT = 512,
  FIT_FARTHEST = 1 << 24 /* no longer context is looked for */
};

/* One device, as discovered or as described on the command line. */
typedef struct fit_device {
  char backend[16];
  uint32_t index;
  char name[FIT_NAME];
  uint64_t total_bytes; /* GM_UNKNOWN_BYTES */
  uint64_t free_bytes;  /* before anything is taken of it */
} fit_device;

/* Which end of the figures' intervals counts. */
typedef enum fit_outlook { FIT_EXPECTED, FIT_AT_WORST, FIT_AT_BEST } fit_outlook;

typedef struct fit_question fit_question;

typedef enum fit_verdict { FIT_NO, FIT_YES, FIT_UNKNOWN } fit_verdict;

struct fit_question {
  /* asked */
  const char *path; /* NULL: dimensions */
  gm_estimate_settings settings;
  uint64_t keep_free_bytes[FIT_DEVICES]; /* of each device */
  uint64_t host_free_bytes;              /* GM_UNKNOWN_BYTES: no limit */
  bool is_described;                     /* devices come from the command line */
  bool spread;                           /* over all devices of use, not the fewest */
  uint32_t experts_on_host;              /* of so many layers, the first ones */
  const char *overrides;                 /* tensors that are to be on the host, as llama.cpp's -ot; NULL: none */
  bool shares_host;                      /* the only device is integrated: its memory is the host's */
  uint32_t beside_count;
  fit_beside beside[FIT_BESIDE];
  /* found */
  gm_model *model;           /* NULL: weights are counted from dimensions */
  bool has_no_config;        /* weights alone are known */
  fit_components components; /* of a model of images or sound; there is nothing else then */
  gm_model_config config;
  uint32_t device_count;
  fit_device devices[FIT_DEVICES];
  gm_fit_device room[FIT_DEVICES];
  gm_fit_layer layers[GM_FIT_LAYERS_MAX];
  const char *kv_names[FIT_KV_CHOICES];
  gm_dtype kv_types[FIT_KV_CHOICES];
  uint32_t kv_count;
  gm_memory_estimate estimate;     /* of the run as placed */
  fit_outlook outlook;             /* of the figures in `layers` and `room` */
  uint64_t whole[FIT_DEVICES];     /* of each device, what is free for all of it */
  uint64_t taken[FIT_DEVICES];     /* of each device, by what is beside the model */
  double draft_share[FIT_DEVICES]; /* of a draft, the part that each device has */
  bool is_unsettled;               /* the draft would move again where the layers are now */
  uint64_t excess_bytes;           /* which what is beside the model lacks on a device that has no room for it */
  uint64_t override_weights[GM_FIT_LAYERS_MAX], override_experts[GM_FIT_LAYERS_MAX];
  fit_verdict verdict; /* unknown: it does not fit at worst, and it does at best */
  uint64_t lack_bytes; /* unknown: at worst, with all layers on devices */
  gm_fit_plan plan;
  gm_fit_part parts[FIT_DEVICES];
  uint64_t moved[GM_FIT_LAYERS_MAX]; /* of each layer, bytes that were asked to be on the host */
  gm_memory_range host_compute;      /* of the host, which computes with them */
  uint64_t overhead_bytes;           /* of the devices used */
  uint64_t max_context;              /* the longest that fits and that the model was trained for */
  uint64_t max_context_fits;         /* the longest that fits, up to FIT_FARTHEST */
  uint32_t change_count;
  gm_fit_change changes[FIT_CHANGES];
};

/* The sum of it all. */
typedef struct fit_sums {
  uint64_t model_bytes, kv_bytes, activation_bytes, host_bytes, total_bytes, low_bytes, high_bytes;
} fit_sums;

/* Sums stop at 2^64-1: files may say anything. */
static inline uint64_t fit_add(uint64_t a, uint64_t b) { return a > UINT64_MAX - b ? UINT64_MAX : a + b; }

/* A GGUF or safetensors file, a folder, an index, or a config.json. */
gm_status fit_open(fit_question *self, gm_error *err);
void fit_close(fit_question *self);

/* Devices with memory of their own, each card once, and what is free on the host. */
gm_status fit_find_devices(fit_question *self, gm_context *ctx, gm_error *err);

/* Place the layers; find the longest context, and what would help where it does not fit. */
gm_status fit_answer(fit_question *self, gm_error *err);

/* One sentence: it fits, it does not fit, or that is unknown, with what is to spare or lacking. */
void fit_verdict_text(const fit_question *self, char *out, size_t capacity);

/* Why some bytes are unknown; NULL: none are. It does not fit all the same where the others have no room. */
const char *fit_unknown(const fit_question *self);

fit_sums fit_sum(const fit_question *self);

/* Moves what was asked to be on the host there: out of the layers, into what is fixed. The layers are those of `out`,
 * and each device takes what engines need in addition. */
gm_status fit_move_to_host(fit_question *self, const gm_estimate_settings *settings, gm_fit_request *out,
                           gm_error *err);

/* Finds the tensors that `overrides` names. */
gm_status fit_read_overrides(fit_question *self, gm_error *err);

/* The bytes that a process takes of a device beside the buffers that are estimated. */
uint64_t fit_overhead(const gm_model_config *config, uint64_t micro_batch);

/* Counts what was moved as the host's in the estimate of the run as placed. */
void fit_settle_host(fit_question *self);

/* All layers, and the output matrix, which counts as one. */
uint32_t fit_layer_count(const fit_question *self);

/* The command line of llama.cpp for it. False: MODEL is no GGUF file, not all layers have a place, or it is too long.
 */
bool fit_command(const fit_question *self, char *out, size_t capacity);

/* ---- showing ---- */

void fit_print(FILE *file, const fit_question *self, bool explains);
/* Where nothing but the tensors is known. */
void fit_print_weights(FILE *file, const fit_question *self);
void fit_json_weights(json_writer *out, const fit_question *self);

void fit_json(json_writer *out, const fit_question *self, bool explains);

#endif
