// Asks llama.cpp how much memory it would take, without weights and without a card.
//
//   measure tensors KEYS.gguf               the tensors that the loader looks for: "NAME DIMENSION...", one a line
//   measure memory MODEL.gguf SETTING...    a line of JSON for each setting
//
// A setting is "ctx=4096,batch=512,seqs=1,..."; `setting` below has the names and what they are if missing. A setting
// with device=1 puts all layers on a stand-in for a card, which computes nothing. Its buffers are counted by CUDA's
// rules.
#include <ggml-backend-impl.h>
#include <ggml-backend.h>
#include <gguf.h>
#include <llama-ext.h>
#include <llama.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>

namespace {

// ---- a stand-in for a card ----

const size_t CARD_BYTES = size_t(1) << 40, CARD_ALIGNMENT = 128;
const int64_t CARD_ROW = 512;  // elements; CUDA's kernels read whole rows of these from quantised weights

ggml_backend_device card;
ggml_backend_buffer_type card_memory, card_pinned;
ggml_backend_reg card_registry;

bool card_is_ours(ggml_backend_dev_t, ggml_backend_buffer_type_t type) { return type == &card_memory; }

size_t card_alloc_size(ggml_backend_buffer_type_t, const ggml_tensor *tensor) {
  size_t bytes = ggml_nbytes(tensor);
  int64_t rest = tensor->ne[0] % CARD_ROW;
  return ggml_is_quantized(tensor->type) && rest ? bytes + ggml_row_size(tensor->type, CARD_ROW - rest) : bytes;
}

// The engine allocates some memory in spite of no_alloc, such as recurrent state. It is of the host, and counts here.
ggml_backend_buffer_t card_alloc(ggml_backend_buffer_type_t type, size_t size) {
  void *memory = aligned_alloc(CARD_ALIGNMENT, (size / CARD_ALIGNMENT + 1) * CARD_ALIGNMENT);
  if (!memory) return nullptr;
  ggml_backend_buffer_t buffer = ggml_backend_cpu_buffer_from_ptr(memory, size);
  buffer->iface.free_buffer = [](ggml_backend_buffer_t self) { free(self->context); };
  buffer->buft = type;
  return buffer;
}

ggml_backend_t card_backend(ggml_backend_dev_t device, const char *) {
  static uint8_t guid[16] = {'g', 'm', ' ', 's', 't', 'a', 'n', 'd', '-', 'i', 'n', ' ', 'c', 'a', 'r', 'd'};
  ggml_backend_t backend = new ggml_backend{};
  backend->guid = &guid;
  backend->device = device;
  backend->iface.get_name = [](ggml_backend_t) { return "CARD"; };
  backend->iface.free = [](ggml_backend_t self) { delete self; };
  backend->iface.graph_compute = [](ggml_backend_t, ggml_cgraph *) { return GGML_STATUS_FAILED; };
  return backend;
}

void card_props(ggml_backend_dev_t, ggml_backend_dev_props *props) {
  *props = {};
  props->name = props->description = "CARD";
  props->type = GGML_BACKEND_DEVICE_TYPE_GPU;
  props->memory_free = props->memory_total = CARD_BYTES;
  props->caps.host_buffer = true;
}

void card_open() {
  card_registry.api_version = GGML_BACKEND_API_VERSION;
  card_registry.iface.get_name = [](ggml_backend_reg_t) { return "CARD"; };
  card_registry.iface.get_device_count = [](ggml_backend_reg_t) { return size_t(1); };
  card_registry.iface.get_device = [](ggml_backend_reg_t, size_t) -> ggml_backend_dev_t { return &card; };
  card_registry.iface.get_proc_address = [](ggml_backend_reg_t, const char *) -> void * { return nullptr; };

  card.reg = &card_registry;
  card.iface.get_name = card.iface.get_description = [](ggml_backend_dev_t) { return "CARD"; };
  card.iface.get_memory = [](ggml_backend_dev_t, size_t *free, size_t *total) { *free = *total = CARD_BYTES; };
  card.iface.get_type = [](ggml_backend_dev_t) { return GGML_BACKEND_DEVICE_TYPE_GPU; };
  card.iface.get_props = card_props;
  card.iface.init_backend = card_backend;
  card.iface.get_buffer_type = [](ggml_backend_dev_t) { return &card_memory; };
  card.iface.get_host_buffer_type = [](ggml_backend_dev_t) { return &card_pinned; };
  card.iface.supports_op = [](ggml_backend_dev_t, const ggml_tensor *) { return true; };
  card.iface.supports_buft = card_is_ours;

  card_pinned = *ggml_backend_cpu_buffer_type();
  card_pinned.device = &card;
  card_pinned.iface.get_name = [](ggml_backend_buffer_type_t) { return "CARD_Host"; };

  card_memory.device = &card;
  card_memory.iface.get_name = [](ggml_backend_buffer_type_t) { return "CARD"; };
  card_memory.iface.alloc_buffer = card_alloc;
  card_memory.iface.get_alignment = [](ggml_backend_buffer_type_t) { return CARD_ALIGNMENT; };
  card_memory.iface.get_alloc_size = card_alloc_size;
}

// ---- the engine's messages ----

std::string complaint;  // the last error that the engine logged

void on_log(ggml_log_level level, const char *text, void *) {
  fputs(text, stderr);
  if (level != GGML_LOG_LEVEL_ERROR || strstr(text, ": failed to load model")) return;
  complaint.assign(text, strcspn(text, "\n"));
}

std::string quoted(const std::string &text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (c >= ' ') out += c;
  }
  return out + "\"";
}

