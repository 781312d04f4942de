#include "runtime/engine/load/refusal.h"

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "runtime/engine/model/model.h"
#include "runtime/graph/graph.h"
#include "runtime/onnx/importer.h"
#include "runtime/passes/specialize/examine.h"

namespace reprise {
namespace {

// Lengths at which the model is tried: the first that all shapes accept.
constexpr int64_t kLengths[] = {5, 16, 64, 96, 224, 256};

struct Walk {
  Graph graph;  // the graph with dtypes
  std::vector<NodeRefusal> refusals;
};

Walk WalkAt(const ExaminedModel& model, int64_t length) {
  std::map<std::string, int64_t> axes;
  for (const ModelIo& input : model.inputs) {
    for (const Dim& dim : input.dims) {
      if (!dim.is_constant()) axes[dim.symbol] = length;
    }
  }
  Walk walk = {.graph = model.graph};
  walk.refusals =
      Examine(walk.graph, axes, [&](const std::string& name, DType& dtype, std::vector<Dim>& dims) {
        const auto it = model.declared.find(name);
        if (it == model.declared.end()) return false;
        dtype = it->second.dtype;
        dims = it->second.dims;
        return true;
      });
  return walk;
}

// Returns whether `why` depends on sizes: a shape that does not fit at one length may fit at
// another.
bool DependsOnSizes(const absl::Status& why) {
  return absl::IsInvalidArgument(why) || absl::IsResourceExhausted(why);
}

Walk BestWalk(const ExaminedModel& model) {
  std::optional<Walk> best;
  size_t fewest = 0;
  for (const int64_t length : kLengths) {
    Walk walk = WalkAt(model, length);
    size_t misfits = 0;
    for (const NodeRefusal& refusal : walk.refusals) misfits += DependsOnSizes(refusal.why);
    if (best.has_value() && misfits >= fewest) continue;
    best = std::move(walk);
    fewest = misfits;
    if (fewest == 0) break;
  }
  return *std::move(best);
}

// Splits "com.microsoft.Gelu" into {"com.microsoft", "Gelu"}.
std::pair<std::string, std::string> SplitDomain(const std::string& op) {
  const size_t dot = op.rfind('.');
  if (dot == std::string::npos) return {"", op};
  return {op.substr(0, dot), op.substr(dot + 1)};
}

// Returns `why` without its node: messages of shape rules begin with the node; a reason says that
// already.
std::string WithoutNode(const absl::Status& why) {
  const absl::string_view message = why.message();
  const size_t end = message.find("): ");
  return std::string(end == absl::string_view::npos ? message : message.substr(end + 3));
}

}  // namespace

absl::Status ExplainRefusal(const std::string& path, const InputRanks& ranks,
                            const absl::Status& refusal) {
  if (!absl::IsUnimplemented(refusal) && !absl::IsFailedPrecondition(refusal) &&
      !absl::IsInvalidArgument(refusal)) {
    return refusal;
  }
  absl::StatusOr<ExaminedModel> examined = ExamineOnnxFile(path, ranks);
  if (!examined.ok()) return refusal;
  const Walk walk = BestWalk(*examined);

  Reasons reasons = std::move(examined->others);
  for (RefusedNode& node : examined->nodes) {
    node.reason.dtypes = DTypesText(walk.graph, node.inputs, examined->texts);
    reasons.AddNode(node.code, std::move(node.reason));
  }
  for (const NodeRefusal& found : walk.refusals) {
    // Sizes that depend on data are not a reason: the graph is cut there.
    if (DependsOnSizes(found.why) || absl::IsFailedPrecondition(found.why)) continue;
    const Node& node = examined->graph.node(found.node);
    const bool is_step = !node.source_op.empty();
    const auto [domain, op] = SplitDomain(SourceOp(node));
    const auto version = examined->versions.find(domain);
    std::string made;
    for (const ValueId output : node.outputs) {
      if (output != kNone && made.empty()) made = examined->graph.value(output).name;
    }
    reasons.AddNode(found.why.code(),
                    {.op = op,
                     .domain = domain,
                     .version = version == examined->versions.end() ? 0 : version->second,
                     .node = NodeName(node.name, made),
                     .dtypes = absl::StrCat(DTypesText(walk.graph, node.inputs, examined->texts),
                                            is_step ? absl::StrCat(" of step ", node.op) : ""),
                     .why = WithoutNode(found.why)});
  }
  return reasons.empty() ? refusal : reasons.ToStatus();
}

}  // namespace reprise
