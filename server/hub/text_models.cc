#include "server/hub/text_models.h"

#include <utility>

namespace reprise {

void TextModels::Add(const std::shared_ptr<const Model>& model,
                     std::shared_ptr<const TextModel> text, absl::Status refusal) {
  MutexLock lock(mutex_);
  std::erase_if(entries_, [](const auto& entry) { return entry.second.model.expired(); });
  entries_[model.get()] = {.model = model, .text = std::move(text), .refusal = std::move(refusal)};
}

absl::StatusOr<std::shared_ptr<const TextModel>> TextModels::Find(const Model& model) const {
  MutexLock lock(mutex_);
  const auto entry = entries_.find(&model);
  if (entry == entries_.end()) {
    return absl::FailedPreconditionError("the model takes no texts: its folder has no tokenizer");
  }
  if (entry->second.text == nullptr) return entry->second.refusal;
  return entry->second.text;
}

}  // namespace reprise
