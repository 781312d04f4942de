#include "runtime/base/shown_text.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"

namespace reprise {
namespace {

// Returns whether it is a control character, a line or paragraph separator, or a mark that reorders
// or hides text.
bool IsHidden(uint32_t code) {
  constexpr struct {
    uint32_t first, last;
  } kHidden[] = {{0x00, 0x1f},     {0x7f, 0x9f},      {0xad, 0xad},     {0x61c, 0x61c},
                 {0x200b, 0x200f}, {0x2028, 0x202e},  {0x2060, 0x206f}, {0xfeff, 0xfeff},
                 {0xfff9, 0xfffb}, {0xe0000, 0xe007f}};
  return std::any_of(std::begin(kHidden), std::end(kHidden),
                     [&](const auto& range) { return code >= range.first && code <= range.last; });
}

void AppendEscaped(uint32_t code, std::string& out) {
  switch (code) {
    case '\n':
      out += "\\n";
      return;
    case '\r':
      out += "\\r";
      return;
    case '\t':
      out += "\\t";
      return;
    default:
      break;
  }
  if (code < 0x80) {
    absl::StrAppend(&out, "\\x", absl::Hex(code, absl::kZeroPad2));
  } else {
    absl::StrAppend(&out, "\\u{", absl::Hex(code), "}");
  }
}

// Returns where the character that byte `at` belongs to begins.
size_t CharacterStart(absl::string_view text, size_t at) {
  size_t start = at;
  while (start > 0 && at - start < 3 && (static_cast<unsigned char>(text[start]) & 0xc0) == 0x80) {
    --start;
  }
  const Utf8Character character = FirstCharacter(text.substr(start));
  return start + character.bytes > at ? start : at;
}

}  // namespace

Utf8Character FirstCharacter(absl::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return {.code = first, .bytes = 1};
  if (first < 0xc2 || first > 0xf4) return {.broken = 1};
  const size_t bytes = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  uint32_t code = first & (0xff >> (bytes + 1));
  for (size_t i = 1; i < bytes; ++i) {
    // After these the second byte has a smaller range.
    const unsigned char least = i > 1 ? 0x80 : first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
    const unsigned char most = i > 1 ? 0xbf : first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
    if (i == text.size() || byte(i) < least || byte(i) > most) return {.broken = i};
    code = code << 6 | (byte(i) & 0x3f);
  }
  return {.code = code, .bytes = bytes};
}

std::string Printable(absl::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Utf8Character character = FirstCharacter(text);
    if (character.bytes == 0) {
      absl::StrAppend(&out, "\\x",
                      absl::Hex(static_cast<unsigned char>(text.front()), absl::kZeroPad2));
      text.remove_prefix(1);
      continue;
    }
    if (IsHidden(character.code)) {
      AppendEscaped(character.code, out);
    } else {
      out.append(text.data(), character.bytes);
    }
    text.remove_prefix(character.bytes);
  }
  return out;
}

bool IsPrintable(absl::string_view text) {
  while (!text.empty()) {
    const Utf8Character character = FirstCharacter(text);
    if (character.bytes == 0 || IsHidden(character.code)) return false;
    text.remove_prefix(character.bytes);
  }
  return true;
}

std::string ShownText(absl::string_view text, size_t most_bytes) {
  if (text.size() <= most_bytes) return Printable(text);
  return absl::StrCat(Printable(text.substr(0, CharacterStart(text, most_bytes))), "… (",
                      text.size(), " bytes)");
}

std::string QuotedText(absl::string_view text, size_t most_bytes) {
  std::string quoted = "\"";
  for (const char c : ShownText(text, most_bytes)) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + '"';
}

}  // namespace reprise
