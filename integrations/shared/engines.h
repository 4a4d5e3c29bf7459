/* The common parts of this folder's adapters: one context for the process, one pool of host memory, and the text of
 * each thread's last failure.
 *
 * All of it is made at the first use. Nothing is destroyed: engines free memory until the process has ended. Every call
 * is thread-safe. */
#ifndef GM_INTEGRATIONS_SHARED_ENGINES_H
#define GM_INTEGRATIONS_SHARED_ENGINES_H

#include "gm/gm.h"

GM_BEGIN_DECLS

/* Returns the context that all adapters share. NULL: gm_engines_why has the reason. A process that forked has the
 * parent's, in which every call answers FORKED. */
gm_context *gm_engines_context(void);

/* Keeps a failure as the calling thread's last one. */
void gm_engines_note(const gm_error *err);
/* Keeps the reason why `pool` refused `request` as the calling thread's last failure. */
void gm_engines_note_refusal(gm_pool *pool, const gm_request *request);

/* Returns the calling thread's last failure as a sentence. It is valid until that thread's next failure, and never
 * NULL.
 */
GM_API const char *gm_engines_why(void);

/* Returns the pool of host memory that all adapters share. NULL: gm_engines_why has the reason. */
gm_pool *gm_engines_host_pool(void);

/* Allocates from that pool. NULL: gm_engines_why has the reason. The caller frees the result. */
GM_API void *gm_engines_host_alloc(uint64_t bytes);
/* Frees what gm_engines_host_alloc returned. NULL is allowed. */
GM_API void gm_engines_host_free(void *pointer);

/* Sets the cap on the bytes that the pool of host memory reserves. 0 takes the cap away. Returns 0, or a gm_status. */
GM_API int gm_engines_host_limit(uint64_t bytes);
/* Returns the field of the host pool's gm_stats that is called `name`. UINT64_MAX: there is none. */
GM_API uint64_t gm_engines_host_figure(const char *name);
/* Returns the field of a pool's gm_stats that is called `name`. UINT64_MAX: there is none. */
uint64_t gm_engines_figure(gm_pool *pool, const char *name);

GM_END_DECLS

#endif
