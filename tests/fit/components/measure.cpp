// Sizes of compute buffers, without any weights: graphs of stable-diffusion.cpp at full size, planned by ggml's
// allocator. tests/data/components.txt has its answers. It is no part of gm's build. In a checkout of
// stable-diffusion.cpp with ggml in ggml/, whose library was built with -DGGML_MAX_NAME=128 and -DBUILD_SHARED_LIBS=OFF
// in ggml/build:
//
//   cc -O1 -Ithirdparty -c thirdparty/zip.c
//   FLAGS="-std=c++17 -O1 -fpermissive -w -DGGML_MAX_NAME=128"
//   PATHS="-I. -Isrc -Iinclude -Ithirdparty -Iggml/include -Iggml/src"
//   PARTS="src/core/*.cpp src/model_loader.cpp src/model_manager.cpp src/name_conversion.cpp src/model_io/*.cpp zip.o"
//   GGML="ggml/build/src/libggml.a ggml/build/src/libggml-cpu.a ggml/build/src/libggml-base.a -lpthread -ldl"
//   c++ $FLAGS $PATHS -o measure measure.cpp $PARTS $GGML
//   for kind in vae sd3 flux flux2 chroma qwen text unet; do ./measure $kind; done
#include <cmath>
#include <cstdio>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>
#define private public  // the runners keep their contexts to themselves
#define protected public
#include "core/ggml_extend.hpp"
#include "model/diffusion/flux.hpp"
#include "model/diffusion/mmdit.hpp"
#include "model/diffusion/qwen_image.hpp"
#include "model/diffusion/unet.hpp"
#include "model/te/clip.hpp"
#include "model/te/t5.hpp"
#include "model/vae/auto_encoder_kl.hpp"
#undef private
#undef protected

struct IMatrixCollector;
IMatrixCollector &get_imatrix_collector() {  // of a part that is not linked
  static long none;
  return *reinterpret_cast<IMatrixCollector *>(&none);
}

struct Run {
  int width, height, text;
  bool flash;
};

// Weights count as allocated elsewhere: the planner leaves them out, and nothing is computed.
template <class Runner, class Build>
static void measure(Runner &runner, const char *what, const Run &run, Build build) {
  runner.flash_attn_enabled = run.flash;
  for (ggml_tensor *t = ggml_get_first_tensor(runner.params_ctx); t; t = ggml_get_next_tensor(runner.params_ctx, t)) {
    t->data = reinterpret_cast<void *>(0x1000);
  }
  ggml_cgraph *graph = nullptr;
  runner.prepare_compute_graph(build, &graph);
  ggml_gallocr_t planner = ggml_gallocr_new(ggml_backend_get_default_buffer_type(runner.runtime_backend));
  size_t bytes = 0;
  ggml_gallocr_reserve_n_size(planner, graph, nullptr, nullptr, &bytes);
  printf("%s %d %d %d %s %zu\n", what, run.width, run.height, run.text, run.flash ? "flash" : "plain", bytes);
  ggml_gallocr_free(planner);
}

static void put(String2TensorStorage &map, const std::string &name, ggml_type type, const std::vector<int64_t> &shape) {
  map[name] = TensorStorage(name, type, shape.data(), static_cast<int>(shape.size()), 0);
}

static const std::string prefix = "model.diffusion_model";

static void vae(ggml_backend_t cpu, const Run &run) {
  const SDVersion versions[] = {VERSION_SD1, VERSION_FLUX, VERSION_SD3};
  const char *const names[] = {"vae-sd1", "vae-flux", "vae-sd3"};
  for (int i = 0; i < 3; i++) {
    AutoEncoderKL runner(cpu, {}, "first_stage_model", true, false, versions[i]);
    sd::Tensor<float> latent({run.width / 8, run.height / 8, i ? 16 : 4, 1});
    measure(runner, names[i], run, [&] { return runner.build_graph(latent, true); });
  }
}

