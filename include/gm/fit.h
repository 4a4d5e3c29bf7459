/* Whether a model fits, and how: which layers go on which device, the longest context, and what to change when it does
 * not fit. Figures come as plain data, so any estimator will do. Nothing is allocated on a device. Every function is
 * thread-safe. */
#ifndef GM_FIT_H
#define GM_FIT_H

#include <stdbool.h>
#include <stdint.h>

#include "gm/device.h"
#include "gm/dtype.h"
#include "gm/services.h"
#include "gm/status.h"

GM_BEGIN_DECLS

/* GM_FIT_LAYERS_MAX: those of a model, of at most GM_MODEL_LAYERS_MAX, and its output. */
enum { GM_FIT_DEVICES_MAX = 64, GM_FIT_LAYERS_MAX = 513, GM_FIT_WHY_SIZE = 160, GM_FIT_REASON_SIZE = 256 };

/* How far a figure can be trusted. */
typedef enum gm_standing {
  GM_STANDING_EXACT = 0,    /* the engine takes these bytes */
  GM_STANDING_INTERVAL = 1, /* it takes low to high */
  GM_STANDING_UNKNOWN = 2 /* gm does not know the rules. The figure is 0, and sums count what is known alone: the engine
                             takes at least so much */
} gm_standing;

/* A device that may hold layers; it need not exist. Layers may take free - margin - overhead. */
typedef struct gm_fit_device {
  const char *name;        /* for texts; borrowed; NULL: the device's number */
  uint64_t free_bytes;     /* what gm_memory_info calls free */
  uint64_t margin_bytes;   /* bytes to leave free; more on a card that has a display */
  uint64_t overhead_bytes; /* taken as soon as anything is on the device: the driver's context, workspaces, side
                              models */
  uint64_t reserved[2];    /* 0 */
} gm_fit_device;

/* One layer, with the memory that goes with it. */
typedef struct gm_fit_layer {
  uint64_t weight_bytes;  /* without the experts */
  uint64_t expert_bytes;  /* weights of experts, which may be on the host alone; 0: a dense layer */
  uint64_t kv_bytes;      /* keys and values, and other state of sequences */
  uint64_t compute_bytes; /* taken while the layer runs; a device needs that of its largest layer, not the sum */
  uint64_t reserved[2];   /* 0 */
} gm_fit_layer;

/* The layers to place, and the places for them. Zero-initialised with struct_size and layers set, all layers are on a
 * host without limit. All pointers are borrowed for the call. */
typedef struct gm_fit_request {
  uint32_t struct_size; /* set by the caller: sizeof(gm_fit_request) */
  uint32_t device_count;
  const gm_fit_device *devices; /* in the order in which they get layers */
  const gm_fit_layer *layers;   /* in the order in which they run; the output layer is the last one */
  uint32_t layer_count;
  uint32_t least_share_percent; /* least percentage of the layers that a device gets, if it gets any: 0 to 100 */
  bool all_on_devices;          /* the model does not fit when a layer is on the host */
  bool experts_on_host;         /* when not all experts find room, those of the first layers may be on the host */
  bool spread;                  /* use all devices that help, not the fewest that suffice */
  gm_standing standing;         /* the worst of all figures; unknown: those that nobody knows are 0 */
  uint64_t host_free_bytes;     /* GM_UNKNOWN_BYTES: no limit; 0: nothing is free */
  uint64_t host_fixed_bytes;    /* always on the host: embeddings, inputs, outputs */
  uint64_t partial_bytes;       /* additional compute bytes on each used device when layers or experts are on the
                                   host */
} gm_fit_request;

/* One device's part of a plan, or the host's. In a plan whose standing is unknown, it holds at least so much. */
typedef struct gm_fit_part {
  uint32_t first_layer, layer_count; /* consecutive layers; the first is 0 when there are none */
  uint64_t weight_bytes;             /* with the experts that are here */
  uint64_t kv_bytes;
  uint64_t compute_bytes;
  uint64_t bytes;            /* all bytes taken here: the three above, and overhead or fixed bytes */
  uint64_t headroom_bytes;   /* free - margin - bytes; GM_UNKNOWN_BYTES on a host without limit */
  char why[GM_FIT_WHY_SIZE]; /* why a device has no layers; "" when it has */
  uint64_t reserved[2];      /* 0 */
} gm_fit_part;

/* The answer. When `fits` is false the numbers are those of the best attempt; all are 0 when there is none. A plan of
 * figures whose standing is unknown never fits. Its numbers are those of what is known: at least so much is taken, and
 * at least so much lacks. */
typedef struct gm_fit_plan {
  uint32_t struct_size; /* set by the caller: sizeof(gm_fit_plan) */
  bool fits;
  uint32_t device_layers;      /* layers on devices: the last ones of the model; the others are on the host */
  uint32_t host_expert_layers; /* so many of the device layers, the first ones, have their experts on the host */
  uint32_t devices_used;
  gm_standing standing;          /* that of the request */
  uint64_t device_bytes;         /* taken on all devices */
  uint64_t least_headroom_bytes; /* of the device with the least; GM_UNKNOWN_BYTES: no device is used */
  gm_fit_part host;
  char reason[GM_FIT_REASON_SIZE]; /* "" when all layers are on devices; else which place lacks how many bytes */
  uint64_t lack_bytes;             /* bytes that the devices need beyond their room to hold every layer and expert.
                                      Exact for one device; several devices, which split layers, need at least so many.
                                      Without devices, bytes that the host lacks */
  uint64_t reserved[3];            /* 0 */
} gm_fit_plan;

