/* The link model of the simulated driver (backends/shared/link_model.h). With it work takes virtual time on engines.
 * Threads that wait do the work, in the order of its ends. Without it all is as if it were not there. Wants the lock.
 */
#ifndef GM_TESTS_SIMULATED_CUDA_SIM_LINK_H
#define GM_TESTS_SIMULATED_CUDA_SIM_LINK_H

#include <stdbool.h>
#include <stdint.h>

#include "tests/simulated/cuda/sim_queue.h"

/* A new model with an empty journal and its clock at 0; "" or "off": none. False: a wrong word, or work is pending,
 * which the model has not seen from its beginning. */
bool sim_link_set(const char *spec);
bool sim_link_is_on(void);

/* Now: virtual with a model, else of the machine. */
int64_t sim_link_now_ns(void);

void sim_link_open(sim_queue *queue);
void sim_link_close(sim_queue *queue);

/* `op` was put at the end of the queue. */
void sim_link_add(sim_queue *queue, sim_op *op);

/* Do the work that ends next, at latest at virtual `limit`; the lock is given away meanwhile. False: there is none,
 * another thread is at it, or there is no model. */
bool sim_link_step(uint64_t limit);

/* Let `ns` of virtual time pass. */
void sim_link_pass(uint64_t ns);

/* A look that found work unfinished: it takes its time. */
void sim_link_poll(void);

/* A kernel that has just run used this memory. */
void sim_link_touch(const sim_op *op, uint64_t at, uint64_t bytes, bool writes);

/* The host uses this memory now. False: too early. */
bool sim_link_use(uint64_t at, uint64_t bytes, bool writes);
uint64_t sim_link_early(void);

#endif
