#include "server/hub/text_offer.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace reprise {
namespace {

constexpr const char* kTokenInputs[] = {"input_ids", "attention_mask", "token_type_ids",
                                        "position_ids"};
constexpr const char* kHiddenOutputs[] = {"last_hidden_state", "token_embeddings", "hidden_states",
                                          "hidden_state"};
constexpr const char* kVectorOutputs[] = {"sentence_embedding", "text_embeds", "text_embedding",
                                          "sentence_embeddings"};

TextOffer Refuse(absl::Status why) {
  return {.why = std::string(why.message()), .refusal = std::move(why)};
}

TextOffer RefuseBecause(absl::string_view why) {
  return Refuse(absl::FailedPreconditionError(absl::StrCat("the model takes no texts: ", why)));
}

bool IsFloat(DType dtype) {
  return dtype == DType::kFloat32 || dtype == DType::kFloat16 || dtype == DType::kBFloat16;
}

const ModelIo* FindIo(const std::vector<ModelIo>& ios, absl::string_view name) {
  const auto it = std::find_if(ios.begin(), ios.end(),
                               [&](const ModelIo& io) { return io.name == std::string(name); });
  return it == ios.end() ? nullptr : &*it;
}

template <size_t n>
const ModelIo* FindOf(const std::vector<ModelIo>& ios, const char* const (&names)[n], size_t rank) {
  for (const char* name : names) {
    const ModelIo* io = FindIo(ios, name);
    if (io != nullptr && IsFloat(io->dtype) && io->dims.size() == rank) return io;
  }
  return nullptr;
}

// Returns the output "logits", or the first float of `rank`.
const ModelIo* FindOutput(const std::vector<ModelIo>& outputs, absl::string_view name,
                          size_t rank) {
  const ModelIo* named = FindIo(outputs, name);
  if (named != nullptr && IsFloat(named->dtype) && named->dims.size() == rank) return named;
  for (const ModelIo& io : outputs) {
    if (IsFloat(io.dtype) && io.dims.size() == rank) return &io;
  }
  return nullptr;
}

// Returns why the inputs cannot be made from tokens; empty: they can.
std::string InputTrouble(const std::vector<ModelIo>& inputs) {
  if (FindIo(inputs, "input_ids") == nullptr) return "it has no input \"input_ids\"";
  for (const ModelIo& input : inputs) {
    if (IsTokenInput(input) || input.optional) continue;
    if (absl::StrContains(input.name, "past_key_values")) {
      return absl::StrCat("its input \"", input.name,
                          "\" is of a decoder, which answers /v1/completions and "
                          "/v1/chat/completions; for vectors export it for feature-extraction");
    }
    return absl::StrCat("its input \"", input.name, "\" is none that is made from a text's tokens");
  }
  return "";
}

TextOffer OfLabels(const TextPackage& package, const ModelIo& output, TextTask task) {
  TextOffer offer{.task = task,
                  .output = output.name,
                  .why = package.architecture.empty()
                             ? absl::StrCat("its output \"", output.name, "\" has a score a label")
                             : absl::StrCat("config.json names ", package.architecture)};
  const Dim& last = output.dims.back();
  const auto labels = static_cast<int64_t>(package.labels.size());
  if (labels > 0 && last.is_constant() && last.size != labels) {
    return RefuseBecause(absl::StrCat("config.json has ", labels, " labels, its output \"",
                                      output.name, "\" has ", last.size, " scores"));
  }
  const int64_t scores = last.is_constant() ? last.size : labels;
  if (task == TextTask::kClassify && scores == 1) offer.task = TextTask::kRank;
  return offer;
}

// Returns the output of the model that modules read. `rank`: 3 for a vector a token.
const ModelIo* FindSource(const TextPackage& package, const std::vector<ModelIo>& outputs) {
  const std::string& name = package.vectors_output;
  const size_t rank = package.vectors_name == kTokenVectors ? 3 : 2;
  const bool usual = name.empty() || name == kHiddenOutputs[0];
  if (!usual || rank == 2) {
    const ModelIo* named = FindIo(outputs, name);
    return named != nullptr && IsFloat(named->dtype) && named->dims.size() == rank ? named
                                                                                   : nullptr;
  }
  const ModelIo* hidden = FindOf(outputs, kHiddenOutputs, 3);
  // An output of another name will do where the folder is a sentence transformer's, or a plain
  // encoder's. The scores of a decoder are no vectors.
  if (hidden == nullptr && FindIo(outputs, "logits") == nullptr) {
    hidden = FindOutput(outputs, kHiddenOutputs[0], 3);
  }
  return hidden;
}

// "mean and max of \"last_hidden_state\", dense, normalised".
std::string DescribeSteps(const EmbeddingHead& head) {
  const std::string pooled = PoolingNames(head.steps, " and ");
  std::string text = pooled.empty() ? absl::StrCat("\"", head.source, "\"")
                                    : absl::StrCat(pooled, " of \"", head.source, "\"");
  for (const HeadStep& step : head.steps) {
    if (std::holds_alternative<DenseLayer>(step)) text += ", dense";
    if (const auto* splade = std::get_if<SpladeStep>(&step)) {
      text += splade->sums ? ", the sum a word" : ", the largest a word";
    }
    if (std::holds_alternative<LayerNormStep>(step)) text += ", layer norm";
    if (std::holds_alternative<NormalizeStep>(step)) text += ", normalised";
  }
  if (head.truncate_dim > 0) absl::StrAppend(&text, ", cut to ", head.truncate_dim);
  return text;
}

// Checks the width that a folder gives the vectors of `output`.
absl::Status CheckSource(const TextPackage& package, const ModelIo& output) {
  const Dim& width = output.dims.back();
  const auto* pooling =
      package.steps.empty() ? nullptr : std::get_if<PoolingStep>(&package.steps.front());
  if (pooling == nullptr || pooling->width == 0 || !width.is_constant() ||
      width.size == pooling->width) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "the model takes no texts: ", pooling->folder, "/config.json: word_embedding_dimension is ",
      pooling->width, ", the model's output \"", output.name, "\" has ", width.size));
}

