#include "core/context/config_set.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/alloc.h"
#include "core/base/env.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "core/context/config_keys.h"

enum { CONFIG_FILE_MAX = 65536 };

typedef struct config_preset_value {
  const char *preset, *key, *value;
} config_preset_value;

static const config_preset_value config_presets[] = {
    {"inference", "memory_fraction", "0.95"},
    {"inference", "track_allocations", "false"},
    {"training", "memory_fraction", "0.85"},
    {"training", "min_free_bytes", "1G"},
    {"training", "track_allocations", GM__CONFIG_TRACK},
    {"constrained", "memory_fraction", "0.7"},
    {"constrained", "max_pooled_per_bucket", "2"},
    {"constrained", "segment_size", "16M"},
    {"constrained", "cache.stream_local", "16"},
    {"constrained", "cache.global", "64"},
    {"constrained", "cleanup.threshold", "0.7"},
    {"constrained", "track_allocations", "false"},
};

/* A key that has no effect yet says so, whoever sets it. */
static void config_say_later(const gm__config *config, const gm_config_key *key, const char *name) {
  if (!key->effective) gm__log(config->services, GM_LOG_WARN, "gm: %s: the feature comes later", name);
}

/* Take over what a file or a preset says when all of it was understood, else let go of it. */
static void config_finish(gm__config *config, gm_config_source source, char **texts, bool good) {
  for (size_t i = 0; i < gm__config_key_count(); i++) {
    if (good && texts[i]) {
      gm__config_store(config, i, source, texts[i]);
      if (source == GM_CONFIG_FILE) config_say_later(config, gm_config_key_at(i), gm_config_key_at(i)->name);
    } else {
      gm__config_release_text(config, texts[i]);
    }
  }
}

static gm_status config_read_preset(const gm__config *config, const char *preset, char **texts, gm_error *err) {
  bool known = false;
  for (size_t i = 0; i < sizeof config_presets / sizeof *config_presets; i++) {
    const config_preset_value *value = &config_presets[i];
    if (strcmp(value->preset, preset) != 0) continue;
    known = true;
    gm__config_change change = {value->key, value->value, preset, GM_CONFIG_PRESET};
    size_t index = 0;
    char *text = NULL;
    gm_status status = gm__config_parse(config, &change, &index, &text, err);
    if (status != GM_OK) return status;
    texts[index] = text; /* a preset has a key once */
  }
  if (known) return GM_OK;
  return gm__bad_argument(err, "preset", "no preset \"%s\"; there are inference, training and constrained", preset);
}

gm_status gm__config_apply_preset(gm__config *config, const char *preset, gm_error *err) {
  char **texts = gm__alloc_array(config->services, gm__config_key_count(), sizeof *texts);
  if (!texts) return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "preset", "no host memory for preset %s", preset);
  gm_status status = config_read_preset(config, preset, texts, err);
  config_finish(config, GM_CONFIG_PRESET, texts, status == GM_OK);
  gm__release(config->services, texts, gm__config_key_count() * sizeof *texts);
  return status;
}

/* The whole file, terminated, into `text` of CONFIG_FILE_MAX bytes. O_NONBLOCK: a pipe must not hang the caller. */
static gm_status config_read_file(const char *path, char *text, gm_error *err) {
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) {
    gm_status status = errno == ENOENT ? GM_ERR_NOT_FOUND : GM_ERR_IO;
    return gm__fail_native(err, status, errno, "open", "configuration file %s: %s", path, strerror(errno));
  }
  struct stat info;
  gm_status status = GM_OK;
  size_t used = 0;
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode) || info.st_size >= CONFIG_FILE_MAX) {
    status = gm__fail(err, GM_ERR_IO, "open", "configuration file %s is no regular file below 64 KiB", path);
  }
  while (status == GM_OK) {
    ssize_t got = read(fd, text + used, CONFIG_FILE_MAX - 1 - used);
    if (got == 0) break;
    if (got > 0) {
      used += (size_t)got;
    } else if (errno != EINTR) {
      status = gm__fail_native(err, GM_ERR_IO, errno, "read", "configuration file %s: %s", path, strerror(errno));
    }
  }
  close(fd);
  text[used] = '\0';
  if (status == GM_OK && strlen(text) < used) {
    status = gm__bad_argument(err, "configuration", "%s: byte %zu is 0, not text", path, strlen(text));
  }
  return status;
}

static char *config_trim(char *text) {
  text += strspn(text, " \t\r");
  size_t length = strlen(text);
  while (length > 0 && strchr(" \t\r", text[length - 1])) length--;
  text[length] = '\0';
  return text;
}

