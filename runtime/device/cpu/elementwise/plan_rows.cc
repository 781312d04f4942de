// Normalisations, softmax and reductions: everything that works row by row.
#include <cmath>
#include <optional>

#include "absl/strings/str_cat.h"
#include "runtime/device/cpu/elementwise/elementwise_plans.h"
#include "runtime/device/cpu/elementwise/rows.h"
#include "runtime/device/cpu/plan/plan.h"
#include "runtime/device/cpu/plan/strided.h"
#include "runtime/ops/reduce/layer_norm_op.h"
#include "runtime/ops/reduce/reduce_op.h"
#include "runtime/ops/reduce/softmax_op.h"
#include "runtime/ops/windows/pool_op.h"

namespace reprise::cpu {
namespace {

constexpr int kNoOperand = -1;

// Returns the axis attribute in [0, rank), or nothing.
std::optional<int64_t> AxisOf(const NodeView& node, int64_t fallback) {
  const absl::StatusOr<int64_t> axis =
      NormalizeAxis(node.attributes().Int("axis", fallback), node.rank(0));
  if (!axis.ok()) return std::nullopt;
  return *axis;
}

struct NormParams {
  const RowKernels* kernels = nullptr;
  int64_t rows = 0;
  int64_t batch_rows = 0;
  NormArgs args;
  int residual = kNoOperand, gamma = kNoOperand, beta = kNoOperand, y = 0, sum = kNoOperand;
};

void RunNorm(const LaunchArgs& launch) {
  const auto& p = *static_cast<const NormParams*>(launch.params);
  NormArgs args = p.args;
  const auto operand = [&](int i) {
    return i == kNoOperand ? nullptr : static_cast<float*>(launch.operands[i]);
  };
  args.x = operand(0);
  args.residual = operand(p.residual);
  args.gamma = operand(p.gamma);
  args.beta = operand(p.beta);
  args.y = operand(p.y);
  args.sum = operand(p.sum);
  const int64_t live = LiveOf(p.rows, p.batch_rows, *launch.frame);
  const ItemRange rows = RangeOfPart(live, 1, launch.part, launch.parts);
  p.kernels->norm(args, rows.begin, rows.end);
}

// Scale and shift, where given, must have one element for each of the row.
std::vector<Candidate> PlanNorm(const CpuTarget& target, const NodeView& node, NormParams params) {
  for (int i : {params.gamma, params.beta}) {
    if (i != kNoOperand && NumElements(node.shape(i)) != params.args.size) return {};
  }
  if (params.args.size == 0) return {};
  params.kernels = &RowKernelsFor(target.isa);
  params.rows = NumElements(node.shape(0)) / params.args.size;
  params.y = static_cast<int>(node.num_inputs());
  params.batch_rows = node.batch_rows();
  const double flops = 8.0 * static_cast<double>(NumElements(node.shape(0)));
  Candidate candidate = MakeCandidate(target, node, "norm", RunNorm, params, flops);
  candidate.option.in_place = 0;
  candidate.option.takes_live_rows = params.batch_rows > 0;
  candidate.bound.detail = absl::StrCat(params.rows, " rows of ", params.args.size,
                                        params.residual == kNoOperand ? "" : " + residual");
  return {std::move(candidate)};
}

std::vector<Candidate> PlanPlainNorm(const CpuTarget& target, const NodeView& node, bool centred) {
  const std::optional<int64_t> axis = AxisOf(node, -1);
  if (!node.AllOf(DType::kFloat32) || !axis || node.output_is_used(1) || node.output_is_used(2)) {
    return {};
  }
  NormParams params;
  params.args.size = NumElements(absl::MakeConstSpan(node.shape(0)).subspan(*axis));
  params.args.epsilon = LayerNormalizationOp::From(node.attributes()).epsilon;
  params.args.centred = centred;
  if (node.has_input(1)) params.gamma = 1;
  if (node.has_input(2)) params.beta = 2;
  return PlanNorm(target, node, params);
}

struct SoftmaxParams {
  const RowKernels* kernels = nullptr;
  bool log = false;
  int64_t rows = 0, size = 0;
  int64_t batch_rows = 0;
};

void RunSoftmax(const LaunchArgs& launch) {
  const auto& p = *static_cast<const SoftmaxParams*>(launch.params);
  const int64_t live = LiveOf(p.rows, p.batch_rows, *launch.frame);
  const ItemRange rows = RangeOfPart(live, 1, launch.part, launch.parts);
  const auto softmax = p.log ? p.kernels->log_softmax : p.kernels->softmax;
  softmax(static_cast<const float*>(launch.operands[0]), static_cast<float*>(launch.operands[1]),
          p.size, rows.begin, rows.end);
}

// Along an axis that is not the last: of the columns of [outer, rows, columns].
struct ColumnsSoftmaxParams {
  const RowKernels* kernels = nullptr;
  bool log = false;
  int64_t outer = 0, rows = 0, columns = 0;
  int64_t batch_rows = 0;  // batch rows along `outer`
};

void RunColumnsSoftmax(const LaunchArgs& launch) {
  const auto& p = *static_cast<const ColumnsSoftmaxParams*>(launch.params);
  const auto* x = static_cast<const float*>(launch.operands[0]);
  auto* y = static_cast<float*>(launch.operands[1]);
  const int64_t blocks = (p.columns + kSoftmaxColumns - 1) / kSoftmaxColumns;
  const int64_t live = LiveOf(p.outer, p.batch_rows, *launch.frame);
  const ItemRange units = RangeOfPart(live * blocks, 1, launch.part, launch.parts);
  for (int64_t unit = units.begin; unit < units.end; ++unit) {
    const int64_t column = unit % blocks * kSoftmaxColumns;
    const int64_t offset = unit / blocks * p.rows * p.columns + column;
    p.kernels->softmax_columns(p.log, x + offset, p.columns, p.rows,
                               std::min(kSoftmaxColumns, p.columns - column), y + offset);
  }
}

struct RotaryParams {
  const RowKernels* kernels = nullptr;
  int64_t size = 0;
  int64_t batch_rows = 0;
  Walk<1> rows;  // walks the rows of x; its operand is the row of the tables
};

void RunRotary(const LaunchArgs& launch) {
  const auto& p = *static_cast<const RotaryParams*>(launch.params);
  const auto* x = static_cast<const float*>(launch.operands[0]);
  const auto* cosine = static_cast<const float*>(launch.operands[1]);
  const auto* sine = static_cast<const float*>(launch.operands[2]);
  auto* y = static_cast<float*>(launch.operands[3]);
  const int64_t step = p.rows.inner_stride(0);
  ForEachRun(p.rows, LiveOf(p.rows.elements, p.batch_rows, *launch.frame), launch.part,
             launch.parts,
             [&](int64_t position, const std::array<int64_t, 1>& offsets, int64_t count) {
               for (int64_t i = 0; i < count; ++i) {
                 const int64_t table = (offsets[0] + i * step) * p.size;
                 const int64_t row = (position + i) * p.size;
                 p.kernels->rotary(x + row, cosine + table, sine + table, y + row, p.size);
               }
             });
}

// x seen as [outer, reduced, inner].
struct ReduceParams {
  const RowKernels* kernels = nullptr;
  Fold fold = Fold::kSum;
  float (*finish)(float) = nullptr;  // applied to the fold of each row; may be null
  int64_t outer = 1, reduced = 1, inner = 1;
  float scale = 1;
  int out = 0;
  int64_t batch_rows = 0;
};

void RunReduce(const LaunchArgs& launch) {
  const auto& p = *static_cast<const ReduceParams*>(launch.params);
  const auto* x = static_cast<const float*>(launch.operands[0]);
  auto* y = static_cast<float*>(launch.operands[p.out]);
  const int64_t live = LiveOf(p.outer, p.batch_rows, *launch.frame);
  const ItemRange range = RangeOfPart(live, 1, launch.part, launch.parts);
  if (p.inner == 1) {
    p.kernels->fold_rows(p.fold, x, p.reduced, p.scale, y, range.begin, range.end);
  }
  for (int64_t o = range.begin; o < range.end && p.inner != 1; ++o) {
    const float* const rows = x + o * p.reduced * p.inner;
    if (p.fold == Fold::kSum) {
      p.kernels->weighted_sum(rows, p.inner, nullptr, p.reduced, p.inner, p.scale, y + o * p.inner);
    } else {
      p.kernels->fold_columns(p.fold, rows, p.inner, p.reduced, p.inner, y + o * p.inner);
    }
  }
  for (int64_t i = range.begin * p.inner; i < range.end * p.inner && p.finish != nullptr; ++i) {
    y[i] = p.finish(y[i]);
  }
}

struct ReduceName {
  absl::string_view name;
  Fold fold;
  float (*finish)(float);
};
constexpr ReduceName kReduceNames[] = {
    {ReduceSumOp::kName, Fold::kSum, nullptr},
    {ReduceMeanOp::kName, Fold::kSum, nullptr},
    {ReduceMaxOp::kName, Fold::kMax, nullptr},
    {GlobalMaxPoolOp::kName, Fold::kMax, nullptr},
    {ReduceMinOp::kName, Fold::kMin, nullptr},
    {ReduceProdOp::kName, Fold::kProduct, nullptr},
    {"ReduceSumSquare", Fold::kSumOfSquares, nullptr},
    {ReduceL1Op::kName, Fold::kSumOfMagnitudes, nullptr},
    {ReduceL2Op::kName, Fold::kSumOfSquares, [](float x) { return std::sqrt(x); }},
    {"ReduceLogSum", Fold::kSum, [](float x) { return std::log(x); }}};

}  // namespace

std::vector<Candidate> PlanLayerNorm(const CpuTarget& target, const NodeView& node) {
  return PlanPlainNorm(target, node, /*centred=*/true);
}

std::vector<Candidate> PlanRmsNorm(const CpuTarget& target, const NodeView& node) {
  return PlanPlainNorm(target, node, /*centred=*/false);
}

std::vector<Candidate> PlanAddLayerNorm(const CpuTarget& target, const NodeView& node) {
  if (!node.AllOf(DType::kFloat32) || node.rank(0) == 0) return {};
  NormParams params;
  params.args.size = node.shape(0).back();
  params.args.epsilon = LayerNormalizationOp::From(node.attributes()).epsilon;
  params.residual = 1;
  // The residual repeats over leading dims only: its own dims must end x's.
  Shape residual = node.shape(1);
  while (!residual.empty() && residual.front() == 1) residual.erase(residual.begin());
  const Shape& x = node.shape(0);
  if (residual.empty() || residual.size() > x.size() ||
      !std::equal(residual.begin(), residual.end(), x.end() - residual.size())) {
    return {};
  }
  params.args.residual_rows = NumElements(residual) / std::max<int64_t>(1, params.args.size);
  if (node.has_input(2)) params.gamma = 2;
  if (node.has_input(3)) params.beta = 3;
  if (node.output_is_used(1)) params.sum = static_cast<int>(node.num_inputs()) + 1;
  return PlanNorm(target, node, params);
}

std::vector<Candidate> PlanRotary(const CpuTarget& target, const NodeView& node) {
  if (!node.AllOf(DType::kFloat32) || NumElements(node.shape(0)) == 0) return {};
  Shape rows = node.shape(0), tables = node.shape(1);
  RotaryParams params;
  params.kernels = &RowKernelsFor(target.isa);
  params.size = rows.back();
  params.batch_rows = node.batch_rows();
  rows.pop_back();
  tables.pop_back();
  const std::optional<Walk<1>> walk = MakeBroadcastWalk<1>(rows, {tables});
  if (!walk.has_value()) return {};
  params.rows = *walk;
  const double flops = 3.0 * static_cast<double>(NumElements(node.shape(0)));
  Candidate candidate = MakeCandidate(target, node, "rotary", RunRotary, params, flops);
  candidate.option.in_place = 0;
  candidate.option.takes_live_rows = params.batch_rows > 0;
  return {std::move(candidate)};
}

std::vector<Candidate> PlanSoftmax(const CpuTarget& target, const NodeView& node) {
  const std::optional<int64_t> axis = AxisOf(node, -1);
  if (!node.AllOf(DType::kFloat32) || !axis) return {};
  const absl::Span<const int64_t> shape = node.shape(0);
  const int64_t outer = NumElements(shape.first(*axis)), size = shape[*axis];
  const int64_t columns = NumElements(shape.subspan(*axis + 1));
  if (size == 0 || columns == 0) return {};
  const bool log = node.op() == LogSoftmaxOp::kName;
  const auto elements = static_cast<double>(outer * size * columns);
  // Along the batch there are no rows to leave out.
  const int64_t batch_rows = *axis == 0 ? 0 : node.batch_rows();
  Candidate candidate;
  if (columns == 1) {
    const SoftmaxParams params = {&RowKernelsFor(target.isa), log, outer, size, batch_rows};
    candidate = MakeCandidate(target, node, "softmax", RunSoftmax, params, 4 * elements);
  } else {
    const ColumnsSoftmaxParams params = {
        &RowKernelsFor(target.isa), log, outer, size, columns, batch_rows};
    candidate =
        MakeCandidate(target, node, "softmax_columns", RunColumnsSoftmax, params, 4 * elements);
  }
  candidate.bound.work.exps = elements;
  candidate.option.in_place = 0;
  candidate.option.takes_live_rows = batch_rows > 0;
  return {std::move(candidate)};
}

std::vector<Candidate> PlanReduce(const CpuTarget& target, const NodeView& node) {
  if (node.dtype(0) != DType::kFloat32) return {};
  const Shape& shape = node.shape(0);
  std::vector<bool> reduced(shape.size(), false);
  if (node.op() == GlobalMaxPoolOp::kName) {
    if (shape.size() < 3) return {};
    std::fill(reduced.begin() + 2, reduced.end(), true);
  }
  if (node.has_input(1)) {
    const Tensor* axes = node.constant(1);
    if (axes == nullptr) return {};
    const absl::StatusOr<std::vector<int64_t>> values = axes->ToInt64s();
    if (!values.ok()) return {};
    for (int64_t value : *values) {
      const absl::StatusOr<int64_t> axis = NormalizeAxis(value, node.rank(0));
      if (!axis.ok()) return {};
      reduced[*axis] = true;
    }
  }
  if (std::find(reduced.begin(), reduced.end(), true) == reduced.end()) {
    if (node.attributes().Int("noop_with_empty_axes", 0) != 0) return {};
    reduced.assign(shape.size(), true);
  }
  // [outer][reduced][inner], with nothing in between.
  ReduceParams params;
  params.kernels = &RowKernelsFor(target.isa);
  for (const ReduceName& row : kReduceNames) {
    if (row.name != node.op()) continue;
    params.fold = row.fold;
    params.finish = row.finish;
  }
  size_t d = 0;
  for (; d < shape.size() && !reduced[d]; ++d) params.outer *= shape[d];
  for (; d < shape.size() && (reduced[d] || shape[d] == 1); ++d) params.reduced *= shape[d];
  for (; d < shape.size(); ++d) {
    if (reduced[d] && shape[d] != 1) return {};
    params.inner *= shape[d];
  }
  if (params.reduced == 0) return {};
  if (node.op() == ReduceMeanOp::kName) params.scale = 1.0f / static_cast<float>(params.reduced);
  params.out = static_cast<int>(node.num_inputs());
  params.batch_rows = node.batch_rows();
  Candidate candidate = MakeCandidate(target, node, "reduce", RunReduce, params,
                                      static_cast<double>(NumElements(shape)));
  candidate.option.takes_live_rows = params.batch_rows > 0;
  return {std::move(candidate)};
}

}  // namespace reprise::cpu
