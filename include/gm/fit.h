/* Will it fit, and how: layers over devices by their free memory (F8), the longest context, what to change when it does
 * not (F47). Figures come as plain data, so any estimator will do. Every function is thread-safe; nothing is allocated
 * on a device. */
#ifndef GM_FIT_H
#define GM_FIT_H

#include <stdbool.h>
#include <stdint.h>

#include "gm/device.h"
#include "gm/dtype.h"
#include "gm/services.h"
#include "gm/status.h"

GM_BEGIN_DECLS

enum { GM_FIT_DEVICES_MAX = 64, GM_FIT_LAYERS_MAX = 512, GM_FIT_WHY_SIZE = 160, GM_FIT_REASON_SIZE = 256 };

/* A device that may hold layers, real or imagined; what is left for them is free - margin - overhead. */
typedef struct gm_fit_device {
  const char *name;        /* for texts; borrowed; NULL: its number */
  uint64_t free_bytes;     /* what gm_memory_info calls free */
  uint64_t margin_bytes;   /* to be left free: more on a card that has a display */
  uint64_t overhead_bytes; /* taken as soon as anything is on it: the driver's context, workspaces, side models */
  uint64_t reserved[2];    /* 0 */
} gm_fit_device;

/* One layer, with what travels with it. */
typedef struct gm_fit_layer {
  uint64_t weight_bytes;  /* without the experts */
  uint64_t expert_bytes;  /* weights of experts, which may lie on the host alone; 0 for a dense layer */
  uint64_t kv_bytes;      /* and other state of sequences */
  uint64_t compute_bytes; /* while it runs; a device needs that of its largest layer, not the sum */
  uint64_t reserved[2];   /* 0 */
} gm_fit_layer;

/* What is asked. Zero-initialised but for struct_size and layers, all lies on a host without limit. All is borrowed for
 * the call. */
typedef struct gm_fit_request {
  uint32_t struct_size; /* set by the caller: sizeof(gm_fit_request) */
  uint32_t device_count;
  const gm_fit_device *devices; /* in the order in which they get layers */
  const gm_fit_layer *layers;   /* in the order in which they run; the output layer is the last one */
  uint32_t layer_count;
  uint32_t least_share_percent; /* a device gets at least this part of the layers, or none: 0 to 100 */
  bool all_on_devices;          /* a layer on the host is a "no" */
  bool experts_on_host;         /* experts of the first layers may lie on the host when not all find room */
  bool spread;                  /* over all devices that are of use, in place of the fewest that will do */
  uint64_t host_free_bytes;     /* GM_UNKNOWN_BYTES: no limit; 0: none is free */
  uint64_t host_fixed_bytes;    /* on the host in any case: embeddings, inputs, outputs */
  uint64_t partial_bytes;       /* more compute bytes on each used device when layers or experts are on the host */
} gm_fit_request;

/* What lies in one place. */
typedef struct gm_fit_part {
  uint32_t first_layer, layer_count; /* consecutive layers; the first is 0 when there are none */
  uint64_t weight_bytes;             /* with the experts that lie here */
  uint64_t kv_bytes;
  uint64_t compute_bytes;
  uint64_t bytes;            /* all that is taken here: the three above, overhead or fixed bytes */
  uint64_t headroom_bytes;   /* free - margin - bytes; GM_UNKNOWN_BYTES on a host without limit */
  char why[GM_FIT_WHY_SIZE]; /* why a device has no layers; "" when it has */
  uint64_t reserved[2];      /* 0 */
} gm_fit_part;

/* The answer. When `fits` is false the numbers are those of the best attempt, all 0 when there is none. */
typedef struct gm_fit_plan {
  uint32_t struct_size; /* set by the caller: sizeof(gm_fit_plan) */
  bool fits;
  uint32_t device_layers;      /* layers on devices: the last ones; those before are on the host */
  uint32_t host_expert_layers; /* of these the first so many have their experts on the host */
  uint32_t devices_used;
  uint64_t device_bytes;         /* taken on all devices */
  uint64_t least_headroom_bytes; /* of the devices used; GM_UNKNOWN_BYTES when none is */
  gm_fit_part host;
  char reason[GM_FIT_REASON_SIZE]; /* "" when all lies on devices; else what lacks how much, and where */
  uint64_t reserved[4];            /* 0 */
} gm_fit_plan;

/* Split the layers: the first ones to the host, the rest over the devices in their order, consecutive layers each.
 * Of all splits in which every place has room, the best: (1) the most layers on devices, (2) the fewest with experts on
 * the host, (3) the fewest devices, unless `spread` is set: layers on several cards wait for each other, and a card
 * left alone can do other work, (4) the most headroom on the device that is left with the least, counted in bytes,
 * (5) more layers on earlier devices. `out_parts` has one entry for each device (NULL: not wanted). That it does not
 * fit is an answer, not a failure. GM_ERR_INVALID_ARGUMENT: NULL where something is needed, struct_size is none that gm
 * knows, no layers or more than GM_FIT_LAYERS_MAX, more than GM_FIT_DEVICES_MAX devices, a share over 100;
 * GM_ERR_OUT_OF_HOST_MEMORY. Figures whose sums pass 2^64-1 count as that many bytes. `services` may be NULL (malloc).
 */
