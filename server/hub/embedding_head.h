// The steps after a transformer that make one vector, scores, or a vector a token of a text, as
// nodes of the model's own graph. They are part of every recipe, so that requests of different
// lengths share a replay and only the vectors leave it.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "server/hub/head_steps.h"

namespace reprise {

struct ImportedModel;

struct EmbeddingHead {
  std::string source;                       // the output of the model that the steps begin with
  std::string source_name = kTokenVectors;  // that steps read it by
  std::vector<HeadStep> steps;
  std::string result = kTextVectors;  // answered: the name, and the output's one
  int64_t truncate_dim = 0;           // its first elements are answered; 0: all
  bool keep_outputs = false;          // the model's own outputs are kept
};

// Adds the output `result` [batch, width], of kTokenVectors [batch, tokens, width], to `model`.
// Where it has no input "attention_mask", every token counts. Errors: INVALID_ARGUMENT where the
// output `source` is missing, or the name of the result is taken.
absl::Status AppendEmbeddingHead(const EmbeddingHead& head, ImportedModel& model);

}  // namespace reprise
