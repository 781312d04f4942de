// Text as numbers: a value that is text in the file is int64 after import and holds indices
// (places).
//
// Vocabulary: the distinct texts that a model's file has. RequestTexts: the further texts of one
// request, whose places follow the vocabulary's. So equal texts have equal places within a request;
// a text that the model does not know equals none of its texts.
//
// Threads: a vocabulary is constant once its model is loaded, a request's texts once it is
// admitted; until then one caller.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "runtime/base/hash_map.h"

namespace reprise {

class Vocabulary {
 public:
  // The place of padding: it is not a text, and equals none.
  static constexpr int64_t kNoText = 0;

  Vocabulary() { texts_.push_back({}); }
  Vocabulary(const Vocabulary&) = delete;
  Vocabulary& operator=(const Vocabulary&) = delete;

  // Returns the place of `text`, at the end if it is new.
  int64_t Add(absl::string_view text);
  std::optional<int64_t> Find(absl::string_view text) const;
  // Returns the number of places; text() takes those below it. The text of kNoText is empty.
  int64_t size() const { return static_cast<int64_t>(texts_.size()); }
  absl::string_view text(int64_t place) const { return texts_[static_cast<size_t>(place)]; }

 private:
  HashMap<std::string, int64_t> places_;  // owns the bytes, which stay where they are
  std::vector<absl::string_view> texts_;
};

class RequestTexts {
 public:
  explicit RequestTexts(std::shared_ptr<const Vocabulary> vocabulary)
      : vocabulary_(std::move(vocabulary)) {}

  // Returns the place of `text`, whose bytes the caller keeps as long as this.
  int64_t Place(absl::string_view text);
  // Returns nullopt for a number that is no place of the vocabulary's or of the request's texts.
  std::optional<absl::string_view> Text(int64_t place) const;
  // Returns room for the places of one more input, which stays where it is.
  std::vector<int64_t>& AddPlaces() { return places_.emplace_back(); }

 private:
  const std::shared_ptr<const Vocabulary> vocabulary_;
  HashMap<absl::string_view, int64_t> added_;
  std::vector<absl::string_view> texts_;  // the place of the first is the vocabulary's size
  std::deque<std::vector<int64_t>> places_;
};

// Returns `text` in quotes for a message: cut where it is long, bytes that do not print escaped.
std::string TextForMessage(absl::string_view text);

}  // namespace reprise
