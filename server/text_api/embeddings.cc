#include "server/text_api/embeddings.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "server/text_api/json_text.h"
#include "server/text_api/vectors.h"

namespace reprise {
namespace {

// The part of a vector that is answered.
struct VectorOptions {
  std::optional<int64_t> dimensions;
  bool normalize = false;
};

absl::StatusOr<std::optional<int64_t>> Dimensions(const Fields& fields) {
  if (!fields.Has("dimensions")) return std::optional<int64_t>();
  ASSIGN_OR_RETURN(const int64_t dimensions, fields.Int("dimensions", 0));
  if (dimensions < 1) {
    return absl::InvalidArgumentError(absl::StrCat("\"dimensions\" is ", dimensions));
  }
  return std::optional<int64_t>(dimensions);
}

// The vector of text number `index`.
absl::StatusOr<std::vector<float>> VectorOf(const TextResult& result, size_t index,
                                            const VectorOptions& options) {
  ASSIGN_OR_RETURN(std::vector<float> vector,
                   CutVector(result.answers[index].values, options.dimensions, options.normalize,
                             EndsNormalized(result.text->package().steps, kTextVectors)));
  RETURN_IF_ERROR(CheckFinite(vector, index, result.text->offer().output));
  return vector;
}

// The members that every face of vectors reads.
absl::StatusOr<TextRequest> ReadRequest(const Fields& fields, const TextApiContext& context,
                                        const std::string& model, const char* texts) {
  TextRequest request{.task = TextTask::kEmbed};
  ASSIGN_OR_RETURN(request.model, ChooseModel(context, model, TextTask::kEmbed));
  ASSIGN_OR_RETURN(request.items, fields.WantItems(texts));
  ASSIGN_OR_RETURN(request.truncation, fields.TruncationAsked());
  ASSIGN_OR_RETURN(request.prompt_name, fields.Text("prompt_name", ""));
  return request;
}

absl::StatusOr<std::string> WriteOpenAi(const TextResult& result, const VectorOptions& options,
                                        bool base64) {
  std::string json = "{\"object\":\"list\",\"data\":[";
  for (size_t i = 0; i < result.answers.size(); ++i) {
    ASSIGN_OR_RETURN(const std::vector<float> vector, VectorOf(result, i, options));
    absl::StrAppend(&json, i > 0 ? "," : "", "{\"object\":\"embedding\",\"index\":", i,
                    ",\"embedding\":");
    base64 ? AppendBase64(vector, json) : AppendNumbers(vector, json);
    json += '}';
  }
  json += "],\"model\":";
  AppendQuoted(result.model.version == nullptr ? "" : result.model.version->name, json);
  absl::StrAppend(&json, ",\"usage\":{\"prompt_tokens\":", result.tokens,
                  ",\"total_tokens\":", result.tokens, "}}");
  return json;
}

absl::StatusOr<AskedTexts> ReadOpenAi(const Fields& fields, const TextApiContext& context,
                                      const std::string& model) {
  AskedTexts asked;
  ASSIGN_OR_RETURN(asked.request, ReadRequest(fields, context, model, "input"));
  if (asked.request.items.empty()) return absl::InvalidArgumentError("\"input\" is an empty list");
  ASSIGN_OR_RETURN(const std::string format, fields.Text("encoding_format", "float"));
  if (format != "float" && format != "base64") {
    return absl::OutOfRangeError(
        absl::StrCat("\"encoding_format\" is \"", format, "\", it may be float or base64"));
  }
  VectorOptions options;
  ASSIGN_OR_RETURN(options.dimensions, Dimensions(fields));
  asked.is_dense = true;
  asked.write = [options, base64 = format == "base64"](const TextResult& result) {
    return WriteOpenAi(result, options, base64);
  };
  return asked;
}

absl::StatusOr<AskedTexts> ReadPlain(const Fields& fields, const TextApiContext& context,
                                     const std::string& model) {
  AskedTexts asked;
  ASSIGN_OR_RETURN(asked.request, ReadRequest(fields, context, model, "inputs"));
  if (asked.request.items.empty()) return absl::InvalidArgumentError("\"inputs\" is an empty list");
  VectorOptions options;
  ASSIGN_OR_RETURN(options.normalize, fields.Bool("normalize", true));
  ASSIGN_OR_RETURN(options.dimensions, Dimensions(fields));
  asked.is_dense = true;
  asked.write = [options](const TextResult& result) -> absl::StatusOr<std::string> {
    std::string json = "[";
    for (size_t i = 0; i < result.answers.size(); ++i) {
      ASSIGN_OR_RETURN(const std::vector<float> vector, VectorOf(result, i, options));
      if (i > 0) json += ',';
      AppendNumbers(vector, json);
    }
    return json + "]";
  };
  return asked;
}

absl::StatusOr<AskedTexts> ReadSimilarity(const Fields& fields, const TextApiContext& context,
                                          const std::string& model) {
  const auto member = fields.Find("inputs");
  if (!member) return absl::InvalidArgumentError("\"inputs\" is missing");
  ASSIGN_OR_RETURN(const Fields inputs, Fields::Of(*member));
  AskedTexts asked{.request = {.task = TextTask::kEmbed}};
  ASSIGN_OR_RETURN(asked.request.model, ChooseModel(context, model, TextTask::kEmbed));
  ASSIGN_OR_RETURN(std::string source, inputs.WantText("source_sentence"));
  ASSIGN_OR_RETURN(std::vector<std::string> sentences, inputs.WantTexts("sentences"));
  asked.request.items.push_back({.text = ShareText(std::move(source))});
  for (std::string& text : sentences) {
    asked.request.items.push_back({.text = ShareText(std::move(text))});
  }
  // They may stand beside the texts or in "parameters".
  Fields parameters = fields;
  if (const auto nested = fields.Find("parameters")) {
    ASSIGN_OR_RETURN(parameters, Fields::Of(*nested));
  }
  ASSIGN_OR_RETURN(asked.request.truncation, parameters.TruncationAsked());
  ASSIGN_OR_RETURN(asked.request.prompt_name, parameters.Text("prompt_name", ""));
  asked.write = [](const TextResult& result) -> absl::StatusOr<std::string> {
    std::vector<float> close;
    for (size_t i = 1; i < result.answers.size(); ++i) {
      close.push_back(Compare(result.text->package().similarity, result.answers[0].values,
                              result.answers[i].values));
      RETURN_IF_ERROR(CheckFinite({&close.back(), 1}, i, result.text->offer().output));
    }
    std::string json;
    AppendNumbers(close, json);
    return json;
  };
  return asked;
}

}  // namespace

TextFace OpenAiEmbeddings() { return {.errors = ErrorForm::kOpenAi, .read = ReadOpenAi}; }
TextFace PlainEmbeddings() { return {.errors = ErrorForm::kInference, .read = ReadPlain}; }
TextFace Similarities() { return {.errors = ErrorForm::kInference, .read = ReadSimilarity}; }

}  // namespace reprise
