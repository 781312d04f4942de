// Elementwise float32 ops by the vector kernels.
#include <cmath>
#include <limits>
#include <optional>

#include "runtime/device/cpu/elementwise/elementwise.h"
#include "runtime/device/cpu/elementwise/elementwise_plans.h"
#include "runtime/device/cpu/plan/plan.h"
#include "runtime/device/cpu/plan/short_runs.h"
#include "runtime/device/cpu/plan/strided.h"
#include "runtime/ops/elementwise/activation_op.h"
#include "runtime/ops/elementwise/arithmetic_op.h"

namespace reprise::cpu {
namespace {

struct UnaryParams {
  UnaryFunction function = nullptr;
  int64_t count = 0;
  int64_t batch_rows = 0;
};

void RunUnary(const LaunchArgs& launch) {
  const auto& p = *static_cast<const UnaryParams*>(launch.params);
  const int64_t live = LiveOf(p.count, p.batch_rows, *launch.frame);
  const ItemRange range = RangeOfPart(live, 64, launch.part, launch.parts);
  p.function(static_cast<const float*>(launch.operands[0]) + range.begin,
             static_cast<float*>(launch.operands[1]) + range.begin, range.end - range.begin);
}

struct BinaryParams {
  BinaryFunction function = nullptr;
  Walk<2> walk;
  std::optional<ShortRuns<2>> short_runs;  // replaces the walk, if set
  int64_t batch_rows = 0;
};

void RunBinary(const LaunchArgs& launch) {
  const auto& p = *static_cast<const BinaryParams*>(launch.params);
  const auto* a = static_cast<const float*>(launch.operands[0]);
  const auto* b = static_cast<const float*>(launch.operands[1]);
  auto* y = static_cast<float*>(launch.operands[2]);
  const int64_t live = LiveOf(p.walk.elements, p.batch_rows, *launch.frame);
  if (p.short_runs.has_value()) {
    constexpr size_t kSize = sizeof(float);
    ForEachChunk<2>(*p.short_runs, {a, b}, {kSize, kSize}, live, launch.part, launch.parts,
                    [&](int64_t position, const std::array<const void*, 2>& chunk, int64_t count) {
                      p.function(static_cast<const float*>(chunk[0]),
                                 static_cast<const float*>(chunk[1]), y + position, count);
                    });
    return;
  }
  ForEachRun(p.walk, live, launch.part, launch.parts,
             [&](int64_t position, const std::array<int64_t, 2>& offsets, int64_t count) {
               p.function(a + offsets[0], b + offsets[1], y + position, count);
             });
}

struct ShapedParams {
  ShapedFunction function = nullptr;
  float alpha = 0, beta = 0;
  // Operands that hold them instead; 0: none.
  int alpha_operand = 0, beta_operand = 0;
  int64_t count = 0;
  int out = 0;
  int64_t batch_rows = 0;
};

void RunShaped(const LaunchArgs& launch) {
  const auto& p = *static_cast<const ShapedParams*>(launch.params);
  const int64_t live = LiveOf(p.count, p.batch_rows, *launch.frame);
  const ItemRange range = RangeOfPart(live, 64, launch.part, launch.parts);
  const auto constant = [&](int operand, float otherwise) {
    return operand == 0 ? otherwise : *static_cast<const float*>(launch.operands[operand]);
  };
  p.function(static_cast<const float*>(launch.operands[0]) + range.begin,
             constant(p.alpha_operand, p.alpha), constant(p.beta_operand, p.beta),
             static_cast<float*>(launch.operands[p.out]) + range.begin, range.end - range.begin);
}

// Adds the cost of `count` values of `op` beyond one operation each.
void CountFunction(Unary op, double count, LaunchWork& work) {
  switch (op) {
    case Unary::kExp:
    case Unary::kTanh:
    case Unary::kSigmoid:
    case Unary::kGeluTanh:
    case Unary::kGeluTanhDoubled:
    case Unary::kSilu:
    case Unary::kSoftplus:
    case Unary::kMish:
      work.exps += count;
      break;
    case Unary::kErf:
    case Unary::kGelu:
    case Unary::kGeluDoubled:
      work.erfs += count;
      break;
    default:
      break;
  }
}

Candidate UnaryCandidate(const CpuTarget& target, const NodeView& node, Unary op) {
  const int64_t count = NumElements(node.shape(0));
  const UnaryParams params = {ElementwiseKernelsFor(target.isa).unary(op), count,
                              node.batch_rows()};
  Candidate candidate =
      MakeCandidate(target, node, "unary", RunUnary, params, static_cast<double>(count));
  CountFunction(op, static_cast<double>(count), candidate.bound.work);
  candidate.option.in_place = 0;
  candidate.option.takes_live_rows = params.batch_rows > 0;
  return candidate;
}

struct UnaryName {
  absl::string_view name;
  Unary op;
};
constexpr UnaryName kUnaryNames[] = {{NegOp::kName, Unary::kNeg},
                                     {AbsOp::kName, Unary::kAbs},
                                     {SqrtOp::kName, Unary::kSqrt},
                                     {ReciprocalOp::kName, Unary::kReciprocal},
                                     {FloorOp::kName, Unary::kFloor},
                                     {CeilOp::kName, Unary::kCeil},
                                     {RoundOp::kName, Unary::kRound},
                                     {ExpOp::kName, Unary::kExp},
                                     {TanhOp::kName, Unary::kTanh},
                                     {SigmoidOp::kName, Unary::kSigmoid},
                                     {ErfOp::kName, Unary::kErf},
                                     {ReluOp::kName, Unary::kRelu},
                                     {SignOp::kName, Unary::kSign},
                                     {LogOp::kName, Unary::kLog},
                                     {"Sin", Unary::kSin},
                                     {"Cos", Unary::kCos},
                                     {"Tan", Unary::kTan},
                                     {"Asin", Unary::kAsin},
                                     {"Acos", Unary::kAcos},
                                     {"Atan", Unary::kAtan},
                                     {SoftplusOp::kName, Unary::kSoftplus},
                                     {"Softsign", Unary::kSoftsign},
                                     {MishOp::kName, Unary::kMish},
                                     {HardSwishOp::kName, Unary::kHardSwish}};

// The attributes that hold alpha and beta, and the values of these where they are left out.
struct ShapedName {
  absl::string_view name;
  Shaped op;
  absl::string_view alpha, beta;
  float default_alpha, default_beta;
  bool has_exp;
};
constexpr ShapedName kShapedNames[] = {
    {LeakyReluOp::kName, Shaped::kLeakyRelu, "alpha", "", 0.01f, 0, false},
    {EluOp::kName, Shaped::kElu, "alpha", "", 1, 0, true},
    {"Selu", Shaped::kSelu, "alpha", "gamma", 1.67326319217681884765625f,
     1.05070102214813232421875f, true},
    {"Celu", Shaped::kCelu, "alpha", "", 1, 0, true},
    {HardSigmoidOp::kName, Shaped::kHardSigmoid, "alpha", "beta", 0.2f, 0.5f, false},
    {"ThresholdedRelu", Shaped::kThresholdedRelu, "alpha", "", 1, 0, false},
    {"Shrink", Shaped::kShrink, "lambd", "bias", 0.5f, 0, false},
    {QuickGeluOp::kName, Shaped::kQuickGelu, "alpha", "", 1.702f, 0, true}};

struct BinaryName {
  absl::string_view name;
  Binary op;
};
constexpr BinaryName kBinaryNames[] = {{AddOp::kName, Binary::kAdd},
                                       {SubOp::kName, Binary::kSub},
                                       {MulOp::kName, Binary::kMul},
                                       {DivOp::kName, Binary::kDiv},
                                       {MaxOp::kName, Binary::kMax},
                                       {MinOp::kName, Binary::kMin},
                                       {"PRelu", Binary::kPRelu},
                                       {"com.microsoft.BiasGelu", Binary::kAddGelu},
                                       {"com.microsoft.FastGelu", Binary::kAddGeluTanh}};

std::optional<Binary> BinaryOf(absl::string_view name) {
  for (const BinaryName& row : kBinaryNames) {
    if (row.name == name) return row.op;
  }
  return std::nullopt;
}

}  // namespace

std::vector<Candidate> PlanUnary(const CpuTarget& target, const NodeView& node) {
  if (!node.AllOf(DType::kFloat32)) return {};
  for (const UnaryName& row : kUnaryNames) {
    if (row.name == node.op()) return {UnaryCandidate(target, node, row.op)};
  }
  return {};
}

std::vector<Candidate> PlanGelu(const CpuTarget& target, const NodeView& node) {
  if (!node.AllOf(DType::kFloat32)) return {};
  const auto op = GeluOp::From(node.attributes());
  const Unary function = op.approximate == "tanh"
                             ? (op.doubled ? Unary::kGeluTanhDoubled : Unary::kGeluTanh)
                             : (op.doubled ? Unary::kGeluDoubled : Unary::kGelu);
  return {UnaryCandidate(target, node, function)};
}

std::vector<Candidate> PlanBinary(const CpuTarget& target, const NodeView& node) {
  const std::optional<Binary> op = BinaryOf(node.op());
  if (!node.AllOf(DType::kFloat32) || !op || node.num_inputs() > 2) return {};
  if (!node.has_input(1)) {  // FastGelu without a bias
    return *op == Binary::kAddGeluTanh
               ? std::vector<Candidate>{UnaryCandidate(target, node, Unary::kGeluTanh)}
               : std::vector<Candidate>{};
  }
  const auto walk = MakeBroadcastWalk<2>(node.out_shape(), {node.shape(0), node.shape(1)});
  if (!walk.has_value()) return {};
  BinaryParams params;
  params.walk = *walk;
  params.short_runs = MakeShortRuns(*walk);
  // Both strides are 0 only where a run is one element.
  const Run run = params.short_runs.has_value()                    ? Run::kBoth
                  : walk->inner_stride(0) == walk->inner_stride(1) ? Run::kBoth
                  : walk->inner_stride(0) == 0                     ? Run::kScalarA
                                                                   : Run::kScalarB;
  params.function = ElementwiseKernelsFor(target.isa).binary(*op, run);
  params.batch_rows = node.batch_rows();
  Candidate candidate =
      MakeCandidate(target, node, "binary", RunBinary, params, static_cast<double>(walk->elements));
  candidate.option.takes_live_rows = params.batch_rows > 0;
  LaunchWork& work = candidate.bound.work;
  if (*op == Binary::kAddGelu) CountFunction(Unary::kGelu, params.walk.elements, work);
  if (*op == Binary::kAddGeluTanh) CountFunction(Unary::kGeluTanh, params.walk.elements, work);
  for (int i : {1, 0}) {
    if (node.shape(i) == node.out_shape()) candidate.option.in_place = i;
  }
  return {std::move(candidate)};
}

// Powers that kernels take: each multiplication rounds.
constexpr float kMostPower = 8;

struct PowerParams {
  UnaryFunction square = nullptr;
  UnaryFunction root = nullptr;
  UnaryFunction reciprocal = nullptr;
  ShapedFunction whole = nullptr;
  int64_t count = 0;
  int64_t batch_rows = 0;
};

// Raises to a power that each replay brings, by the function that a constant one would have.
void RunPower(const LaunchArgs& launch) {
  const auto& p = *static_cast<const PowerParams*>(launch.params);
  const int64_t live = LiveOf(p.count, p.batch_rows, *launch.frame);
  const ItemRange range = RangeOfPart(live, 64, launch.part, launch.parts);
  const float* x = static_cast<const float*>(launch.operands[0]) + range.begin;
  const float power = *static_cast<const float*>(launch.operands[1]);
  float* y = static_cast<float*>(launch.operands[2]) + range.begin;
  const int64_t count = range.end - range.begin;
  if (power == 2) return p.square(x, y, count);
  if (power == 0.5f) return p.root(x, y, count);
  if (power == -1) return p.reciprocal(x, y, count);
  if (power == std::floor(power) && power >= 1 && power <= kMostPower) {
    return p.whole(x, power, 0, y, count);
  }
  for (int64_t i = 0; i < count; ++i) y[i] = std::pow(x[i], power);
}

std::vector<Candidate> PlanPower(const CpuTarget& target, const NodeView& node) {
  if (node.dtype(1) != DType::kFloat32) return {};
  const ElementwiseKernels& kernels = ElementwiseKernelsFor(target.isa);
  const PowerParams params = {.square = kernels.unary(Unary::kSquare),
                              .root = kernels.unary(Unary::kRootPower),
                              .reciprocal = kernels.unary(Unary::kReciprocal),
                              .whole = kernels.shaped(Shaped::kPower),
                              .count = NumElements(node.shape(0)),
                              .batch_rows = node.batch_rows()};
  Candidate candidate = MakeCandidate(target, node, "power", RunPower, params,
                                      2.0 * static_cast<double>(params.count));
  candidate.option.in_place = 0;
  candidate.option.takes_live_rows = params.batch_rows > 0;
  return {std::move(candidate)};
}

std::vector<Candidate> PlanPow(const CpuTarget& target, const NodeView& node) {
  if (node.dtype(0) != DType::kFloat32 || NumElements(node.shape(1)) != 1 ||
      node.out_shape() != node.shape(0)) {
    return {};
  }
  const Tensor* exponent = node.constant(1);
  if (exponent == nullptr) return PlanPower(target, node);
  const double value = exponent->ToDoubles()[0];
  const auto with = [&](Unary op) {
    UnaryParams params = {ElementwiseKernelsFor(target.isa).unary(op), NumElements(node.shape(0)),
                          node.batch_rows()};
    // Operand 1, the exponent, is in between.
    const KernelFn run = [](const LaunchArgs& launch) {
      LaunchArgs shifted = launch;
      void* const operands[] = {launch.operands[0], launch.operands[2]};
      shifted.operands = operands;
      RunUnary(shifted);
    };
    Candidate candidate =
        MakeCandidate(target, node, "unary", run, params, static_cast<double>(params.count));
    candidate.option.in_place = 0;
    candidate.option.takes_live_rows = params.batch_rows > 0;
    return std::vector<Candidate>{std::move(candidate)};
  };
  if (value == 2) return with(Unary::kSquare);
  if (value == 0.5) return with(Unary::kRootPower);
  if (value == 1) return with(Unary::kCopy);
  if (value == -1) return with(Unary::kReciprocal);
  if (value != std::floor(value) || value < 1 || value > kMostPower) return {};
  const ShapedParams params = {.function = ElementwiseKernelsFor(target.isa).shaped(Shaped::kPower),
                               .alpha = static_cast<float>(value),
                               .count = NumElements(node.shape(0)),
                               .out = static_cast<int>(node.num_inputs()),
                               .batch_rows = node.batch_rows()};
  Candidate candidate = MakeCandidate(target, node, "shaped", RunShaped, params,
                                      2.0 * static_cast<double>(params.count));
  candidate.option.in_place = 0;
  candidate.option.takes_live_rows = params.batch_rows > 0;
  return {std::move(candidate)};
}

std::vector<Candidate> PlanShaped(const CpuTarget& target, const NodeView& node) {
  if (!node.AllOf(DType::kFloat32)) return {};
  ShapedParams params;
  bool has_exp = false;
  if (node.op() == ClipOp::kName) {
    params.function = ElementwiseKernelsFor(target.isa).shaped(Shaped::kClip);
    // Infinity is beyond a bound that is left out.
    params.alpha = std::numeric_limits<float>::lowest();
    params.beta = std::numeric_limits<float>::max();
    if (node.has_input(1)) params.alpha_operand = 1;
    if (node.has_input(2)) params.beta_operand = 2;
  }
  for (const ShapedName& row : kShapedNames) {
    if (row.name != node.op()) continue;
    params.function = ElementwiseKernelsFor(target.isa).shaped(row.op);
    params.alpha = node.attributes().Float(row.alpha, row.default_alpha);
    if (!row.beta.empty()) params.beta = node.attributes().Float(row.beta, row.default_beta);
    // The quotient of a Celu may be a large number then.
    if (row.op == Shaped::kCelu && !(params.alpha > 0)) return {};
    has_exp = row.has_exp;
  }
  if (params.function == nullptr) return {};
  params.count = NumElements(node.shape(0));
  params.out = static_cast<int>(node.num_inputs());
  params.batch_rows = node.batch_rows();
  const auto count = static_cast<double>(params.count);
  Candidate candidate = MakeCandidate(target, node, "shaped", RunShaped, params, 2.0 * count);
  if (has_exp) candidate.bound.work.exps += count;
  candidate.option.in_place = 0;
  candidate.option.takes_live_rows = params.batch_rows > 0;
  return {std::move(candidate)};
}

}  // namespace reprise::cpu
