// Elementwise float32 ops by the vector kernels.
#include <cstring>
#include <optional>

#include "absl/strings/str_cat.h"
#include "runtime/device/cpu/plan.h"
#include "runtime/device/cpu/strided.h"

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
  int64_t batch_rows = 0;
};

void RunBinary(const LaunchArgs& launch) {
  const auto& p = *static_cast<const BinaryParams*>(launch.params);
  const auto* a = static_cast<const float*>(launch.operands[0]);
  const auto* b = static_cast<const float*>(launch.operands[1]);
  auto* y = static_cast<float*>(launch.operands[2]);
  const int64_t live = LiveOf(p.walk.elements, p.batch_rows, *launch.frame);
  ForEachRun(p.walk, live, launch.part, launch.parts,
             [&](int64_t position, const std::array<int64_t, 2>& offsets, int64_t count) {
               p.function(a + offsets[0], b + offsets[1], y + position, count);
             });
}

struct ClipParams {
  void (*function)(const float*, float, float, float*, int64_t) = nullptr;
  bool has_low = false, has_high = false;
  int64_t count = 0;
  int out = 0;
  int64_t batch_rows = 0;
};

void RunClip(const LaunchArgs& launch) {
  const auto& p = *static_cast<const ClipParams*>(launch.params);
  const int64_t live = LiveOf(p.count, p.batch_rows, *launch.frame);
  const ItemRange range = RangeOfPart(live, 64, launch.part, launch.parts);
  const auto bound = [&](bool given, int operand, float otherwise) {
    return given ? *static_cast<const float*>(launch.operands[operand]) : otherwise;
  };
  p.function(static_cast<const float*>(launch.operands[0]) + range.begin,
             bound(p.has_low, 1, -INFINITY), bound(p.has_high, 2, INFINITY),
             static_cast<float*>(launch.operands[p.out]) + range.begin, range.end - range.begin);
}

// What `count` values of `op` cost beyond an operation each.
void CountFunction(Unary op, double count, LaunchWork& work) {
  switch (op) {
    case Unary::kExp:
    case Unary::kTanh:
    case Unary::kSigmoid:
    case Unary::kGeluTanh:
    case Unary::kSilu:
      work.exps += count;
      break;
    case Unary::kErf:
    case Unary::kGelu:
      work.erfs += count;
      break;
    default:
      break;
  }
}

Candidate UnaryCandidate(const CpuTarget& target, const NodeView& node, Unary op) {
  const int64_t count = NumElements(node.shape(0));
  const UnaryParams params = {target.elementwise.unary(op), count, node.batch_rows()};
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
constexpr UnaryName kUnaryNames[] = {{"Neg", Unary::kNeg},     {"Abs", Unary::kAbs},
                                     {"Sqrt", Unary::kSqrt},   {"Reciprocal", Unary::kReciprocal},
                                     {"Floor", Unary::kFloor}, {"Ceil", Unary::kCeil},
                                     {"Round", Unary::kRound}, {"Exp", Unary::kExp},
                                     {"Tanh", Unary::kTanh},   {"Sigmoid", Unary::kSigmoid},
                                     {"Erf", Unary::kErf},     {"Relu", Unary::kRelu}};

struct BinaryName {
  absl::string_view name;
  Binary op;
};
constexpr BinaryName kBinaryNames[] = {{"Add", Binary::kAdd},
                                       {"Sub", Binary::kSub},
                                       {"Mul", Binary::kMul},
                                       {"Div", Binary::kDiv},
                                       {"Max", Binary::kMax},
                                       {"Min", Binary::kMin},
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
  const bool tanh = node.attributes().String("approximate", "none") == "tanh";
  return {UnaryCandidate(target, node, tanh ? Unary::kGeluTanh : Unary::kGelu)};
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
  // Both strides are 0 only where a run is one element.
  const Run run = walk->inner_stride(0) == walk->inner_stride(1) ? Run::kBoth
                  : walk->inner_stride(0) == 0                   ? Run::kScalarA
                                                                 : Run::kScalarB;
  params.function = target.elementwise.binary(*op, run);
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

std::vector<Candidate> PlanPow(const CpuTarget& target, const NodeView& node) {
  const Tensor* exponent = node.constant(1);
  if (node.dtype(0) != DType::kFloat32 || exponent == nullptr || exponent->num_elements() != 1 ||
      node.out_shape() != node.shape(0)) {
    return {};
  }
  const double value = exponent->ToDoubles()[0];
  const auto with = [&](Unary op) {
    UnaryParams params = {target.elementwise.unary(op), NumElements(node.shape(0)),
                          node.batch_rows()};
    // Operand 1, the exponent, stands between.
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
  if (value == 0.5) return with(Unary::kSqrt);
  if (value == 1) return with(Unary::kCopy);
  if (value == -1) return with(Unary::kReciprocal);
  return {};
}

std::vector<Candidate> PlanClip(const CpuTarget& target, const NodeView& node) {
  if (!node.AllOf(DType::kFloat32)) return {};
  ClipParams params;
  params.function = target.elementwise.clip;
  params.has_low = node.has_input(1);
  params.has_high = node.has_input(2);
  params.count = NumElements(node.shape(0));
  params.out = static_cast<int>(node.num_inputs());
  params.batch_rows = node.batch_rows();
  Candidate candidate =
      MakeCandidate(target, node, "clip", RunClip, params, 2.0 * static_cast<double>(params.count));
  candidate.option.in_place = 0;
  candidate.option.takes_live_rows = params.batch_rows > 0;
  return {std::move(candidate)};
}

}  // namespace reprise::cpu
