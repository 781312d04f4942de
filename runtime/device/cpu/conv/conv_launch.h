// The parts that all float32 convolutions share: the operands of a launch, the rows of the batch
// that it leaves out, the epilogue of its sums, and the scratch of its parts. The parameters of
// each kind of convolution begin with a ConvLaunch.
//
// Threads: pure.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "runtime/device/cpu/gemm/conv_finish.h"
#include "runtime/device/cpu/plan/plan.h"

namespace reprise::cpu {

// The operands of a call, or of a part of its results.
struct ConvOperands {
  const float* x = nullptr;
  const float* weights = nullptr;   // laid out as the kernel reads them
  const float* bias = nullptr;      // [maps] or null
  const float* residual = nullptr;  // as `out`, or null
  float* out = nullptr;
  float* scratch = nullptr;  // the scratch of the part; null where none is needed

  const float* BiasOf(int64_t map) const { return bias == nullptr ? nullptr : bias + map; }
  const float* ResidualAt(int64_t i) const { return residual == nullptr ? nullptr : residual + i; }
};

struct ConvLaunch {
  // Describes a node whose inputs are x [batch, ...], the weights and, where it has them, a bias
  // and a residual.
  ConvLaunch(const CpuTarget& target, const NodeView& node, const ConvActivation& activation)
      : finish(ConvFinishFor(target.isa)),
        activation(activation),
        batch(node.shape(0)[0]),
        batch_rows(WholeBatchRows(node, batch)),
        has_bias(node.has_input(2)),
        has_residual(node.has_input(3)),
        out_operand(static_cast<int>(node.num_inputs())),
        workspace_operand(static_cast<int>(node.num_inputs() + node.num_outputs())),
        scratch_parts(target.scratch_parts) {}

  ConvFinish finish = nullptr;
  ConvActivation activation;
  int64_t batch = 0, batch_rows = 0;
  bool has_bias = false, has_residual = false;
  int out_operand = 0, workspace_operand = 0;
  int64_t scratch_floats = 0;  // scratch of one part
  int scratch_parts = 0;       // parts that have some

  // Bounds are all that follows on a sum: a kernel holds them itself.
  bool OnlyClips() const { return activation.clip() && !has_residual; }

  // Elements of the batch that a replay computes.
  int64_t Live(const LaunchArgs& launch) const { return LiveOf(batch, batch_rows, *launch.frame); }

  // Returns the parts among which `units` of work are divided; others have nothing to do.
  int Parts(const LaunchArgs& launch, int64_t units) const {
    const int parts = scratch_floats == 0 ? launch.parts : PartsWithScratch(launch, scratch_parts);
    return static_cast<int>(std::min<int64_t>(units, parts));
  }

  // For a part below Parts().
  ConvOperands Operands(const LaunchArgs& launch) const {
    const auto floats = [&](int i) { return static_cast<float*>(launch.operands[i]); };
    return {.x = floats(0),
            .weights = floats(1),
            .bias = has_bias ? floats(2) : nullptr,
            .residual = has_residual ? floats(3) : nullptr,
            .out = floats(out_operand),
            .scratch = scratch_floats == 0
                           ? nullptr
                           : floats(workspace_operand) + launch.part * scratch_floats};
  }

  // Applies the epilogue to `floats` neighbouring results, to which the bias is added already.
  void FinishRun(const ConvOperands& at, int64_t first, int64_t floats) const {
    finish({.y = at.out + first,
            .ld = floats,
            .rows = 1,
            .columns = floats,
            .residual = at.ResidualAt(first),
            .ld_residual = floats},
           activation);
  }
};

// Returns the one candidate of a form: `flops` of a replay of all of the batch, `prepare` of its
// weights.
template <class Params>
std::vector<Candidate> ConvCandidates(const CpuTarget& target, const NodeView& node,
                                      absl::string_view name, KernelFn run, Params params,
                                      double flops, std::vector<PrepareStep> prepare = {}) {
  const ConvLaunch& launch = params;
  const size_t workspace = sizeof(float) * launch.scratch_floats * launch.scratch_parts;
  const bool takes_live_rows = launch.batch_rows > 0;
  Candidate candidate = MakeCandidate(target, node, name, run, std::move(params), flops);
  candidate.option.workspace_bytes = workspace;
  candidate.option.takes_live_rows = takes_live_rows;
  candidate.option.prepare = std::move(prepare);
  return {std::move(candidate)};
}

}  // namespace reprise::cpu
