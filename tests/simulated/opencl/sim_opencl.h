/* Inside the simulated OpenCL driver: the real loader behind a script (../shim/README.md). Every entry of gm's table is
 * exported, counts its calls and can fail; some are changed on the way. */
#ifndef GM_TESTS_SIMULATED_OPENCL_SIM_OPENCL_H
#define GM_TESTS_SIMULATED_OPENCL_SIM_OPENCL_H

#include <pthread.h>

#include "backends/opencl/opencl_syms.h"
#include "simulated/shim/script.h"

enum { SIM_PLATFORMS = 4, SIM_DEVICES = 64 };

/* The objects that are handed out as a cl_platform_id and a cl_device_id. */
typedef struct sim_platform {
  cl_platform_id real;
  uint32_t index;
} sim_platform;

typedef struct sim_device {
  cl_device_id real;
  uint32_t index;
  sim_platform *platform;
  uint64_t held;    /* bytes of live buffers */
  uint64_t touched; /* of them, those that a command has used */
} sim_device;

typedef struct sim_state {
  gm__opencl_syms real;
  shim_script script; /* read when gm starts the driver */
  pthread_mutex_t mutex;
  uint64_t commands; /* enqueued so far */
  sim_platform platforms[SIM_PLATFORMS];
  sim_device devices[SIM_PLATFORMS][SIM_DEVICES];
} sim_state;

extern sim_state sim;

/* The entry that replaces the real one; NULL: the real one. */
extern const gm__opencl_syms sim_play;
extern const gm__opencl_usm sim_usm;

void *sim_extension(cl_platform_id platform, const char *entry);

/* `bytes` of `answer` as OpenCL gives them out. */
cl_int sim_reply(const void *answer, size_t answer_bytes, size_t bytes, void *value, size_t *value_bytes);

/* sim_device.c */
cl_int sim_get_platforms(cl_uint capacity, cl_platform_id *ids, cl_uint *count);
cl_int sim_get_platform_info(cl_platform_id platform, cl_platform_info what, size_t bytes, void *value,
                             size_t *value_bytes);
cl_int sim_get_devices(cl_platform_id platform, cl_device_type type, cl_uint capacity, cl_device_id *ids,
                       cl_uint *count);
sim_device *sim_device_of(cl_device_id id);

/* sim_answer.c */
cl_int sim_get_device_info(cl_device_id id, cl_device_info what, size_t bytes, void *value, size_t *value_bytes);
uint64_t sim_total(const sim_device *device);
uint64_t sim_largest(const sim_device *device);
uint64_t sim_alignment(const sim_device *device); /* bytes; 0: not known */

/* sim_context.c: contexts and queues, whose devices are the played ones. */
cl_context sim_create_context(const cl_context_properties *properties, cl_uint count, const cl_device_id *devices,
                              void(CL_CALLBACK *notify)(const char *, const void *, size_t, void *), void *user,
                              cl_int *errcode);
cl_int sim_get_context_info(cl_context context, cl_context_info what, size_t bytes, void *value, size_t *value_bytes);
cl_int sim_build(cl_program program, cl_uint count, const cl_device_id *devices, const char *options,
                 void(CL_CALLBACK *notify)(cl_program, void *), void *user);
cl_command_queue sim_create_queue(cl_context context, cl_device_id device, cl_command_queue_properties properties,
                                  cl_int *errcode);
cl_int sim_get_queue_info(cl_command_queue queue, cl_command_queue_info what, size_t bytes, void *value,
                          size_t *value_bytes);
sim_device *sim_context_device(cl_context context); /* the first one; NULL: not made here */

/* sim_memory.c */
cl_mem sim_create_buffer(cl_context context, cl_mem_flags flags, size_t bytes, void *host, cl_int *errcode);
cl_mem sim_create_sub_buffer(cl_mem memory, cl_mem_flags flags, cl_buffer_create_type type, const void *region,
                             cl_int *errcode);
