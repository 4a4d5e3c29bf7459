/* gmem fit: does a model fit, where do its layers go, and what would help. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tools/gmem/command.h"
#include "tools/gmem/fit/fit.h"
#include "tools/gmem/options/args.h"
#include "tools/gmem/output/output.h"

enum {
  FIT_CTX = 0x100,
  FIT_BATCH,
  FIT_MICRO_BATCH,
  FIT_SEQS,
  FIT_SEPARATE,
  FIT_FULL_WINDOWS,
  FIT_KV_TYPE,
  FIT_NO_FLASH,
  FIT_NO_COPIES,
  FIT_DEVICE_LIST,
  FIT_HOST,
  FIT_KEEP,
  FIT_SPREAD,
  FIT_CPU_MOE,
  FIT_OVERRIDE,
  FIT_MMPROJ,
  FIT_DRAFT_MODEL,
  FIT_LORA,
  FIT_WITH,
  FIT_INTEGRATED,
  FIT_DIMS,
  FIT_DTYPE,
  FIT_IMAGE,
  FIT_EXPLAIN
};

typedef struct fit_arguments {
  fit_question question;
  bool has_dims, json, explains;
} fit_arguments;

/* llama.cpp names a mix of types, like q4_k_m, after the type that most of its tensors have. */
static bool fit_is_mix(const char *text, char *out, size_t size) {
  const char *ending = strrchr(text, '_');
  gm_dtype type;
  if (!ending || strcspn(ending + 1, "smlxSMLX") != 0) return false;
  snprintf(out, size, "%.*s", (int)(ending - text), text);
  return gm_dtype_from_name(out, &type) == GM_OK;
}

static gm_dtype fit_parse_type(struct argp_state *state, const char *option, const char *text) {
  gm_dtype type = GM_DTYPE_F64;
  char most[16];
  if (fit_is_mix(text, most, sizeof most)) {
    args_error(state, "%s: \"%s\" is a mix of types, and most of its tensors are %s: give that", option, text, most);
  }
  if (gm_dtype_from_name(text, &type) != GM_OK || type == GM_DTYPE_F64) {
    args_error(state, "%s: \"%s\" is no type, like f16 or q8_0", option, text);
  }
  return type;
}

/* The next of a list of values with commas between; false at its end. */
static bool fit_next(const char **list, char *out, size_t size) {
  if (!*list) return false;
  size_t length = strcspn(*list, ",");
  snprintf(out, size, "%.*s", (int)(length < size ? length : size - 1), *list);
  *list = (*list)[length] ? *list + length + 1 : NULL;
  return true;
}

static void fit_parse_devices(struct argp_state *state, fit_question *question, const char *list) {
  char text[32];
  question->is_described = true;
  question->device_count = 0;
  while (fit_next(&list, text, sizeof text)) {
    if (question->device_count == FIT_DEVICES) args_error(state, "--devices: more than %d", FIT_DEVICES);
    uint32_t index = question->device_count++;
    fit_device *device = &question->devices[index];
    device->index = index;
    device->total_bytes = args_bytes(state, "--devices", text);
    snprintf(device->backend, sizeof device->backend, "described");
    snprintf(device->name, sizeof device->name, "device %" PRIu32, index);
    device->free_bytes = device->total_bytes;
    question->room[index] = (gm_fit_device){.name = device->name};
  }
}

/* The last of the list is for all devices from there on. */
static void fit_parse_keep(struct argp_state *state, fit_question *question, const char *list) {
  char text[32];
  uint32_t count = 0;
  while (fit_next(&list, text, sizeof text)) {
    if (count == FIT_DEVICES) args_error(state, "--keep-free: more than %d", FIT_DEVICES);
    uint64_t bytes = args_bytes(state, "--keep-free", text);
    for (uint32_t i = count++; i < FIT_DEVICES; i++) question->keep_free_bytes[i] = bytes;
  }
}

static uint32_t fit_small(uint64_t number) { return number < UINT32_MAX ? (uint32_t)number : UINT32_MAX; }

