#include "server/rest/json_document.h"

#include <simdjson.h>

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "runtime/base/memory_net.h"
#include "runtime/base/status_macros.h"
#include "server/rest/json_numbers.h"

namespace reprise {
namespace {

// Bytes that the parser needs for each byte of a text: 8 for the tape, 5/3 for texts, 4 for the
// places where something begins, and a copy.
constexpr int64_t kParserBytesPerByte = 16;
// Whatever the machine has: a thread of the server parses nothing else meanwhile.
constexpr int64_t kMostBytes = int64_t{256} << 20;

}  // namespace

struct JsonDocument::Parser {
  simdjson::dom::parser parser;
};

JsonDocument::JsonDocument(MemoryBudget& budget)
    : budget_(budget), parser_(std::make_unique<Parser>()) {}

JsonDocument::~JsonDocument() { budget_.Give(taken_); }

absl::StatusOr<simdjson::dom::element> JsonDocument::Parse(absl::string_view text) {
  const auto bytes = static_cast<int64_t>(text.size());
  const int64_t most = budget_.max_bytes() > 0
                           ? std::min(kMostBytes, budget_.max_bytes() / kParserBytesPerByte)
                           : kMostBytes;
  if (bytes > most) {
    return absl::InvalidArgumentError(absl::StrCat("the JSON of the request has ", bytes,
                                                   " bytes, the limit is ", most,
                                                   "; send tensors as binary data"));
  }
  if (!budget_.Take(bytes * kParserBytesPerByte)) {
    return absl::UnavailableError(absl::StrCat(
        "the JSON of the request has ", bytes, " bytes, the JSON of other requests takes ",
        budget_.used(), " of ", budget_.max_bytes(), " bytes of memory"));
  }
  taken_ = bytes * kParserBytesPerByte;
  simdjson::dom::element root;
  auto error = parser_->parser.parse(text.data(), text.size()).get(root);
  if (error && error != simdjson::MEMALLOC) {
    // Rare; it takes as long as the first time.
    const std::string plain = WithPlainNumbers(text);
    error = parser_->parser.parse(plain.data(), plain.size()).get(root);
  }
  if (!error) return root;
  // A parser that lacks one of its buffers takes itself for whole: it must not be asked again.
  if (error == simdjson::MEMALLOC) return NoMemoryStatus("the JSON of the request", taken_);
  return absl::InvalidArgumentError(
      absl::StrCat("the request body is not JSON: ", simdjson::error_message(error)));
}

absl::StatusOr<simdjson::dom::object> JsonDocument::ParseObject(absl::string_view body) {
  ASSIGN_OR_RETURN(const simdjson::dom::element json, Parse(body));
  simdjson::dom::object root;
  if (json.get(root) == simdjson::SUCCESS) return root;
  return absl::InvalidArgumentError("the request body must be a JSON object");
}

}  // namespace reprise
