/* What adoption refuses. That it works is what the whole suite shows on adopted devices. */
#include <string.h>

#include "cts/cts.h"

static void adopt_heads_are_checked(cts *t) {
  const gm_backend_ops *ops = t->ops;
  const gm_api apis[] = {GM_API_OTHER, ops->api};
  for (int i = 0; i < 2; i++) { /* another API's; ours, but with nothing behind the head */
    const gm_native_device device = {.struct_size = sizeof device, .api = apis[i]};
    const gm_native_stream stream = {.struct_size = sizeof stream, .api = apis[i]};
    const gm_native_point point = {.struct_size = sizeof point, .api = apis[i]};
    const gm_native_memory memory = {.struct_size = sizeof memory, .api = apis[i]};
    void *out = t;
    gm_stream_kind kind;
    gm_backend_point got_point;
    gm_memory got_memory;
    CTS_IS(t, ops->device_adopt(t->driver, &device, &out, &t->err), GM_ERR_INVALID_ARGUMENT);
    CTS_IS(t, ops->stream_adopt(t->device, &stream, &out, &kind, &t->err), GM_ERR_INVALID_ARGUMENT);
    CTS_IS(t, ops->point_import(t->device, &point, &got_point, &t->err), GM_ERR_INVALID_ARGUMENT);
    CTS_IS(t, ops->memory_wrap(t->device, &memory, &got_memory, &t->err), GM_ERR_INVALID_ARGUMENT);
    CTS_CHECK(t, out == t);
  }
}

static const cts_case adopt_cases[] = {
    {"adopt.heads_are_checked", adopt_heads_are_checked, CTS_ADOPT},
};
const cts_suite cts_adopt_suite = {adopt_cases, sizeof adopt_cases / sizeof adopt_cases[0]};
