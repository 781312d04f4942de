// Sentences with token ids, and computations on their embeddings.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/cli/random_inputs.h"

namespace reprise::cli {

struct Sentence {
  std::string label;
  std::string text;
  std::vector<int64_t> ids;
};

// {"sentences": [{"label": ..., "text": ..., "input_ids": [...]}]}. INVALID_ARGUMENT names the
// fault.
absl::StatusOr<std::vector<Sentence>> ParseSentences(absl::string_view json);

// Returns the inputs of a text model for one sentence, all [1, length]: names that contain "mask"
// are ones, "type" zeros, the other is the ids. UNIMPLEMENTED for an input that is not INT64.
absl::StatusOr<std::vector<OwnedTensor>> SentenceInputs(
    const inference::ModelMetadataResponse& metadata, const Sentence& sentence);

// Returns the first output of type FP32 and shape [1, hidden], or the mean over the positions of
// one of shape [1, length, hidden]; scaled to length 1: [hidden]. NOT_FOUND if there is no such
// output.
absl::StatusOr<std::vector<float>> MeanPooled(const client::InferResult& result);

// Returns the cosine of the angle between two vectors of length 1 and equal size.
double Cosine(absl::Span<const float> a, absl::Span<const float> b);

}  // namespace reprise::cli
