/* Between processes, as far as one process can see it: what is exported is opened again here, where the kind allows
 * that. tests/process/process_share.c has the other process. */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "cts/cts.h"

enum { SHARE_BYTES = 70001 };

typedef void (*share_run)(cts *t, const gm_memory *memory, const gm_shared *shared);

static bool share_is_descriptor(gm_share_kind kind) { return kind == GM_SHARE_FD || kind == GM_SHARE_DMABUF; }

/* Memory made for the kind; given back after the case. */
static gm_status share_memory(cts *t, uint32_t type, gm_share_kind kind, gm_memory *out) {
  const gm_memory_params params = {.struct_size = sizeof params, .type = type, .bytes = SHARE_BYTES, .share = kind};
  const gm_status status = t->ops->memory_alloc(t->device, &params, out, &t->err);
  if (status == GM_OK) t->memories[t->memory_count++] = *out;
  return status;
}

static void share_close_descriptor(const gm_shared *shared) {
  if (share_is_descriptor(shared->kind)) close(shared->fd);
}

static void share_with(cts *t, uint32_t type, gm_share_kind kind, share_run run) {
  gm_memory memory;
  gm_shared shared = {.struct_size = sizeof shared};
  CTS_OK(t, share_memory(t, type, kind, &memory));
  const gm_status status = t->ops->share_export(t->device, &memory, kind, &shared, &t->err);
  if (status == GM_ERR_NOT_SUPPORTED && kind == GM_SHARE_IPC) { /* some systems tell only when they are asked */
    cts_skip(t, "the system shares no ordinary memory");
    return;
  }
  CTS_IS(t, status, GM_OK);
  run(t, &memory, &shared);
  share_close_descriptor(&shared);
}

/* Each type and each kind that it says it has. */
static void share_each(cts *t, share_run run) {
  uint32_t kinds = 0;
  for (uint32_t type = 0; type < t->type_count; type++) {
    for (int kind = GM_SHARE_IPC; kind <= GM_SHARE_DMABUF && !t->failed; kind++) {
      if (!(t->types[type].share_kinds >> kind & 1)) continue;
      share_with(t, type, (gm_share_kind)kind, run);
      cts_clean(t, GM_CLOSE_NORMAL);
      kinds++;
    }
  }
  CTS_CHECK(t, kinds > 0 || t->failed); /* the device says that it shares */
}

static void share_check_words(cts *t, const gm_memory *memory, const gm_shared *shared) {
  CTS_CHECK(t, shared->kind != GM_SHARE_NONE && shared->bytes >= SHARE_BYTES && shared->bytes == memory->bytes);
  CTS_CHECK(t, shared->offset <= shared->whole_bytes && shared->bytes <= shared->whole_bytes - shared->offset);
  if (!share_is_descriptor(shared->kind)) {
    CTS_CHECK(t, shared->fd == -1);
    return;
  }
  CTS_CHECK(t, shared->fd >= 0 && fcntl(shared->fd, F_GETFD) >= 0);
}

static void share_exports(cts *t) { share_each(t, share_check_words); }

/* Not what a type does not say that it has, and not another kind than memory was made for. */
static void share_only_what_it_says(cts *t) {
  for (uint32_t type = 0; type < t->type_count; type++) {
    const uint32_t kinds = t->types[type].share_kinds;
    CTS_CHECK(t, !(kinds & ~(uint32_t)(1u << GM_SHARE_IPC | 1u << GM_SHARE_FD | 1u << GM_SHARE_DMABUF)));
    for (int kind = GM_SHARE_IPC; kind <= GM_SHARE_DMABUF + 1; kind++) {
      gm_memory memory;
      gm_shared shared = {.struct_size = sizeof shared};
      if (kinds >> kind & 1) continue;
      CTS_CHECK(t, share_memory(t, type, (gm_share_kind)kind, &memory) != GM_OK);
      if (!cts_memory(t, type, SHARE_BYTES, &memory)) return;
      CTS_CHECK(t, t->ops->share_export(t->device, &memory, (gm_share_kind)kind, &shared, &t->err) != GM_OK);
    }
  }
}

static void share_see(cts *t, const gm_memory *mine, const gm_memory *theirs, uint64_t salt) {
  static unsigned char want[SHARE_BYTES], got[SHARE_BYTES];
  void *stream;
  t->random += salt;
  if (!cts_stream(t, &stream)) return;
  cts_noise(t, want, sizeof want);
  CTS_OK(t, t->ops->copy_to_device(t->device, stream, mine, 0, want, sizeof want, NULL, &t->err));
  CTS_OK(t, t->ops->copy_to_host(t->device, stream, theirs, 0, got, sizeof got, NULL, &t->err));
  cts_same(t, got, want, sizeof want, "seen through an import");
}

