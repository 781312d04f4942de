#include "server/tracing/trace_context.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace reprise {
namespace {

// "00-" 32 digits "-" 16 digits "-" 2 digits.
constexpr size_t kParentLength = 55;
constexpr size_t kTraceAt = 3, kSpanAt = 36, kFlagsAt = 53;
constexpr size_t kSpanDigits = 16;
// The standard asks that this much of it is passed on.
constexpr size_t kMostStateBytes = 512;

// Digits are in lower case: others are refused, as the standard has it.
bool IsHex(absl::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return absl::ascii_isdigit(c) || (c >= 'a' && c <= 'f'); });
}

uint64_t Hex(absl::string_view digits) {
  uint64_t value = 0;
  (void)absl::SimpleHexAtoi(digits, &value);
  return value;
}

std::string Digits(uint64_t value) { return absl::StrCat(absl::Hex(value, absl::kZeroPad16)); }

}  // namespace

std::optional<TraceContext> ReadTraceContext(absl::string_view parent, absl::string_view state) {
  if (parent.size() < kParentLength) return std::nullopt;
  const absl::string_view version = parent.substr(0, 2);
  // A later version may have more after a dash; its first fields are these.
  const bool fits = version == "00"
                        ? parent.size() == kParentLength
                        : parent.size() == kParentLength || parent[kParentLength] == '-';
  if (!fits || version == "ff" || parent[kTraceAt - 1] != '-' || parent[kSpanAt - 1] != '-' ||
      parent[kFlagsAt - 1] != '-') {
    return std::nullopt;
  }
  const absl::string_view trace = parent.substr(kTraceAt, 2 * kSpanDigits);
  const absl::string_view span = parent.substr(kSpanAt, kSpanDigits);
  const absl::string_view flags = parent.substr(kFlagsAt, 2);
  if (!IsHex(version) || !IsHex(trace) || !IsHex(span) || !IsHex(flags)) return std::nullopt;
  TraceContext context = {
      .trace = {Hex(trace.substr(0, kSpanDigits)), Hex(trace.substr(kSpanDigits))},
      .span = Hex(span),
      .sampled = (Hex(flags) & 1) != 0};
  if ((context.trace[0] == 0 && context.trace[1] == 0) || context.span == 0) return std::nullopt;
  const bool printable =
      std::all_of(state.begin(), state.end(), [](char c) { return c >= ' ' && c <= '~'; });
  if (state.size() <= kMostStateBytes && printable) context.state = std::string(state);
  return context;
}

std::string TraceParentText(const TraceContext& context, uint64_t span) {
  return absl::StrCat("00-", TraceIdText(context.trace), "-", Digits(span), "-",
                      context.sampled ? "01" : "00");
}

std::string TraceIdText(const std::array<uint64_t, 2>& trace) {
  return absl::StrCat(Digits(trace[0]), Digits(trace[1]));
}

}  // namespace reprise