static void fit_parse_dims(struct argp_state *state, fit_question *question, const char *list) {
  uint64_t numbers[6] = {0};
  char text[32];
  size_t count = 0;
  for (; fit_next(&list, text, sizeof text); count++) {
    if (count < 6) numbers[count] = args_number(state, "--dims", text);
  }
  if (count != 6) args_error(state, "--dims: HIDDEN,INTERMEDIATE,LAYERS,VOCAB,HEADS,KV_HEADS are six numbers");
  const uint64_t heads = numbers[4], kv_heads = numbers[5] ? numbers[5] : heads;
  const uint32_t head = fit_small(heads ? numbers[0] / heads : 0);
  const gm_layer_kind kind = {.flags = GM_LAYER_ATTENDS,
                              .heads = fit_small(heads),
                              .kv_heads = fit_small(kv_heads),
                              .key_size = head,
                              .value_size = head,
                              .intermediate = numbers[1]};
  question->config = (gm_model_config){.struct_size = sizeof question->config,
                                       .architecture = "llama",
                                       .hidden = numbers[0],
                                       .layers = numbers[2],
                                       .vocab = numbers[3],
                                       .kinds = {kind},
                                       .kind_count = 1};
}

/* "1024x768": width and height of an image. */
static void fit_parse_image(struct argp_state *state, fit_components *out, const char *text) {
  char width[16];
  const size_t length = strcspn(text, "x");
  if (!text[length] || length >= sizeof width) args_error(state, "--image: \"%s\" is no size, like 1024x768", text);
  snprintf(width, sizeof width, "%.*s", (int)length, text);
  out->asks_image = true;
  out->width = args_count(state, "--image", width, 1, GM_IMAGE_SIDE_MAX);
  out->height = args_count(state, "--image", text + length + 1, 1, GM_IMAGE_SIDE_MAX);
}

/* A projector and a draft come once. */
static void fit_parse_beside(struct argp_state *state, fit_question *question, fit_beside_kind kind, const char *path) {
  for (uint32_t i = 0; i < question->beside_count; i++) {
    const bool is_second = question->beside[i].kind == kind && (kind == FIT_PROJECTOR || kind == FIT_DRAFT);
    if (is_second) args_error(state, "\"%s\" is a second %s", path, fit_beside_word(kind));
  }
  if (question->beside_count == FIT_BESIDE) args_error(state, "more than %d files beside the model", FIT_BESIDE);
  question->beside[question->beside_count++] = (fit_beside){.kind = kind, .path = args_file(state, path)};
}

/* One device, of which the host has the rest. */
static void fit_parse_integrated(struct argp_state *state, fit_question *question) {
  if (question->device_count != 1) args_error(state, "--integrated: give the memory of one device with --devices");
  if (question->host_free_bytes == GM_UNKNOWN_BYTES) question->host_free_bytes = question->devices[0].free_bytes;
}

static void fit_parse_end(struct argp_state *state, fit_arguments *arguments) {
  bool has_path = arguments->question.path != NULL;
  if (!has_path && !arguments->has_dims) args_error(state, "MODEL or --dims is missing");
  if (has_path && arguments->has_dims) args_error(state, "MODEL and --dims do not go together");
  if (!has_path && arguments->question.components.asks_image) args_error(state, "--image: MODEL is missing");
  if (arguments->question.shares_host) fit_parse_integrated(state, &arguments->question);
}

static error_t fit_parse_run(int key, char *text, struct argp_state *state, gm_estimate_settings *settings) {
  switch (key) {
    case FIT_CTX: settings->context = args_number(state, "--ctx", text); return 0;
    case FIT_BATCH: settings->batch = args_number(state, "--batch", text); return 0;
    case FIT_MICRO_BATCH: settings->micro_batch = args_number(state, "--micro-batch", text); return 0;
    case FIT_SEQS: settings->sequences = args_count(state, "--seqs", text, 1, 4096); return 0;
    case FIT_SEPARATE: settings->separate_sequences = true; return 0;
    case FIT_FULL_WINDOWS: settings->full_windows = true; return 0;
    case FIT_NO_FLASH: settings->plain_attention = true; return 0;
    case FIT_NO_COPIES: settings->kv_copies = false; return 0;
    case FIT_KV_TYPE: settings->key_type = settings->value_type = fit_parse_type(state, "--kv-type", text); return 0;
    case FIT_DTYPE: settings->weight_type = fit_parse_type(state, "--dtype", text); return 0;
    default: return ARGP_ERR_UNKNOWN;
  }
}

