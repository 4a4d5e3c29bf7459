/* ONNX Runtime, played: a table of functions that has what the adapter calls, and refuses a call when told to. */
#ifndef GM_TESTS_INTEGRATIONS_PLAYED_ORT_H
#define GM_TESTS_INTEGRATIONS_PLAYED_ORT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct OrtAllocator;
struct OrtApiBase;
struct OrtSessionOptions;
struct OrtStatus;

/* The functions of the adapter that can be refused, in the order in which RegisterCustomOps calls them. */
typedef enum played_call {
  PLAYED_NONE,
  PLAYED_CREATE_ENV,
  PLAYED_REGISTER,
  PLAYED_UNREGISTER,
  PLAYED_CONFIG,
  PLAYED_CALLS
} played_call;

typedef struct played_ort {
  const char *version; /* "1.32.0" */
  int table_is_wrong;  /* a status answers with another text */
  int no_table;
  played_call refused;
  int envs;                        /* how many are held */
  int statuses, infos;             /* how many were made and not released */
  int keeps_first;                 /* refuses a second allocator, as 1.22 does */
  struct OrtAllocator *registered; /* in the environment */
  int configured;                  /* how often "session.use_env_allocators" was set to "1" */
  uint32_t asked;                  /* the version of the table that was asked for last */
} played_ort;

extern played_ort played;

const struct OrtApiBase *played_base(void);
/* Everything as it is at first. */
void played_reset(void);

/* The functions of an allocator, as ONNX Runtime calls them. An exception passes through. */
void *played_alloc(struct OrtAllocator *allocator, size_t bytes);
void *played_reserve(struct OrtAllocator *allocator, size_t bytes);
void *played_alloc_on(struct OrtAllocator *allocator, size_t bytes, void *native_stream);
/* Whether a request is refused, by an exception: of alloc and reserve, of alloc_on_stream, of a plain function. */
int played_refuses(struct OrtAllocator *allocator, size_t bytes);
int played_refuses_on(struct OrtAllocator *allocator, size_t bytes, void *native_stream);
int played_function_refuses(void *(*alloc)(size_t bytes), size_t bytes);
void played_free(struct OrtAllocator *allocator, void *pointer);
uint32_t played_version_of(const struct OrtAllocator *allocator);
void played_shrink(struct OrtAllocator *allocator);
/* A figure of an allocator. UINT64_MAX: it has none, or failed. */
uint64_t played_figure(const struct OrtAllocator *allocator, const char *key);

const char *played_message(const struct OrtStatus *status);
void played_release(struct OrtStatus *status);

#ifdef __cplusplus
}
#endif

#endif
