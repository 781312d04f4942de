// The answers to calls about shared memory, whatever face they come by. `regions` is null where the
// server runs without shared memory.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/shared_memory/shared_regions.h"

namespace reprise {

// UNIMPLEMENTED that names the flag.
inline absl::Status CheckRegionsAreOn(const SharedRegions* regions) {
  if (regions != nullptr) return absl::OkStatus();
  return absl::UnimplementedError(
      "SystemSharedMemoryRegister is not supported: the server runs without "
      "--system-shared-memory");
}

// There are no devices but the CPU.
inline absl::Status NoDeviceRegions() {
  return absl::UnimplementedError(
      "CudaSharedMemoryRegister is not supported: the server knows no CUDA devices");
}

// Returns the region `name`, or all where it is empty: without shared memory there is none.
inline absl::StatusOr<std::vector<RegionInfo>> ListRegions(const SharedRegions* regions,
                                                           const std::string& name) {
  if (regions != nullptr) return regions->List(name);
  if (!name.empty()) return absl::NotFoundError("no shared memory region is registered");
  return std::vector<RegionInfo>();
}

inline void UnregisterRegions(SharedRegions* regions, const std::string& name) {
  if (regions == nullptr) return;
  name.empty() ? regions->UnregisterAll() : regions->Unregister(name);
}

}  // namespace reprise