static error_t fit_parse(int key, char *text, struct argp_state *state) {
  fit_arguments *arguments = state->input;
  fit_question *question = &arguments->question;
  switch (key) {
    case FIT_DEVICE_LIST: fit_parse_devices(state, question, text); return 0;
    case FIT_HOST: question->host_free_bytes = args_bytes(state, "--host", text); return 0;
    case FIT_KEEP: fit_parse_keep(state, question, text); return 0;
    case FIT_SPREAD: question->spread = true; return 0;
    case FIT_CPU_MOE:
      question->experts_on_host = args_count(state, "--n-cpu-moe", text, 0, GM_FIT_LAYERS_MAX);
      return 0;
    case FIT_OVERRIDE: question->overrides = text; return 0;
    case FIT_INTEGRATED: question->shares_host = true; return 0;
    case FIT_MMPROJ: fit_parse_beside(state, question, FIT_PROJECTOR, text); return 0;
    case FIT_DRAFT_MODEL: fit_parse_beside(state, question, FIT_DRAFT, text); return 0;
    case FIT_LORA: fit_parse_beside(state, question, FIT_ADAPTER, text); return 0;
    case FIT_WITH: fit_parse_beside(state, question, FIT_OTHER, text); return 0;
    case FIT_DIMS:
      fit_parse_dims(state, question, text);
      arguments->has_dims = true;
      return 0;
    case FIT_IMAGE: fit_parse_image(state, &question->components, text); return 0;
    case FIT_EXPLAIN: arguments->explains = true; return 0;
    case 'j': arguments->json = true; return 0;
    case ARGP_KEY_ARG:
      if (question->path) args_error(state, "\"%s\" is not understood", text);
      question->path = args_file(state, text);
      return 0;
    case ARGP_KEY_END: fit_parse_end(state, arguments); return 0;
    default: return fit_parse_run(key, text, state, &question->settings);
  }
}

static const struct argp_option fit_options[] = {
    {"ctx", FIT_CTX, "N", 0, "Positions, of all sequences together (4096, or what the model was trained for)", 0},
    {"batch", FIT_BATCH, "N", 0, "Tokens computed at once (512)", 0},
    {"micro-batch", FIT_MICRO_BATCH, "N", 0, "Where --batch is what is handed over: tokens computed at once", 0},
    {"seqs", FIT_SEQS, "N", 0, "Sequences at once (1)", 0},
    {"separate", FIT_SEPARATE, NULL, 0, "Each sequence has a cache of its own", 0},
    {"full-windows", FIT_FULL_WINDOWS, NULL, 0, "Layers with a sliding window keep every position", 0},
    {"kv-type", FIT_KV_TYPE, "T", 0, "Type of keys and values: f16, q8_0, ...", 0},
    {"no-flash", FIT_NO_FLASH, NULL, 0, "Without flash attention", 0},
    {"no-kv-copies", FIT_NO_COPIES, NULL, 0,
     "Without the f16 copies of a layer's keys and values that CUDA's flash attention takes of other types", 0},
    {"devices", FIT_DEVICE_LIST, "LIST", 0, "Free memory of each device, 24G,24G,12G (those that are here)", 0},
    {"host", FIT_HOST, "N", 0, "Free memory of the host (what is free; no limit with --devices)", 0},
    {"keep-free", FIT_KEEP, "N", 0,
     "Leave at least this much free on each device (256M); 1G,0: more on the first, as where a display is", 0},
    {"spread", FIT_SPREAD, NULL, 0, "Over all devices of use, not over the fewest that will do", 0},
    {"n-cpu-moe", FIT_CPU_MOE, "N", 0, "The experts of the first N layers are on the host", 0},
    {"override-tensor", FIT_OVERRIDE, "LIST", 0, "PATTERN=CPU,...: tensors with such names are on the host", 0},
    {"mmproj", FIT_MMPROJ, "FILE", 0, "A projector beside the model", 0},
    {"draft", FIT_DRAFT_MODEL, "FILE", 0, "A draft model beside it", 0},
    {"lora", FIT_LORA, "FILE", 0, "An adapter beside it; may come again", 0},
    {"with", FIT_WITH, "FILE", 0, "Another model, of another process, on the first device; may come again", 0},
    {"integrated", FIT_INTEGRATED, NULL, 0, "The memory of the device is the host's (of one of --devices)", 0},
    {"dims", FIT_DIMS, "LIST", 0, "HIDDEN,INTERMEDIATE,LAYERS,VOCAB,HEADS,KV_HEADS in place of a model", 0},
    {"dtype", FIT_DTYPE, "T", 0, "Type of the weights where no file says it (f16)", 0},
    {"image", FIT_IMAGE, "WxH", 0, "Of a model of images: pixels of one (1024x1024); --batch is how many at once", 0},
    {"explain", FIT_EXPLAIN, NULL, 0, "Every term", 0},
    ARGS_JSON_OPTION,
    {0}};