/* Twice at a time, as two processes would; the descriptor is not the import's. */
static void share_opens(cts *t, const gm_memory *memory, const gm_shared *shared) {
  gm_memory first, second;
  const gm_status status = t->ops->share_import(t->device, shared, &first, &t->err);
  if (status != GM_OK && shared->kind == GM_SHARE_IPC) return; /* its exporter need not be able to open it */
  CTS_IS(t, status, GM_OK);
  CTS_CHECK(t, first.handle != 0 && first.bytes == shared->bytes && first.wrapped);
  CTS_OK(t, t->ops->share_import(t->device, shared, &second, &t->err));
  if (share_is_descriptor(shared->kind)) {
    CTS_CHECK(t, fcntl(shared->fd, F_GETFD) >= 0);
  }
  share_see(t, memory, &first, 1);
  share_see(t, &second, memory, 2);
  CTS_OK(t, t->ops->share_close(t->device, &second, GM_CLOSE_NORMAL, &t->err));
  share_see(t, &first, memory, 3);
  CTS_OK(t, t->ops->share_close(t->device, &first, GM_CLOSE_NORMAL, &t->err));
}

static void share_imports(cts *t) { share_each(t, share_opens); }

static bool share_refuses(cts *t, const gm_shared *wrong, const char *what) {
  gm_memory memory, untouched;
  memset(&memory, 0x5a, sizeof memory);
  untouched = memory;
  const gm_status status = t->ops->share_import(t->device, wrong, &memory, &t->err);
  return cts_check(t, status != GM_OK && memcmp(&memory, &untouched, sizeof memory) == 0, what, __FILE__, __LINE__);
}

/* The words of another process are input. */
static void share_bad_words(cts *t, const gm_memory *memory, const gm_shared *shared) {
  gm_shared wrong[8];
  (void)memory;
  for (int i = 0; i < 8; i++) wrong[i] = *shared;
  wrong[0].struct_size = 8;
  wrong[1].kind = GM_SHARE_NONE;
  wrong[2].kind = (gm_share_kind)77;
  wrong[3].bytes = 0;
  wrong[4].offset = UINT64_MAX;
  wrong[5].offset = shared->whole_bytes;
  wrong[6].bytes = UINT64_MAX - 5;
  wrong[7].whole_bytes = wrong[7].bytes = UINT64_MAX / 2 + 1;
  static const char *const what[] = {"struct_size", "kind 0",     "kind 77",    "no bytes",
                                     "an offset",   "its offset", "many bytes", "a huge whole"};
  for (int i = 0; i < 8; i++) {
    if (!share_refuses(t, &wrong[i], what[i])) return;
  }
  if (!share_is_descriptor(shared->kind)) return;
  wrong[0] = *shared;
  wrong[0].fd = -1;
  if (!share_refuses(t, &wrong[0], "no descriptor")) return;
  if (t->info.api == GM_API_VULKAN) return; /* its drivers report the next one as misuse; its own tests have it */
  wrong[0].fd = open("/dev/null", O_RDWR | O_CLOEXEC);
  share_refuses(t, &wrong[0], "a descriptor of something else");
  close(wrong[0].fd);
}

static void share_wrong_input(cts *t) { share_each(t, share_bad_words); }

/* Physical memory, shared with ourselves. */
static void share_virtual_memory(cts *t) {
  const gm_vmm_props props = {.shareable = true};
  const gm_backend_ops *ops = t->ops;
  gm_shared shared = {.struct_size = sizeof shared};
  uint64_t granule = 0, first = 0, second = 0;
  CTS_OK(t, ops->vmm_granularity(t->device, &props, &granule, &t->err));
  const gm_status made = ops->vmm_create(t->device, &props, granule, &first, &t->err);
  if (made == GM_ERR_NOT_SUPPORTED) {
    cts_skip(t, "physical memory without an address is not shared");
    return;
  }
  CTS_IS(t, made, GM_OK);
  CTS_OK(t, ops->share_export_vmm(t->device, first, granule, &shared, &t->err));
  CTS_CHECK(t, shared.kind == GM_SHARE_FD && shared.fd >= 0 && shared.bytes == granule);
  CTS_OK(t, ops->share_import_vmm(t->device, &shared, &second, &t->err));
  CTS_CHECK(t, second != 0 && fcntl(shared.fd, F_GETFD) >= 0);
  close(shared.fd);
  CTS_OK(t, ops->vmm_destroy(t->device, second, granule, GM_CLOSE_NORMAL, &t->err));
  CTS_OK(t, ops->vmm_destroy(t->device, first, granule, GM_CLOSE_NORMAL, &t->err));
}

static const cts_case share_cases[] = {
    {"share.exports", share_exports, CTS_SHARE},
    {"share.only_what_it_says", share_only_what_it_says, CTS_SHARE},
    {"share.imports", share_imports, CTS_SHARE | CTS_CONTENTS},
    {"share.wrong_input", share_wrong_input, CTS_SHARE},
    {"share.virtual_memory", share_virtual_memory, CTS_SHARE | CTS_VMM},
};
const cts_suite cts_share_suite = {share_cases, sizeof share_cases / sizeof share_cases[0]};
