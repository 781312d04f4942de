// TextModel: the side of a loaded model that deals with texts: its tokenizer, its tasks, and the
// values of its inputs for a text.
//
// Ownership: shared with the model version. Threads: immutable; all methods from any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/base/mutex.h"
#include "runtime/onnx/model_io.h"
#include "server/hub/text_offer.h"
#include "server/hub/text_package.h"
#include "server/text/chat_template.h"
#include "server/text/grammar.h"
#include "server/text/tokenizer.h"

namespace reprise {

struct TextLimits {
  int64_t max_bytes = int64_t{1} << 20;  // one text's
  int64_t most_tokens = 0;               // one text's, before truncation; 0: no limit
  int64_t most_audio_seconds = 7200;     // the longest sound that is transcribed
};

// A client's options for a text.
struct TextQuestion {
  Truncation truncation = Truncation::kNone;
  bool add_special = true;
  Offsets offsets = Offsets::kNone;
  std::optional<TextSide> side;                   // adds tokens of late interaction; nullopt: none
  std::function<absl::Status()> go_on = nullptr;  // see EncodeOptions
};

// The input `name` of a row of tokens, in the model's form.
struct TokenInput {
  std::string name;
  DType dtype = DType::kInt64;
  int64_t padding = 0;         // the value that follows the last token
  int64_t first_position = 0;  // position_ids begin with it
  bool types = true;           // false: all token_type_ids are 0
};

class TextModel {
 public:
  // Errors: those of Tokenizer::Load, and a default prompt or settings that contradict each other.
  static absl::StatusOr<std::shared_ptr<const TextModel>> Make(TextPackage package, TextOffer offer,
                                                               const std::vector<ModelIo>& inputs,
                                                               const TextLimits& limits);

  const Tokenizer& tokenizer() const { return *tokenizer_; }
  const TextPackage& package() const { return package_; }
  const TextOffer& offer() const { return offer_; }
  const TextLimits& limits() const { return limits_; }
  // Returns the most tokens of a text, special ones included; 0: no file says.
  int64_t max_tokens() const { return package_.max_tokens; }
  // Returns the template of conversations, of those with tools where the folder has one for them.
  // Errors: FAILED_PRECONDITION where there is none, INVALID_ARGUMENT naming the line of one that
  // is wrong.
  absl::StatusOr<const ChatTemplate*> Chat(bool with_tools) const;
  // Returns the vocabulary as grammars read it, made at the first call; `eos` and `vocabulary` are
  // the same at each.
  absl::StatusOr<const Grammars*> GrammarsOf(const std::vector<int64_t>& eos,
                                             int64_t vocabulary) const;
  // Returns the inputs that a text fills.
  const std::vector<TokenInput>& inputs() const { return inputs_; }

  // OK where texts are taken for `task`; kNone stands for any. Errors: FAILED_PRECONDITION
  // naming the task that the model has instead.
  absl::Status Offers(TextTask task) const;

  // Errors: as Tokenizer::Encode; INVALID_ARGUMENT where nothing is left of the text.
  absl::StatusOr<TextTokens> Encode(absl::string_view text, std::optional<absl::string_view> pair,
                                    const TextQuestion& question) const;
  // Returns the first text of pairs, tokenized once for all that are asked with the same
  // `question`, which asks for no offsets. Errors: as Tokenizer::Encode.
  absl::StatusOr<FirstTokens> EncodeFirst(absl::string_view text,
                                          const TextQuestion& question) const;
  absl::StatusOr<TextTokens> EncodePair(const FirstTokens& first, absl::string_view pair,
                                        const TextQuestion& question) const;
  // Checks ids that a client sends in place of a text, and cuts them where it asks for that.
  absl::StatusOr<TextTokens> Take(std::vector<uint32_t> ids, const TextQuestion& question) const;

  // Drops the vectors of tokens that `side` leaves out: see SideTokens::KeepRows.
  int64_t KeepRows(TextSide side, absl::Span<const uint32_t> ids, std::vector<float>& values) const;

  // Returns the values of `input` for the rows, each padded to `length`: ids, 1 or 0, types,
  // positions.
  static std::string Values(const TokenInput& input, const std::vector<const TextTokens*>& rows,
                            int64_t length);

 private:
  TextModel() = default;
  EncodeOptions OptionsOf(const TextQuestion& question) const;
  // Returns nullptr where the question's text has no tokens of a side.
  const SideTokens* SideOf(const std::optional<TextSide>& side) const;
  absl::Status LoadSides(const TokenizerFiles& files);
  void LoadChats(const TextPackage& package);

  // Constant after construction.
  TextPackage package_;
  TextOffer offer_;
  TextLimits limits_;
  std::unique_ptr<Tokenizer> tokenizer_;
  std::vector<TokenInput> inputs_;
  std::optional<SideTokens> document_, query_;  // nullopt: not a model of late interaction
  absl::StatusOr<std::unique_ptr<ChatTemplate>> chat_, tool_chat_;
  // Guarded.
  mutable Mutex mutex_;
  mutable absl::StatusOr<std::unique_ptr<Grammars>> grammars_ GUARDED_BY(mutex_);
};

}  // namespace reprise
