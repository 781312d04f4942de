// CpuDevice: the fast kernels of this folder behind the device interface.
//
// A device of a lower `max_isa` uses no instruction above it, its
// fingerprint differs, and so do its packed weights: recipes never cross.
// Packed weights keep what they need of the device alive; it need not outlive them.
#pragma once

#include <string>
#include <vector>

#include "runtime/base/cpu_info.h"
#include "runtime/device/device.h"

namespace reprise {

namespace cpu {
struct CpuTarget;
class WeightMemory;
}  // namespace cpu

class CpuDevice final : public Device {
 public:
  // Uses the highest tier that both the machine and `max_isa` allow.
  explicit CpuDevice(Isa max_isa = Isa::kAvx512Bf16);
  ~CpuDevice() override;

  absl::string_view name() const override { return "cpu"; }
  std::string fingerprint() const override { return fingerprint_; }
  std::vector<KernelOption> Options(const Graph& graph, NodeId node) const override;
  absl::StatusOr<BoundKernel> Bind(const Graph& graph, NodeId node,
                                   const KernelOption& option) const override;
  absl::StatusOr<Tensor> Prepare(const std::string& op, const Attributes& attributes,
                                 absl::Span<const std::optional<Tensor>> inputs) const override;

 private:
  const std::unique_ptr<const cpu::CpuTarget> target_;
  const std::string fingerprint_;
  const std::unique_ptr<cpu::WeightMemory> weights_;  // Synchronised by itself.
};

}  // namespace reprise