/* One line, which is changed, into the texts of the file. Empty lines and comments are fine. */
static gm_status config_apply_line(gm__config *config, char *line, const char *where, char **texts, gm_error *err) {
  line[strcspn(line, "#")] = '\0';
  line = config_trim(line);
  if (!line[0]) return GM_OK;
  char *equals = strchr(line, '=');
  if (!equals) return gm__bad_argument(err, "configuration", "%s: \"%s\" is not `key = value`", where, line);
  *equals = '\0';
  gm__config_change change = {config_trim(line), config_trim(equals + 1), where, GM_CONFIG_FILE};
  size_t index = 0;
  char *copy = NULL;
  gm_status status = gm__config_parse(config, &change, &index, &copy, err);
  if (status != GM_OK) return status;
  gm__config_release_text(config, texts[index]); /* a later line wins */
  texts[index] = copy;
  return GM_OK;
}

static gm_status config_apply_lines(gm__config *config, char *text, const char *path, char **texts, gm_error *err) {
  unsigned number = 1;
  for (char *line = text; line; number++) {
    char *end = strchr(line, '\n');
    if (end) *end = '\0';
    char where[160];
    snprintf(where, sizeof where, "%.128s:%u", path, number);
    gm_status status = config_apply_line(config, line, where, texts, err);
    if (status != GM_OK) return status;
    line = end ? end + 1 : NULL;
  }
  return GM_OK;
}

gm_status gm__config_apply_file(gm__config *config, const char *path, gm_error *err) {
  char *text = gm__alloc(config->services, CONFIG_FILE_MAX);
  char **texts = gm__alloc_array(config->services, gm__config_key_count(), sizeof *texts);
  gm_status status = GM_ERR_OUT_OF_HOST_MEMORY;
  if (text && texts) {
    status = config_read_file(path, text, err);
    if (status == GM_OK) status = config_apply_lines(config, text, path, texts, err);
    config_finish(config, GM_CONFIG_FILE, texts, status == GM_OK);
  } else {
    gm__fail(err, status, "gm_config_load", "no host memory to read %s", path);
  }
  gm__release(config->services, texts, gm__config_key_count() * sizeof *texts);
  gm__release(config->services, text, CONFIG_FILE_MAX);
  return status;
}

extern char **environ;

/* Variables of gm that are no configuration keys: one library and one list of switches for each backend, and these. */
static bool config_is_other_variable(const char *name, size_t length) {
  static const char *const others[] = {"GM_CONFIG", "GM_BACKENDS", "GM_PROBE_HELPER", "GM_REQUIRE_BACKENDS"};
  static const char *const ends[] = {"_LIBRARY", "_OPTIONS"};
  for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
    if (strlen(others[i]) == length && strncmp(others[i], name, length) == 0) return true;
  }
  for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
    size_t tail = strlen(ends[i]);
    if (length > tail + 3 && strncmp(name + length - tail, ends[i], tail) == 0) return true;
  }
  return false;
}

static bool config_is_key_variable(const char *name, size_t length) {
  for (size_t i = 0; i < gm__config_key_count(); i++) {
    const char *variable = gm_config_key_at(i)->environment;
    if (strlen(variable) == length && strncmp(variable, name, length) == 0) return true;
  }
  return false;
}

static void config_log_unknown_variables(gm__config *config) {
  for (char **entry = environ; entry && *entry; entry++) {
    size_t length = strcspn(*entry, "=");
    if (strncmp(*entry, "GM_", 3) != 0 || config_is_key_variable(*entry, length)) continue;
    if (config_is_other_variable(*entry, length)) continue;
    const char *near = gm__config_variable_near(*entry, length);
    gm__log(config->services, GM_LOG_WARN, "gm: the environment has %.*s, which is no variable of gm%s%s%s",
            (int)length, *entry, near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
  }
}

gm_status gm__config_apply_environment(gm__config *config, gm_error *err) {
  const char *file = gm__env("GM_CONFIG");
  if (file && file[0]) {
    if (file[0] != '/') return gm__bad_argument(err, "GM_CONFIG", "GM_CONFIG=\"%s\" is no absolute path", file);
    gm_status status = gm__config_apply_file(config, file, err);
    if (status != GM_OK) return status;
  }
  for (size_t i = 0; i < gm__config_key_count(); i++) {
    const gm_config_key *key = gm_config_key_at(i);
    const char *value = gm__env(key->environment);
    if (!value) continue;
    gm__config_change change = {key->name, value, key->environment, GM_CONFIG_ENVIRONMENT};
    gm_status status = gm__config_put(config, &change, err);
    if (status != GM_OK) return status;
    config_say_later(config, key, key->environment);
  }
  config_log_unknown_variables(config);
  return GM_OK;
}
