#include "runtime/verify/padding_leak.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <utility>

#include "absl/algorithm/container.h"
#include "runtime/graph/elements.h"
#include "runtime/graph/graph.h"
#include "runtime/ops/axis/axis_rules.h"
#include "runtime/ops/elementwise/comparison_op.h"
#include "runtime/ops/elementwise/select_op.h"
#include "runtime/ops/kit/op_facts.h"
#include "runtime/passes/simplify/simplify_passes.h"
#include "runtime/passes/specialize/specialize.h"
#include "runtime/verify/proof_sizes.h"

namespace reprise {
namespace {

using Verdict = AxisFinding::Verdict;

// Sizes of the axis: primes, which nothing else has, and what convolutions with strides take.
constexpr std::pair<int64_t, int64_t> kSizePairs[] = {
    {19, 23}, {7, 11}, {67, 101}, {64, 96}, {227, 259}, {224, 256}, {1031, 1499}, {4099, 5003}};
// The same in steps of an axis that has multiples of one alone.
constexpr std::pair<int64_t, int64_t> kStepPairs[] = {{3, 5}, {2, 3}, {7, 11}, {16, 24}};

// Returns the pairs of sizes at which an axis is looked at.
std::vector<std::pair<int64_t, int64_t>> SizesIn(int64_t step) {
  if (step == 1) return {std::begin(kSizePairs), std::end(kSizePairs)};
  std::vector<std::pair<int64_t, int64_t>> sizes;
  for (const auto& [small, large] : kStepPairs) sizes.emplace_back(small * step, large * step);
  return sizes;
}

// Sizes for the other axes; the batch has kOtherBatch.
constexpr int64_t kOtherSizes[] = {5, 16, 64, 224, 1024};
constexpr int64_t kOtherBatch = 3;
// Returns whether strides leave another number of positions, more than one, at each of the two
// sizes that `a` and `b` are specialised at: at small ones dims of few positions look as if nothing
// moved them.
bool TellsStridesApart(const Graph& a, const Graph& b) {
  const std::vector<NodeId> nodes = a.NodeIds(), others = b.NodeIds();
  for (size_t i = 0; i < nodes.size() && i < others.size(); ++i) {
    const Node &node = a.node(nodes[i]), &other = b.node(others[i]);
    if (node.op != other.op || !FactsOf(node.op).SlidesWindows()) continue;
    const Shape &in = *a.value(node.inputs[0]).shape, &in_b = *b.value(other.inputs[0]).shape;
    const Shape &out = *a.value(node.outputs[0]).shape, &out_b = *b.value(other.outputs[0]).shape;
    for (size_t d = 2; d < in.size() && d < in_b.size() && d < out.size(); ++d) {
      if (in[d] != in_b[d] && (out[d] == out_b[d] || out[d] < 2)) return false;
    }
  }
  return true;
}

// A number of a model that is this low is meant to hide another one.
constexpr double kLow = -1e8;

// Returns whether a condition that holds everywhere in `graph`, or nowhere, by its sizes alone
// leaves out some of what requests hold, or a number that is no mask: at other sizes that has a
// say.
bool LeavesOutData(const Graph& graph, const UnevenTables& uneven) {
  const auto holds = [&](const Node& node, size_t i, bool value) {
    const Tensor* known = graph.ConstantOf(node.input(i));
    return known != nullptr && known->num_elements() > 1 &&
           uneven.contains(graph.value(node.input(i)).name) &&
           AllElements(*known, [&](double one) { return (one != 0) == value; });
  };
  return absl::c_any_of(graph.NodeIds(), [&](NodeId id) {
    const Node& node = graph.node(id);
    const auto is_data = [&](size_t i) { return graph.ConstantOf(node.input(i)) == nullptr; };
    if (node.op == WhereOp::kName) {
      const auto counts = [&](size_t i) {
        const Tensor* known = graph.ConstantOf(node.input(i));
        return known == nullptr || !AllElements(*known, [](double one) { return one <= kLow; });
      };
      return (holds(node, WhereOp::kCondition, true) && counts(WhereOp::kElse)) ||
             (holds(node, WhereOp::kCondition, false) && counts(WhereOp::kThen));
    }
    if (node.op != AndOp::kName && node.op != OrOp::kName) return false;
    const bool decides = node.op == OrOp::kName;
    return (holds(node, 0, decides) && is_data(1)) || (holds(node, 1, decides) && is_data(0));
  });
}

class Finder {
 public:
  explicit Finder(const PaddingLeakQuestion& question)
      : question_(question), axes_(question.readings.axes()) {}

