#include "template_stream.h"

#include "template_device.h"

typedef struct template_stream { /* put your queue here */
  int nothing;
} template_stream;

gm_status template_stream_create(void *device, void **out_stream, gm_stream_kind *out_kind, gm_error *err) {
  template_stream *stream = template_take(((template_device *)device)->services, sizeof *stream);
  if (!stream) return template_fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "stream_create", "no host memory");
  *out_stream = stream;
  *out_kind = GM_STREAM_FIFO; /* be honest: gm inserts waits and barriers by this kind */
  return GM_OK;
}

void template_stream_close(void *device, void *stream, gm_close_mode mode) {
  (void)mode;
  const gm_services *services = ((template_device *)device)->services;
  services->release(services->user, stream, sizeof(template_stream));
}

gm_status template_stream_done(void *device, void *stream, gm_error *err) {
  (void)device, (void)stream, (void)err;
  return GM_OK;
}

gm_status template_point_record(void *device, void *stream, gm_backend_point *out, gm_error *err) {
  (void)device, (void)stream, (void)err;
  *out = (gm_backend_point){0};
  return GM_OK;
}

gm_status template_point_done(void *device, const gm_backend_point *point, bool *out, gm_error *err) {
  (void)device, (void)point, (void)err;
  *out = true;
  return GM_OK;
}

gm_status template_point_wait(void *device, const gm_backend_point *point, uint64_t timeout_ns, gm_error *err) {
  (void)device, (void)point, (void)timeout_ns, (void)err;
  return GM_OK;
}

gm_status template_point_wait_on(void *device, void *stream, const gm_backend_point *point, gm_error *err) {
  (void)device, (void)stream, (void)point, (void)err;
  return GM_OK;
}

void template_point_release(void *device, const gm_backend_point *point, gm_close_mode mode) {
  (void)device, (void)point, (void)mode;
}
