#include <time.h>

#include "simulated/opencl/sim_opencl.h"

/* out_of_order: what an out-of-order queue may do and real drivers seldom do. Every other copy or write without a wait
 * list is held back by an event. The next one in the queue is enqueued free and given a millisecond to end. Only then
 * the first is let go. Barriers, markers and everything that waits let go of all that is held, after they are enqueued,
 * so nothing waits for ever. */

enum { ORDER_QUEUES = 256 };

static struct {
  cl_command_queue queue;
  cl_event gate;              /* of the command that is held; NULL: none */
} order_queues[ORDER_QUEUES]; /* the out-of-order ones; under the mutex */

static int order_slot(cl_command_queue queue) {
  for (int i = 0; i < ORDER_QUEUES; i++) {
    if (order_queues[i].queue == queue) return i;
  }
  return -1;
}

static void order_open(cl_event gate) {
  __typeof__(&clSetUserEventStatus) set;
  if (!gate) return;
  sim_pass_find("clSetUserEventStatus", &set);
  set(gate, CL_COMPLETE);
  sim.real.clReleaseEvent(gate);
}

/* The commands that the queue holds back; NULL: of all queues. */
static void order_release(cl_command_queue queue) {
  for (int i = 0; i < ORDER_QUEUES; i++) {
    pthread_mutex_lock(&sim.mutex);
    const bool its = order_queues[i].queue && (!queue || order_queues[i].queue == queue);
    cl_event gate = its ? order_queues[i].gate : NULL;
    if (its) order_queues[i].gate = NULL;
    pthread_mutex_unlock(&sim.mutex);
    order_open(gate);
  }
}

void sim_order_note(cl_command_queue queue, cl_command_queue_properties properties) {
  const bool unordered = (properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE) != 0;
  pthread_mutex_lock(&sim.mutex);
  int slot = order_slot(queue); /* the handle may have been another queue's */
  if (slot < 0 && unordered) slot = order_slot(NULL);
  if (slot >= 0) order_queues[slot].queue = unordered && shim_script_has(&sim.script, "out_of_order") ? queue : NULL;
  pthread_mutex_unlock(&sim.mutex);
}

static cl_event order_gate(cl_command_queue queue) {
  __typeof__(&clCreateUserEvent) make;
  cl_context context = NULL;
  sim_pass_find("clCreateUserEvent", &make);
  sim.real.clGetCommandQueueInfo(queue, CL_QUEUE_CONTEXT, sizeof context, &context, NULL);
  return make(context, NULL);
}

void sim_order_begin(cl_command_queue queue, cl_uint waits, const cl_event *wait_list, cl_event *event, sim_turn *out) {
  *out = (sim_turn){.waits = waits, .wait_list = wait_list, .event = event};
  pthread_mutex_lock(&sim.mutex);
  const int slot = order_slot(queue);
  const bool hold = slot >= 0 && !order_queues[slot].gate && waits == 0;
  pthread_mutex_unlock(&sim.mutex);
  if (slot < 0) return;
  if (!event) out->event = &out->own;
  if (!hold) return;
  out->gate = order_gate(queue);
  if (!out->gate) return;
  out->waits = 1;
  out->wait_list = &out->gate;
}

static void order_overtake(cl_command_queue queue, cl_event event) {
  const struct timespec pause = {.tv_nsec = 50000};
  cl_int state = CL_QUEUED;
  sim.real.clFlush(queue);
  for (int i = 0; i < 20 && state > CL_COMPLETE; i++) {
    if (i > 0) nanosleep(&pause, NULL);
    sim.real.clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state, &state, NULL);
  }
}

cl_int sim_order_end(cl_command_queue queue, sim_turn *turn, cl_int code) {
  cl_event kept = turn->gate;
  if (code == CL_SUCCESS && turn->gate) {
    pthread_mutex_lock(&sim.mutex);
    const int slot = order_slot(queue);
    if (slot >= 0 && !order_queues[slot].gate) {
      order_queues[slot].gate = turn->gate;
      kept = NULL;
    }
    pthread_mutex_unlock(&sim.mutex);
  } else if (code == CL_SUCCESS && turn->event) {
    order_overtake(queue, *turn->event);
    order_release(queue);
  }
  order_open(kept); /* nobody else will */
  if (code == CL_SUCCESS && turn->own) sim.real.clReleaseEvent(turn->own);
  return code;
}

cl_int sim_read(cl_command_queue queue, cl_mem memory, cl_bool blocking, size_t offset, size_t bytes, void *host,
                cl_uint waits, const cl_event *wait_list, cl_event *event) {
  sim_turn turn;
  sim_order_begin(queue, waits, wait_list, event, &turn);
  return sim_order_end(queue, &turn,
                       sim.real.clEnqueueReadBuffer(queue, memory, blocking, offset, bytes, host, turn.waits,
                                                    turn.wait_list, turn.event));
}

cl_int sim_launch(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions, const size_t *offset,
                  const size_t *global, const size_t *local, cl_uint waits, const cl_event *wait_list,
                  cl_event *event) {
  sim_turn turn;
  sim_order_begin(queue, waits, wait_list, event, &turn);
  return sim_order_end(queue, &turn,
                       sim.real.clEnqueueNDRangeKernel(queue, kernel, dimensions, offset, global, local, turn.waits,
                                                       turn.wait_list, turn.event));
}

cl_int sim_marker(cl_command_queue queue, cl_uint waits, const cl_event *wait_list, cl_event *event) {
  const cl_int code = sim.real.clEnqueueMarkerWithWaitList(queue, waits, wait_list, event);
  order_release(NULL);
  return code;
}

cl_int sim_barrier(cl_command_queue queue, cl_uint waits, const cl_event *wait_list, cl_event *event) {
  const cl_int code = sim.real.clEnqueueBarrierWithWaitList(queue, waits, wait_list, event);
  order_release(NULL);
  return code;
}

void *sim_map(cl_command_queue queue, cl_mem memory, cl_bool blocking, cl_map_flags flags, size_t offset, size_t bytes,
              cl_uint waits, const cl_event *wait_list, cl_event *event, cl_int *errcode) {
  order_release(NULL);
  return sim.real.clEnqueueMapBuffer(queue, memory, blocking, flags, offset, bytes, waits, wait_list, event, errcode);
}

cl_int sim_svm_map(cl_command_queue queue, cl_bool blocking, cl_map_flags flags, void *pointer, size_t bytes,
                   cl_uint waits, const cl_event *wait_list, cl_event *event) {
  order_release(NULL);
  return sim.real.clEnqueueSVMMap(queue, blocking, flags, pointer, bytes, waits, wait_list, event);
}

cl_int sim_finish(cl_command_queue queue) {
  order_release(NULL);
  return sim.real.clFinish(queue);
}

cl_int sim_wait(cl_uint count, const cl_event *events) {
  order_release(NULL);
  return sim.real.clWaitForEvents(count, events);
}

cl_int sim_event_info(cl_event subject, cl_event_info what, size_t bytes, void *value, size_t *value_bytes) {
  if (what == CL_EVENT_COMMAND_EXECUTION_STATUS) order_release(NULL);
  return sim.real.clGetEventInfo(subject, what, bytes, value, value_bytes);
}

cl_int sim_release_queue(cl_command_queue queue) {
  order_release(NULL);
  return sim.real.clReleaseCommandQueue(queue);
}