cl_int sim_release_memory(cl_mem memory);
cl_int sim_write(cl_command_queue queue, cl_mem memory, cl_bool blocking, size_t offset, size_t bytes, const void *host,
                 cl_uint waits, const cl_event *wait_list, cl_event *event);
cl_int sim_fill(cl_command_queue queue, cl_mem memory, const void *pattern, size_t pattern_bytes, size_t offset,
                size_t bytes, cl_uint waits, const cl_event *wait_list, cl_event *event);
cl_int sim_copy(cl_command_queue queue, cl_mem src, cl_mem dst, size_t src_offset, size_t dst_offset, size_t bytes,
                cl_uint waits, const cl_event *wait_list, cl_event *event);
cl_int sim_copy_rect(cl_command_queue queue, cl_mem src, cl_mem dst, const size_t *src_origin, const size_t *dst_origin,
                     const size_t *region, size_t src_row_pitch, size_t src_slice_pitch, size_t dst_row_pitch,
                     size_t dst_slice_pitch, cl_uint waits, const cl_event *wait_list, cl_event *event);
/* The account of a handle or pointer: is there room, it is made, it is gone. */
bool sim_room_for(const sim_device *device, uint64_t bytes);
void sim_account(const void *handle, sim_device *device, uint64_t bytes);
void sim_unaccount(const void *handle);
bool sim_touch(const void *handle); /* is there room for what a command will touch? */

/* sim_svm.c: memory at an address, real and counted. */
void *sim_svm_alloc(cl_context context, cl_svm_mem_flags flags, size_t bytes, cl_uint align);
void sim_svm_free(cl_context context, void *pointer);

/* sim_order.c: on an out-of-order queue every other command is overtaken by the next. A command is enqueued between
 * sim_order_begin, which may give it an event to wait for, and sim_order_end. */
typedef struct sim_turn {
  cl_event gate; /* this command is held until it is set */
  cl_uint waits;
  const cl_event *wait_list;
  cl_event *event; /* where the command's event goes */
  cl_event own;    /* there, if nobody else asked */
} sim_turn;
void sim_order_note(cl_command_queue queue, cl_command_queue_properties properties);
void sim_order_begin(cl_command_queue queue, cl_uint waits, const cl_event *wait_list, cl_event *event, sim_turn *out);
cl_int sim_order_end(cl_command_queue queue, sim_turn *turn, cl_int code);
cl_int sim_launch(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions, const size_t *offset,
                  const size_t *global, const size_t *local, cl_uint waits, const cl_event *wait_list, cl_event *event);
cl_int sim_read(cl_command_queue queue, cl_mem memory, cl_bool blocking, size_t offset, size_t bytes, void *host,
                cl_uint waits, const cl_event *wait_list, cl_event *event);
cl_int sim_marker(cl_command_queue queue, cl_uint waits, const cl_event *wait_list, cl_event *event);
cl_int sim_barrier(cl_command_queue queue, cl_uint waits, const cl_event *wait_list, cl_event *event);
void *sim_map(cl_command_queue queue, cl_mem memory, cl_bool blocking, cl_map_flags flags, size_t offset, size_t bytes,
              cl_uint waits, const cl_event *wait_list, cl_event *event, cl_int *errcode);
cl_int sim_svm_map(cl_command_queue queue, cl_bool blocking, cl_map_flags flags, void *pointer, size_t bytes,
                   cl_uint waits, const cl_event *wait_list, cl_event *event);
cl_int sim_finish(cl_command_queue queue);
cl_int sim_wait(cl_uint count, const cl_event *events);
cl_int sim_event_info(cl_event subject, cl_event_info what, size_t bytes, void *value, size_t *value_bytes);
cl_int sim_release_queue(cl_command_queue queue);

/* sim_pass.c */
void sim_pass_find(const char *name, void *out);

#endif
