#include "tools/bisect/bisect.h"

#include <utility>

#include "runtime/base/status_macros.h"
#include "runtime/passes/pipeline.h"

namespace reprise::cli {
namespace {

class Search {
 public:
  Search(const BisectSubject& subject, const Device& device, const BisectOptions& options)
      : options_(options), passes_(FusionPassNames()), trial_(subject, device) {}

  absl::StatusOr<Culprit> Run() {
    ASSIGN_OR_RETURN(TrialResult right, RunWith(0, {}));
    right_ = std::move(right.outputs);
    ASSIGN_OR_RETURN(const TrialResult all, RunWith(passes_.size(), {.all = true}));
    culprit_.difference = DifferenceOf(all.outputs, right_);
    culprit_.agrees = !IsWrong(culprit_.difference);
    if (!culprit_.agrees) RETURN_IF_ERROR(FindPass());
    return std::move(culprit_);
  }

 private:
  bool IsWrong(const Difference& difference) const {
    return !(difference.value <= options_.tolerance);
  }

  // Returns one answer with the first `passes` of the passes.
  absl::StatusOr<TrialResult> RunWith(size_t passes, KernelChoice kernels) {
    ++culprit_.trials;
    return trial_.Run(
        {.without = {passes_.begin() + static_cast<std::ptrdiff_t>(passes), passes_.end()},
         .kernels = std::move(kernels)});
  }
  absl::StatusOr<bool> IsWrongWith(size_t passes, KernelChoice kernels) {
    ASSIGN_OR_RETURN(const TrialResult result, RunWith(passes, std::move(kernels)));
    return IsWrong(DifferenceOf(result.outputs, right_));
  }

  absl::Status FindPass() {
    ASSIGN_OR_RETURN(const bool without_any, IsWrongWith(0, {.all = true}));
    size_t passes = 0;
    if (!without_any) {
      ASSIGN_OR_RETURN(passes, FirstWrong(passes_.size(), [&](size_t some) {
                         return IsWrongWith(some, {.all = true});
                       }));
      culprit_.pass = passes_[passes - 1];
    }
    ASSIGN_OR_RETURN(TrialResult by_reference, RunWith(passes, {}));
    if (passes > 0) culprit_.made = std::move(by_reference.made[culprit_.pass]);
    culprit_.pass_is_wrong = IsWrong(DifferenceOf(by_reference.outputs, right_));
    if (culprit_.pass_is_wrong) return absl::OkStatus();
    return FindKernel(passes, by_reference.nodes);
  }

  absl::Status FindKernel(size_t passes, const std::vector<SeenNode>& nodes) {
    ASSIGN_OR_RETURN(const size_t first, FirstWrong(nodes.size(), [&](size_t some) {
                       KernelChoice kernels;
                       for (size_t i = 0; i < some; ++i) kernels.nodes.insert(nodes[i].id);
                       return IsWrongWith(passes, std::move(kernels));
                     }));
    const SeenNode& node = nodes[first - 1];
    culprit_.node = node.label;
    if (!node.kernels.empty()) culprit_.kernel = node.kernels.front();
    for (const std::string& kernel : node.kernels) {
      ASSIGN_OR_RETURN(const TrialResult alone,
                       RunWith(passes, {.nodes = {node.id}, .kernel = kernel}));
      const Difference difference = DifferenceOf(alone.outputs, right_);
      culprit_.kernels.push_back({kernel, difference.value, IsWrong(difference)});
    }
    return absl::OkStatus();
  }

  const BisectOptions options_;
  const std::vector<std::string> passes_;
  Trial trial_;
  std::vector<Tensor> right_;
  Culprit culprit_;
};

}  // namespace

absl::StatusOr<size_t> FirstWrong(size_t most,
                                  absl::FunctionRef<absl::StatusOr<bool>(size_t)> is_wrong) {
  size_t right = 0, wrong = most;
  while (wrong - right > 1) {
    const size_t middle = right + (wrong - right) / 2;
    ASSIGN_OR_RETURN(const bool is, is_wrong(middle));
    (is ? wrong : right) = middle;
  }
  return wrong;
}

absl::StatusOr<Culprit> Bisect(const BisectSubject& subject, const Device& device,
                               const BisectOptions& options) {
  return Search(subject, device, options).Run();
}

}  // namespace reprise::cli
