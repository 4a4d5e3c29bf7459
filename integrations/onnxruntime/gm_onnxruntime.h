/* ONNX Runtime's memory on the CPU from gm, without ONNX Runtime's headers.
 *
 * In C and C++ a program registers an allocator with its environment. Sessions with the entry
 * "session.use_env_allocators" = "1" take it. In every language a program registers libgm_engines.so as a library of
 * custom operators with the options of a session. The library has no operators, and does both for the program.
 *
 * Allocations that fail throw std::runtime_error, as ONNX Runtime's own allocators throw. So only ONNX Runtime may call
 * the functions of an allocator; programs call AllocatorAlloc. Every call is thread-safe. */
#ifndef GM_INTEGRATIONS_ONNXRUNTIME_GM_ONNXRUNTIME_H
#define GM_INTEGRATIONS_ONNXRUNTIME_GM_ONNXRUNTIME_H

#include "gm/gm.h"

GM_BEGIN_DECLS

struct OrtAllocator;
struct OrtApiBase;
struct OrtSessionOptions;
struct OrtStatus;

/* Makes an allocator over a pool of host memory, for RegisterAllocator. `base` is what OrtGetApiBase returned. A NULL
 * pool stands for the pool that all adapters share. The pool, and ONNX Runtime's library, outlive the allocator. NULL:
 * gm_engines_why has the reason. */
GM_API struct OrtAllocator *gm_ort_allocator_create(const struct OrtApiBase *base, gm_pool *pool);

/* Destroys what gm_ort_allocator_create made, after UnregisterAllocator and after the last session that used it. NULL
 * is allowed. */
GM_API void gm_ort_allocator_destroy(struct OrtAllocator *allocator);

/* The entry that ONNX Runtime calls in a library of custom operators. Puts the sessions of `options` on the shared
 * pool, in the environment that there is. Its allocator of host memory takes the place of one that the program
 * registered. A program that makes its environment itself makes it before. The status is ONNX Runtime's, NULL is
 * success. */
GM_API struct OrtStatus *RegisterCustomOps(struct OrtSessionOptions *options, const struct OrtApiBase *base);

GM_END_DECLS

#endif
