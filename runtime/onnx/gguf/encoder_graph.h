// An encoder of a GGUF file as a graph: BERT's, or nomic's with rotary positions and gates.
#pragma once

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/onnx/file/onnx_proto.h"
#include "runtime/onnx/gguf/gguf_settings.h"

namespace reprise {

// Returns whether WriteEncoder takes the architecture.
bool IsEncoder(absl::string_view architecture);

// Inputs: input_ids, attention_mask, and token_type_ids where the file has types. Output:
// last_hidden_state. Errors as of GgufSettings and GraphWriter.
absl::StatusOr<onnx::ModelProto> WriteEncoder(const GgufSettings& settings);

}  // namespace reprise
