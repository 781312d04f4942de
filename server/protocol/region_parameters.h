// Parameters of a tensor that say where it lies in shared memory, whatever face they come by:
// shared_memory_region, shared_memory_byte_size, shared_memory_offset.
//
//   RegionParameters parameters;
//   for (const auto& [name, value] : ...) RETURN_IF_ERROR(parameters.Set(name, value));
//   ASSIGN_OR_RETURN(const std::optional<RegionSlice> slice, parameters.Slice());
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/protocol/request_parameters.h"
#include "server/requests/request.h"

namespace reprise {

class RegionParameters {
 public:
  // Other parameters are left alone. INVALID_ARGUMENT names the parameter and its value.
  absl::Status Set(const std::string& name, const ParameterValue& value);

  // Returns nullopt where the tensor is in the message. INVALID_ARGUMENT for some parameters alone.
  absl::StatusOr<std::optional<RegionSlice>> Slice() const;

 private:
  std::optional<std::string> region_;
  std::optional<int64_t> bytes_;
  std::optional<int64_t> offset_;
};

}  // namespace reprise
