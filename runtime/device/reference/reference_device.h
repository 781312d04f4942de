// ReferenceDevice: every node by its reference kernel. Slow, and the definition of right.
#pragma once

#include "runtime/device/device.h"

namespace reprise {

class ReferenceDevice final : public Device {
 public:
  absl::string_view name() const override { return "reference"; }
  std::string fingerprint() const override { return "reference"; }
  std::vector<KernelOption> Options(const Graph&, NodeId) const override { return {}; }
  absl::StatusOr<BoundKernel> Bind(const Graph& graph, NodeId node,
                                   const KernelOption&) const override {
    return BindReference(graph, node);
  }
  absl::StatusOr<Tensor> Prepare(const std::string& op, const Attributes& attributes,
                                 absl::Span<const std::optional<Tensor>> inputs) const override {
    return PrepareWithReference(op, attributes, inputs);
  }
};

}  // namespace reprise
