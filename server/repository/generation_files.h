// ReadGenerationFiles: the files beside a decoder that say how it makes tokens: genai_config.json
// (onnxruntime-genai), generation_config.json and config.json (transformers).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace reprise {

struct GenerationFacts {
  std::vector<int64_t> eos_ids;
  int64_t context = 0;  // 0: no file says it
};

// Looks in `folder` and the one above it. A file that cannot be read says nothing.
GenerationFacts ReadGenerationFiles(const std::string& folder);

}  // namespace reprise