/* The engine's users call the tokens that are computed at once a batch; the library tells the two apart. */
static void fit_complete(fit_question *question) {
  gm_estimate_settings *settings = &question->settings;
  if (settings->batch && !settings->micro_batch) settings->micro_batch = settings->batch;
}

/* A model of images or sound has no tensors to move, and nothing beside it. */
static gm_status fit_ask_model(fit_question *question, gm_error *err) {
  gm_status status = question->path ? fit_open(question, err) : GM_OK;
  if (question->components.count) return status;
  if (status == GM_OK) status = fit_read_overrides(question, err);
  return status == GM_OK ? fit_beside_open(question, err) : status;
}

static gm_status fit_ask(fit_question *question, session *self, gm_error *err) {
  gm_status status = fit_ask_model(question, err);
  if (status == GM_OK && !question->is_described) {
    status = session_begin(self, NULL, err);
    if (status == GM_OK) status = fit_find_devices(question, self->ctx, err);
  }
  return status == GM_OK && !question->components.count ? fit_answer(question, err) : status;
}

static void fit_show(output *out, const fit_arguments *arguments) {
  const fit_question *question = &arguments->question;
  if (!out->json && question->components.count) {
    fit_components_print(out->file, question);
    return;
  }
  if (!out->json) {
    fit_print(out->file, question, arguments->explains);
    return;
  }
  writer_open(&out->writer, NULL, '{');
  if (question->components.count) {
    fit_components_json(&out->writer, question);
  } else {
    fit_json(&out->writer, question, arguments->explains);
  }
  writer_close(&out->writer);
}

/* It tells what could not be answered, with what is known all the same. */
static int fit_show_failure(output *out, const fit_question *question, const gm_error *err) {
  if (!question->has_no_config) return output_fail_typed(out, err);
  if (!out->json) {
    fit_print_weights(out->file, question);
    return output_fail(out, err);
  }
  writer_open(&out->writer, NULL, '{');
  fit_json_weights(&out->writer, question);
  int code = output_fail(out, err);
  writer_close(&out->writer);
  return code;
}

int command_fit(int argc, char **argv) {
  static const struct argp argp = {
      .options = fit_options,
      .parser = fit_parse,
      .args_doc = "MODEL\n--dims LIST [--dtype T]",
      .doc =
          "What a model takes, whether it fits, where its layers go, and what would help. MODEL is a GGUF or "
          "safetensors file, a folder (of diffusers, too), or a config.json.\vExamples:\n  gmem fit model.gguf\n  gmem "
          "fit model.gguf "
          "--ctx 32K --kv-type q8_0 --devices 24G,12G"};
  static fit_arguments arguments; /* too large for a stack */
  arguments = (fit_arguments){.question.settings.struct_size = sizeof arguments.question.settings,
                              .question.settings.kv_copies = true,
                              .question.components = {.width = 1024, .height = 1024},
                              .question.host_free_bytes = GM_UNKNOWN_BYTES};
  for (int i = 0; i < FIT_DEVICES; i++) arguments.question.keep_free_bytes[i] = UINT64_C(256) << 20;
  args_parse(&argp, 0, argc, argv, &arguments);
  fit_complete(&arguments.question);
  output out;
  session self = {.ctx = NULL};
  gm_error err = {.status = GM_OK}, closing = {.status = GM_OK};
  int code = GMEM_DONE;
  output_begin(&out, argv[0], arguments.json);
  if (fit_ask(&arguments.question, &self, &err) == GM_OK) {
    fit_show(&out, &arguments);
  } else {
    code = fit_show_failure(&out, &arguments.question, &err);
  }
  fit_close(&arguments.question);
  if (session_end(&self, &closing) != GM_OK && code == GMEM_DONE) code = output_fail(&out, &closing);
  return output_end(&out, code);
}
