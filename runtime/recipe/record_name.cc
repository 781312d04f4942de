#include "runtime/recipe/record_name.h"

#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "runtime/base/hash64.h"

namespace reprise {
namespace {

constexpr absl::string_view kSuffix = ".rps";

bool ParseHash(absl::string_view text, uint64_t& hash) {
  return text.size() == 16 && absl::SimpleHexAtoi(text, &hash) && HexKey(hash) == text;
}

}  // namespace

std::string RecordName::file() const {
  return absl::StrCat(RecordKindName(kind), "-", HexKey(key), "-", HexKey(graph), "-",
                      HexKey(subject), "-", HexKey(device), "-", HexKey(origin), "-",
                      HexKey(compiler), kSuffix);
}

bool RecordName::IsSameRecord(const RecordName& other) const {
  RecordName same = other;
  same.origin = origin;
  return *this == same;
}

std::optional<RecordName> RecordName::Parse(absl::string_view file) {
  if (!absl::ConsumeSuffix(&file, kSuffix)) return std::nullopt;
  const std::vector<absl::string_view> parts = absl::StrSplit(file, '-');
  if (parts.size() != 7) return std::nullopt;
  RecordName name;
  bool known = false;
  for (RecordKind kind :
       {RecordKind::kRecipe, RecordKind::kModel, RecordKind::kUsage, RecordKind::kChoices}) {
    if (parts[0] != RecordKindName(kind)) continue;
    name.kind = kind;
    known = true;
  }
  if (!known || !ParseHash(parts[1], name.key) || !ParseHash(parts[2], name.graph) ||
      !ParseHash(parts[3], name.subject) || !ParseHash(parts[4], name.device) ||
      !ParseHash(parts[5], name.origin) || !ParseHash(parts[6], name.compiler)) {
    return std::nullopt;
  }
  return name;
}

}  // namespace reprise