// ---- what is asked ----

struct setting {
  std::map<std::string, std::string> values;

  explicit setting(const std::string &text) {
    for (size_t begin = 0; begin < text.size();) {
      size_t end = std::min(text.find(',', begin), text.size()), middle = text.find('=', begin);
      values[text.substr(begin, middle - begin)] = text.substr(middle + 1, end - middle - 1);
      begin = end + 1;
    }
  }

  uint32_t number(const char *name, uint32_t otherwise) const {
    auto found = values.find(name);
    return found == values.end() ? otherwise : uint32_t(std::stoul(found->second));
  }

  ggml_type type(const char *name) const {
    auto found = values.find(name);
    for (int type = 0; found != values.end() && type < GGML_TYPE_COUNT; type++) {
      if (found->second == ggml_type_name(ggml_type(type))) return ggml_type(type);
    }
    return GGML_TYPE_F16;
  }

  llama_context_params context() const {
    llama_context_params params = llama_context_default_params();
    params.n_ctx = number("ctx", 4096);
    params.n_batch = params.n_ubatch = number("batch", 512);
    params.n_seq_max = number("seqs", 1);
    params.kv_unified = number("unified", 1);
    params.swa_full = number("swa_full", 0);
    params.flash_attn_type = number("flash", 1) ? LLAMA_FLASH_ATTN_TYPE_ENABLED : LLAMA_FLASH_ATTN_TYPE_DISABLED;
    params.type_k = type("k");
    params.type_v = type("v");
    return params;
  }
};

llama_model *load(const char *path, bool on_card) {
  static ggml_backend_dev_t none[] = {nullptr}, one[] = {&card, nullptr};
  llama_model_params params = llama_model_default_params();
  params.devices = on_card ? one : none;
  params.n_gpu_layers = on_card ? -1 : 0;
  params.no_alloc = true;
  params.load_mode = LLAMA_LOAD_MODE_NONE;
  params.use_extra_bufts = false;
  return llama_model_load_from_file(path, params);
}

void tell(const char *name, const llama_memory_breakdown &memory, size_t llama_memory_breakdown_data::*part) {
  size_t host = 0, device = 0;
  for (const auto &[type, data] : memory) (type == &card_memory ? device : host) += data.*part;
  printf("%s: {\"host\": %zu, \"device\": %zu}, ", quoted(name).c_str(), host, device);
}

void measure(llama_model *model, const setting &asked) {
  complaint = "the engine gives no reason";
  llama_context *context = model ? llama_init_from_model(model, asked.context()) : nullptr;
  if (!context) {
    printf("{\"error\": %s}\n", quoted(complaint).c_str());
    return;
  }
  llama_memory_breakdown memory = llama_get_memory_breakdown(context);
  printf("{");
  tell("weights", memory, &llama_memory_breakdown_data::model);
  tell("cache", memory, &llama_memory_breakdown_data::context);
  tell("compute", memory, &llama_memory_breakdown_data::compute);
  printf("\"context\": %u, \"window\": %d, \"parameters\": %llu}\n", llama_n_ctx(context), llama_model_n_swa(model),
         static_cast<unsigned long long>(llama_model_n_params(model)));
  llama_free(context);
}

int measure_all(const char *path, int count, char **settings) {
  llama_model *models[2] = {nullptr, nullptr};
  for (int i = 0; i < count; i++) {
    setting asked(settings[i]);
    bool on_card = asked.number("device", 1);
    complaint = "the engine gives no reason";
    if (!models[on_card]) models[on_card] = load(path, on_card);
    if (!models[on_card]) {
      printf("{\"refused\": %s}\n", quoted(complaint).c_str());
      return 0;
    }
    measure(models[on_card], asked);
    fflush(stdout);
  }
  return 0;
}

void print_tensor(ggml_tensor *tensor, void *) {
  printf("%s", tensor->name);
  for (int i = 0; i < ggml_n_dims(tensor); i++) printf(" %lld", static_cast<long long>(tensor->ne[i]));
  printf("\n");
}

int print_tensors(const char *path) {
  gguf_init_params params = {true, nullptr};
  gguf_context *keys = gguf_init_from_file(path, params);
  if (!keys) return 1;
  llama_model_params model_params = llama_model_default_params();
  ggml_backend_dev_t none[] = {nullptr};
  model_params.devices = none;
  model_params.load_mtp = true;  // else it looks for no tensors of layers that predict
  if (llama_model_init_from_user(keys, print_tensor, nullptr, model_params)) return 0;
  printf("refused: %s\n", complaint.c_str());
  return 0;
}

}  // namespace

int main(int argc, char **argv) {
  llama_log_set(on_log, nullptr);
  ggml_backend_load(GM_ENGINE_CPU);
  card_open();
  if (argc == 3 && !strcmp(argv[1], "tensors")) return print_tensors(argv[2]);
  if (argc > 3 && !strcmp(argv[1], "memory")) return measure_all(argv[2], argc - 3, argv + 3);
  fputs("usage: measure tensors KEYS.gguf | measure memory MODEL.gguf SETTING...\n", stderr);
  return 2;
}
