// KernelFamily: the kernels of one room of this device, ways to run nodes and steps of
// prepare programs.
//
// Each family has its kernels, its plan functions and its prepare steps in one place and lists them
// in two small tables, <family>_plans.cc. cpu_device.cc joins the families and knows none of their
// ops. Nothing registers itself.
#pragma once

#include <cstddef>
#include <optional>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "runtime/device/cpu/plan/plan.h"

namespace reprise::cpu {

class WeightMemory;

// A plan function of one op. An op may have several rows, which are asked in order until one has
// candidates; an op without a row, or whose rows have none, runs by its reference kernel.
struct OpPlan {
  absl::string_view op;
  Plan* plan;
};

// One step of a prepare program, which turns a weight into the form that kernels read.
struct PrepareCall {
  const CpuTarget& target;
  const Attributes& attributes;
  absl::Span<const std::optional<Tensor>> inputs;  // the first one is there
  WeightMemory& memory;

  const Tensor& weight() const { return *inputs[0]; }
  // Null where there is none.
  const Tensor* input(size_t i) const { return i < inputs.size() ? &*inputs[i] : nullptr; }
};

using Prepare = absl::StatusOr<Tensor>(const PrepareCall& call);

// An op of prepare programs that is the device's own, "cpu.PackPanels" for example.
struct OpPrepare {
  absl::string_view op;
  Prepare* run;
};

struct KernelFamily {
  absl::Span<const OpPlan> plans;
  absl::Span<const OpPrepare> prepares = {};
};

}  // namespace reprise::cpu
