// ReadGenerationFiles: the files next to a decoder that say how it makes tokens: genai_config.json
// (onnxruntime-genai), generation_config.json and config.json (transformers). A GGUF file says it
// itself.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "runtime/generate/decoder_rules.h"

namespace reprise {

struct GenerationFacts {
  std::vector<int64_t> eos_ids;
  int64_t context = 0;  // 0: no file says it
  // For a decoder with an encoder: decoder_start_token_id, forced and suppressed tokens.
  DecoderRules rules;
};

// Looks in the folder of `model_file` and the one above it. A file that cannot be read says
// nothing.
GenerationFacts ReadGenerationFiles(const std::filesystem::path& model_file);

}  // namespace reprise