static void flux(ggml_backend_t cpu, const Run &run, const char *name, int64_t width) {
  String2TensorStorage map;
  put(map, prefix + ".double_blocks.18.img_attn.norm.key_norm.scale", GGML_TYPE_F32, {128});
  put(map, prefix + ".single_blocks.37.norm.key_norm.scale", GGML_TYPE_F32, {128});
  put(map, prefix + ".single_blocks.0.norm.key_norm.scale", GGML_TYPE_F32, {128});
  put(map, prefix + ".txt_in.weight", GGML_TYPE_F16, {4096, width});
  put(map, prefix + ".guidance_in.in_layer.weight", GGML_TYPE_F16, {256, width});
  Flux::FluxRunner runner(cpu, map, prefix);
  sd::Tensor<float> x({run.width / 8, run.height / 8, 16, 1}), time({1}), context({4096, run.text, 1}), y({768, 1}),
      guidance({1});
  measure(runner, name, run, [&] { return runner.build_graph(x, time, context, {}, y, guidance); });
}

// Two of FLUX.2's makers' models have no guidance.
static void flux2(ggml_backend_t cpu, const Run &run, const char *name, int64_t width, int doubles, int singles) {
  const int64_t text = width == 6144 ? 15360 : width == 4096 ? 12288 : 7680;
  const std::string single = prefix + ".single_blocks.";
  String2TensorStorage map;
  put(map, prefix + ".double_blocks." + std::to_string(doubles - 1) + ".img_attn.norm.key_norm.scale", GGML_TYPE_F32,
      {128});
  put(map, single + std::to_string(singles - 1) + ".norm.key_norm.scale", GGML_TYPE_F32, {128});
  put(map, single + "0.norm.key_norm.scale", GGML_TYPE_F32, {128});
  put(map, prefix + ".txt_in.weight", GGML_TYPE_F16, {text, width});
  if (width == 6144) put(map, prefix + ".guidance_in.in_layer.weight", GGML_TYPE_F16, {256, width});
  Flux::FluxRunner runner(cpu, map, prefix, VERSION_FLUX2);
  sd::Tensor<float> x({run.width / 16, run.height / 16, 128, 1}), time({1}), context({text, run.text, 1}),
      guidance({1});
  measure(runner, name, run, [&] { return runner.build_graph(x, time, context, {}, {}, guidance); });
}

static void chroma(ggml_backend_t cpu, const Run &run, bool has_mask) {
  String2TensorStorage map;
  put(map, prefix + ".double_blocks.18.img_attn.norm.key_norm.scale", GGML_TYPE_F32, {128});
  put(map, prefix + ".single_blocks.37.norm.key_norm.scale", GGML_TYPE_F32, {128});
  put(map, prefix + ".single_blocks.0.norm.key_norm.scale", GGML_TYPE_F32, {128});
  put(map, prefix + ".txt_in.weight", GGML_TYPE_F16, {4096, 3072});
  put(map, prefix + ".distilled_guidance_layer.in_proj.weight", GGML_TYPE_F16, {64, 5120});
  const char *const option = has_mask ? "chroma_use_dit_mask=true" : "chroma_use_dit_mask=false";
  Flux::FluxRunner runner(cpu, map, prefix, VERSION_FLUX, nullptr, option);
  sd::Tensor<float> x({run.width / 8, run.height / 8, 16, 1}), time({1}), context({4096, run.text, 1}), guidance({1}),
      y({run.text});
  measure(runner, has_mask ? "chroma-mask" : "chroma", run,
          [&] { return runner.build_graph(x, time, context, {}, y, guidance); });
}

static void qwen(ggml_backend_t cpu, const Run &run) {
  String2TensorStorage map;
  put(map, prefix + ".transformer_blocks.59.attn.norm_k.weight", GGML_TYPE_F32, {128});
  Qwen::QwenImageRunner runner(cpu, map, prefix);
  sd::Tensor<float> x({run.width / 8, run.height / 8, 16, 1}), time({1}), context({3584, run.text, 1});
  measure(runner, "qwen-image", run, [&] { return runner.build_graph(x, time, context); });
}

