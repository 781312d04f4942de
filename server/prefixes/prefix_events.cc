#include "server/prefixes/prefix_events.h"

#include <bit>

#include "absl/strings/string_view.h"

namespace reprise {
namespace {

void AppendBigEndian(uint64_t value, int bytes, std::string& out) {
  for (int i = bytes - 1; i >= 0; --i) out += static_cast<char>(value >> (8 * i));
}

void AppendArray(size_t size, std::string& out) {
  if (size < 16) {
    out += static_cast<char>(0x90 | size);
  } else if (size <= 0xFFFF) {
    out += '\xdc';
    AppendBigEndian(size, 2, out);
  } else {
    out += '\xdd';
    AppendBigEndian(size, 4, out);
  }
}

void AppendUnsigned(uint64_t value, std::string& out) {
  if (value < 0x80) {
    out += static_cast<char>(value);
  } else if (value <= 0xFFFF) {
    out += '\xcd';
    AppendBigEndian(value, 2, out);
  } else if (value <= 0xFFFFFFFF) {
    out += '\xce';
    AppendBigEndian(value, 4, out);
  } else {
    out += '\xcf';
    AppendBigEndian(value, 8, out);
  }
}

// Writes a hash, which always has eight bytes: readers tell it from a small number by its type.
void AppendHash(uint64_t hash, std::string& out) {
  out += '\xcf';
  AppendBigEndian(hash, 8, out);
}

// `text` has less than 32 bytes.
void AppendName(absl::string_view text, std::string& out) {
  out += static_cast<char>(0xa0 | text.size());
  out.append(text.data(), text.size());
}

void AppendEvent(const PrefixEvent& event, std::string& out) {
  switch (event.kind) {
    case PrefixEvent::Kind::kStored:
      AppendArray(5, out);
      AppendName("BlockStored", out);
      AppendArray(1, out);
      AppendHash(event.page, out);
      event.before == 0 ? out.push_back('\xc0') : AppendHash(event.before, out);
      AppendArray(event.ids.size(), out);
      for (const int64_t id : event.ids) AppendUnsigned(static_cast<uint64_t>(id), out);
      AppendUnsigned(event.ids.size(), out);
      return;
    case PrefixEvent::Kind::kRemoved:
      AppendArray(2, out);
      AppendName("BlockRemoved", out);
      AppendArray(1, out);
      AppendHash(event.page, out);
      return;
    case PrefixEvent::Kind::kCleared:
      AppendArray(1, out);
      AppendName("AllBlocksCleared", out);
      return;
  }
}

}  // namespace

std::string EncodeBatch(double seconds, absl::Span<const PrefixEvent> events) {
  std::string out;
  AppendArray(3, out);
  out += '\xcb';
  AppendBigEndian(std::bit_cast<uint64_t>(seconds), 8, out);
  AppendArray(events.size(), out);
  for (const PrefixEvent& event : events) AppendEvent(event, out);
  out += '\xc0';
  return out;
}

}  // namespace reprise
