#include "server/http2/grpc_text.h"

#include <limits>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"

namespace reprise {
namespace {

constexpr size_t kMostDigits = 8;

// Nanoseconds of a unit; 0: there is no such unit.
int64_t UnitOf(char unit) {
  switch (unit) {
    case 'H':
      return int64_t{3'600'000'000'000};
    case 'M':
      return int64_t{60'000'000'000};
    case 'S':
      return int64_t{1'000'000'000};
    case 'm':
      return 1'000'000;
    case 'u':
      return 1'000;
    case 'n':
      return 1;
    default:
      return 0;
  }
}

}  // namespace

std::optional<std::chrono::nanoseconds> ParseGrpcTimeout(absl::string_view text) {
  if (text.size() < 2 || text.size() > kMostDigits + 1) return std::nullopt;
  const int64_t unit = UnitOf(text.back());
  int64_t number = 0;
  for (const char digit : text.substr(0, text.size() - 1)) {
    if (!absl::ascii_isdigit(static_cast<unsigned char>(digit))) return std::nullopt;
    number = number * 10 + (digit - '0');
  }
  if (unit == 0) return std::nullopt;
  int64_t time = 0;
  if (__builtin_mul_overflow(number, unit, &time)) time = std::numeric_limits<int64_t>::max();
  return std::chrono::nanoseconds(time);
}

std::string PercentEncoded(absl::string_view text) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  std::string encoded;
  encoded.reserve(text.size());
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte <= 0x7E && c != '%') {
      encoded += c;
    } else {
      encoded += {'%', kDigits[byte >> 4], kDigits[byte & 15]};
    }
  }
  return encoded;
}

bool IsGrpcContent(absl::string_view content_type) {
  constexpr absl::string_view kGrpc = "application/grpc";
  if (!absl::StartsWithIgnoreCase(content_type, kGrpc)) return false;
  content_type.remove_prefix(kGrpc.size());
  return content_type.empty() || content_type[0] == '+' || content_type[0] == ';';
}

bool IsReservedField(absl::string_view name) {
  return absl::StartsWith(name, ":") || absl::StartsWith(name, "grpc-") || name == "te" ||
         name == "content-type" || name == "content-length" || name == "accept-encoding";
}

std::optional<std::string> DecodeBinaryField(absl::string_view value) {
  std::string decoded;
  if (!absl::Base64Unescape(value, &decoded)) return std::nullopt;
  return decoded;
}

}  // namespace reprise
