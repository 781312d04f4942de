#include "runtime/verify/watched_form.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "runtime/base/status_macros.h"
#include "runtime/ops/elementwise/select_op.h"
#include "runtime/ops/kit/op_facts.h"
#include "runtime/passes/specialize/specialize.h"
#include "runtime/verify/data_values.h"

namespace reprise {
namespace {

// More values than this make the runs of a deep model long; those next to the answers show most.
constexpr size_t kMostWatched = 64;
// Sizes of a batch that is looked at.
constexpr int64_t kFewRows = 3, kMoreRows = 5;

using Shapes = std::vector<Shape>;  // one for each value that may be watched

// A Cast between floats keeps what differs, and is the one coarse op that may.
bool IsCoarse(const Graph& graph, const Node& node) {
  if (!FactsOf(node.op).Is(kCoarse)) return false;
  const bool converts = node.op == CastOp::kName || node.op == CastLikeOp::kName;
  return !converts || !IsFloating(graph.value(node.outputs[0]).dtype);
}

// Returns the data that coarse nodes read, as other nodes made it; those next to the answers.
std::vector<ValueId> FindCandidates(const Graph& graph) {
  const std::set<ValueId> data = FindDataValues(graph);
  std::vector<ValueId> found;
  for (const NodeId id : graph.NodeIds()) {
    const Node& node = graph.node(id);
    if (!IsCoarse(graph, node)) continue;
    for (const ValueId input : node.inputs) {
      if (input == kNone || graph.value(input).producer == kNone) continue;
      const bool known = absl::c_linear_search(found, input) || graph.IsOutput(input);
      if (!known && data.contains(input)) found.push_back(input);
    }
  }
  if (found.size() > kMostWatched) found.erase(found.begin(), found.end() - kMostWatched);
  return found;
}

// Which dims of what may be watched move with which axes.
class Movement {
 public:
  Movement(const ProofSubject& subject, const Graph& graph, size_t position,
           const ProbeOptions& options)
      : subject_(subject), graph_(graph), position_(position) {
    const ModelAxis& axis = subject.axes[position];
    for (const ModelAxis& other : subject.axes) {
      const auto size = options.sizes.find(other.symbol);
      base_.axes[other.symbol] = size != options.sizes.end() ? size->second
                                 : other.is_batch            ? 2
                                                             : kDefaultSize;
    }
    small_ = axis.is_batch ? kFewRows : options.padded_sizes[0];
    large_ = axis.is_batch ? kMoreRows : std::max(options.padded_sizes.back(), 2 * small_);
    base_.axes[axis.symbol] = small_;
  }

  // By candidate, whether its elements lie as those of answers do. Nothing where the model does
  // not take the sizes that were tried.
  std::optional<std::vector<bool>> LieAsAnswers() const {
    const std::optional<Shapes> shapes = At(position_, small_), more = At(position_, large_);
    if (!shapes.has_value() || !more.has_value()) return std::nullopt;
    std::vector<bool> lie;
    for (size_t i = 0; i < shapes->size(); ++i) {
      lie.push_back((*shapes)[i].size() == (*more)[i].size());
    }
    const bool is_batch = subject_.axes[position_].is_batch;
    for (size_t i = 0; i < lie.size(); ++i) {
      for (size_t d = 0; lie[i] && d < (*shapes)[i].size(); ++d) {
        const int64_t few = (*shapes)[i][d], many = (*more)[i][d];
        if (is_batch && few != many) lie[i] = few == small_ && many == large_;
      }
    }
    for (size_t other = 0; other < subject_.axes.size(); ++other) {
      if (other == position_) continue;
      const ModelAxis& axis = subject_.axes[other];
      const int64_t size = base_.axes.at(axis.symbol);
      const std::optional<Shapes> moved =
          At(other, axis.is_batch ? size + 1 : axis.Fitting(2 * size));
      if (!moved.has_value()) return std::nullopt;
      for (size_t i = 0; i < lie.size(); ++i) {
        lie[i] = lie[i] && (*moved)[i].size() == (*shapes)[i].size();
        for (size_t d = 0; lie[i] && d < (*shapes)[i].size(); ++d) {
          const int64_t here = (*shapes)[i][d];
          lie[i] = (*more)[i][d] == here || (*moved)[i][d] == here;
        }
      }
    }
    return lie;
  }

 private:
  // Returns the shapes of the graph's outputs behind the model's own, with one axis at `size`.
  std::optional<Shapes> At(size_t axis, int64_t size) const {
    Binding binding = base_;
    binding.axes[subject_.axes[axis].symbol] = size;
    const absl::StatusOr<Graph> graph = Specialize(graph_, binding);
    if (!graph.ok()) return std::nullopt;
    Shapes shapes;
    for (size_t o = subject_.outputs.size(); o < graph->outputs().size(); ++o) {
      shapes.push_back(*graph->value(graph->outputs()[o]).shape);
    }
    return shapes;
  }

  const ProofSubject& subject_;
  const Graph& graph_;
  const size_t position_;
  Binding base_;
  int64_t small_ = 0, large_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<WatchedForm>> WatchedForm::Make(const ProofSubject& subject,
                                                               const SizeReadings& readings,
                                                               ProofRunners& runners,
                                                               size_t position,
                                                               const ProbeOptions& options) {
  const std::vector<ValueId> candidates = FindCandidates(subject.graph);
  if (candidates.empty()) return nullptr;
  Graph all = subject.graph;
  for (const ValueId value : candidates) all.AddOutput(value);
  const auto lie = Movement(subject, all, position, options).LieAsAnswers();
  if (!lie.has_value() || !absl::c_linear_search(*lie, true)) return nullptr;

  auto form = absl::WrapUnique(new WatchedForm(subject));
  std::vector<std::string> names = subject.outputs;
  form->answers_ = names.size();
  for (size_t i = 0; i < candidates.size(); ++i) {
    if (!(*lie)[i]) continue;
    form->graph_.AddOutput(candidates[i]);
    names.push_back(form->graph_.value(candidates[i]).name);
  }
  form->subject_ =
      std::make_unique<ProofSubject>(ProofSubject{.graph = form->graph_,
                                                  .axes = subject.axes,
                                                  .output_shapes = subject.output_shapes,
                                                  .batch_axis = subject.batch_axis,
                                                  .inputs = subject.inputs,
                                                  .outputs = std::move(names),
                                                  .fills = subject.fills,
                                                  .no_padding = subject.no_padding,
                                                  .confirm_later = subject.confirm_later,
                                                  .parameter_bytes = subject.parameter_bytes,
                                                  .log = subject.log});
  ASSIGN_OR_RETURN(form->runner_, runners.NewRunner(form->graph_));
  form->prober_ =
      std::make_unique<PaddingProber>(*form->subject_, form->graph_, readings, form->runner_.get());
  return form;
}

ProbeOptions WatchedForm::OptionsFrom(ProbeOptions options) const {
  options.watched.insert(subject_->outputs.begin() + static_cast<ptrdiff_t>(answers_),
                         subject_->outputs.end());
  return options;
}

}  // namespace reprise
