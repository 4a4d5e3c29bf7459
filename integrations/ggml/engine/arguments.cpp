// llama.cpp's own parser of command lines, without a model.
//
//   arguments PROGRAM WORD...   reads a command line as PROGRAM does, which is llama-cli or llama-server. Exit code: 0
//   it is
//                               accepted, 1 it is not, and standard error has the reason
//   arguments list              prints what both accept: "PROGRAM WORD KIND", where KIND is none, int, text or two. A
//   line
//                               "PROGRAM WORD = VALUE" has a value that is accepted where not every text is, and
//                               "PROGRAM WORD < COUNT" the most elements of a list
#include <cstdio>
#include <cstring>
#include <exception>
#include <string>

#include <arg.h>
#include <common.h>
#include <ggml.h>

static enum llama_example example_of(const char *program) {
  return std::strcmp(program, "llama-server") == 0 ? LLAMA_EXAMPLE_SERVER : LLAMA_EXAMPLE_CLI;
}

static bool accepts(const common_arg &option, const std::string &value) {
  common_params params;
  try {
    option.handler_string(params, value);
    return true;
  } catch (const std::exception &) {
    return false;
  }
}

// Options that were removed are still known, and refuse every value.
static bool is_removed(const common_arg &option) {
  common_params params;
  try {
    if (option.handler_int) option.handler_int(params, 1);
    return false;
  } catch (const std::exception &) {
    return true;
  }
}

static void list_values(const char *program, const char *word, const common_arg &option) {
  for (const char *value : {"on", "off", "auto"}) {
    if (accepts(option, value)) std::printf("%s %s = %s\n", program, word, value);
  }
  for (int type = 0; type < GGML_TYPE_COUNT; type++) {
    const char *name = ggml_type_name((enum ggml_type)type);
    if (name && *name && accepts(option, name)) std::printf("%s %s = %s\n", program, word, name);
  }
}

static void list_count(const char *program, const char *word, const common_arg &option) {
  std::string value = "1";
  int most = 0;
  for (; most < 1000 && accepts(option, value); most++) value += ",1";
  std::printf("%s %s < %d\n", program, word, most + 1);
}

static void list_word(const char *program, const char *word, const common_arg &option) {
  if (is_removed(option)) return;
  const char *kind = option.handler_int       ? "int"
                     : option.handler_string  ? "text"
                     : option.handler_str_str ? "two"
                                              : "none";
  std::printf("%s %s %s\n", program, word, kind);
  if (!option.handler_string) return;
  const bool is_closed =
      option.value_hint && (std::strcmp(option.value_hint, "TYPE") == 0 || option.value_hint[0] == '[');
  if (is_closed) list_values(program, word, option);
  if (option.value_hint && std::strncmp(option.value_hint, "N0,N1", 5) == 0) list_count(program, word, option);
}

static void list(const char *program) {
  common_params params;
  auto context = common_params_parser_init(params, example_of(program), nullptr);
  for (const common_arg &option : context.options) {
    for (const char *word : option.args) list_word(program, word, option);
    for (const char *word : option.args_neg) list_word(program, word, option);
  }
}

int main(int argc, char **argv) {
  if (argc == 2 && std::strcmp(argv[1], "list") == 0) {
    list("llama-cli");
    list("llama-server");
    return 0;
  }
  if (argc < 2) return 2;
  common_params params;
  return common_params_parse(argc - 1, argv + 1, params, example_of(argv[1])) ? 0 : 1;
}
