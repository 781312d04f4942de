#include "client/cli/sentences.h"

#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"

namespace reprise::cli {
namespace {

using Json = nlohmann::json;

absl::StatusOr<Sentence> ParseSentence(const Json& entry, size_t index) {
  auto wrong = [index](absl::string_view what) {
    return absl::InvalidArgumentError(absl::StrCat("sentence ", index, ": ", what));
  };
  if (!entry.is_object()) return wrong("is not an object");
  if (!entry.contains("label") || !entry["label"].is_string()) return wrong("needs a \"label\"");
  if (!entry.contains("text") || !entry["text"].is_string()) return wrong("needs a \"text\"");
  if (!entry.contains("input_ids") || !entry["input_ids"].is_array()) {
    return wrong("needs \"input_ids\"");
  }
  Sentence sentence{.label = entry["label"].get<std::string>(),
                    .text = entry["text"].get<std::string>()};
  for (const Json& id : entry["input_ids"]) {
    if (!id.is_number_integer()) return wrong("\"input_ids\" are not integers");
    sentence.ids.push_back(id.get<int64_t>());
  }
  return sentence;
}

// Returns the mean of vectors of size `hidden`, scaled to length 1.
std::vector<float> UnitMean(absl::Span<const float> values, size_t hidden) {
  std::vector<double> sums(hidden);
  for (size_t i = 0; i < values.size(); ++i) sums[i % hidden] += values[i];
  double squares = 0;
  for (double sum : sums) squares += sum * sum;
  std::vector<float> mean;
  mean.reserve(hidden);
  for (double sum : sums) mean.push_back(static_cast<float>(sum / std::sqrt(squares)));
  return mean;
}

}  // namespace

absl::StatusOr<std::vector<Sentence>> ParseSentences(absl::string_view text) {
  const Json json = Json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("sentences") || !json["sentences"].is_array()) {
    return absl::InvalidArgumentError("the file is not a JSON object with a list of \"sentences\"");
  }
  std::vector<Sentence> sentences;
  for (const Json& entry : json["sentences"]) {
    ASSIGN_OR_RETURN(Sentence sentence, ParseSentence(entry, sentences.size()));
    sentences.push_back(std::move(sentence));
  }
  if (sentences.empty()) return absl::InvalidArgumentError("the file has no sentence");
  return sentences;
}

absl::StatusOr<std::vector<OwnedTensor>> SentenceInputs(
    const inference::ModelMetadataResponse& metadata, const Sentence& sentence) {
  const auto length = static_cast<int64_t>(sentence.ids.size());
  std::vector<OwnedTensor> tensors;
  for (const auto& input : metadata.inputs()) {
    if (input.datatype() != "INT64") {
      return absl::UnimplementedError(absl::StrCat("input '", input.name(), "' of model '",
                                                   metadata.name(), "' is ", input.datatype(),
                                                   ", not INT64: is this a text model?"));
    }
    std::vector<int64_t> values = sentence.ids;
    if (absl::StrContains(input.name(), "mask")) values.assign(values.size(), 1);
    if (absl::StrContains(input.name(), "type")) values.assign(values.size(), 0);
    OwnedTensor tensor{input.name(), input.datatype(), {1, length}, {}};
    tensor.bytes.resize(values.size() * sizeof(int64_t));
    std::memcpy(tensor.bytes.data(), values.data(), tensor.bytes.size());
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

absl::StatusOr<std::vector<float>> MeanPooled(const client::InferResult& result) {
  // Vectors of tokens; else the one that the server has made of them.
  for (const size_t rank : {3, 2}) {
    for (const client::OutputTensor& output : result.outputs()) {
      const bool fits =
          output.datatype == "FP32" && output.shape.size() == rank && output.shape[0] == 1;
      if (!fits) continue;
      ASSIGN_OR_RETURN(const auto values, output.As<float>());
      return UnitMean(values, static_cast<size_t>(output.shape.back()));
    }
  }
  return absl::NotFoundError(
      "no output of shape [1, length, hidden] or [1, hidden] and datatype FP32");
}

double Cosine(absl::Span<const float> a, absl::Span<const float> b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += static_cast<double>(a[i]) * b[i];
  return sum;
}

}  // namespace reprise::cli