  AxisFinding Run() {
    AxisFinding walked = Walk();
    if (walked.verdict == Verdict::kMixes) return walked;
    AxisFinding chosen = FindSizeChoices(question_.readings, question_.position, question_.largest);
    chosen.in_request = walked.in_request;
    return chosen.verdict > walked.verdict ? chosen : walked;
  }

 private:
  AxisFinding Walk() {
    std::string refusal;
    std::optional<AxisFinding> finding;
    for (const int64_t other : kOtherSizes) {
      for (const auto& [small, large] : SizesIn(axes_[question_.position].step)) {
        const auto a = At(small, other), b = At(large, other);
        if (a.ok() && b.ok() && (!finding.has_value() || TellsStridesApart(*a, *b))) {
          finding = Look(small, *a, large, *b, other);
          if (TellsStridesApart(*a, *b)) return *finding;
        }
        if (refusal.empty() && !(a.ok() && b.ok())) {
          refusal = std::string((a.ok() ? b : a).status().message());
        }
      }
      if (finding.has_value()) return *finding;
    }
    return {Verdict::kUndecided, "the model",
            "takes no sizes at which it could be read: " + refusal};
  }

  absl::StatusOr<Graph> At(int64_t size, int64_t other) {
    Binding binding = {.axes = question_.readings.fixed()};
    for (size_t i = 0; i < axes_.size(); ++i) {
      const ModelAxis& axis = axes_[i];
      binding.axes[axis.symbol] = i == question_.position ? size
                                  : axis.is_batch         ? kOtherBatch
                                                          : RoundUpTo(other, axis.step);
    }
    absl::StatusOr<Graph> specialized = Specialize(question_.readings.graph(), binding, kOnlyRead);
    if (specialized.ok()) uneven_ = question_.readings.UnevenAt(binding);
    return specialized;
  }

  AxisFinding Look(int64_t small, const Graph& a, int64_t large, const Graph& b, int64_t other) {
    AxisFinding finding = Compare(small, a, large, b);
    finding.at_any_size = !finding.proved();
    if (!finding.proved()) return finding;
    if (question_.largest <= large) return finding;
    const auto longest = At(question_.largest, other);
    if (!longest.ok()) {
      return {Verdict::kUndecided, "the model", "could not be read at its largest bucket"};
    }
    AxisFinding far = Compare(small, a, question_.largest, *longest);
    far.in_request.merge(finding.in_request);
    return far;
  }

  AxisFinding Compare(int64_t small, const Graph& a, int64_t large, const Graph& b) const {
    const ModelAxis& axis = axes_[question_.position];
    const AxisFlowOptions options = {.axis = axis.label,
                                     .is_batch = axis.is_batch,
                                     .small_size = small,
                                     .large_size = large,
                                     .step = axis.step,
                                     .fills = question_.fills,
                                     .live = question_.live,
                                     .uneven = uneven_,
                                     .repeats_last = question_.repeats_last,
                                     .checks_places = question_.checks_places};
    AxisFinding as_written = FindMixing(a, b, options);
    if (as_written.verdict == Verdict::kProved) return as_written;
    if (LeavesOutData(a, uneven_) || LeavesOutData(b, uneven_)) {
      // Neither the plain model nor runs at such sizes show what it does at others.
      if (as_written.verdict == Verdict::kUndecided) {
        as_written.verdict = Verdict::kMixes;
        as_written.how += ", which shows only at sizes that do not leave it out";
      }
      return as_written;
    }
    // Attention that is one op is products and a softmax then, and rows that are looked up by their
    // own places are the rows: what is found of that holds of the model.
    Graph plain_a = a, plain_b = b;
    const bool made = Canonical(plain_a) && Canonical(plain_b);
    if (!made) return as_written;
    AxisFinding plain = FindMixing(plain_a, plain_b, options);
    return plain.verdict < as_written.verdict ? plain : as_written;
  }

  static bool Canonical(Graph& graph) { return Canonicalize()->Run(graph).ok() && graph.Compact(); }

  const PaddingLeakQuestion& question_;
  const std::vector<ModelAxis>& axes_;
  UnevenTables uneven_;  // tables that differ at the sizes that were looked at
};

}  // namespace

AxisFinding FindPaddingLeak(const PaddingLeakQuestion& question) { return Finder(question).Run(); }

}  // namespace reprise
