// CpuDevice: the fast kernels of this folder as a device.
//
// A device of a lower `max_isa` uses no instruction above it, its
// fingerprint differs, and so do its packed weights: recipes never cross.
// Packed weights keep alive the parts of the device that they need; it need not outlive them.
#pragma once

#include <string>
#include <vector>

#include "runtime/base/cpu/cpu_info.h"
#include "runtime/device/device.h"
#include "runtime/device/gemm_provider.h"

namespace reprise {

namespace cpu {
struct CpuTarget;
class WeightMemory;
}  // namespace cpu

struct CpuDeviceOptions {
  Isa max_isa = kEveryIsa;  // the features to use, of those that the machine has
  GemmProvider gemm_provider = GemmProvider::kAuto;
  // The most threads of a replay. Scratch is planned for them; a larger team uses just this many.
  int max_threads = AvailableCpus();
};

class CpuDevice final : public Device {
 public:
  // May load OpenBLAS, which reads the environment: build devices before threads start.
  explicit CpuDevice(const CpuDeviceOptions& options);
  explicit CpuDevice(Isa max_isa = kEveryIsa) : CpuDevice(CpuDeviceOptions{.max_isa = max_isa}) {}
  ~CpuDevice() override;

  // OK if OpenBLAS serves the products it is needed for, else the reason why not; these products
  // then run by our own or the reference kernels. Always OK with GemmProvider::kOwn.
  absl::Status openblas_status() const { return openblas_status_; }

  absl::string_view name() const override { return "cpu"; }
  std::string fingerprint() const override { return fingerprint_; }
  const Device& one_order() const override {
    return one_order_ == nullptr ? *this : static_cast<const Device&>(*one_order_);
  }
  std::vector<KernelOption> Options(const Graph& graph, NodeId node) const override;
  absl::StatusOr<BoundKernel> Bind(const Graph& graph, NodeId node,
                                   const KernelOption& option) const override;
  absl::StatusOr<Tensor> Prepare(const std::string& op, const Attributes& attributes,
                                 absl::Span<const std::optional<Tensor>> inputs) const override;

 private:
  // `other` with one order of sums a node.
  explicit CpuDevice(const cpu::CpuTarget& other);

  absl::Status openblas_status_;  // Set before target_.
  const std::unique_ptr<const cpu::CpuTarget> target_;
  const std::string fingerprint_;
  const std::unique_ptr<cpu::WeightMemory> weights_;  // Synchronises itself.
  const std::unique_ptr<const CpuDevice> one_order_;  // null: it is that itself
};

}  // namespace reprise
