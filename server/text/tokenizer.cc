#include "server/text/tokenizer.h"

#include <functional>

#include "absl/strings/str_cat.h"
#include "runtime/base/load_budget.h"
#include "runtime/base/status_macros.h"
#include "server/text/library_call.h"

namespace reprise {
namespace {

// The vocabularies of the largest models have some 20 MiB.
constexpr size_t kMostFileBytes = size_t{256} << 20;
// Loading takes some 20 bytes for each of a file: its JSON as a tree, then tables and tries.
constexpr int64_t kLoadBytesPerByte = 64;
constexpr int64_t kLeastLoadBytes = int64_t{64} << 20;
// A letter that is a word takes some 570 bytes: its place in the text, its token, and their copies.
constexpr int64_t kBytesPerByte = 768;
constexpr int64_t kLeastBytes = int64_t{1} << 20;
// An id becomes a token's text, which decoders copy some times.
constexpr int64_t kBytesPerId = 2048;

absl::Status CheckBytes(absl::string_view text, int64_t most) {
  if (most <= 0 || static_cast<int64_t>(text.size()) <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("a text has ", text.size(), " bytes, the limit is ", most));
}

reprise_lent Lend(const std::string& text) { return {.data = text.data(), .size = text.size()}; }

reprise_encode_options LibraryOptions(const EncodeOptions& options, Truncation truncation) {
  return {.add_special = options.add_special ? 1 : 0,
          .offsets = static_cast<int32_t>(options.offsets),
          .truncate = static_cast<int32_t>(truncation),
          .max_tokens = static_cast<size_t>(options.max_tokens),
          .most_tokens = static_cast<size_t>(options.most_tokens)};
}

// Copies the tokens, and frees the library's.
TextTokens Take(reprise_encoded& encoded) {
  const std::unique_ptr<reprise_encoded, decltype(&reprise_encoded_free)> owner(
      &encoded, &reprise_encoded_free);
  TextTokens tokens{.ids = {encoded.ids, encoded.ids + encoded.count},
                    .type_ids = {encoded.type_ids, encoded.type_ids + encoded.count},
                    .special = std::vector<bool>(encoded.special, encoded.special + encoded.count),
                    .full_count = static_cast<int64_t>(encoded.full_count)};
  if (encoded.offsets != nullptr) {
    tokens.offsets.reserve(encoded.count);
    for (size_t i = 0; i < encoded.count; ++i) {
      tokens.offsets.emplace_back(encoded.offsets[2 * i], encoded.offsets[2 * i + 1]);
    }
  }
  return tokens;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Tokenizer>> Tokenizer::Load(const TokenizerFiles& files) {
  for (const std::string* file : {&files.data, &files.merges, &files.config, &files.added_tokens,
                                  &files.special_tokens_map, &files.model_config}) {
    if (file->size() > kMostFileBytes) {
      return absl::ResourceExhaustedError(absl::StrCat("a file of the tokenizer has ", file->size(),
                                                       " bytes, the limit is ", kMostFileBytes));
    }
  }
  const auto bytes =
      static_cast<int64_t>(files.data.size() + files.merges.size() + files.config.size());
  const LoadBudget budget(bytes);
  const std::function<absl::Status()> in_time = [&] { return budget.CheckTime("the tokenizer"); };
  const LibraryWatch watch(kLeastLoadBytes + kLoadBytesPerByte * bytes, in_time);
  reprise_tokenizer* tokenizer = nullptr;
  LibraryText error;
  const reprise_tokenizer_files lent = {.kind = static_cast<int32_t>(files.kind),
                                        .lower = files.lower_case ? 1 : 0,
                                        .data = Lend(files.data),
                                        .merges = Lend(files.merges),
                                        .tokenizer_config = Lend(files.config),
                                        .added_tokens = Lend(files.added_tokens),
                                        .special_tokens_map = Lend(files.special_tokens_map),
                                        .model_config = Lend(files.model_config)};
  const int32_t code = reprise_tokenizer_load(&lent, watch.get(), &tokenizer, &error.text);
  RETURN_IF_ERROR(watch.StatusOf(code, error));
  return std::unique_ptr<Tokenizer>(new Tokenizer(tokenizer));
}

int64_t Tokenizer::BytesFor(int64_t text_bytes) { return kLeastBytes + kBytesPerByte * text_bytes; }

Tokenizer::Tokenizer(reprise_tokenizer* tokenizer)
    : tokenizer_(tokenizer), size_(static_cast<int64_t>(reprise_tokenizer_size(tokenizer))) {}

Tokenizer::~Tokenizer() { reprise_tokenizer_free(tokenizer_); }

absl::StatusOr<TextTokens> Tokenizer::Encode(absl::string_view text,
                                             std::optional<absl::string_view> pair,
                                             const EncodeOptions& options) const {
  RETURN_IF_ERROR(CheckBytes(text, options.max_bytes));
  if (pair) RETURN_IF_ERROR(CheckBytes(*pair, options.max_bytes));
  // A null pointer means that there is no second text, and an empty view may have one.
  const char* second = !pair ? nullptr : pair->data() == nullptr ? "" : pair->data();
  const reprise_encode_options wanted = LibraryOptions(options, Resolve(options.truncation));
  const size_t pair_bytes = pair ? pair->size() : 0;
  const LibraryWatch watch(BytesFor(static_cast<int64_t>(text.size() + pair_bytes)), options.go_on);
  reprise_encoded encoded = {};
  LibraryText error;
  const int32_t code =
      reprise_tokenizer_encode(tokenizer_, text.data(), text.size(), second, pair_bytes, &wanted,
                               watch.get(), &encoded, &error.text);
  RETURN_IF_ERROR(watch.StatusOf(code, error));
  return Take(encoded);
}

absl::StatusOr<FirstTokens> Tokenizer::EncodeFirst(absl::string_view text,
                                                   const EncodeOptions& options) const {
  RETURN_IF_ERROR(CheckBytes(text, options.max_bytes));
  const reprise_encode_options wanted = LibraryOptions(options, Resolve(options.truncation));
  const LibraryWatch watch(BytesFor(static_cast<int64_t>(text.size())), options.go_on);
  reprise_first* first = nullptr;
  LibraryText error;
  const int32_t code = reprise_tokenizer_first(tokenizer_, text.data(), text.size(), &wanted,
                                               watch.get(), &first, &error.text);
  RETURN_IF_ERROR(watch.StatusOf(code, error));
  return FirstTokens(first);
}

absl::StatusOr<TextTokens> Tokenizer::EncodePair(const FirstTokens& first, absl::string_view pair,
                                                 const EncodeOptions& options) const {
  RETURN_IF_ERROR(CheckBytes(pair, options.max_bytes));
  const LibraryWatch watch(BytesFor(static_cast<int64_t>(pair.size()) + KeptTokens(first)),
                           options.go_on);
  reprise_encoded encoded = {};
  LibraryText error;
  const int32_t code = reprise_first_pair(tokenizer_, first.get(), pair.data(), pair.size(),
                                          watch.get(), &encoded, &error.text);
  RETURN_IF_ERROR(watch.StatusOf(code, error));
  return Take(encoded);
}

int64_t Tokenizer::KeptTokens(const FirstTokens& first) {
  return static_cast<int64_t>(reprise_first_tokens(first.get()));
}

void FreeFirstTokens::operator()(const reprise_first* first) const {
  reprise_first_free(const_cast<reprise_first*>(first));
}

absl::StatusOr<std::string> Tokenizer::Decode(absl::Span<const uint32_t> ids, bool skip_special,
                                              const std::function<absl::Status()>& go_on) const {
  const LibraryWatch watch(kLeastBytes + kBytesPerId * static_cast<int64_t>(ids.size()), go_on);
  LibraryText text, error;
  const int32_t code =
      reprise_tokenizer_decode(tokenizer_, ids.data(), ids.size(), skip_special ? 1 : 0,
                               watch.get(), &text.text, &error.text);
  RETURN_IF_ERROR(watch.StatusOf(code, error));
  return text.ToString();
}

std::string Tokenizer::Token(uint32_t id) const {
  LibraryText text;
  reprise_tokenizer_token(tokenizer_, id, &text.text, nullptr);
  return text.ToString();
}

std::string Tokenizer::Bytes(uint32_t id) const {
  LibraryText text;
  reprise_tokenizer_bytes(tokenizer_, id, &text.text, nullptr);
  return text.ToString();
}

bool Tokenizer::IsSpecial(uint32_t id) const {
  return reprise_tokenizer_is_special(tokenizer_, id) != 0;
}

std::optional<uint32_t> Tokenizer::Id(absl::string_view token) const {
  const int64_t id = reprise_tokenizer_id(tokenizer_, token.data(), token.size());
  if (id < 0) return std::nullopt;
  return static_cast<uint32_t>(id);
}

Truncation Tokenizer::Resolve(Truncation truncation) const {
  if (truncation != Truncation::kBySide) return truncation;
  return reprise_tokenizer_truncates_left(tokenizer_) != 0 ? Truncation::kLeft : Truncation::kRight;
}

std::string Tokenizer::ContinuingPrefix() const {
  LibraryText prefix, unknown;
  reprise_tokenizer_marks(tokenizer_, &prefix.text, &unknown.text);
  return prefix.ToString();
}

std::string Tokenizer::UnknownToken() const {
  LibraryText prefix, unknown;
  reprise_tokenizer_marks(tokenizer_, &prefix.text, &unknown.text);
  return unknown.ToString();
}

}  // namespace reprise
