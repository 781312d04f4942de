// LSTM, GRU and RNN layers; see recurrent.h. Options beyond the usual form (other functions,
// clipping, peepholes) run by the reference kernel.
#include "absl/strings/str_cat.h"
#include "runtime/device/cpu/elementwise/elementwise.h"
#include "runtime/device/cpu/gemm/gemm.h"
#include "runtime/device/cpu/gemm/gemm_plans.h"
#include "runtime/device/cpu/plan/plan.h"
#include "runtime/device/cpu/recurrent/recurrent.h"
#include "runtime/device/cpu/recurrent/recurrent_plans.h"
#include "runtime/ops/recurrent/recurrent_activations.h"

namespace reprise::cpu {
namespace {

using Cell = RecurrentLayer::Cell;

// A step with less arithmetic than this is not split: its parts would wait for each other about as
// long as they compute, and longer the more threads there are.
constexpr double kLeastStepFlops = 1.2e5;
constexpr int kThreadsMore = 8;

// Returns whether the functions of the op's gates are its defaults.
bool HasUsualFunctions(const NodeView& node, int64_t directions, Cell cell) {
  using ops::ActivationKind;
  std::vector<ops::Activation> usual;
  if (cell != Cell::kRnn) usual.push_back({ActivationKind::kSigmoid});
  usual.push_back({ActivationKind::kTanh});
  if (cell == Cell::kLstm) usual.push_back({ActivationKind::kTanh});
  const auto named = ops::ActivationsOf(node.node(), directions, usual);
  if (!named.ok()) return false;
  for (size_t i = 0; i < named->size(); ++i) {
    if ((*named)[i].kind != usual[i % usual.size()].kind) return false;
  }
  return true;
}

// Packs [directions, gates * hidden, k], in which each `columns` rows are one matrix.
PrepareStep PackStep(const CpuTarget& target, const RecurrentLayer& p, size_t input, int64_t k,
                     int64_t columns) {
  const GemmKernels& gemm = GemmKernelsFor(target.isa);
  const int64_t floats = p.directions * (p.width() / columns) * gemm.PackedFloats(k, columns);
  return {.input = input,
          .op = kPackOp,
          .attributes = {{"panel", gemm.panel_columns},
                         {"columns", columns},
                         {"transposed", int64_t{1}}},
          .dtype = DType::kUInt8,
          .shape = {floats * static_cast<int64_t>(sizeof(float))}};
}

std::vector<Candidate> PlanLayer(const CpuTarget& target, const NodeView& node, Cell cell,
                                 int64_t gates) {
  const ElementwiseKernels& elementwise = ElementwiseKernelsFor(target.isa);
  using Layer = RecurrentLayer;
  const Attributes& attributes = node.attributes();
  if (!node.is_parameter(Layer::kW) || !node.is_parameter(Layer::kR) ||
      node.has_input(Layer::kPeepholes) || node.dtype(Layer::kX) != DType::kFloat32 ||
      attributes.Int("layout", 0) != 0 || attributes.Float("clip", 0) > 0 ||
      attributes.Int("input_forget", 0) != 0) {
    return {};
  }
  Layer p;
  p.gemm = &GemmKernelsFor(target.isa);
  p.sigmoid = elementwise.unary(Unary::kSigmoid);
  p.tanh = elementwise.unary(Unary::kTanh);
  p.add = elementwise.binary(Binary::kAdd, Run::kBoth);
  p.sub = elementwise.binary(Binary::kSub, Run::kBoth);
  p.mul = elementwise.binary(Binary::kMul, Run::kBoth);
  p.cell = cell;
  p.gates = gates;
  const Shape &x = node.shape(Layer::kX), &r = node.shape(Layer::kR);
  p.directions = r[0];
  p.sequence = x[0];
  p.batch = x[1];
  p.size = x[2];
  p.hidden = r[2];
  p.reverse = attributes.String("direction", "forward") == "reverse";
  p.linear_before_reset = cell == Cell::kGru && attributes.Int("linear_before_reset", 0) != 0;
  p.has_bias = node.has_input(Layer::kB);
  if (node.has_input(Layer::kLengths)) p.lengths = node.dtype(Layer::kLengths);
  p.has_h = node.has_input(Layer::kInitialH);
  p.has_c = node.has_input(Layer::kInitialC);
  if (p.sequence == 0 || p.batch == 0 || p.size == 0 || p.hidden == 0 ||
      !HasUsualFunctions(node, p.directions, cell)) {
    return {};
  }
  p.y = static_cast<int>(node.num_inputs());
  p.workspace = static_cast<int>(node.num_inputs() + node.num_outputs());
  // An output that the node does not list is like an unused one.
  p.last_h = node.num_outputs() > 1 ? p.y + 1 : Layer::kNoOutput;
  p.last_c = node.num_outputs() > 2 ? p.y + 2 : Layer::kNoOutput;
  const double step = 2.0 * static_cast<double>(p.directions * p.batch * p.width() * p.hidden);
  const int threads = target.scratch_parts;
  p.phased =
      p.directions * p.groups() < threads && step >= kLeastStepFlops * (1 + threads / kThreadsMore);
  const double flops = 2.0 * static_cast<double>(p.directions * p.sequence * p.batch) *
                       static_cast<double>(p.width() * (p.size + p.hidden));
  const size_t workspace = sizeof(float) * static_cast<size_t>(p.workspace_floats());
  Candidate candidate = MakeCandidate(target, node, "recurrent", RunRecurrent, p, flops);
  candidate.bound.phases = p.phases();
  absl::StrAppend(&candidate.bound.detail, ", ", candidate.bound.phases, " phases");
  candidate.option.workspace_bytes = workspace;
  candidate.option.prepare = {PackStep(target, p, Layer::kW, p.size, p.width()),
                              PackStep(target, p, Layer::kR, p.hidden, p.state_columns())};
  return {std::move(candidate)};
}

}  // namespace

std::vector<Candidate> PlanLstm(const CpuTarget& target, const NodeView& node) {
  return PlanLayer(target, node, Cell::kLstm, 4);
}

std::vector<Candidate> PlanGru(const CpuTarget& target, const NodeView& node) {
  return PlanLayer(target, node, Cell::kGru, 3);
}

std::vector<Candidate> PlanRnn(const CpuTarget& target, const NodeView& node) {
  return PlanLayer(target, node, Cell::kRnn, 1);
}

}  // namespace reprise::cpu
