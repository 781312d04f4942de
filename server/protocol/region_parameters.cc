#include "server/protocol/region_parameters.h"

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"

namespace reprise {
namespace {

constexpr char kRegion[] = "shared_memory_region";
constexpr char kBytes[] = "shared_memory_byte_size";
constexpr char kOffset[] = "shared_memory_offset";

absl::StatusOr<int64_t> ByteCount(const std::string& name, const ParameterValue& value) {
  ASSIGN_OR_RETURN(const int64_t size, IntegerParameter(name, value));
  if (size >= 0) return size;
  return absl::InvalidArgumentError(absl::StrCat("parameter ", name, " is ", size));
}

}  // namespace

absl::Status RegionParameters::Set(const std::string& name, const ParameterValue& value) {
  if (name == kRegion) {
    ASSIGN_OR_RETURN(region_, TextParameter(name, value));
  } else if (name == kBytes) {
    ASSIGN_OR_RETURN(bytes_, ByteCount(name, value));
  } else if (name == kOffset) {
    ASSIGN_OR_RETURN(offset_, ByteCount(name, value));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::optional<RegionSlice>> RegionParameters::Slice() const {
  if (!region_.has_value()) {
    if (!bytes_.has_value() && !offset_.has_value()) return std::optional<RegionSlice>();
    return absl::InvalidArgumentError(absl::StrCat(
        "parameter ", bytes_.has_value() ? kBytes : kOffset, " is there without ", kRegion));
  }
  if (!bytes_.has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat("parameter ", kRegion, " is there without ", kBytes));
  }
  return RegionSlice{.region = *region_, .offset = offset_.value_or(0), .bytes = *bytes_};
}

}  // namespace reprise
