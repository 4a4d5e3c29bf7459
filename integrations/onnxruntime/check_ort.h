/* ONNX Runtime for the check: loaded, with an environment; sessions; inputs and outputs. A call that fails keeps what
 * ONNX Runtime says. */
#ifndef GM_INTEGRATIONS_ONNXRUNTIME_CHECK_ORT_H
#define GM_INTEGRATIONS_ONNXRUNTIME_CHECK_ORT_H

#include <stdbool.h>

#include "check_model.h"
#include "ort_abi.h"

typedef struct check_ort {
  const struct OrtApiBase *base;
  const ort_api *api;
  uint32_t version; /* of the table */
  const char *text; /* "1.32.0" */
  struct OrtEnv *env;
  struct OrtMemoryInfo *cpu;
} check_ort;

typedef struct check_session {
  const check_ort *on;
  const check_model *model;
  struct OrtSession *session;
} check_session;

/* How a session is made. */
typedef struct check_choice {
  bool env_allocators, no_arena, parallel;
  int threads;                  /* 0: one */
  const char *custom_operators; /* the path of a library, or NULL */
  const char *weight;           /* the name of a weight that `value` stands for, or NULL */
  const struct OrtValue *value;
} check_choice;

/* `path` is libonnxruntime.so. */
bool check_ort_open(check_ort *out, const char *path);
void check_ort_close(check_ort *on);

/* Whether a call worked. Otherwise it keeps the message for check_message, and lets go of the status. */
bool check_worked(const check_ort *on, struct OrtStatus *status);
/* The last message of ONNX Runtime in this thread, "" at first. */
const char *check_message(void);

bool check_session_open(check_session *out, const check_ort *on, const check_model *model, const check_choice *how);
void check_session_close(check_session *session);

/* Runs a batch of inputs that `seed` makes. Returns the output's numbers, which the caller frees, and how many there
 * are. NULL: ONNX Runtime refused. */
float *check_run(const check_session *session, int64_t batch, unsigned seed, size_t *out_count);
/* Writes the inputs for a batch. */
void check_input(const check_model *model, int64_t batch, unsigned seed, float *out);
/* How many numbers a batch of inputs, or of outputs, has. */
size_t check_input_count(const check_model *model, int64_t batch);
size_t check_output_count(const check_model *model, int64_t batch);

/* The figure of a session's allocator of host memory. -1: it has no such figure. */
long long check_figure(const check_session *session, const char *key);

#endif
