#include "runtime/engine/mixing.h"

#include <optional>
#include <utility>

#include "runtime/passes/passes.h"
#include "runtime/passes/specialize.h"

namespace reprise {
namespace {

using Verdict = AxisFinding::Verdict;

// Sizes of the axis: primes, which nothing else has, and what convolutions with strides take.
constexpr std::pair<int64_t, int64_t> kSizes[] = {{19, 23}, {7, 11}, {64, 96}, {224, 256}};
// Of the other axes; the batch has kOtherBatch.
constexpr int64_t kOthers[] = {5, 16, 64, 224};
constexpr int64_t kOtherBatch = 3;

class Finder {
 public:
  explicit Finder(const MixingQuestion& question) : question_(question) {}

  AxisFinding Run() {
    std::string refusal;
    for (const int64_t other : kOthers) {
      other_ = other;
      for (const auto& [small, large] : kSizes) {
        const auto a = At(small), b = At(large);
        if (a.ok() && b.ok()) return Look(small, *a, large, *b);
        if (refusal.empty()) refusal = std::string((a.ok() ? b : a).status().message());
      }
    }
    return {Verdict::kUndecided, "the model",
            "takes no sizes at which it could be read: " + refusal};
  }

 private:
  absl::StatusOr<Graph> At(int64_t size) const {
    Binding binding;
    for (size_t i = 0; i < question_.axes->size(); ++i) {
      const ModelAxis& axis = (*question_.axes)[i];
      binding.axes[axis.symbol] = i == question_.position ? size
                                  : axis.is_batch         ? kOtherBatch
                                                          : other_;
    }
    return Specialize(*question_.graph, binding);
  }

  AxisFinding Look(int64_t small, const Graph& a, int64_t large, const Graph& b) const {
    const AxisFinding first = Compare(small, a, large, b);
    if (first.verdict != Verdict::kProved || question_.largest <= large) return first;
    const auto longest = At(question_.largest);
    if (!longest.ok()) {
      return {Verdict::kUndecided, "the model", "could not be read at its largest bucket"};
    }
    return Compare(small, a, question_.largest, *longest);
  }

  AxisFinding Compare(int64_t small, const Graph& a, int64_t large, const Graph& b) const {
    const ModelAxis& axis = (*question_.axes)[question_.position];
    const AxisFlowOptions options = {.axis = axis.label,
                                     .is_batch = axis.is_batch,
                                     .small_size = small,
                                     .large_size = large,
                                     .guards = question_.guards};
    const AxisFinding as_written = FindMixing(a, b, options);
    if (as_written.verdict != Verdict::kUndecided) return as_written;
    // Attention that is one op is products and a softmax then.
    Graph plain_a = a, plain_b = b;
    const bool made = Canonical(plain_a) && Canonical(plain_b);
    if (!made) return as_written;
    const AxisFinding plain = FindMixing(plain_a, plain_b, options);
    return plain.verdict == Verdict::kProved ? plain : as_written;
  }

  static bool Canonical(Graph& graph) { return Canonicalize()->Run(graph).ok() && graph.Compact(); }

  const MixingQuestion& question_;
  int64_t other_ = 0;
};

}  // namespace

AxisFinding FindMixingAlong(const MixingQuestion& question) { return Finder(question).Run(); }

}  // namespace reprise
