/* The engine's side of a card, past gm: CUDA's driver or HIP's runtime, as it is installed or simulated. Each call ends
 * the program where the driver fails. */
#ifndef GM_TESTS_INTEGRATIONS_TORCH_DRIVER_H
#define GM_TESTS_INTEGRATIONS_TORCH_DRIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gm/export.h"

GM_BEGIN_DECLS

/* Ends the program with 1 and the line where `condition` does not hold. */
#define DRIVER_CHECK(condition) driver_check(condition, #condition, __FILE__, __LINE__)
void driver_check(bool condition, const char *text, const char *file, int line);

/* Opens the first card of "cuda" or "hip". Ends the program with 77 and a reason where there is none. */
void driver_open(const char *backend);
void driver_close(void);
/* In every thread that calls the others, before the first call. */
void driver_enter(void);

void *driver_stream(void);
void driver_stream_end(void *stream);
void driver_wait(void *stream);
/* Later work of `later` follows what `earlier` has so far. */
void driver_follow(void *later, void *earlier);

/* Work of a stream: each word of the memory becomes `word`; a copy on the card; a copy to page-locked memory. */
void driver_fill(void *address, size_t bytes, unsigned word, void *stream);
void driver_copy(void *to, const void *from, size_t bytes, void *stream);
void driver_read(void *to, const void *from, size_t bytes, void *stream);
/* Page-locked memory of the host. */
void *driver_pinned(size_t bytes);
void driver_pinned_end(void *memory);

/* A capture of one thread; the graph that it gives; the id of the capture that a stream is in, 0 for none. */
void driver_capture_begin(void *stream);
void *driver_capture_end(void *stream);
uint64_t driver_capture_of(void *stream);
void driver_launch(void *graph, void *stream);
void driver_graph_end(void *graph);

/* Whether a simulated driver has something left. A real one is not asked. */
bool driver_has_leaks(void);

GM_END_DECLS

#endif
