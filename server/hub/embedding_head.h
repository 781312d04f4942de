// The steps behind a transformer that make one vector of a text, as nodes of the model's own graph:
// pooling over the tokens that the mask counts, dense layers, and the length 1. They are part of
// every recipe, so that requests of different lengths share a replay and only the vectors leave it.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "server/hub/text_package.h"

namespace reprise {

struct ImportedModel;

inline constexpr char kEmbeddingOutput[] = "sentence_embedding";

struct EmbeddingHead {
  std::string hidden;             // the output [batch, tokens, width] that is pooled
  std::vector<Pooling> poolings;  // at least one
  std::vector<DenseLayer> dense;
  bool normalize = false;
  bool keep_outputs = false;  // the model's own outputs stay beside the vector
};

// Adds the output kEmbeddingOutput [batch, width] to `model`. Where it has no input
// "attention_mask", every token counts. Errors: INVALID_ARGUMENT where the output `hidden` is
// missing.
absl::Status AppendEmbeddingHead(const EmbeddingHead& head, ImportedModel& model);

}  // namespace reprise
