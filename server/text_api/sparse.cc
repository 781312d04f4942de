#include "server/text_api/sparse.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "runtime/base/status_macros.h"
#include "server/text_api/vectors.h"

namespace reprise {
namespace {

// Returns the members of both, asked of a model that offers `task`. Errors: OUT_OF_RANGE for one
// that does something else, which is no fault of a text.
absl::StatusOr<TextRequest> ReadInputs(const Fields& fields, const TextApiContext& context,
                                       const std::string& model, TextTask task) {
  TextRequest request{.task = task};
  ASSIGN_OR_RETURN(request.model, ChooseModel(context, model, task));
  ASSIGN_OR_RETURN(const auto text, FindTextModel(context, request.model));
  if (const absl::Status offers = text->Offers(task); absl::IsFailedPrecondition(offers)) {
    return absl::OutOfRangeError(offers.message());
  }
  ASSIGN_OR_RETURN(request.items, fields.WantItems("inputs"));
  if (request.items.empty()) return absl::InvalidArgumentError("\"inputs\" is an empty list");
  ASSIGN_OR_RETURN(request.truncation, fields.TruncationAsked());
  ASSIGN_OR_RETURN(request.prompt_name, fields.Text("prompt_name", ""));
  return request;
}

// Returns the places of weights that are not 0, in order; of more than `most`, the largest ones.
std::vector<size_t> WordsOf(absl::Span<const float> weights, int64_t most) {
  std::vector<size_t> words;
  for (size_t i = 0; i < weights.size(); ++i) {
    if (weights[i] != 0) words.push_back(i);
  }
  const auto kept = static_cast<size_t>(most);
  if (most == 0 || words.size() <= kept) return words;
  std::stable_sort(words.begin(), words.end(),
                   [&](size_t a, size_t b) { return std::abs(weights[a]) > std::abs(weights[b]); });
  words.resize(kept);
  std::sort(words.begin(), words.end());
  return words;
}

absl::StatusOr<std::string> WriteSparse(const TextResult& result) {
  const int64_t most = result.text->package().most_words;
  JsonWriter json;
  const auto write = [&](size_t i) -> absl::Status {
    const std::vector<float>& weights = result.answers[i].values;
    RETURN_IF_ERROR(CheckFinite(weights, i, result.text->offer().output));
    json.Array([&] {
      for (const size_t word : WordsOf(weights, most)) {
        json.Object([&] {
          json.Member("index", word);
          json.Member("value", weights[word]);
        });
      }
    });
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(WriteAnswers(result, write, json));
  return json.Take();
}

absl::StatusOr<AskedTexts> ReadSparse(const Fields& fields, const TextApiContext& context,
                                      const std::string& model) {
  AskedTexts asked;
  ASSIGN_OR_RETURN(asked.request, ReadInputs(fields, context, model, TextTask::kSparse));
  asked.write = WriteSparse;
  return asked;
}

absl::StatusOr<std::string> WriteTokens(const TextResult& result) {
  JsonWriter json;
  const auto write = [&](size_t i) -> absl::Status {
    RETURN_IF_ERROR(CheckFinite(result.answers[i].values, i, result.text->offer().output));
    WriteRows(result.answers[i].values, result.answers[i].rows, json);
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(WriteAnswers(result, write, json));
  return json.Take();
}

absl::StatusOr<AskedTexts> ReadTokens(const Fields& fields, const TextApiContext& context,
                                      const std::string& model) {
  AskedTexts asked;
  ASSIGN_OR_RETURN(asked.request, ReadInputs(fields, context, model, TextTask::kTokens));
  asked.is_dense = true;
  asked.write = WriteTokens;
  return asked;
}

}  // namespace

TextFace SparseEmbeddings() { return {.errors = ErrorForm::kInference, .read = ReadSparse}; }
TextFace TokenEmbeddings() { return {.errors = ErrorForm::kInference, .read = ReadTokens}; }

}  // namespace reprise
