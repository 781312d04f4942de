#include "server/fetch/store_key.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "server/fetch/digest.h"

namespace reprise {
namespace {

constexpr size_t kLeastKeyBytes = 16;
constexpr int64_t kMostKeyBytes = 4096;

}  // namespace

absl::StatusOr<RecordMac> ReadStoreKey(const std::string& path) {
  if (path.empty()) return RecordMac();
  ASSIGN_OR_RETURN(const std::string text, ReadWholeFile(path, kMostKeyBytes));
  const std::string key(absl::StripTrailingAsciiWhitespace(text));
  if (key.size() < kLeastKeyBytes) {
    return absl::InvalidArgumentError(absl::StrCat("the store key in '", path, "' has ", key.size(),
                                                   " bytes, at least ", kLeastKeyBytes,
                                                   " are needed"));
  }
  return RecordMac([key](absl::string_view bytes) { return HmacSha256(key, bytes); });
}

}  // namespace reprise