GM_API gm_status gm_place_layers(const gm_services *services, const gm_fit_request *request, gm_fit_part *out_parts,
                                 gm_fit_plan *out, gm_error *err);

/* A device's name and free bytes, now. Margin and overhead stay as they are. The name is borrowed until the device is
 * closed. GM_ERR_NOT_FOUND: no figure for its free memory; failures of gm_device_memory_info. */
GM_API gm_status gm_fit_device_read(gm_device *device, gm_fit_device *out, gm_error *err);

/* What can be turned to make a model fit. */
typedef struct gm_fit_setting {
  uint32_t struct_size; /* sizeof(gm_fit_setting), set by who makes one */
  bool all_on_devices;
  bool experts_on_host;
  uint64_t context;   /* tokens */
  uint32_t kv_choice; /* one of the source's, 0 is what was asked for */
  uint32_t weight_choice;
  uint64_t reserved[4]; /* 0 */
} gm_fit_setting;

/* Where figures come from. `figures` fills a request, whose struct_size is set, for a setting; what the request points
 * at stays as it is until the next call. More context never needs less memory. The flags of the request are then set as
 * in the setting. Choices are listed by falling size, the first is what was asked for; the lists may be NULL with
 * count 0, which is one choice without a name. All is borrowed. */
typedef struct gm_fit_source {
  uint32_t struct_size; /* set by the caller: sizeof(gm_fit_source) */
  gm_status (*figures)(void *user, const gm_fit_setting *setting, gm_fit_request *out, gm_error *err);
  void *user;
  const gm_services *services;     /* may be NULL */
  const char *const *kv_names;     /* "f16", "q8_0", "q4_0" */
  const char *const *weight_names; /* "as it is", "q5_k_m", "q4_k_m" */
  uint32_t kv_count;
  uint32_t weight_count;
} gm_fit_source;

/* The split at one setting: gm_place_layers with the source's figures. Failures: its, and those of `figures`. */
GM_API gm_status gm_fit_try(const gm_fit_source *source, const gm_fit_setting *setting, gm_fit_part *out_parts,
                            gm_fit_plan *out, gm_error *err);

/* The longest context from `least` to `most` tokens, in steps of `step` above `least`, with which the setting (but for
 * its own context) fits; 0 when not even `least` does. Found by halving: about log2 of the steps in calls.
 * GM_ERR_INVALID_ARGUMENT: NULL, least 0 or above most, most 2^63 or more, step 0; failures of gm_fit_try. */
GM_API gm_status gm_fit_longest_context(const gm_fit_source *source, const gm_fit_setting *setting, uint64_t least,
                                        uint64_t most, uint64_t step, uint64_t *out_context, gm_error *err);

/* Kinds of changes, by what they cost, the cheapest first. */
typedef enum gm_fit_change_kind {
  GM_FIT_SMALLER_KV = 0,      /* the next smaller type of the cache that fits: a little quality */
  GM_FIT_EXPERTS_ON_HOST = 1, /* some speed */
  GM_FIT_SHORTER_CONTEXT = 2, /* the longest that fits */
  GM_FIT_FEWER_LAYERS = 3,    /* fewer layers on devices, the rest on the host: much speed */
  GM_FIT_SMALLER_WEIGHTS = 4, /* the next smaller weights that fit: quality, and another file */
  GM_FIT_CHANGES = 5
} gm_fit_change_kind;

/* One change that by itself makes it fit. Never grows. */
typedef struct gm_fit_change {
  gm_fit_change_kind kind;
  gm_fit_setting setting;        /* with the change made */
  gm_fit_plan plan;              /* at that setting */
  char text[GM_FIT_REASON_SIZE]; /* "kv cache q8_0 instead of f16", for people */
} gm_fit_change;

/* For a setting that does not fit: of each kind the smallest change that by itself makes it fit, if there is one,
 * cheapest kind first, found by trying. `out` has room for GM_FIT_CHANGES; *out_count are written, 0 when the setting
 * fits or nothing helps. `least_context` is the shortest that is of use, `step` as above. Failures of gm_fit_try;
 * GM_ERR_INVALID_ARGUMENT: NULL, least_context or step 0. */
GM_API gm_status gm_fit_advise(const gm_fit_source *source, const gm_fit_setting *setting, uint64_t least_context,
                               uint64_t step, gm_fit_change *out, uint32_t *out_count, gm_error *err);

GM_END_DECLS

#endif
