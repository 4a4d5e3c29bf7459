#include "backends/opencl/opencl_query.h"

#include <string.h>

#include "core/base/alloc.h"
#include "core/base/error.h"

/* No text of OpenCL is near this size. gm does not believe a longer one. */
enum { OPENCL_MAX_TEXT = 1 << 20 };

cl_int gm__opencl_device_value(const gm__opencl_driver *driver, cl_device_id id, cl_device_info what, void *out,
                               size_t bytes) {
  unsigned char value[64];
  size_t answered = 0;
  if (bytes > sizeof value) return CL_INVALID_VALUE;
  const cl_int code = driver->cl.clGetDeviceInfo(id, what, bytes, value, &answered);
  if (code != CL_SUCCESS) return code;
  if (answered != bytes) return CL_INVALID_VALUE;
  memcpy(out, value, bytes);
  return CL_SUCCESS;
}

uint64_t gm__opencl_device_u64(const gm__opencl_driver *driver, cl_device_id id, cl_device_info what,
                               uint64_t otherwise) {
  cl_ulong value = 0;
  if (gm__opencl_device_value(driver, id, what, &value, sizeof value) != CL_SUCCESS) return otherwise;
  return value;
}

cl_uint gm__opencl_device_uint(const gm__opencl_driver *driver, cl_device_id id, cl_device_info what,
                               cl_uint otherwise) {
  cl_uint value = 0;
  if (gm__opencl_device_value(driver, id, what, &value, sizeof value) != CL_SUCCESS) return otherwise;
  return value;
}

/* A terminated text in gm's own memory. `text` NULL: no answer. */
typedef struct opencl_text {
  char *text;
  size_t bytes;
} opencl_text;

typedef union opencl_subject { /* the subject of a question */
  cl_device_id device;
  cl_platform_id platform;
} opencl_subject;

static cl_int opencl_text_ask(const gm__opencl_driver *driver, opencl_subject subject, bool is_device, cl_uint what,
                              size_t bytes, char *out, size_t *answered) {
  if (is_device) return driver->cl.clGetDeviceInfo(subject.device, what, bytes, out, answered);
  return driver->cl.clGetPlatformInfo(subject.platform, what, bytes, out, answered);
}

static gm_status opencl_text_get(const gm__opencl_driver *driver, opencl_subject subject, bool is_device, cl_uint what,
                                 opencl_text *out, gm_error *err) {
  size_t bytes = 0;
  *out = (opencl_text){0};
  if (opencl_text_ask(driver, subject, is_device, what, 0, NULL, &bytes) != CL_SUCCESS) return GM_OK;
  if (bytes == 0 || bytes > OPENCL_MAX_TEXT) return GM_OK;
  char *text = gm__alloc(driver->services, bytes + 1);
  if (!text) {
    return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "clGetDeviceInfo", "no host memory for an answer of %zu bytes",
                    bytes);
  }
  if (opencl_text_ask(driver, subject, is_device, what, bytes, text, NULL) != CL_SUCCESS) {
    gm__release(driver->services, text, bytes + 1);
    return GM_OK;
  }
  text[bytes] = '\0'; /* the driver's own end mark is not relied on */
  *out = (opencl_text){text, bytes + 1};
  return GM_OK;
}

static void opencl_text_copy(const char *text, char *out, size_t capacity) {
  size_t length = 0;
  while (*text == ' ') text++;
  for (; *text && length + 1 < capacity; text++) {
    out[length++] = *text < ' ' || *text > '~' ? '?' : *text;
  }
  while (length > 0 && out[length - 1] == ' ') length--;
  out[length] = '\0';
}

static gm_status opencl_text_answer(const gm__opencl_driver *driver, opencl_subject subject, bool is_device,
                                    cl_uint what, char *out, size_t capacity, gm_error *err) {
  opencl_text text;
  const gm_status status = opencl_text_get(driver, subject, is_device, what, &text, err);
  if (status != GM_OK) return status;
  opencl_text_copy(text.text ? text.text : "", out, capacity);
  gm__release(driver->services, text.text, text.bytes);
  return GM_OK;
}

gm_status gm__opencl_device_text(const gm__opencl_driver *driver, cl_device_id id, cl_device_info what, char *out,
                                 size_t capacity, gm_error *err) {
  return opencl_text_answer(driver, (opencl_subject){.device = id}, true, what, out, capacity, err);
}

gm_status gm__opencl_platform_text(const gm__opencl_driver *driver, cl_platform_id id, cl_platform_info what, char *out,
                                   size_t capacity, gm_error *err) {
  return opencl_text_answer(driver, (opencl_subject){.platform = id}, false, what, out, capacity, err);
}

static bool opencl_text_has_word(const char *text, const char *word) {
  const size_t length = strlen(word);
  for (const char *at = text; (at = strstr(at, word)); at += length) {
    const bool begins = at == text || at[-1] == ' ';
    if (begins && (at[length] == ' ' || at[length] == '\0')) return true;
  }
  return false;
}

gm_status gm__opencl_device_extensions(const gm__opencl_driver *driver, cl_device_id id, const char *const *words,
                                       uint32_t count, uint32_t *out, gm_error *err) {
  opencl_text text;
  const gm_status status =
      opencl_text_get(driver, (opencl_subject){.device = id}, true, CL_DEVICE_EXTENSIONS, &text, err);
  if (status != GM_OK) return status;
  *out = 0;
  for (uint32_t i = 0; i < count && text.text; i++) {
    if (opencl_text_has_word(text.text, words[i])) *out |= 1u << i;
  }
  gm__release(driver->services, text.text, text.bytes);
  return GM_OK;
}
