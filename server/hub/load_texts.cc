#include "server/hub/load_texts.h"

#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/onnx/importer.h"
#include "server/hub/drop_caches.h"

namespace reprise {

TextLoad::TextLoad(const std::string& model_file, const TextSettings& settings)
    : settings_(settings) {
  if (settings.off) return;
  auto package = ReadTextPackage(model_file);
  if (package.ok()) {
    package_ = *std::move(package);
    if (settings.pooling) OverridePooling(*settings.pooling, package_);
    if (settings.words) OverrideBySplade(package_);
    if (settings.tokens) OverrideByTokens(package_);
  } else {
    damaged_ = package.status();
  }
}

// Returns whether a decoder is loaded for vectors, not for the tokens that it makes.
bool TextLoad::IsEmbedder(const ImportedModel& model) const {
  if (!HasCaches(model)) return false;
  const auto named = [&](absl::string_view name) {
    return absl::c_any_of(model.outputs, [&](const ModelIo& io) { return io.name == name; });
  };
  return package_.sentence_transformer || settings_.pooling || settings_.tokens || !named("logits");
}

void TextLoad::Refuse(const absl::Status& why) {
  offer_ = {.why = std::string(why.message()), .refusal = why};
  note_ = absl::StrCat("texts are not accepted: ", why.message());
}

absl::Status TextLoad::refusal() const {
  if (!offer_.refusal.ok()) return offer_.refusal;
  return absl::FailedPreconditionError(
      settings_.off ? "the model takes no texts: reprise.pooling is none"
                    : "the model takes no texts: its folder has no tokenizer");
}

absl::Status TextLoad::Extend(ImportedModel& model) {
  if (settings_.off) return absl::OkStatus();
  if (!damaged_.ok()) {
    Refuse(damaged_);
    return absl::OkStatus();
  }
  if (!package_.tokenizer.has_value()) return absl::OkStatus();
  if (IsEmbedder(model) && HasVectors(model.outputs)) {
    package_.is_decoder = true;
    DropCaches(model);
  }
  offer_ = DecideTextOffer(package_, model.inputs, model.outputs);
  if (offer_.task == TextTask::kNone) {
    note_ = absl::StrCat("texts are not accepted: ", offer_.why);
    return absl::OkStatus();
  }
  note_ = absl::StrCat("texts by ", package_.tokenizer_file, ": ", TextTaskName(offer_.task), " (",
                       offer_.why, ")");
  if (!offer_.append_head) return absl::OkStatus();
  offer_.head.keep_outputs = settings_.keep_outputs;
  return AppendEmbeddingHead(offer_.head, model);
}

std::shared_ptr<const TextModel> TextLoad::Finish(const Model& model) {
  if (!package_.tokenizer.has_value()) return nullptr;
  auto made = TextModel::Make(std::move(package_), offer_, model.inputs(), settings_.limits);
  if (made.ok()) return *std::move(made);
  Refuse(made.status());
  return nullptr;
}

}  // namespace reprise
