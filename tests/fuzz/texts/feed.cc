#include "tests/fuzz/texts/feed.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "runtime/base/clock.h"
#include "server/text/tokenizer.h"
#include "tests/fuzz/texts/seeds.h"

namespace reprise {
namespace {

constexpr int64_t kMostTimeNs = 2'000'000'000;

void Promised(bool holds) {
  if (!holds) std::abort();
}

// Returns the size of a text in the unit of its offsets.
int64_t SizeOf(absl::string_view text, Offsets offsets) {
  if (offsets == Offsets::kBytes) return static_cast<int64_t>(text.size());
  int64_t chars = 0;
  for (const char c : text) chars += (static_cast<uint8_t>(c) & 0xC0) != 0x80 ? 1 : 0;
  return chars;
}

void CheckTokens(const TextTokens& tokens, absl::string_view text,
                 std::optional<absl::string_view> pair, const EncodeOptions& options) {
  const size_t count = tokens.ids.size();
  Promised(tokens.type_ids.size() == count && tokens.special.size() == count);
  Promised(tokens.offsets.size() == (options.offsets == Offsets::kNone ? 0 : count));
  Promised(options.max_tokens == 0 || static_cast<int64_t>(count) <= options.max_tokens);
  Promised(tokens.full_count >= static_cast<int64_t>(count));
  Promised(options.truncation != Truncation::kNone || !tokens.truncated());
  for (size_t i = 0; i < tokens.offsets.size(); ++i) {
    const auto [begin, end] = tokens.offsets[i];
    const bool second = pair.has_value() && tokens.type_ids[i] == 1;
    Promised(begin >= 0 && begin <= end);
    Promised(tokens.special[i] || end <= std::max(SizeOf(text, options.offsets),
                                                  second ? SizeOf(*pair, options.offsets) : 0));
  }
}

absl::Status Encode(const Tokenizer& tokenizer, absl::string_view text,
                    std::optional<absl::string_view> pair, const EncodeOptions& options) {
  const auto tokens = tokenizer.Encode(text, pair, options);
  if (!tokens.ok()) return tokens.status();
  CheckTokens(*tokens, text, pair, options);
  // Whatever ids there are have a text, and a word of the vocabulary.
  tokenizer.Decode(tokens->ids, true).IgnoreError();
  for (const uint32_t id : tokens->ids) tokenizer.Token(id);
  return absl::OkStatus();
}

// Returns the files, which stand one after another, each but the last with a zero at its end. A
// sentencepiece model, which has zeros of its own, is alone.
TokenizerFiles FilesOf(absl::string_view bytes) {
  TokenizerFiles files;
  const auto head = static_cast<uint8_t>(bytes[0]);
  files.kind = static_cast<TokenizerKind>(head % 4);
  files.lower_case = head / 4 % 2 == 1;
  bytes.remove_prefix(1);
  if (files.kind == TokenizerKind::kSentencePiece) {
    files.data = std::string(bytes);
    return files;
  }
  for (std::string* file : {&files.data, &files.merges, &files.config, &files.added_tokens,
                            &files.special_tokens_map, &files.model_config}) {
    const size_t zero = std::min(bytes.find('\0'), bytes.size());
    *file = std::string(bytes.substr(0, zero));
    bytes.remove_prefix(std::min(bytes.size(), zero + 1));
  }
  return files;
}

// Ends a text that takes longer than kMostTimeNs from now.
std::function<absl::Status()> WithinTime() {
  return [end_ns = SteadyClock().NowNs() + kMostTimeNs] {
    return SteadyClock().NowNs() < end_ns ? absl::OkStatus()
                                          : absl::DeadlineExceededError("the time is over");
  };
}

}  // namespace

absl::Status FeedTokenizerFile(absl::string_view bytes) {
  if (bytes.empty()) return absl::OkStatus();
  const auto tokenizer = Tokenizer::Load(FilesOf(bytes));
  if (!tokenizer.ok()) return tokenizer.status();
  for (const absl::string_view text :
       {absl::string_view(""), absl::string_view("Hello worlds! \xF0\x9F\x98\x80 \xE6\x97\xA5"),
        absl::string_view("[CLS] <s> ##s", 13)}) {
    for (const Offsets offsets : {Offsets::kNone, Offsets::kBytes, Offsets::kChars}) {
      Encode(**tokenizer, text, std::nullopt, {.offsets = offsets, .go_on = WithinTime()})
          .IgnoreError();
    }
  }
  const std::vector<uint32_t> ids = {0, 1, 2, 4'000'000'000u};
  (*tokenizer)->Decode(ids, false).IgnoreError();
  return absl::OkStatus();
}

absl::Status FeedText(absl::string_view bytes) {
  constexpr size_t kHead = 4;
  if (bytes.size() < kHead) return absl::OkStatus();
  static const auto& tokenizers = *new std::vector<std::unique_ptr<Tokenizer>>([] {
    std::vector<std::unique_ptr<Tokenizer>> made;
    for (const TextSeed& seed : TokenizerFileSeeds()) {
      if (!seed.loads) continue;
      auto tokenizer = Tokenizer::Load(FilesOf(seed.bytes));
      Promised(tokenizer.ok());
      made.push_back(*std::move(tokenizer));
    }
    return made;
  }());
  const auto byte = [&](size_t at) { return static_cast<uint8_t>(bytes[at]); };
  const EncodeOptions options = {.add_special = byte(1) % 2 == 0,
                                 .offsets = static_cast<Offsets>(byte(1) / 2 % 3),
                                 .truncation = static_cast<Truncation>(byte(2) % 3),
                                 .max_tokens = byte(3) % 32 + (byte(2) % 3 == 0 ? 0 : 4),
                                 .most_tokens = byte(3) < 128 ? 0 : 256,
                                 .go_on = WithinTime()};
  absl::string_view text = bytes.substr(kHead);
  std::optional<absl::string_view> pair;
  if (const size_t zero = text.find('\0'); byte(2) >= 128 && zero != text.npos) {
    pair = text.substr(zero + 1);
    text = text.substr(0, zero);
  }
  return Encode(*tokenizers[byte(0) % tokenizers.size()], text, pair, options);
}

}  // namespace reprise
