#include "runtime/onnx/classical/svm.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/graph/graph.h"
#include "runtime/onnx/classical/ml_attributes.h"
#include "runtime/onnx/kit/steps.h"
#include "runtime/ops/classical/classical_op.h"
#include "runtime/ops/classical/svm_scores.h"
#include "runtime/ops/elementwise/activation_op.h"
#include "runtime/ops/elementwise/arithmetic_op.h"
#include "runtime/ops/elementwise/comparison_op.h"
#include "runtime/ops/elementwise/select_op.h"
#include "runtime/ops/products/matmul_op.h"

namespace reprise {
namespace {

// `rows` [count, columns] transposed, as an operand of a product.
ValueId Columns(Steps& steps, const std::string& name, const std::vector<float>& rows,
                int64_t count) {
  const auto columns = static_cast<int64_t>(rows.size()) / count;
  std::vector<float> turned(rows.size());
  for (int64_t r = 0; r < count; ++r) {
    for (int64_t c = 0; c < columns; ++c) turned[c * count + r] = rows[r * columns + c];
  }
  return steps.Constant(name, Tensor::FromVector(DType::kFloat32, {columns, count}, turned));
}

// Returns the kernel of each row of `x` and each of `count` vectors: [rows, count]. `offset` is
// added to products that no function follows.
absl::StatusOr<ValueId> Kernel(NodeDraft& draft, Graph& graph, ValueId x,
                               const std::vector<float>& vectors, int64_t count,
                               const std::string& type) {
  if (count < 1 || vectors.empty() || vectors.size() % static_cast<size_t>(count) != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(vectors.size(), " elements for ", count, " vectors"));
  }
  Steps steps(draft, graph);
  const std::vector<float>& params = FloatsOf(draft.attributes, "kernel_params");
  const auto param = [&](size_t i) { return i < params.size() ? params[i] : 0.0f; };
  const float gamma = param(0), coef0 = param(1), degree = param(2);
  const ValueId columns = Columns(steps, "vectors", vectors, count);
  if (type == "RBF") {
    const ValueId distance = steps.Add(DistancesOp::kName, {x, columns});
    return steps.Add(ExpOp::kName, {steps.Add(MulOp::kName, {distance, steps.Float(-gamma)})});
  }
  ValueId dot = steps.Add(MatMulOp::kName, {x, columns});
  if (type == "LINEAR") return dot;
  dot = steps.Add(AddOp::kName,
                  {steps.Add(MulOp::kName, {dot, steps.Float(gamma)}), steps.Float(coef0)});
  if (type == "SIGMOID") return steps.Add(TanhOp::kName, {dot});
  if (type != "POLY")
    return absl::InvalidArgumentError(absl::StrCat("there is no kernel '", type, "'"));
  return steps.Add(PowOp::kName, {dot, steps.Float(degree)});
}

// The weight of a support vector in one of the decisions.
struct Weight {
  int64_t vector, result;
  float value;
};

// More elements of one operand than a decision is worth: files name few vectors of many columns, or
// many classes, in far fewer bytes.
constexpr int64_t kMostElements = int64_t{1} << 28;

absl::Status CheckElements(absl::string_view what, int64_t rows, int64_t columns) {
  if (rows <= kMostElements / std::max<int64_t>(columns, 1)) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(what, " take ", rows, " times ", columns,
                                                   " numbers, the limit is ", kMostElements));
}

// Computes the linear kernel: the product of `x` with the sums of `vectors` [count, columns] by
// `weights`, plus `rho`. The sums are known when the file is read; they are taken as doubles, which
// lose nothing where many large ones nearly cancel.
absl::StatusOr<ValueId> Lines(NodeDraft& draft, Graph& graph, ValueId x,
                              const std::vector<float>& vectors, const std::vector<Weight>& weights,
                              int64_t count, const std::vector<float>& rho) {
  const auto results = static_cast<int64_t>(rho.size());
  if (vectors.empty() || vectors.size() % static_cast<size_t>(count) != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(vectors.size(), " elements for ", count, " vectors"));
  }
  const auto columns = static_cast<int64_t>(vectors.size()) / count;
  RETURN_IF_ERROR(CheckElements("its lines", columns, results));
  std::vector<double> sums(static_cast<size_t>(columns * results), 0.0);
  for (const Weight& weight : weights) {
    for (int64_t c = 0; c < columns; ++c) {
      sums[c * results + weight.result] +=
          double{vectors[weight.vector * columns + c]} * double{weight.value};
    }
  }
  Steps steps(draft, graph);
  const std::vector<float> lines(sums.begin(), sums.end());
  return steps.Add(
      GemmOp::kName,
      {x, steps.Constant("lines", Tensor::FromVector(DType::kFloat32, {columns, results}, lines)),
       steps.Floats("rho", rho)});
}

