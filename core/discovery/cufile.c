#include "core/discovery/cufile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/error.h"
#include "core/discovery/helper.h"

/* Invariant: every answer of cuFile but success becomes NOT_SUPPORTED with a reason: there is another way to read. */

static const char cufile_op[] = "cufile";
enum { CUFILE_DESCRIPTOR = 1 };

/* --- what cuFile says --- */

static const char *cufile_meaning(int error) {
  switch (error) {
    case 5001: return "nvidia-fs is not loaded, and its compat mode is off";
    case 5004:
    case 5005: return "nvidia-fs is of another version";
    case 5007: return "it does not support this machine";
    case 5008: return "it does not support the file system";
    case 5009: return "it does not support this card";
    case 5011: return "the CUDA driver cannot be initialised (cuInit)";
    case 5018: return "it is no regular file for it";
    case 5025: return "the process may not use nvidia-fs";
    case 5033: return "nvidia-fs cannot be set up";
    case 5034: return "its configuration excludes this file";
    default: return "it failed";
  }
}

/* cuFile looks its drives up there; containers often lack it. */
static const char *cufile_udev(void) {
  return access("/run/udev", R_OK | X_OK) == 0 ? "" : "; /run/udev, which cuFile needs, cannot be read";
}

static gm_status cufile_refuse(const char *call, gm__cufile_answer answer, gm_error *err) {
  return gm__fail_native(err, GM_ERR_NOT_SUPPORTED, answer.error, call, "cuFile: %s (error %d, CUDA %d)%s",
                         cufile_meaning(answer.error), answer.error, answer.cuda, cufile_udev());
}

/* --- the steps --- */

static gm_status cufile_load(const gm_services *services, const char *library, gm__cufile *out, gm_error *err) {
  static const char *const names[] = {"libcufile.so.0", "libcufile.so", NULL};
  static const gm__symbol symbols[] = {{"cuFileDriverOpen", offsetof(gm__cufile_calls, driver_open), true},
                                       {"cuFileDriverGetProperties", offsetof(gm__cufile_calls, properties), true},
                                       {"cuFileHandleRegister", offsetof(gm__cufile_calls, handle_register), true},
                                       {"cuFileHandleDeregister", offsetof(gm__cufile_calls, handle_deregister), true},
                                       {"cuFileRead", offsetof(gm__cufile_calls, read), true}};
  const gm__dynlib_spec spec = {
      .backend = "cufile", .names = names, .path = library, .advice = "install GPUDirect Storage"};
  gm_error why;
  gm_status status = gm__dynlib_open(services, &spec, &out->lib, &why);
  if (status == GM_OK) {
    status = gm__dynlib_resolve(out->lib, symbols, sizeof symbols / sizeof *symbols, &out->calls, NULL, NULL, &why);
  }
  if (status == GM_OK) gm__dynlib_keep(out->lib); /* it has threads */
  if (status == GM_ERR_UNAVAILABLE) return gm__fail(err, GM_ERR_NOT_SUPPORTED, why.op, "%s", why.message);
  if (status && err) *err = why;
  return status;
}

static gm_status cufile_open_driver(const gm__cufile *file, gm_error *err) {
  const gm__cufile_answer answer = file->calls.driver_open();
  if (!answer.error || answer.error == GM__CUFILE_ALREADY_OPEN) return GM_OK;
  return cufile_refuse("cuFileDriverOpen", answer, err);
}

/* Without a way from the drive to the card, cuFile reads into host memory and copies. gm does that better itself. */
static gm_status cufile_check_properties(const gm__cufile *file, gm_error *err) {
  gm__cufile_properties properties;
  memset(&properties, 0, sizeof properties);
  const gm__cufile_answer answer = file->calls.properties(&properties);
  if (answer.error) return cufile_refuse("cuFileDriverGetProperties", answer, err);
  if (properties.major_version || properties.minor_version || properties.features & GM__CUFILE_P2P) return GM_OK;
  return gm__fail(err, GM_ERR_NOT_SUPPORTED, "cuFileDriverGetProperties",
                  "cuFile would only play: there is neither nvidia-fs nor P2PDMA, so it copies through host memory "
                  "(compat mode)%s",
                  cufile_udev());
}