// `kind`: 0 medium, 1 large, 2 the medium one of 3.5 with a second attention in 13 blocks.
static void sd3(ggml_backend_t cpu, const Run &run, int kind) {
  static const char *const names[] = {"sd3-medium", "sd3.5-large", "sd3.5-medium"};
  const int depth = kind == 1 ? 38 : 24;
  const int64_t width = 64 * depth;
  const std::string block = prefix + ".joint_blocks.";
  String2TensorStorage map;
  put(map, prefix + ".x_embedder.proj.weight", GGML_TYPE_F16, {2, 2, 16, width});
  put(map, prefix + ".context_embedder.weight", GGML_TYPE_F16, {4096, width});
  put(map, prefix + ".y_embedder.mlp.0.weight", GGML_TYPE_F16, {2048, width});
  put(map, prefix + ".pos_embed", GGML_TYPE_F16, {width, 192 * 192, 1});
  put(map, block + std::to_string(depth - 1) + ".x_block.attn.proj.weight", GGML_TYPE_F16, {width, width});
  if (kind) put(map, block + "0.x_block.attn.ln_q.weight", GGML_TYPE_F32, {64});
  if (kind) put(map, block + "0.x_block.attn.ln_k.weight", GGML_TYPE_F32, {64});
  for (int i = 0; kind == 2 && i < 13; i++) {
    put(map, block + std::to_string(i) + ".x_block.attn2.ln_q.weight", GGML_TYPE_F32, {64});
  }
  MMDiTRunner runner(cpu, map, prefix);
  sd::Tensor<float> x({run.width / 8, run.height / 8, 16, 1}), time({1}), context({4096, run.text, 1}), y({2048, 1});
  measure(runner, names[kind], run, [&] { return runner.build_graph(x, time, context, y); });
}

static void unet(ggml_backend_t cpu, const Run &run, bool is_xl) {
  UNetModelRunner runner(cpu, {}, prefix, is_xl ? VERSION_SDXL : VERSION_SD1);
  sd::Tensor<float> x({run.width / 8, run.height / 8, 4, 1}), time({1}), context({is_xl ? 2048 : 768, run.text, 1}),
      y({2816, 1});
  measure(runner, is_xl ? "unet-sdxl" : "unet-sd1", run,
          [&] { return is_xl ? runner.build_graph(x, time, context, {}, y) : runner.build_graph(x, time, context); });
}

static void text(ggml_backend_t cpu, bool flash) {
  for (int tokens : {77, 154, 256, 512}) {
    T5Runner runner(cpu, {}, "text_encoders.t5xxl.transformer");
    sd::Tensor<int32_t> ids({tokens});
    measure(runner, "t5-xxl", {0, 0, tokens, flash}, [&] { return runner.build_graph(ids); });
  }
  for (int big = 0; big < 2; big++) {
    CLIPTextModelRunner runner(cpu, {}, "cond_stage_model", big ? OPEN_CLIP_VIT_BIGG_14 : OPENAI_CLIP_VIT_L_14);
    sd::Tensor<int32_t> ids({77});
    measure(runner, big ? "clip-g" : "clip-l", {0, 0, 77, flash},
            [&] { return runner.build_graph(ids, 0, nullptr, 76, false); });
  }
}

int main(int count, char **words) {
  const std::string kind = count > 1 ? words[1] : "";
  ggml_backend_t cpu = ggml_backend_init_by_type(GGML_BACKEND_DEVICE_TYPE_CPU, nullptr);
  const int sizes[][2] = {{256, 256}, {512, 512}, {1024, 1024}, {1536, 1024}, {2048, 2048}};
  for (bool flash : {false, true}) {
    if (kind == "text") text(cpu, flash);
    for (const auto &size : sizes) {
      for (int xl = 0; kind == "unet" && xl < 2; xl++) unet(cpu, {size[0], size[1], 77, flash}, xl == 1);
      const Run filled = {size[0], size[1], 512, flash};
      if (kind == "flux2") flux2(cpu, filled, "flux2-dev", 6144, 8, 48);
      if (kind == "flux2") flux2(cpu, filled, "flux2-klein-4b", 3072, 5, 20);
      if (kind == "flux2") flux2(cpu, filled, "flux2-klein-9b", 4096, 8, 24);
      for (bool mask : {false, true}) {
        if (kind == "chroma") chroma(cpu, filled, mask);
      }
      for (int tokens : {16, 256, 512, 1024}) {
        if (kind == "qwen") qwen(cpu, {size[0], size[1], tokens, flash});
      }
      if (kind == "vae") vae(cpu, {size[0], size[1], 0, flash});
      for (int tokens : {256, 512}) {
        if (kind == "flux") flux(cpu, {size[0], size[1], tokens, flash}, "flux", 3072);
        if (kind == "flux") flux(cpu, {size[0], size[1], tokens, flash}, "flux-tiny", 256);
      }
      for (int tokens : {154, 333}) {
        const bool is_huge = size[1] > 1024;  // the table of positions of the large one ends below
        for (int i = 0; kind == "sd3" && i < 3; i++) {
          if (i != 1 || !is_huge) sd3(cpu, {size[0], size[1], tokens, flash}, i);
        }
      }
    }
  }
}
