// The files of an encoder-decoder, as exporters lay them out, and the models that they become.
//
//   encoder_model.onnx             ids or a spectrum -> last_hidden_state
//   decoder_model_merged.onnx      a step with or without caches, by use_cache_branch; or instead
//   decoder_with_past_model.onnx   a step with caches
//   decoder_model.onnx             the first step, which also makes the caches of the encoder's
//   result
//
// A suffix before .onnx ("_quantized") is common to all of them.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/engine/engine.h"

namespace reprise {

struct EncoderDecoderFiles {
  std::string encoder;
  std::string decoder;  // has caches
  std::string cross;    // makes the caches of the encoder's result
};

// Returns the files next to `encoder`; nullopt where that is no such file, or where others are
// missing.
std::optional<EncoderDecoderFiles> FindEncoderDecoder(const std::filesystem::path& encoder);

// Loads the decoder's file, and the part of it, or of the file next to it, that makes the keys and
// values of the encoder's result: a model of one input. Named "<name>:decoder" and "<name>:cross".
absl::StatusOr<std::shared_ptr<Model>> LoadDecoder(Engine& engine, const EncoderDecoderFiles& files,
                                                   const ModelOptions& encoder);
absl::StatusOr<std::shared_ptr<Model>> LoadCrossModel(Engine& engine,
                                                      const EncoderDecoderFiles& files,
                                                      const ModelOptions& encoder);

}  // namespace reprise