// Returns whether a vector a token is answered: the folder says so, or no module makes one of a
// text.
bool AnswersTokens(const TextPackage& package) {
  if (package.late || package.token_vectors) return true;
  return package.sentence_transformer && !package.cross_encoder &&
         package.vectors_name == kTokenVectors && !Writes(package.steps, kTextVectors) &&
         !Writes(package.steps, kScores);
}

// Returns the offer of a vector a token.
TextOffer OfTokens(const TextPackage& package, const ModelIo& source) {
  TextOffer offer{.task = TextTask::kTokens, .output = kTokenVectors, .append_head = true};
  offer.head = {.source = source.name,
                .source_name = kTokenVectors,
                .steps = package.steps,
                .result = kTokenVectors};
  if (package.truncate_dim > 0) {
    return RefuseBecause(absl::StrCat("config_sentence_transformers.json: truncate_dim is ",
                                      package.truncate_dim, ", and vectors of tokens are not cut"));
  }
  if (Writes(package.steps, kTextVectors)) {
    return RefuseBecause(
        "modules.json makes one vector of a text, and the model is one of late "
        "interaction");
  }
  const Dim& last = source.dims.back();
  const auto width = WidthAfter(offer.head.steps, kTokenVectors, last.is_constant() ? last.size : 0,
                                kTokenVectors);
  if (!width.ok()) return RefuseBecause(width.status().message());
  offer.why = absl::StrCat(package.token_vectors ? "reprise.pooling: " : "modules.json: ",
                           DescribeSteps(offer.head), ", a vector a token");
  return offer;
}

TextOffer OfSteps(const TextPackage& package, const ModelIo& source) {
  if (AnswersTokens(package)) return OfTokens(package, source);
  if (const absl::Status fits = CheckSource(package, source); !fits.ok()) return Refuse(fits);
  const bool scores = package.cross_encoder;
  TextOffer offer{.task = package.sparse ? TextTask::kSparse : TextTask::kEmbed,
                  .append_head = true};
  offer.head = {.source = source.name,
                .source_name = package.vectors_name,
                .steps = package.steps,
                .result = scores ? kScores : kTextVectors,
                .truncate_dim = scores ? 0 : package.truncate_dim};
  offer.output = offer.head.result;
  const bool guessed = !package.sentence_transformer && package.steps.empty();
  if (guessed) {
    offer.head.steps = {
        PoolingStep{.poolings = {package.is_decoder ? Pooling::kLastToken : Pooling::kMean}}};
  }
  const Dim& last = source.dims.back();
  const auto width = WidthAfter(offer.head.steps, offer.head.source_name,
                                last.is_constant() ? last.size : 0, offer.head.result);
  if (!width.ok()) {
    return RefuseBecause(width.status().message());
  }
  if (scores) offer.task = *width == 1 ? TextTask::kRank : TextTask::kClassify;
  offer.why =
      guessed ? package.is_decoder
                    ? "no file says how tokens are pooled: the last one of a decoder counts"
                    : "no file says how tokens are pooled: their mean is taken"
              : absl::StrCat(package.sentence_transformer ? "modules.json: " : "reprise.pooling: ",
                             DescribeSteps(offer.head));
  return offer;
}

