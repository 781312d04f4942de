// Elementwise ops of other dtypes, comparisons, logic, choosing and converting: see typed_loops.h.
#include <utility>

#include "runtime/device/cpu/elementwise/elementwise_plans.h"
#include "runtime/device/cpu/elementwise/typed_loops.h"
#include "runtime/device/cpu/plan/plan.h"
#include "runtime/device/cpu/plan/short_runs.h"
#include "runtime/device/cpu/plan/strided.h"
#include "runtime/ops/elementwise/arithmetic_op.h"
#include "runtime/ops/elementwise/comparison_op.h"

namespace reprise::cpu {
namespace {

constexpr size_t kMaxOperandsOfOne = 3;

struct TypedParams {
  TypedFunction function = nullptr;
  size_t operands = 0;
  std::array<size_t, kMaxOperandsOfOne> sizes = {};  // bytes of an element
  size_t out_size = 0;
  int out = 0;
  Walk<kMaxOperandsOfOne> walk;
  std::optional<ShortRuns<kMaxOperandsOfOne>> short_runs;  // replaces the walk, if set
  int64_t batch_rows = 0;
};

void RunTyped(const LaunchArgs& launch) {
  const auto& p = *static_cast<const TypedParams*>(launch.params);
  auto* y = static_cast<std::byte*>(launch.operands[p.out]);
  const int64_t live = LiveOf(p.walk.elements, p.batch_rows, *launch.frame);
  if (p.short_runs.has_value()) {
    constexpr int64_t kStrides[kMaxOperandsOfOne] = {1, 1, 1};
    std::array<const void*, kMaxOperandsOfOne> operands = {};
    std::copy_n(launch.operands, p.operands, operands.begin());
    ForEachChunk(*p.short_runs, operands, p.sizes, live, launch.part, launch.parts,
                 [&](int64_t position, const std::array<const void*, kMaxOperandsOfOne>& chunk,
                     int64_t count) {
                   p.function(chunk.data(), kStrides,
                              y + position * static_cast<int64_t>(p.out_size), count);
                 });
    return;
  }
  int64_t strides[kMaxOperandsOfOne];
  for (size_t n = 0; n < kMaxOperandsOfOne; ++n) strides[n] = p.walk.inner_stride(n);
  ForEachRun(
      p.walk, live, launch.part, launch.parts,
      [&](int64_t position, const std::array<int64_t, kMaxOperandsOfOne>& offsets, int64_t count) {
        const void* in[kMaxOperandsOfOne] = {};
        for (size_t n = 0; n < p.operands; ++n) {
          in[n] = static_cast<const std::byte*>(launch.operands[n]) +
                  offsets[n] * static_cast<int64_t>(p.sizes[n]);
        }
        p.function(in, strides, y + position * static_cast<int64_t>(p.out_size), count);
      });
}

// Returns no candidate where `function` is null.
std::vector<Candidate> Typed(const CpuTarget& target, const NodeView& node,
                             TypedFunction function) {
  if (function == nullptr) return {};
  TypedParams params;
  params.function = function;
  params.operands = node.num_inputs();
  params.out = static_cast<int>(node.num_inputs());
  params.out_size = DTypeSize(node.out_dtype());
  std::array<Shape, kMaxOperandsOfOne> shapes;
  for (size_t i = 0; i < params.operands; ++i) {
    params.sizes[i] = DTypeSize(node.dtype(i));
    shapes[i] = node.shape(i);
  }
  const auto walk = MakeBroadcastWalk<kMaxOperandsOfOne>(node.out_shape(), shapes);
  if (!walk.has_value()) return {};
  params.walk = *walk;
  params.short_runs = MakeShortRuns(*walk);
  params.batch_rows = node.batch_rows();
  Candidate candidate =
      MakeCandidate(target, node, "typed", RunTyped, params, static_cast<double>(walk->elements));
  candidate.option.takes_live_rows = params.batch_rows > 0;
  for (size_t i = params.operands; i-- > 0;) {
    if (node.shape(i) == node.out_shape() && params.sizes[i] == params.out_size) {
      candidate.option.in_place = static_cast<int>(i);
    }
  }
  return {std::move(candidate)};
}

}  // namespace

std::vector<Candidate> PlanTypedMath(const CpuTarget& target, const NodeView& node) {
  constexpr std::pair<absl::string_view, Arithmetic> kNames[] = {
      {AddOp::kName, Arithmetic::kAdd},  {SubOp::kName, Arithmetic::kSub},
      {MulOp::kName, Arithmetic::kMul},  {DivOp::kName, Arithmetic::kDiv},
      {ModOp::kName, Arithmetic::kMod},  {MaxOp::kName, Arithmetic::kMax},
      {MinOp::kName, Arithmetic::kMin},  {"BitwiseAnd", Arithmetic::kBitAnd},
      {"BitwiseOr", Arithmetic::kBitOr}, {"BitwiseXor", Arithmetic::kBitXor}};
  if (node.num_inputs() != 2 || node.attributes().Int("fmod", 0) != 0) return {};
  for (const auto& [name, op] : kNames) {
    if (name == node.op())
      return Typed(target, node, TypedKernelsFor(target.isa).arithmetic(op, node.dtype(0)));
  }
  return {};
}

std::vector<Candidate> PlanCompare(const CpuTarget& target, const NodeView& node) {
  constexpr std::pair<absl::string_view, Order> kNames[] = {
      {EqualOp::kName, Order::kEqual},
      {LessOp::kName, Order::kLess},
      {LessOrEqualOp::kName, Order::kLessOrEqual},
      {GreaterOp::kName, Order::kGreater},
      {GreaterOrEqualOp::kName, Order::kGreaterOrEqual}};
  for (const auto& [name, op] : kNames) {
    if (name == node.op())
      return Typed(target, node, TypedKernelsFor(target.isa).order(op, node.dtype(0)));
  }
  return {};
}

std::vector<Candidate> PlanLogic(const CpuTarget& target, const NodeView& node) {
  constexpr std::pair<absl::string_view, Logic> kNames[] = {{AndOp::kName, Logic::kAnd},
                                                            {OrOp::kName, Logic::kOr},
                                                            {XorOp::kName, Logic::kXor},
                                                            {NotOp::kName, Logic::kNot}};
  for (const auto& [name, op] : kNames) {
    if (name == node.op()) return Typed(target, node, TypedKernelsFor(target.isa).logic(op));
  }
  return {};
}

std::vector<Candidate> PlanSpecial(const CpuTarget& target, const NodeView& node) {
  const Attributes& attributes = node.attributes();
  if (attributes.Int("detect_negative", 1) == 0 || attributes.Int("detect_positive", 1) == 0) {
    return {};
  }
  const Special which = node.op() == "IsNaN" ? Special::kNan : Special::kInf;
  return Typed(target, node, TypedKernelsFor(target.isa).special(which, node.dtype(0)));
}

std::vector<Candidate> PlanCast(const CpuTarget& target, const NodeView& node) {
  return Typed(target, node, TypedKernelsFor(target.isa).cast(node.dtype(0), node.out_dtype()));
}

std::vector<Candidate> PlanWhere(const CpuTarget& target, const NodeView& node) {
  return Typed(target, node, TypedKernelsFor(target.isa).where(DTypeSize(node.out_dtype())));
}

}  // namespace reprise::cpu
