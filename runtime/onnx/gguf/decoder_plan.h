// DecoderPlan: the metadata of a GGUF file about a decoder, checked, with the settings
// that its architecture implies and no member states.
//
// Errors: INVALID_ARGUMENT for members that are missing or contradict each other, UNIMPLEMENTED for
// architectures and settings that are not supported; all by name.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/onnx/gguf/gguf_settings.h"
#include "runtime/onnx/gguf/rope_tables.h"

namespace reprise {

struct DecoderPlan {
  int64_t layers = 0, hidden = 0, heads = 0, kv_heads = 0, head_size = 0, context = 0;
  int64_t inner = 0;  // numbers between the matrices of a layer; 0: as many as they have
  float epsilon = 0;
  double attention_scale = 0;
  double attention_cap = 0, final_cap = 0;  // 0: none
  bool tanh_gelu = false;                   // else SiLU
  // Granite's and Gemma's; 1: none.
  double embedding_scale = 1, residual_scale = 1, logit_divisor = 1;
  std::vector<int64_t> windows;  // one a layer: keys that a query sees, itself included; 0: all

  bool neighbours = false;  // rotary positions turn pairs of neighbours, not of halves
  int64_t rope_width = 0;   // numbers of a head that are turned
  double rope_base = 0;
  RopeScaling rope_scaling;
  double window_rope_base = 0;  // layers with a window have it, without scaling; 0: as all others
  std::string rope_factors;     // the tensor that frequencies are divided by; empty: none
};

absl::StatusOr<DecoderPlan> ReadDecoderPlan(const GgufSettings& settings);

}  // namespace reprise
