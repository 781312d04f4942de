// AnswerText: the text of one answer, token by token: its letters whole, without its stop texts.
//
// Threads: one at a time.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "server/chat/text_wishes.h"
#include "server/hub/text_model.h"
#include "server/text/stop_texts.h"
#include "server/text/text_stream.h"

namespace reprise {

class AnswerText {
 public:
  AnswerText(std::shared_ptr<const TextModel> model, const TextWishes& wishes, int64_t min_tokens)
      : model_(std::move(model)),
        stream_(model_->tokenizer(), wishes.skip_special),
        stops_(wishes.stops, wishes.include_stop),
        min_tokens_(min_tokens) {}

  // Takes a token of the answer. Returns whether its text ends the answer.
  bool Push(int64_t id) {
    ++tokens_;
    Add(stream_.Push(static_cast<uint32_t>(id)));
    return stops_.hit() != nullptr;
  }
  // Returns the text that was not told yet; `ended`: nothing follows.
  std::string Take(bool ended) {
    if (ended) {
      Add(stream_.Finish());
      text_ += stops_.Finish();
    }
    return std::exchange(text_, "");
  }
  // Returns the stop text that was found; null: none.
  const std::string* stop() const { return stops_.hit(); }
  const absl::Status& status() const { return status_; }

 private:
  void Add(absl::StatusOr<std::string> part) {
    if (part.ok()) {
      // Texts do not end an answer before it has its least tokens.
      text_ += tokens_ < min_tokens_ ? *part : stops_.Push(*part);
    } else if (status_.ok()) {
      status_ = part.status();
    }
  }

  const std::shared_ptr<const TextModel> model_;
  TextStream stream_;
  StopTexts stops_;
  const int64_t min_tokens_;
  int64_t tokens_ = 0;
  std::string text_;
  absl::Status status_;
};

}  // namespace reprise