// Where the weights of the vectors of a decision sum to more than this, float32 loses
// more than a thousandth of the margin, which is 1: large weights nearly cancel.
constexpr double kMostWeight = 1 << 14;

bool NeedsDoubles(const std::vector<Weight>& weights, int64_t results) {
  std::vector<double> sums(static_cast<size_t>(results), 0.0);
  for (const Weight& weight : weights) sums[weight.result] += std::abs(double{weight.value});
  return std::any_of(sums.begin(), sums.end(), [](double sum) { return sum > kMostWeight; });
}

// Returns the decisions of `count` support vectors, by `weights`, plus `rho`: [rows, results].
absl::StatusOr<ValueId> Decisions(NodeDraft& draft, Graph& graph, ValueId x,
                                  const std::vector<Weight>& weights, int64_t count,
                                  const std::vector<float>& rho) {
  const std::vector<float>& vectors = FloatsOf(draft.attributes, "support_vectors");
  const std::string type = draft.attributes.String("kernel_type", "LINEAR");
  if (type == "LINEAR") return Lines(draft, graph, x, vectors, weights, count, rho);
  ASSIGN_OR_RETURN(const ValueId kernel, Kernel(draft, graph, x, vectors, count, type));
  Steps steps(draft, graph);
  const auto results = static_cast<int64_t>(rho.size());
  RETURN_IF_ERROR(CheckElements("the weights of its vectors in its decisions", count, results));
  std::vector<float> matrix(static_cast<size_t>(count * results), 0.0f);
  for (const Weight& weight : weights) {
    matrix[weight.vector * results + weight.result] = weight.value;
  }
  const ValueId by =
      steps.Constant("coefficients", Tensor::FromVector(DType::kFloat32, {count, results}, matrix));
  const ValueId offsets = steps.Floats("rho", rho);
  if (!NeedsDoubles(weights, results)) return steps.Add(GemmOp::kName, {kernel, by, offsets});
  const auto wide = [&](ValueId value) { return steps.Cast(value, DType::kFloat64); };
  return steps.ToFloat(steps.Add(GemmOp::kName, {wide(kernel), wide(by), wide(offsets)}));
}

}  // namespace

absl::Status SvmRegressorInSteps(NodeDraft& draft, Graph& graph) {
  RETURN_IF_ERROR(RequireOneInput(draft));
  const Attributes& attributes = draft.attributes;
  const std::vector<float>& coefficients = FloatsOf(attributes, "coefficients");
  const std::vector<float>& rho = FloatsOf(attributes, "rho");
  const int64_t supports = attributes.Int("n_supports", 0);
  const bool one_class = attributes.Int("one_class", 0) != 0;
  RETURN_IF_ERROR(PostTransformOf(attributes).status());  // A single score is not transformed.
  if (coefficients.empty() || rho.empty()) {
    return absl::InvalidArgumentError("attributes 'coefficients' and 'rho' are missing");
  }
  Steps steps(draft, graph);
  const ValueId x = AsFloats(draft, graph, draft.inputs[0]);
  ValueId y = kNone;
  if (supports > 0) {
    RETURN_IF_ERROR(
        CheckLength("coefficients", coefficients.size(), static_cast<size_t>(supports)));
    std::vector<Weight> weights;
    for (int64_t v = 0; v < supports; ++v) weights.push_back({v, 0, coefficients[v]});
    ASSIGN_OR_RETURN(y, Decisions(draft, graph, x, weights, supports, {rho[0]}));
  } else {
    ASSIGN_OR_RETURN(const ValueId dot, Kernel(draft, graph, x, coefficients, 1, "LINEAR"));
    y = steps.Add(AddOp::kName, {dot, steps.Float(rho[0])});
  }
  if (one_class) {
    const ValueId inside = steps.Add(GreaterOp::kName, {y, steps.Float(0)});
    y = steps.Add(WhereOp::kName, {inside, steps.Float(1), steps.Float(-1)});
  }
  draft.op = IdentityOp::kName;
  draft.attributes = {};
  draft.inputs = {y};
  return absl::OkStatus();
}