// Returns the offer of a sequence classifier.
TextOffer OfClassifier(const TextPackage& package, const std::vector<ModelIo>& outputs) {
  const ModelIo* logits = FindOutput(outputs, "logits", 2);
  if (logits != nullptr) return OfLabels(package, *logits, TextTask::kClassify);
  return RefuseBecause(
      package.cross_encoder
          ? "config_sentence_transformers.json says that it is a CrossEncoder, and no "
            "output has a score a label"
          : absl::StrCat("config.json names ", package.architecture,
                         ", and no output has a score a label"));
}

// Returns the offer of a sentence transformer, or of a cross encoder, by its modules.
TextOffer OfModules(const TextPackage& package, const std::vector<ModelIo>& outputs) {
  const bool has_scores = package.cross_encoder || package.vectors_name == kScores;
  if (has_scores && package.steps.empty()) return OfClassifier(package, outputs);
  const ModelIo* source = FindSource(package, outputs);
  if (source != nullptr) return OfSteps(package, *source);
  if (!package.vectors_output.empty()) {
    return RefuseBecause(absl::StrCat(
        "sentence_bert_config.json reads its output \"", package.vectors_output,
        "\", and it has none of that name with ",
        package.vectors_name == kTokenVectors ? "a vector a token" : "a vector a text"));
  }
  if (absl::EndsWith(package.architecture, "ForMaskedLM")) {
    return RefuseBecause(
        "it is a masked language model, and no file says how its scores are used (parameter "
        "reprise.pooling: splade makes weights of words of them)");
  }
  return RefuseBecause("none of its outputs is known to be a vector, or scores, of a text");
}

// Returns the offer of a model whose own output is a vector a text.
TextOffer OfOwnVectors(const TextPackage& package, const ModelIo& vector) {
  if (package.truncate_dim > 0) {
    return RefuseBecause(absl::StrCat("config_sentence_transformers.json: truncate_dim is ",
                                      package.truncate_dim, ", and the model's own output \"",
                                      vector.name, "\" is not cut"));
  }
  return {.task = TextTask::kEmbed,
          .output = vector.name,
          .why = absl::StrCat("the model itself has the output \"", vector.name, "\"")};
}

}  // namespace

const char* TextTaskName(TextTask task) {
  switch (task) {
    case TextTask::kNone:
      return "none";
    case TextTask::kEmbed:
      return "embeddings";
    case TextTask::kRank:
      return "rerank";
    case TextTask::kClassify:
      return "classification";
    case TextTask::kTag:
      return "token classification";
    case TextTask::kSparse:
      return "sparse embeddings";
    case TextTask::kTokens:
      return "token embeddings";
  }
  return "none";
}

bool HasVectors(const std::vector<ModelIo>& outputs) {
  return FindOf(outputs, kHiddenOutputs, 3) != nullptr;
}

bool IsTokenInput(const ModelIo& input) {
  const bool numbers = input.dtype == DType::kInt64 || input.dtype == DType::kInt32;
  return numbers && input.dims.size() == 2 &&
         std::find(std::begin(kTokenInputs), std::end(kTokenInputs), input.name) !=
             std::end(kTokenInputs);
}

TextOffer DecideTextOffer(const TextPackage& package, const std::vector<ModelIo>& inputs,
                          const std::vector<ModelIo>& outputs) {
  if (!package.tokenizer.has_value()) return RefuseBecause("its folder has no tokenizer");
  if (const std::string trouble = InputTrouble(inputs); !trouble.empty()) {
    return RefuseBecause(trouble);
  }
  const bool other =
      package.cross_encoder || package.sparse || package.token_vectors || package.late.has_value();
  const ModelIo* vector = other ? nullptr : FindOf(outputs, kVectorOutputs, 2);
  if (package.late && package.late->query.filled_to > 0 && !package.late->query.attends &&
      FindIo(inputs, "attention_mask") == nullptr) {
    return RefuseBecause(
        "tokens do not attend to those that fill queries up, and it has no input "
        "\"attention_mask\"");
  }
  if (vector != nullptr) return OfOwnVectors(package, *vector);
  if (package.sentence_transformer || other) return OfModules(package, outputs);
  const bool tags = absl::EndsWith(package.architecture, "ForTokenClassification");
  const bool classifies = absl::EndsWith(package.architecture, "ForSequenceClassification");
  if (tags) {
    const ModelIo* logits = FindOutput(outputs, "logits", 3);
    if (logits != nullptr) return OfLabels(package, *logits, TextTask::kTag);
    return RefuseBecause(absl::StrCat("config.json names ", package.architecture,
                                      ", and no output has a score a token and label"));
  }
  if (classifies) return OfClassifier(package, outputs);
  const ModelIo* logits = FindIo(outputs, "logits");
  if (FindOf(outputs, kHiddenOutputs, 3) == nullptr && logits != nullptr &&
      logits->dims.size() == 2 && IsFloat(logits->dtype)) {
    return OfLabels(package, *logits, TextTask::kClassify);
  }
  return OfModules(package, outputs);
}

}  // namespace reprise
