#include "backends/null/null_backend.h"
#include "cts/modes.h"

static const cts_lack null_lack[] = {
    {CTS_CONTENTS, "there is no memory behind a null device: contents are not kept"},
    {CTS_CLOCK, "the time of a null device is virtual"},
    {CTS_MEM_NATIVE, "a simulated device has no native objects"},
    {0, NULL},
};

const cts_mode cts_null_opened = {.backend = "null", .name = "opened", .ops = &gm__null_backend, .lack = null_lack};

/* Work takes virtual time, and there are several cards. */
const cts_mode cts_null_late = {.backend = "null",
                                .name = "late",
                                .ops = &gm__null_backend,
                                .options = "latency=1000,devices=3,capacity=4G,max_alloc=1G",
                                .lack = null_lack};
