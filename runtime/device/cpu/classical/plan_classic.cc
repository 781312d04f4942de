// The models of ai.onnx.ml except trees, row by row: scores, distances and categories.
#include <algorithm>
#include <memory>

#include "runtime/device/cpu/classical/classical_plans.h"
#include "runtime/device/cpu/classical/distances.h"
#include "runtime/device/cpu/elementwise/elementwise.h"
#include "runtime/device/cpu/elementwise/rows.h"
#include "runtime/device/cpu/plan/plan.h"
#include "runtime/ops/classical/categories.h"
#include "runtime/ops/classical/class_scores.h"
#include "runtime/ops/classical/distances.h"
#include "runtime/ops/classical/svm_scores.h"

namespace reprise::cpu {
namespace {

ops::ScoreMath MathOf(const CpuTarget& target) {
  return {.logistic = ElementwiseKernelsFor(target.isa).unary(Unary::kSigmoid),
          .softmax = RowKernelsFor(target.isa).softmax};
}

struct ScoreParams {
  ops::ScoreRules rules;
  ops::ScoreMath math = {};
  int64_t rows = 0, chunks = 1, classes = 0;
  int64_t batch_rows = 0;
  bool labels = false;
};

template <typename From, typename To>
void RunScores(const LaunchArgs& launch) {
  const auto& p = *static_cast<const ScoreParams*>(launch.params);
  constexpr int64_t kGrain = 16;
  const ItemRange range =
      RangeOfPart(LiveOf(p.rows, p.batch_rows, *launch.frame), kGrain, launch.part, launch.parts);
  ops::ScoreRows(p.rules, static_cast<const From*>(launch.operands[0]), p.chunks, p.classes,
                 range.begin, range.end, static_cast<To*>(launch.operands[1]),
                 p.labels ? static_cast<int64_t*>(launch.operands[2]) : nullptr, &p.math);
}

struct SvmParams {
  ops::SvmRules rules;
  ops::ScoreMath math = {};
  int64_t rows = 0, pairs = 0;
  int64_t batch_rows = 0;
  int scratch_parts = 1;
};

int64_t SvmScratchBytes(const SvmParams& p) {
  constexpr int64_t kLine = 64;
  const int64_t bytes = p.rules.scratch() * static_cast<int64_t>(sizeof(float));
  return (bytes + kLine - 1) / kLine * kLine;
}

void RunSvmScores(const LaunchArgs& launch) {
  const auto& p = *static_cast<const SvmParams*>(launch.params);
  const int parts = PartsWithScratch(launch, p.scratch_parts);
  if (launch.part >= parts) return;
  constexpr int64_t kGrain = 8;
  const ItemRange range =
      RangeOfPart(LiveOf(p.rows, p.batch_rows, *launch.frame), kGrain, launch.part, parts);
  auto* scratch = reinterpret_cast<float*>(static_cast<std::byte*>(launch.operands[3]) +
                                           launch.part * SvmScratchBytes(p));
  ops::SvmScoreRows(p.rules, static_cast<const float*>(launch.operands[0]), range.begin, range.end,
                    static_cast<float*>(launch.operands[1]),
                    static_cast<int64_t*>(launch.operands[2]), scratch, &p.math);
}

template <typename T>
struct DistanceParams {
  void (*kernel)(const DistanceArgs<T>& args) = nullptr;
  int64_t rows = 0, size = 0, columns = 0;
  int64_t power = 2;
  int64_t batch_rows = 0;
};

template <typename T>
void RunDistances(const LaunchArgs& launch) {
  const auto& p = *static_cast<const DistanceParams<T>*>(launch.params);
  const int64_t rows = LiveOf(p.rows, p.batch_rows, *launch.frame);
  // Rows where there are many, else columns.
  const bool by_rows = rows >= 4 * launch.parts;
  constexpr int64_t kRowGrain = 4, kColumnGrain = 64;
  const ItemRange range = by_rows ? RangeOfPart(rows, kRowGrain, launch.part, launch.parts)
                                  : RangeOfPart(p.columns, kColumnGrain, launch.part, launch.parts);
  p.kernel({.x = static_cast<const T*>(launch.operands[0]),
            .y = static_cast<const T*>(launch.operands[1]),
            .size = p.size,
            .columns = p.columns,
            .power = p.power,
            .first_row = by_rows ? range.begin : 0,
            .end_row = by_rows ? range.end : rows,
            .first_column = by_rows ? 0 : range.begin,
            .end_column = by_rows ? p.columns : range.end,
            .sums = static_cast<T*>(launch.operands[2])});
}

template <typename T>
Candidate DistancesBy(const CpuTarget& target, const NodeView& node,
                      void (*kernel)(const DistanceArgs<T>& args)) {
  DistanceParams<T> params;
  params.kernel = kernel;
  params.rows = node.shape(0)[0];
  params.size = node.shape(0)[1];
  params.columns = node.shape(1)[1];
  params.power = ops::PowerOfDistances(node.attributes());
  params.batch_rows = node.batch_rows();
  const double of_element = params.power < 3 ? 3.0 : static_cast<double>(params.power) + 2;
  Candidate candidate = MakeCandidate(target, node, "distances", RunDistances<T>, params,
                                      of_element * static_cast<double>(params.rows * params.size) *
                                          static_cast<double>(params.columns));
  candidate.option.takes_live_rows = params.batch_rows > 0;
  return candidate;
}

template <typename T>
struct CategoryParams {
  std::vector<T> keys;  // sorted, without duplicates
  std::vector<int64_t> places;
  int64_t rows = 0, columns = 0;
  int64_t batch_rows = 0;
  ops::UnknownCategory unknown;
};

template <typename T>
void RunCategories(const LaunchArgs& launch) {
  const auto& p = *static_cast<const CategoryParams<T>*>(launch.params);
  constexpr int64_t kGrain = 16;
  const ItemRange range =
      RangeOfPart(LiveOf(p.rows, p.batch_rows, *launch.frame), kGrain, launch.part, launch.parts);
  const auto* x = static_cast<const T*>(launch.operands[0]);
  auto* y = static_cast<int64_t*>(launch.operands[2]);
  for (int64_t i = range.begin * p.columns; i < range.end * p.columns; ++i) {
    const auto at = std::lower_bound(p.keys.begin(), p.keys.end(), x[i], ops::KeyIsBefore<T>);
    const bool found = at != p.keys.end() && !ops::KeyIsBefore(x[i], *at);
    y[i] = found ? p.places[at - p.keys.begin()] : p.unknown.missing;
    if (found) continue;
    p.unknown.Tell(x[i], i,
                   [&](auto... what) { launch.frame->errors->Report(launch.launch, what...); });
  }
}

template <typename T>
Candidate PlanCategoriesOf(const CpuTarget& target, const NodeView& node, const Tensor& keys) {
  CategoryParams<T> params;
  for (const int64_t place : ops::KeyOrder(keys.span<T>())) {
    const T key = keys.span<T>()[place];
    if (!params.keys.empty() && !ops::KeyIsBefore(params.keys.back(), key)) continue;
    params.keys.push_back(key);
    params.places.push_back(place);
  }
  params.unknown = ops::UnknownCategoryOf<T>(node.attributes(), keys.span<T>());
  const Shape& shape = node.shape(0);
  params.rows = shape.empty() ? 1 : shape[0];
  params.columns = params.rows == 0 ? 0 : NumElements(shape) / params.rows;
  params.batch_rows = node.batch_rows();
  return MakeCandidate(
      target, node, "categories", RunCategories<T>,
      std::shared_ptr<const void>(std::make_shared<const CategoryParams<T>>(std::move(params))),
      8.0 * static_cast<double>(NumElements(shape)));
}

}  // namespace

std::vector<Candidate> PlanCategoryIndex(const CpuTarget& target, const NodeView& node) {
  const Tensor* keys = node.constant(1);
  if (keys == nullptr) return {};
  std::vector<Candidate> candidates;
  if (node.dtype(0) == DType::kFloat32) {
    candidates.push_back(PlanCategoriesOf<float>(target, node, *keys));
  } else if (node.dtype(0) == DType::kInt64) {
    candidates.push_back(PlanCategoriesOf<int64_t>(target, node, *keys));
  } else {
    return {};
  }
  candidates[0].option.takes_live_rows = node.batch_rows() > 0;
  return candidates;
}

std::vector<Candidate> PlanClassScores(const CpuTarget& target, const NodeView& node) {
  ScoreParams params;
  params.rules = ops::ScoreRules::From(node.attributes());
  params.math = MathOf(target);
  const Shape& shape = node.shape(0);
  const bool from_trees = node.dtype(0) == DType::kFloat64;
  params.rows = shape[0];
  params.chunks = from_trees ? shape[1] : 1;
  params.classes = shape.back();
  params.batch_rows = node.batch_rows();
  params.labels = node.has_output(1);
  if (!from_trees && params.rules.is_double) return {};
  const KernelFn run = !from_trees              ? RunScores<float, float>
                       : params.rules.is_double ? RunScores<double, double>
                                                : RunScores<double, float>;
  Candidate candidate =
      MakeCandidate(target, node, "class_scores", run,
                    std::shared_ptr<const void>(std::make_shared<const ScoreParams>(params)),
                    4.0 * static_cast<double>(NumElements(shape)));
  candidate.option.takes_live_rows = params.batch_rows > 0;
  return {std::move(candidate)};
}

std::vector<Candidate> PlanSvmScores(const CpuTarget& target, const NodeView& node) {
  if (!node.has_output(1)) return {};
  SvmParams params;
  params.rules = ops::SvmRules::From(node.attributes());
  params.math = MathOf(target);
  params.rows = node.shape(0)[0];
  params.batch_rows = node.batch_rows();
  params.scratch_parts = target.scratch_parts;
  Candidate candidate =
      MakeCandidate(target, node, "svm_scores", RunSvmScores,
                    std::shared_ptr<const void>(std::make_shared<const SvmParams>(params)),
                    8.0 * static_cast<double>(NumElements(node.shape(0))));
  candidate.option.workspace_bytes =
      static_cast<size_t>(params.scratch_parts * SvmScratchBytes(params));
  candidate.option.takes_live_rows = params.batch_rows > 0;
  return {std::move(candidate)};
}

std::vector<Candidate> PlanDistances(const CpuTarget& target, const NodeView& node) {
  if (node.shape(0)[1] != node.shape(1)[0]) return {};
  const DistanceKernels& kernels = DistanceKernelsFor(target.isa);
  if (node.dtype(0) == DType::kFloat64) return {DistancesBy(target, node, kernels.doubles)};
  return {DistancesBy(target, node, kernels.floats)};
}

}  // namespace reprise::cpu
