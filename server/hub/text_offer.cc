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

// The output "logits", or the first float of `rank`.
const ModelIo* FindOutput(const std::vector<ModelIo>& outputs, absl::string_view name,
                          size_t rank) {
  const ModelIo* named = FindIo(outputs, name);
  if (named != nullptr && IsFloat(named->dtype) && named->dims.size() == rank) return named;
  for (const ModelIo& io : outputs) {
    if (IsFloat(io.dtype) && io.dims.size() == rank) return &io;
  }
  return nullptr;
}

// Why the inputs cannot be made from tokens; empty: they can.
std::string InputTrouble(const std::vector<ModelIo>& inputs) {
  if (FindIo(inputs, "input_ids") == nullptr) return "it has no input \"input_ids\"";
  for (const ModelIo& input : inputs) {
    if (IsTokenInput(input) || input.optional) continue;
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

TextOffer OfVectors(const TextPackage& package, const ModelIo& hidden) {
  const Dim& width = hidden.dims.back();
  if (package.pooled_width > 0 && width.is_constant() && width.size != package.pooled_width) {
    return RefuseBecause(absl::StrCat("1_Pooling/config.json: word_embedding_dimension is ",
                                      package.pooled_width, ", the model's output \"", hidden.name,
                                      "\" has ", width.size));
  }
  TextOffer offer{.task = TextTask::kEmbed, .output = kEmbeddingOutput, .append_head = true};
  offer.head = {.hidden = hidden.name,
                .poolings = package.poolings,
                .dense = package.dense,
                .normalize = package.normalize};
  if (offer.head.poolings.empty()) {
    offer.head.poolings = {Pooling::kMean};
    offer.why = "no file says how tokens are pooled: their mean is taken";
  } else {
    std::string poolings;
    for (const Pooling pooling : offer.head.poolings) {
      absl::StrAppend(&poolings, poolings.empty() ? "" : " and ", PoolingName(pooling));
    }
    offer.why = absl::StrCat("modules.json: ", poolings, " of \"", hidden.name, "\"",
                             package.dense.empty() ? "" : ", dense",
                             package.normalize ? ", normalised" : "");
  }
  return offer;
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
  }
  return "none";
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
  if (const ModelIo* vector = FindOf(outputs, kVectorOutputs, 2); vector != nullptr) {
    return {.task = TextTask::kEmbed,
            .output = vector->name,
            .why = absl::StrCat("the model itself has the output \"", vector->name, "\"")};
  }
  const bool tags = absl::EndsWith(package.architecture, "ForTokenClassification");
  const bool classifies = absl::EndsWith(package.architecture, "ForSequenceClassification");
  if (tags && !package.sentence_transformer) {
    const ModelIo* logits = FindOutput(outputs, "logits", 3);
    if (logits != nullptr) return OfLabels(package, *logits, TextTask::kTag);
    return RefuseBecause(absl::StrCat("config.json names ", package.architecture,
                                      ", and no output has a score a token and label"));
  }
  const ModelIo* hidden = FindOf(outputs, kHiddenOutputs, 3);
  if (!package.sentence_transformer && (classifies || hidden == nullptr)) {
    const ModelIo* logits =
        classifies ? FindOutput(outputs, "logits", 2) : FindIo(outputs, "logits");
    if (logits != nullptr && logits->dims.size() == 2 && IsFloat(logits->dtype)) {
      return OfLabels(package, *logits, TextTask::kClassify);
    }
    if (classifies) {
      return RefuseBecause(absl::StrCat("config.json names ", package.architecture,
                                        ", and no output has a score a label"));
    }
  }
  // An output of another name is as good where the folder is that of a sentence transformer, or a
  // plain encoder's. The scores of a decoder are no vectors.
  if (hidden == nullptr && FindIo(outputs, "logits") == nullptr) {
    hidden = FindOutput(outputs, "last_hidden_state", 3);
  }
  if (hidden != nullptr) return OfVectors(package, *hidden);
  return RefuseBecause("none of its outputs is known to be a vector, or scores, of a text");
}

}  // namespace reprise
