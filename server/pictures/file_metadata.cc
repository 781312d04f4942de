#include "server/pictures/file_metadata.h"

#include <google/protobuf/io/coded_stream.h>

#include <cstdint>
#include <fstream>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace reprise {
namespace {

using google::protobuf::io::CodedInputStream;

constexpr uint32_t kMetadataField = 14;  // ModelProto.metadata_props
constexpr uint64_t kMostEntryBytes = 1 << 20;
constexpr int64_t kMostSide = 8192;
constexpr size_t kMostEntries = 256, kMostNames = 1 << 16;
constexpr int kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5;

// Reads a number as protobuf writes it. False at the end of the file, or where it is damaged.
bool ReadVarint(std::istream& file, uint64_t& value) {
  value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    const int byte = file.get();
    if (byte < 0) return false;
    value |= static_cast<uint64_t>(byte & 0x7F) << shift;
    if ((byte & 0x80) == 0) return true;
  }
  return false;
}

// StringStringEntryProto: key = 1, value = 2.
void TakeEntry(const std::string& bytes, std::map<std::string, std::string>& entries) {
  CodedInputStream in(reinterpret_cast<const uint8_t*>(bytes.data()),
                      static_cast<int>(bytes.size()));
  std::string parts[2];
  while (const uint32_t tag = in.ReadTag()) {
    uint32_t size = 0;
    if ((tag & 7) != kBytes || tag >> 3 < 1 || tag >> 3 > 2 || !in.ReadVarint32(&size) ||
        !in.ReadString(&parts[(tag >> 3) - 1], static_cast<int>(size))) {
      return;
    }
  }
  entries[parts[0]] = parts[1];
}

}  // namespace

std::map<std::string, std::string> ReadMetadata(const std::filesystem::path& model_file) {
  std::map<std::string, std::string> entries;
  std::ifstream file(model_file, std::ios::binary);
  uint64_t tag = 0, size = 0;
  while (entries.size() < kMostEntries && ReadVarint(file, tag)) {
    const auto kind = static_cast<int>(tag & 7);
    if (kind == kVarint) {
      if (!ReadVarint(file, size)) break;
    } else if (kind == kFixed64 || kind == kFixed32) {
      file.seekg(kind == kFixed64 ? 8 : 4, std::ios::cur);
    } else if (kind != kBytes || !ReadVarint(file, size)) {
      break;
    } else if (tag >> 3 == kMetadataField && size <= kMostEntryBytes) {
      std::string bytes(size, '\0');
      if (!file.read(bytes.data(), static_cast<std::streamsize>(size))) break;
      TakeEntry(bytes, entries);
    } else {
      file.seekg(static_cast<std::streamoff>(size), std::ios::cur);
    }
  }
  return entries;
}

std::vector<int64_t> SidesOfSize(absl::string_view size) {
  if (!absl::ConsumePrefix(&size, "[") || !absl::ConsumeSuffix(&size, "]")) return {};
  std::vector<int64_t> sides;
  for (const absl::string_view one : absl::StrSplit(size, ',')) {
    int64_t side = 0;
    if (!absl::SimpleAtoi(one, &side) || side < 1 || side > kMostSide) return {};
    sides.push_back(side);
  }
  return sides.size() == 2 ? sides : std::vector<int64_t>();
}

std::vector<std::string> LabelsOfNames(absl::string_view names) {
  std::vector<std::string> labels;
  if (!absl::ConsumePrefix(&names, "{")) return {};
  while (true) {
    const size_t colon = names.find(':');
    size_t id = 0;
    if (colon == absl::string_view::npos || !absl::SimpleAtoi(names.substr(0, colon), &id) ||
        id >= kMostNames) {
      return {};
    }
    names.remove_prefix(colon + 1);
    names = absl::StripLeadingAsciiWhitespace(names);
    if (names.empty() || (names[0] != '\'' && names[0] != '"')) return {};
    const char quote = names[0];
    std::string label;
    size_t at = 1;
    for (; at < names.size() && names[at] != quote; ++at) {
      if (names[at] == '\\' && at + 1 < names.size()) ++at;
      label += names[at];
    }
    if (at == names.size()) return {};
    if (id >= labels.size()) labels.resize(id + 1);
    labels[id] = std::move(label);
    names = absl::StripLeadingAsciiWhitespace(names.substr(at + 1));
    if (absl::ConsumePrefix(&names, "}")) return labels;
    if (!absl::ConsumePrefix(&names, ",")) return {};
  }
}

}  // namespace reprise
