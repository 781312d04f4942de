// Arithmetic on vectors that are answered.
#pragma once

#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "runtime/base/status_macros.h"
#include "runtime/json/json_writer.h"
#include "server/hub/text_package.h"

namespace reprise {

// Returns the first `dimensions` elements of `vector`, all where that is absent; of length 1 where
// `normalize`, or where it was cut and `was_normal`. INVALID_ARGUMENT where the vector has fewer.
absl::StatusOr<std::vector<float>> CutVector(absl::Span<const float> vector,
                                             std::optional<int64_t> dimensions, bool normalize,
                                             bool was_normal);

// Returns how close two vectors are: more is closer. The cosine is 0 where one has no length.
float Compare(Similarity similarity, absl::Span<const float> a, absl::Span<const float> b);

// Positions of the scores, the highest first, equal ones in their order; NaN comes after all
// numbers.
std::vector<size_t> ByScore(absl::Span<const float> scores);

// Checks that each of `numbers` of the answer to text number `index` can be JSON. INVALID_ARGUMENT
// where one is NaN or infinite, which names the text, the model's `output` and the place.
absl::Status CheckFinite(absl::Span<const float> numbers, size_t index, absl::string_view output);

// Writes a list with an element for each answer, which `write` writes by its index.
template <typename Result, typename Write>
absl::Status WriteAnswers(const Result& result, const Write& write, JsonWriter& json) {
  return json.Array([&]() -> absl::Status {
    for (size_t i = 0; i < result.answers.size(); ++i) RETURN_IF_ERROR(write(i));
    return absl::OkStatus();
  });
}
// Writes the little-endian bytes of the values as base64.
void WriteBase64(absl::Span<const float> values, JsonWriter& json);
// Writes a list of lists: `rows` of them, one after another in `values`.
void WriteRows(absl::Span<const float> values, int64_t rows, JsonWriter& json);

// Writes the member "usage" of an answer that makes no tokens.
void WriteUsage(int64_t tokens, JsonWriter& json);

float Activate(Activation activation, float x);
float Sigmoid(float x);
std::vector<float> Softmax(absl::Span<const float> x);

}  // namespace reprise
