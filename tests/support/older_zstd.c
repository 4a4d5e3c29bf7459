/* A libzstd whose mode of literals is gone, as the pages of zstd allow: all else goes to the real library. */
#include <dlfcn.h>
#include <stddef.h>
#include <stdlib.h>

enum { OLDER_LITERALS = 1002 };

typedef union older_call { /* a symbol, as what it is */
  void *symbol;
  void *(*make)(void);
  size_t (*end)(void *context);
  size_t (*set)(void *context, int parameter, int value);
  size_t (*run)(void *context, void *to, size_t capacity, const void *from, size_t bytes);
  unsigned (*ask)(size_t answer);
} older_call;

static older_call older(const char *name) {
  void *real = dlopen("libzstd.so.1", RTLD_NOW | RTLD_LOCAL);
  older_call call = {.symbol = real ? dlsym(real, name) : NULL};
  if (!call.symbol) abort();
  return call;
}

void *ZSTD_createCCtx(void);
size_t ZSTD_freeCCtx(void *context);
size_t ZSTD_CCtx_setParameter(void *context, int parameter, int value);
size_t ZSTD_compress2(void *context, void *to, size_t capacity, const void *from, size_t bytes);
void *ZSTD_createDCtx(void);
size_t ZSTD_freeDCtx(void *context);
size_t ZSTD_decompressDCtx(void *context, void *to, size_t capacity, const void *from, size_t bytes);
unsigned ZSTD_isError(size_t answer);

void *ZSTD_createCCtx(void) { return older("ZSTD_createCCtx").make(); }
size_t ZSTD_freeCCtx(void *context) { return older("ZSTD_freeCCtx").end(context); }
size_t ZSTD_CCtx_setParameter(void *context, int parameter, int value) {
  if (parameter == OLDER_LITERALS) return (size_t)-40; /* parameter_unsupported */
  return older("ZSTD_CCtx_setParameter").set(context, parameter, value);
}
size_t ZSTD_compress2(void *context, void *to, size_t capacity, const void *from, size_t bytes) {
  return older("ZSTD_compress2").run(context, to, capacity, from, bytes);
}
void *ZSTD_createDCtx(void) { return older("ZSTD_createDCtx").make(); }
size_t ZSTD_freeDCtx(void *context) { return older("ZSTD_freeDCtx").end(context); }
size_t ZSTD_decompressDCtx(void *context, void *to, size_t capacity, const void *from, size_t bytes) {
  return older("ZSTD_decompressDCtx").run(context, to, capacity, from, bytes);
}
unsigned ZSTD_isError(size_t answer) { return older("ZSTD_isError").ask(answer); }
