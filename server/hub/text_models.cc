#include "server/hub/text_models.h"

#include <utility>

#include "runtime/base/memory_net.h"

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

void TextModels::SetBackground(Background background) {
  MutexLock lock(mutex_);
  background_ = std::move(background);
}

void TextModels::PrepareGrammars(const Model& model, const std::vector<int64_t>& eos,
                                 int64_t vocabulary) const {
  const absl::StatusOr<std::shared_ptr<const TextModel>> text = Find(model);
  Background background;
  {
    MutexLock lock(mutex_);
    background = background_;
  }
  if (!text.ok() || background == nullptr) return;
  // A failure is told by the first request that needs it.
  background([text = *text, eos, vocabulary] {
    WhereMemoryAllows([&] { (void)text->GrammarsOf(eos, vocabulary); });
  });
}

}  // namespace reprise