absl::Status SvmClassifierInSteps(NodeDraft& draft, Graph& graph) {
  RETURN_IF_ERROR(RequireOneInput(draft));
  const Attributes& attributes = draft.attributes;
  const std::vector<int64_t> labels = ClassLabels(draft, "classlabels_ints");
  ASSIGN_OR_RETURN(const ops::PostTransform post, PostTransformOf(attributes));
  const std::vector<float>& coefficients = FloatsOf(attributes, "coefficients");
  const std::vector<float>& rho = FloatsOf(attributes, "rho");
  const std::vector<int64_t> supports = attributes.Ints("vectors_per_class");
  const auto classes = static_cast<int64_t>(labels.size());
  if (labels.empty() || coefficients.empty() || rho.empty()) {
    return absl::InvalidArgumentError(
        "attributes 'classlabels_ints' or 'classlabels_strings', 'coefficients' and 'rho' are "
        "missing");
  }
  Steps steps(draft, graph);
  const ValueId x = AsFloats(draft, graph, draft.inputs[0]);
  int64_t vectors = 0;
  for (const int64_t count : supports) {
    // Each has a coefficient at least; numbers beyond that may not be summed.
    if (count < 0 || count > static_cast<int64_t>(coefficients.size()) - vectors) {
      return absl::InvalidArgumentError(absl::StrCat("a class of ", count, " vectors, there are ",
                                                     coefficients.size(), " coefficients"));
    }
    vectors += count;
  }
  if (vectors == 0) {
    // A line for each class.
    ASSIGN_OR_RETURN(const ValueId dot, Kernel(draft, graph, x, coefficients, classes, "LINEAR"));
    const ValueId sums = steps.Add(AddOp::kName, {dot, steps.Float(rho[0])});
    FinishWithScores(draft, sums,
                     {.rule = ops::ScoreRule::kLargest, .post = post, .base = {}, .labels = labels},
                     /*labels=*/true);
    return absl::OkStatus();
  }
  ops::SvmRules rules = {.labels = labels,
                         .post = post,
                         .prob_a = FloatsOf(attributes, "prob_a"),
                         .prob_b = FloatsOf(attributes, "prob_b")};
  const int64_t pairs = rules.pairs();
  RETURN_IF_ERROR(CheckLength("vectors_per_class", supports.size(), labels.size()));
  if (classes < 2) return absl::InvalidArgumentError("there is one class alone");
  RETURN_IF_ERROR(CheckLength("coefficients", coefficients.size(),
                              static_cast<size_t>((classes - 1) * vectors)));
  RETURN_IF_ERROR(CheckLength("rho", rho.size(), static_cast<size_t>(pairs)));
  RETURN_IF_ERROR(CheckLength("prob_b", rules.prob_b.size(), rules.prob_a.size()));
  if (!rules.prob_a.empty()) {
    RETURN_IF_ERROR(CheckLength("prob_a", rules.prob_a.size(), static_cast<size_t>(pairs)));
  }
  // Decision (i, j): the vectors of class i with coefficients of row j - 1, the vectors of class
  // j with row i.
  std::vector<Weight> weights;
  weights.reserve(coefficients.size());
  std::vector<int64_t> starts = {0};
  for (const int64_t count : supports) starts.push_back(starts.back() + count);
  for (int64_t i = 0, pair = 0; i < classes; ++i) {
    for (int64_t j = i + 1; j < classes; ++j, ++pair) {
      for (int64_t v = starts[i]; v < starts[i + 1]; ++v) {
        weights.push_back({v, pair, coefficients[(j - 1) * vectors + v]});
      }
      for (int64_t v = starts[j]; v < starts[j + 1]; ++v) {
        weights.push_back({v, pair, coefficients[i * vectors + v]});
      }
    }
  }
  ASSIGN_OR_RETURN(const ValueId decisions, Decisions(draft, graph, x, weights, vectors, rho));
  draft.op = SvmScoresOp::kName;
  draft.attributes = rules.ToAttributes();
  draft.inputs = {decisions};
  ScoresBeforeLabels(draft);
  return absl::OkStatus();
}

}  // namespace reprise
