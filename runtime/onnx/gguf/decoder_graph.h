// A decoder of a GGUF file as a graph: in the form that onnxruntime's model builder writes, with
// GroupQueryAttention and caches as inputs and outputs.
#pragma once

#include "absl/status/statusor.h"
#include "runtime/onnx/file/onnx_proto.h"
#include "runtime/onnx/gguf/gguf_settings.h"

namespace reprise {

// Inputs: input_ids, attention_mask, past_key_values.N.{key,value}. Outputs: logits,
// present.N.{key,value}. Errors as of ReadDecoderPlan and GraphWriter.
absl::StatusOr<onnx::ModelProto> WriteDecoder(const GgufSettings& settings);

}  // namespace reprise
