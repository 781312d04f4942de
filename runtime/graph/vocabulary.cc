#include "runtime/graph/vocabulary.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace reprise {

int64_t Vocabulary::Add(absl::string_view text) {
  const auto [it, is_new] = places_.try_emplace(std::string(text), size());
  if (is_new) texts_.push_back(it->first);
  return it->second;
}

std::optional<int64_t> Vocabulary::Find(absl::string_view text) const {
  const auto it = places_.find(text);
  if (it == places_.end()) return std::nullopt;
  return it->second;
}

int64_t RequestTexts::Place(absl::string_view text) {
  if (const std::optional<int64_t> known = vocabulary_->Find(text)) return *known;
  const int64_t next = vocabulary_->size() + static_cast<int64_t>(texts_.size());
  const auto [it, is_new] = added_.try_emplace(text, next);
  if (is_new) texts_.push_back(text);
  return it->second;
}

std::optional<absl::string_view> RequestTexts::Text(int64_t place) const {
  if (place < 0) return std::nullopt;
  if (place < vocabulary_->size()) return vocabulary_->text(place);
  const auto own = static_cast<size_t>(place - vocabulary_->size());
  if (own >= texts_.size()) return std::nullopt;
  return texts_[own];
}

std::string TextForMessage(absl::string_view text) {
  constexpr size_t kShown = 60;
  return absl::StrCat("'", absl::CHexEscape(text.substr(0, kShown)),
                      text.size() > kShown ? "...'" : "'");
}

}  // namespace reprise
