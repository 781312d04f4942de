#include "server/wire/text_tensor.h"

#include <bit>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"

namespace reprise {
namespace {

static_assert(std::endian::native == std::endian::little);
constexpr size_t kLengthBytes = sizeof(uint32_t);

absl::StatusOr<absl::string_view> TextAt(const RequestTexts& texts, const std::string& bytes,
                                         size_t element) {
  int64_t place = 0;
  std::memcpy(&place, bytes.data() + element * sizeof(place), sizeof(place));
  const std::optional<absl::string_view> text = texts.Text(place);
  if (text.has_value()) return *text;
  return absl::InternalError(
      absl::StrCat("element ", element, " is ", place, ", the place of no text"));
}

}  // namespace

absl::Status DecodeTexts(absl::string_view bytes, int64_t elements, RequestTexts& texts,
                         std::vector<int64_t>& places) {
  const int64_t sent = static_cast<int64_t>(bytes.size());
  if (elements > sent / static_cast<int64_t>(kLengthBytes)) {
    return absl::InvalidArgumentError(absl::StrCat(elements, " texts take at least ", kLengthBytes,
                                                   " bytes each, the request has ", sent));
  }
  places.reserve(static_cast<size_t>(elements));
  size_t at = 0;
  for (int64_t i = 0; i < elements; ++i) {
    if (bytes.size() - at < kLengthBytes) {
      return absl::InvalidArgumentError(absl::StrCat("the bytes end before element ", i, " of ",
                                                     elements, ": ", bytes.size() - at,
                                                     " are left, its length takes ", kLengthBytes));
    }
    uint32_t length = 0;
    std::memcpy(&length, bytes.data() + at, kLengthBytes);
    at += kLengthBytes;
    if (length > bytes.size() - at) {
      return absl::InvalidArgumentError(absl::StrCat("element ", i, " says that it has ", length,
                                                     " bytes, ", bytes.size() - at, " are left"));
    }
    places.push_back(texts.Place(bytes.substr(at, length)));
    at += length;
  }
  if (at == bytes.size()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("its ", elements, " texts take ", at, " bytes, the request has ", bytes.size()));
}

absl::StatusOr<std::vector<absl::string_view>> TextsOfInput(absl::string_view name,
                                                            absl::string_view bytes,
                                                            int64_t elements) {
  RequestTexts texts(std::make_shared<const Vocabulary>());
  std::vector<int64_t> places;
  if (const absl::Status decoded = DecodeTexts(bytes, elements, texts, places); !decoded.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("input \"", name, "\": ", decoded.message()));
  }
  std::vector<absl::string_view> views;
  views.reserve(places.size());
  for (const int64_t place : places) views.push_back(texts.Text(place).value_or(""));
  return views;
}

absl::Status EncodeTexts(const RequestTexts& texts, int64_t most, std::string& bytes) {
  const size_t elements = bytes.size() / sizeof(int64_t);
  uint64_t total = 0;  // cannot overflow: 2^60 elements of less than 2^32 bytes each
  for (size_t i = 0; i < elements; ++i) {
    ASSIGN_OR_RETURN(const absl::string_view text, TextAt(texts, bytes, i));
    total += kLengthBytes + text.size();
    if (total > static_cast<uint64_t>(most)) {
      return absl::InvalidArgumentError(absl::StrCat("its ", elements, " texts take more than ",
                                                     most, " bytes; ask for fewer rows"));
    }
  }
  std::string encoded;
  encoded.reserve(total);
  for (size_t i = 0; i < elements; ++i) {
    ASSIGN_OR_RETURN(const absl::string_view text, TextAt(texts, bytes, i));
    const auto length = static_cast<uint32_t>(text.size());
    encoded.append(reinterpret_cast<const char*>(&length), kLengthBytes);
    encoded.append(text.data(), text.size());
  }
  bytes = std::move(encoded);
  return absl::OkStatus();
}

}  // namespace reprise
