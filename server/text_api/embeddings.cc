#include "server/text_api/embeddings.h"

#include <ctime>
#include <functional>
#include <optional>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "server/text_api/picture_inputs.h"
#include "server/text_api/vectors.h"

namespace reprise {
namespace {

// The part of a vector that is answered.
struct VectorOptions {
  std::optional<int64_t> dimensions;
  bool normalize = false;
};

absl::StatusOr<std::optional<int64_t>> Dimensions(const Fields& fields,
                                                  const char* member = "dimensions") {
  if (!fields.Has(member)) return std::optional<int64_t>();
  ASSIGN_OR_RETURN(const int64_t dimensions, fields.Int(member, 0));
  if (dimensions < 1) {
    return absl::InvalidArgumentError(absl::StrCat("\"", member, "\" is ", dimensions));
  }
  return std::optional<int64_t>(dimensions);
}

// Returns the vector of text number `index`.
absl::StatusOr<std::vector<float>> VectorOf(const TextResult& result, size_t index,
                                            const VectorOptions& options) {
  ASSIGN_OR_RETURN(std::vector<float> vector,
                   CutVector(result.answers[index].values, options.dimensions, options.normalize,
                             EndsNormalized(result.text->package().steps, kTextVectors)));
  RETURN_IF_ERROR(CheckFinite(vector, index, result.text->offer().output));
  return vector;
}

// Returns the members that every face of vectors reads.
absl::StatusOr<TextRequest> ReadRequest(const Fields& fields, const TextApiContext& context,
                                        const std::string& model, const char* texts) {
  TextRequest request{.task = TextTask::kEmbed};
  ASSIGN_OR_RETURN(request.model, ChooseModel(context, model, TextTask::kEmbed));
  ASSIGN_OR_RETURN(request.items, fields.WantItems(texts));
  ASSIGN_OR_RETURN(request.truncation, fields.TruncationAsked());
  ASSIGN_OR_RETURN(request.prompt_name, fields.Text("prompt_name", ""));
  return request;
}

// Returns the vector of picture number `index`.
absl::StatusOr<std::vector<float>> VectorOf(const VisionResult& result, size_t index,
                                            const VectorOptions& options) {
  ASSIGN_OR_RETURN(std::vector<float> vector,
                   CutVector(result.answers[index].values[0], options.dimensions, options.normalize,
                             /*was_normal=*/false));
  RETURN_IF_ERROR(CheckFinite(vector, index, result.model->outputs()[0]));
  return vector;
}

std::string NameOf(const TextResult& result) {
  return result.model.version == nullptr ? "" : result.model.version->name;
}
std::string NameOf(const VisionResult& result) { return result.name; }
int64_t TokensOf(const TextResult& result) { return result.tokens; }
int64_t TokensOf(const VisionResult&) { return 0; }

template <typename Result>
absl::StatusOr<std::string> WriteOpenAi(const Result& result, const VectorOptions& options,
                                        bool base64) {
  JsonWriter json;
  RETURN_IF_ERROR(json.Object([&]() -> absl::Status {
    json.Member("object", "list");
    const auto write = [&](size_t i) -> absl::Status {
      ASSIGN_OR_RETURN(const std::vector<float> vector, VectorOf(result, i, options));
      json.Object([&] {
        json.Member("object", "embedding");
        json.Member("index", i);
        json.Key("embedding");
        base64 ? WriteBase64(vector, json) : json.List(vector);
      });
      return absl::OkStatus();
    };
    json.Key("data");
    RETURN_IF_ERROR(WriteAnswers(result, write, json));
    json.Member("model", NameOf(result));
    WriteUsage(TokensOf(result), json);
    return absl::OkStatus();
  }));
  return json.Take();
}

AskedPictures AskedOf(PictureInputs inputs,
                      std::function<absl::StatusOr<std::string>(const VisionResult&)> write) {
  return {.request = {.model = std::move(inputs.model), .files = std::move(inputs.files)},
          .write = std::move(write)};
}

absl::StatusOr<AskedTexts> ReadOpenAi(const Fields& fields, const TextApiContext& context,
                                      const std::string& model) {
  AskedTexts asked;
  ASSIGN_OR_RETURN(std::optional<PictureInputs> pictures,
                   ReadPictures(fields, context, model, {"input"}));
  if (!pictures) {
    ASSIGN_OR_RETURN(asked.request, ReadRequest(fields, context, model, "input"));
    if (asked.request.items.empty()) {
      return absl::InvalidArgumentError("\"input\" is an empty list");
    }
  }
  ASSIGN_OR_RETURN(const std::string format, fields.Text("encoding_format", "float"));
  if (format != "float" && format != "base64") {
    return absl::OutOfRangeError(
        absl::StrCat("\"encoding_format\" is \"", format, "\", it must be float or base64"));
  }
  VectorOptions options;
  ASSIGN_OR_RETURN(options.dimensions, Dimensions(fields));
  asked.is_dense = true;
  const auto write = [options, base64 = format == "base64"](const auto& result) {
    return WriteOpenAi(result, options, base64);
  };
  asked.write = write;
  if (pictures) asked.pictures = AskedOf(*std::move(pictures), write);
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
    JsonWriter json;
    const auto write = [&](size_t i) -> absl::Status {
      ASSIGN_OR_RETURN(const std::vector<float> vector, VectorOf(result, i, options));
      json.List(vector);
      return absl::OkStatus();
    };
    RETURN_IF_ERROR(WriteAnswers(result, write, json));
    return json.Take();
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
  // They may be next to the texts or in "parameters".
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
    JsonWriter json;
    json.List(close);
    return json.Take();
  };
  return asked;
}

// The form of numbers for Cohere's clients.
enum class EmbeddingType { kFloat, kBase64, kBinary, kUnsignedBinary };

// THE table of `embedding_types`.
constexpr std::pair<const char*, EmbeddingType> kEmbeddingTypes[] = {
    {"float", EmbeddingType::kFloat},
    {"base64", EmbeddingType::kBase64},
    {"binary", EmbeddingType::kBinary},
    {"ubinary", EmbeddingType::kUnsignedBinary}};

absl::StatusOr<std::pair<const char*, EmbeddingType>> EmbeddingTypeOf(absl::string_view name) {
  for (const auto& row : kEmbeddingTypes) {
    if (name == row.first) return row;
  }
  // These need the ranges of each dimension over a collection, which no folder has.
  if (name == "int8" || name == "uint8") {
    return absl::UnimplementedError(
        absl::StrCat("\"embedding_types\" has \"", name, "\", which is not supported"));
  }
  return absl::OutOfRangeError(absl::StrCat("\"embedding_types\" has \"", name,
                                            "\", it must be float, base64, binary or ubinary"));
}

using EmbeddingTypes = std::vector<std::pair<const char*, EmbeddingType>>;

absl::StatusOr<EmbeddingTypes> EmbeddingTypesOf(const Fields& fields) {
  if (!fields.Has("embedding_types")) return EmbeddingTypes{kEmbeddingTypes[0]};
  ASSIGN_OR_RETURN(const std::vector<std::string> names, fields.WantTexts("embedding_types"));
  EmbeddingTypes types;
  for (const std::string& name : names) {
    ASSIGN_OR_RETURN(const auto type, EmbeddingTypeOf(name));
    // The answer has a member for each type, once.
    if (!absl::c_linear_search(types, type)) types.push_back(type);
  }
  if (types.empty()) return absl::InvalidArgumentError("\"embedding_types\" is an empty list");
  return types;
}

// Writes the signs of a vector as bits, the first one highest, eight to a number; `offset` is added
// to each number.
void WriteSigns(absl::Span<const float> vector, int offset, JsonWriter& json) {
  json.Array([&] {
    for (size_t i = 0; i < vector.size(); i += 8) {
      int bits = 0;
      for (size_t bit = 0; bit < 8; ++bit) {
        bits = 2 * bits + (i + bit < vector.size() && vector[i + bit] > 0 ? 1 : 0);
      }
      json.Value(bits + offset);
    }
  });
}

void WriteEmbedding(absl::Span<const float> vector, EmbeddingType type, JsonWriter& json) {
  switch (type) {
    case EmbeddingType::kFloat:
      return json.List(vector);
    case EmbeddingType::kBase64:
      return WriteBase64(vector, json);
    case EmbeddingType::kBinary:
      return WriteSigns(vector, -128, json);
    case EmbeddingType::kUnsignedBinary:
      return WriteSigns(vector, 0, json);
  }
}

// Returns the prompt of the model's folder for the purpose of the vectors; "" where it has none.
std::string PromptOfInputType(const TextPackage& package, absl::string_view input_type) {
  constexpr std::pair<const char*, const char*> kPrompts[] = {{"search_query", "query"},
                                                              {"search_document", "document"},
                                                              {"search_document", "passage"},
                                                              {"classification", "classification"},
                                                              {"clustering", "clustering"}};
  for (const auto& [type, prompt] : kPrompts) {
    if (input_type == type && package.prompts.contains(prompt)) return prompt;
  }
  return "";
}

void WriteBilled(const TextResult& result, JsonWriter& json) {
  json.Member("input_tokens", result.tokens);
}
void WriteBilled(const VisionResult& result, JsonWriter& json) {
  json.Member("images", result.answers.size());
}

// How a client of Cohere wants the answer, by the version of its protocol.
struct CohereForm {
  int version = 2;
  EmbeddingTypes types;
  bool is_list = false;  // the vectors are a list, without the names of types
};

template <typename Result>
absl::StatusOr<std::string> WriteCohereVectors(const Result& result, const VectorOptions& options,
                                               const CohereForm& form,
                                               absl::Span<const SharedText> texts) {
  std::vector<std::vector<float>> vectors;
  vectors.reserve(result.answers.size());
  for (size_t i = 0; i < result.answers.size(); ++i) {
    ASSIGN_OR_RETURN(std::vector<float> vector, VectorOf(result, i, options));
    vectors.push_back(std::move(vector));
  }
  JsonWriter json;
  const auto write_vectors = [&](EmbeddingType type) {
    json.Array([&] {
      for (const std::vector<float>& vector : vectors) WriteEmbedding(vector, type, json);
    });
  };
  json.Object([&] {
    json.Member("id", absl::StrCat("embed-", std::time(nullptr)));
    json.Member("response_type", form.is_list ? "embeddings_floats" : "embeddings_by_type");
    json.Key("embeddings");
    if (form.is_list) {
      write_vectors(form.types.front().second);
    } else {
      json.Object([&] {
        for (const auto& type : form.types) {
          json.Key(type.first);
          write_vectors(type.second);
        }
      });
    }
    json.Array("texts", [&] {
      for (const SharedText& text : texts) json.Value(*text);
    });
    json.Object("meta", [&] {
      json.Object("api_version", [&] { json.Member("version", absl::StrCat(form.version)); });
      json.Object("billed_units", [&] { WriteBilled(result, json); });
    });
  });
  return json.Take();
}

template <int kVersion>
absl::StatusOr<AskedTexts> ReadCohereEmbed(const Fields& fields, const TextApiContext& context,
                                           const std::string& model) {
  ASSIGN_OR_RETURN(std::optional<PictureInputs> pictures,
                   ReadPictures(fields, context, model, {"images", "inputs"}));
  VectorOptions options;
  ASSIGN_OR_RETURN(options.dimensions, Dimensions(fields, "output_dimension"));
  CohereForm form = {.version = kVersion,
                     .is_list = kVersion == 1 && !fields.Has("embedding_types")};
  ASSIGN_OR_RETURN(form.types, EmbeddingTypesOf(fields));
  AskedTexts asked{.request = {.task = TextTask::kEmbed}};
  asked.is_dense = true;
  if (pictures) {
    asked.pictures = AskedOf(*std::move(pictures), [options, form](const VisionResult& result) {
      return WriteCohereVectors(result, options, form, {});
    });
    return asked;
  }
  for (const char* member : {"images", "inputs"}) {
    if (fields.Has(member) && !fields.Has("texts")) {
      return absl::UnimplementedError(absl::StrCat(
          "\"", member, "\" has no picture, and texts are supported in \"texts\" alone"));
    }
  }
  TextRequest& request = asked.request;
  ASSIGN_OR_RETURN(request.model, ChooseModel(context, model, TextTask::kEmbed));
  ASSIGN_OR_RETURN(std::vector<std::string> texts, fields.WantTexts("texts"));
  if (texts.empty()) return absl::InvalidArgumentError("\"texts\" is an empty list");
  std::vector<SharedText> shared;
  for (std::string& text : texts) {
    shared.push_back(ShareText(std::move(text)));
    request.items.push_back({.text = shared.back()});
  }
  ASSIGN_OR_RETURN(request.truncation, fields.TruncationAsked());
  if (!fields.Has("truncate")) request.truncation = Truncation::kRight;
  ASSIGN_OR_RETURN(const std::string input_type, fields.Text("input_type", ""));
  ASSIGN_OR_RETURN(const auto text, FindTextModel(context, request.model));
  request.prompt_name = PromptOfInputType(text->package(), input_type);
  asked.write = [options, form, shared = std::move(shared)](const TextResult& result) {
    return WriteCohereVectors(result, options, form, shared);
  };
  return asked;
}

}  // namespace

TextFace OpenAiEmbeddings() { return {.errors = ErrorForm::kOpenAi, .read = ReadOpenAi}; }
TextFace PlainEmbeddings() { return {.errors = ErrorForm::kInference, .read = ReadPlain}; }
TextFace Similarities() { return {.errors = ErrorForm::kInference, .read = ReadSimilarity}; }
TextFace CohereEmbeddings() {
  return {.errors = ErrorForm::kInferenceAndMessage, .read = ReadCohereEmbed<2>};
}
TextFace FirstCohereEmbeddings() {
  return {.errors = ErrorForm::kInferenceAndMessage, .read = ReadCohereEmbed<1>};
}

}  // namespace reprise