/* A folder cannot be opened for direct reads, so its kind is asked first. A pipe does not wait for its other end. */
static gm_status cufile_open_path(const char *path, int *out, gm_error *err) {
  struct stat about;
  int why = 0;
  if (stat(path, &about) != 0) why = errno;
  if (!why && !S_ISREG(about.st_mode)) return gm__fail(err, GM_ERR_IO, "open", "%.300s: is no regular file", path);
  if (!why) *out = open(path, O_RDONLY | O_DIRECT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  if (*out >= 0) return GM_OK;
  if (!why) why = errno;
  if (why == EINVAL) {
    return gm__fail_native(err, GM_ERR_NOT_SUPPORTED, why, "open", "%.300s: its file system has no direct reads", path);
  }
  return gm__fail_native(err, why == ENOENT || why == ENOTDIR ? GM_ERR_NOT_FOUND : GM_ERR_IO, why, "open", "%.300s: %s",
                         path, strerror(why));
}

static gm_status cufile_open_file(gm__cufile *file, const char *path, gm_error *err) {
  const gm_status status = cufile_open_path(path, &file->fd, err);
  if (status) return status;
  gm__cufile_descriptor of = {.type = CUFILE_DESCRIPTOR, .of.fd = file->fd};
  const gm__cufile_answer answer = file->calls.handle_register(&file->handle, &of);
  if (!answer.error) return GM_OK;
  file->handle = NULL;
  return cufile_refuse("cuFileHandleRegister", answer, err);
}

static gm_status cufile_step(gm__cufile_step step, const gm_services *services, const char *library, const char *path,
                             gm__cufile *file, gm_error *err) {
  switch (step) {
    case GM__CUFILE_LOAD: return cufile_load(services, library, file, err);
    case GM__CUFILE_OPEN: return cufile_open_driver(file, err);
    case GM__CUFILE_PROPERTIES: return cufile_check_properties(file, err);
    case GM__CUFILE_FILE: return cufile_open_file(file, path, err);
    default: return GM_OK;
  }
}

gm_status gm__cufile_open(const gm_services *services, const char *library, const char *path,
                          void (*begin)(void *user, gm__cufile_step step), void *user, gm__cufile *out, gm_error *err) {
  gm__cufile file = {.fd = -1};
  gm_status status = GM_OK;
  for (int step = GM__CUFILE_LOAD; step < GM__CUFILE_DONE && status == GM_OK; step++) {
    if (begin) begin(user, (gm__cufile_step)step);
    status = cufile_step((gm__cufile_step)step, services, library, path, &file, err);
  }
  if (status == GM_OK) *out = file;
  if (status) gm__cufile_close(&file);
  return status;
}

void gm__cufile_close(gm__cufile *file) {
  if (file->handle) file->calls.handle_deregister(file->handle);
  if (file->fd >= 0) close(file->fd);
  gm__dynlib_close(file->lib);
  *file = (gm__cufile){.fd = -1};
}

/* --- the helper: a record before each step, and one with the answer --- */

#define CUFILE_MAGIC 0x31656c69667563ull /* "cufile1" */

typedef struct cufile_record {
  uint64_t magic;
  uint32_t step;
  gm_status status;
  gm_error why;
} cufile_record;

/* A parent that is gone reads nothing; then it does not matter. */
static void cufile_tell(int fd, uint32_t step, gm_status status, const gm_error *why) {
  cufile_record record;
  memset(&record, 0, sizeof record);
  record.magic = CUFILE_MAGIC;
  record.step = step;
  record.status = status;
  if (status) record.why = *why;
  const ssize_t wrote = write(fd, &record, sizeof record); /* less than PIPE_BUF: whole or not at all */
  (void)wrote;
}

static void cufile_begin(void *user, gm__cufile_step step) { cufile_tell(*(const int *)user, step, GM_OK, NULL); }

gm_status gm__cufile_serve(const char *library, const char *path, int fd, gm_error *err) {
  gm__cufile file;
  gm_error why = {.status = GM_OK};
  if (!path || !path[0]) return gm__bad_argument(err, cufile_op, "`path` is missing");
  const gm_status status = gm__cufile_open(NULL, library, path, cufile_begin, &fd, &file, &why);
  if (status == GM_OK) gm__cufile_close(&file);
  cufile_tell(fd, GM__CUFILE_DONE, status, &why);
  return GM_OK;
}

/* Says how the helper ended when it did not answer. */
static gm_status cufile_no_answer(uint32_t step, const gm_error *why, gm_error *err) {
  static const char *const calls[] = {"loading libcufile", "cuFileDriverOpen", "cuFileDriverGetProperties",
                                      "cuFileHandleRegister", "libcufile"};
  const char *call = calls[step <= GM__CUFILE_DONE ? step : GM__CUFILE_DONE];
  if (why->status == GM_ERR_TIMEOUT) {
    return gm__fail(err, GM_ERR_NOT_SUPPORTED, cufile_op, "cuFile hangs: %s took more than %d s in the helper%s", call,
                    GM__CUFILE_LIMIT_MS / 1000, cufile_udev());
  }
  if (why->status == GM_ERR_UNAVAILABLE && why->native_code) {
    return gm__fail_native(err, GM_ERR_NOT_SUPPORTED, why->native_code, cufile_op,
                           "%s ended the helper with signal %d: it would have ended this process too%s", call,
                           (int)why->native_code, cufile_udev());
  }
  if (err) *err = *why;
  return why->status;
}

static gm_status cufile_receive(gm__helper *helper, cufile_record *last, gm_error *err) {
  do {
    cufile_record record;
    const gm_status status = gm__helper_read(helper, &record, sizeof record, err);
    if (status) return status;
    if (record.magic != CUFILE_MAGIC || record.step > GM__CUFILE_DONE || (unsigned)record.status > GM_ERR_DAMAGED) {
      return gm__fail(err, GM_ERR_FORMAT, cufile_op, "the helper is of another gm, or its answer is damaged");
    }
    *last = record;
    gm__helper_limit(helper, GM__CUFILE_LIMIT_MS);
  } while (last->step != GM__CUFILE_DONE);
  return GM_OK;
}

gm_status gm__cufile_probe(const gm_context *ctx, const char *library, const char *path, gm_error *err) {
  const char *const words[GM__HELPER_WORDS] = {cufile_op, library ? library : "", path, NULL};
  cufile_record last = {.step = GM__CUFILE_LOAD};
  gm__helper helper;
  gm_error why = {.status = GM_OK};
  gm_status status = gm__helper_start(ctx, words, GM__CUFILE_LIMIT_MS, &helper, err);
  if (status) return status;
  status = cufile_receive(&helper, &last, &why);
  const gm_status ended = gm__helper_end(&helper, status, &why);
  if (status) {
    why.status = ended;
    return cufile_no_answer(last.step, &why, err);
  }
  last.why.op[sizeof last.why.op - 1] = last.why.message[sizeof last.why.message - 1] = '\0';
  if (!last.status) return GM_OK;
  return gm__fail_native(err, last.status, last.why.native_code, last.why.op, "%s", last.why.message);
}
