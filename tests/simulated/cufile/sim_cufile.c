/* cuFile as a script in SIMCUFILE has it, one or several words apart by commas:
 *
 *   hang=CALL, abort=CALL      the call does not return, or ends the process
 *   fail=CALL:ERROR            it answers that error
 *   compat                     there is no nvidia-fs and no P2PDMA: cuFile copies through host memory
 *   p2p                        no nvidia-fs, but P2PDMA
 *   short                      a read brings 4097 bytes at most
 *   read=N                     a read answers N: 0, -1 (errno EIO) or minus one of cuFile's errors
 *
 * Device memory is that of the simulated CUDA driver where the process has loaded it, whose context must be current;
 * else memory of the host. */
#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#define SIM_API __attribute__((visibility("default")))

typedef struct sim_answer {
  int error, cuda;
} sim_answer;

typedef struct sim_descriptor {
  int type;
  union {
    int fd;
    void *handle;
  } of;
  const void *operations;
} sim_descriptor;

typedef struct sim_properties { /* as 1.20 has them */
  struct {
    unsigned major, minor;
    size_t poll, direct;
    unsigned status, control;
  } nvfs;
  unsigned features, cache, per_buffer, pinned, batch, timeout;
} sim_properties;

typedef struct sim_handle {
  int fd;
} sim_handle;

SIM_API sim_answer cuFileDriverOpen(void);
SIM_API sim_answer cuFileDriverGetProperties(sim_properties *out);
SIM_API sim_answer cuFileHandleRegister(void **out, sim_descriptor *of);
SIM_API void cuFileHandleDeregister(void *handle);
SIM_API ssize_t cuFileRead(void *handle, void *base, size_t bytes, off_t at, off_t to);

/* The text that follows `key` in the script; NULL: it is not there. */
static const char *sim_word(const char *key) {
  const char *script = getenv("SIMCUFILE");
  const char *found = script ? strstr(script, key) : NULL;
  return found ? found + strlen(key) : NULL;
}

static sim_answer sim_begin(const char *call) {
  char key[64];
  snprintf(key, sizeof key, "hang=%s", call);
  while (sim_word(key)) pause();
  snprintf(key, sizeof key, "abort=%s", call);
  if (sim_word(key)) abort();
  snprintf(key, sizeof key, "fail=%s:", call);
  const char *error = sim_word(key);
  const int number = error ? atoi(error) : 0;
  return (sim_answer){number, number == 5011 ? 100 : 0};
}

sim_answer cuFileDriverOpen(void) { return sim_begin("open"); }

sim_answer cuFileDriverGetProperties(sim_properties *out) {
  const int played = sim_word("compat") || sim_word("p2p");
  memset(out, 0, sizeof *out);
  out->nvfs.major = played ? 0 : 2;
  out->nvfs.minor = played ? 0 : 20;
  out->nvfs.control = 1u << 1;
  out->features = sim_word("p2p") ? 1u << 4 : 0;
  return sim_begin("properties");
}

sim_answer cuFileHandleRegister(void **out, sim_descriptor *of) {
  const sim_answer answer = sim_begin("register");
  if (answer.error) return answer;
  sim_handle *handle = malloc(sizeof *handle);
  if (!handle || of->type != 1) abort();
  handle->fd = of->of.fd;
  *out = handle;
  return answer;
}

void cuFileHandleDeregister(void *handle) { free(handle); }

/* 0: done. */
static int sim_store(unsigned char *to, const unsigned char *from, size_t bytes) {
  const char *name = getenv("GM_CUDA_LIBRARY");
  void *cuda = name ? dlopen(name, RTLD_NOW | RTLD_NOLOAD) : NULL;
  int (*store)(uint64_t, const void *, uint64_t) = NULL;
  if (!cuda) {
    memcpy(to, from, bytes);
    return 0;
  }
  void *symbol = dlsym(cuda, "simCudaStore");
  memcpy(&store, &symbol, sizeof store);
  const int answer = store((uintptr_t)to, from, bytes);
  dlclose(cuda);
  return answer;
}

ssize_t cuFileRead(void *handle, void *base, size_t bytes, off_t at, off_t to) {
  const sim_handle *file = handle;
  const char *told = sim_word("read=");
  if (told) {
    errno = EIO;
    return atoi(told);
  }
  if (sim_word("short") && bytes > 4097) bytes = 4097;
  /* The real one takes any place. Direct reads do not, so what is between goes through memory of its own. */
  const off_t first = at / 4096 * 4096;
  const size_t before = (size_t)(at - first), room = (before + bytes + 4095) / 4096 * 4096;
  unsigned char *bounce = aligned_alloc(4096, room);
  if (!bounce) abort();
  ssize_t got = pread(file->fd, bounce, room, first);
  got = got > (ssize_t)before ? got - (ssize_t)before : got < 0 ? got : 0;
  if (got > (ssize_t)bytes) got = (ssize_t)bytes;
  if (got > 0 && sim_store((unsigned char *)base + to, bounce + before, (size_t)got)) got = -5011;
  free(bounce);
  return got;
}