/* Splits the layers. The first ones go to the host, the others to the devices in their order. Each place has
 * consecutive layers. gm compares all splits for which every place has room, and takes the best by these rules, in
 * this order:
 * - (1) the most layers on devices;
 * - (2) the fewest layers with experts on the host;
 * - (3) the fewest devices, unless `spread` is set: layers on several cards wait for each other, and a spare card can
 *   do other work;
 * - (4) the most headroom, in bytes, on the device that has the least left;
 * - (5) more layers on earlier devices.
 *
 * `out_parts` (may be NULL) has one entry for each device. A model that does not fit is an answer, not a failure. Sums
 * above 2^64-1 count as 2^64-1. `services` may be NULL (malloc).
 *
 * Errors: OUT_OF_HOST_MEMORY. INVALID_ARGUMENT: a needed pointer is NULL, gm does not know struct_size, or the share
 * is above 100. There are no layers, more than GM_FIT_LAYERS_MAX, or more than GM_FIT_DEVICES_MAX devices. */
GM_API gm_status gm_place_layers(const gm_services *services, const gm_fit_request *request, gm_fit_part *out_parts,
                                 gm_fit_plan *out, gm_error *err);

/* Reads a device's name and free bytes now. Margin and overhead are unchanged. The name is borrowed until the device is
 * closed. NOT_FOUND: there is no figure for its free memory. Other errors are those of gm_device_memory_info. */
GM_API gm_status gm_fit_device_read(gm_device *device, gm_fit_device *out, gm_error *err);

/* The changes that a caller can make so that a model fits. */
typedef struct gm_fit_setting {
  uint32_t struct_size; /* set by whoever makes one: sizeof(gm_fit_setting) */
  bool all_on_devices;
  bool experts_on_host;
  uint64_t context;   /* tokens */
  uint32_t kv_choice; /* number of one of the source's choices; 0: what the caller asked for */
  uint32_t weight_choice;
  uint64_t reserved[4]; /* 0 */
} gm_fit_setting;

/* A source of figures. `figures` fills in a request, whose struct_size is set, for a setting. The data at the
 * request's pointers stays unchanged until the next call. More context never needs less memory. gm then sets the flags
 * of the request as in the setting.
 *
 * Choices are listed by falling size; the first is what the caller asked for. A list may be NULL with count 0, which is
 * one choice without a name. All pointers are borrowed. `figures` must not throw. */
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

/* Splits the layers at one setting: gm_place_layers with the source's figures. Errors: those of gm_place_layers and of
 * `figures`. */
GM_API gm_status gm_fit_try(const gm_fit_source *source, const gm_fit_setting *setting, gm_fit_part *out_parts,
                            gm_fit_plan *out, gm_error *err);

/* Finds the longest context with which the setting fits; the setting's own context is ignored. Contexts go from `least`
 * to `most` tokens in steps of `step`. 0: even `least` does not fit. The search halves: it makes about log2 of the
 * steps in calls.
 *
 * Errors: those of gm_fit_try. INVALID_ARGUMENT: a pointer is NULL, `least` is 0 or above `most`, `most` is 2^63 or
 * more, or `step` is 0. */
GM_API gm_status gm_fit_longest_context(const gm_fit_source *source, const gm_fit_setting *setting, uint64_t least,
                                        uint64_t most, uint64_t step, uint64_t *out_context, gm_error *err);

/* Kinds of changes, ordered by cost, the cheapest first. */
typedef enum gm_fit_change_kind {
  GM_FIT_SMALLER_KV = 0,      /* the next smaller type of the cache that fits; costs a little quality */
  GM_FIT_EXPERTS_ON_HOST = 1, /* costs some speed */
  GM_FIT_SHORTER_CONTEXT = 2, /* the longest context that fits */
  GM_FIT_FEWER_LAYERS = 3,    /* fewer layers on devices, the others on the host; costs much speed */
  GM_FIT_SMALLER_WEIGHTS = 4, /* the next smaller weights that fit; costs quality, and needs another file */
  GM_FIT_CHANGES = 5
} gm_fit_change_kind;

/* One change that is enough by itself. Never grows. */
typedef struct gm_fit_change {
  gm_fit_change_kind kind;
  gm_fit_setting setting;        /* the setting with the change */
  gm_fit_plan plan;              /* the plan at that setting */
  char text[GM_FIT_REASON_SIZE]; /* "kv cache q8_0 instead of f16", for people */
} gm_fit_change;

/* Finds the smallest change of each kind that makes a setting fit by itself, by trying. The cheapest kind comes first.
 * `out` has room for GM_FIT_CHANGES entries. *out_count are written; 0 when the setting fits, or nothing helps.
 * `least_context` is the shortest useful context, in tokens, and `step` the step above it.
 *
 * Errors: those of gm_fit_try. INVALID_ARGUMENT: a pointer is NULL, or `least_context` or `step` is 0. */
GM_API gm_status gm_fit_advise(const gm_fit_source *source, const gm_fit_setting *setting, uint64_t least_context,
                               uint64_t step, gm_fit_change *out, uint32_t *out_count, gm_error *err);

GM_END_DECLS

#endif
