#include "runtime/certify/size_flow.h"

#include <set>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "runtime/certify/size_forms.h"
#include "runtime/certify/size_rules.h"
#include "runtime/graph/graph.h"
#include "runtime/ops/axis/axis_rules.h"
#include "runtime/ops/control/control_op.h"
#include "runtime/ops/elementwise/select_op.h"
#include "runtime/ops/kit/op.h"
#include "runtime/ops/kit/op_facts.h"

namespace reprise {
namespace {

using Verdict = AxisFinding::Verdict;
using Use = SizeUse;

class SizeWalk {
 public:
  explicit SizeWalk(const SizeQuestion& question) : facts_(question), graph_(facts_.graph()) {}

  AxisFinding Run() {
    for (const NodeId id : graph_.NodeIds()) {
      Visit(id, graph_.node(id));
      if (finding_.verdict == Verdict::kMixes) break;
    }
    for (const ValueId output : graph_.outputs()) {
      const SizeFlow& flow = facts_.FlowOf(output);
      const NodeId producer = graph_.value(output).producer;
      if (flow.use < Use::kEven || producer == kNone) continue;
      Note(Verdict::kMixes, graph_.node(producer), flow.chooser, "answers with a number", flow.use);
    }
    return finding_;
  }

 private:
  void Visit(NodeId id, const Node& node) {
    const OpRow* row = FindOp(node.op);
    if (node.op == IfOp::kName) return VisitIf(node);
    // Which dims are 1 differs between the smallest requests and all others.
    if (facts_.question().forms || DropsDimsOfOne(node)) JudgeForm(node);
    const bool of_shapes = FactsOf(node.op).sizes == Sizes::kOfShape;
    const bool derived =
        of_shapes ||
        (row != nullptr && !row->Has(kNoFold) && absl::c_all_of(node.inputs, [&](ValueId input) {
           return input == kNone || facts_.FlowOf(input).use != Use::kData;
         }));
    if (!derived) return Judge(node, row);
    for (const ValueId output : node.outputs) {
      if (output != kNone) facts_.Set(output, DeriveSizeFlow(facts_, id, output));
    }
  }

  void VisitIf(const Node& node) {
    const SizeFlow& condition = facts_.In(node, 0);
    const bool known = condition.elements.size() == 1 && condition.elements[0].is_constant();
    if (!known) {
      if (condition.use >= Use::kEven) {
        Note(Verdict::kMixes, node, condition.chooser, "takes a branch");
      }
      return;  // Its results are data.
    }
    const size_t results = node.inputs.size() / 2;
    const bool taken = facts_.Constant(condition.elements[0]) != 0;
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i] != kNone) {
        facts_.SetAlias(node.outputs[i], node.inputs[1 + i + (taken ? 0 : results)]);
      }
    }
  }

  // A node that computes with data: what of its operands do sizes decide?
  void Judge(const Node& node, const OpRow* row) {
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const SizeFlow& flow = facts_.In(node, i);
      if (flow.use < Use::kSteps) continue;
      const bool shapes = row != nullptr && row->IsValueInput(i);
      const bool steps = flow.use == Use::kSteps;
      if (steps && shapes && IsSeenByWalk(node, row)) continue;
      Note(steps && shapes ? Verdict::kUndecided : Verdict::kMixes, node, flow.chooser,
           shapes ? "has a shape" : "computes with a number");
    }
  }

  // A shape in steps that the walk at two sizes sees through: the same elements under another
  // shape, the beginning of a table, the number of all positions.
  bool IsSeenByWalk(const Node& node, const OpRow* row) const {
    const bool cuts_table = FactsOf(*row).sizes == Sizes::kCut && !facts_.Varies(node.input(0));
    return row->Has(kView) || cuts_table || row->axis == ops::LiveMaskAxis ||
           row->axis == ops::LiveShareAxis || row->axis == ops::LiveExtentAxis ||
           row->axis == ops::LiveCompactAxis;
  }

  // Sizes decide no number here; do they decide what the node makes of its operands?
  void JudgeForm(const Node& node) {
    const absl::string_view how = FormThatFollowsSize(facts_, node);
    if (how.empty() || finding_.verdict >= Verdict::kUndecided) return;
    finding_ = {Verdict::kUndecided, AxisNodeName(graph_, node),
                absl::StrCat(how, ", which the size of ", facts_.question().axis, " decides")};
  }

  void Note(Verdict verdict, const Node& node, NodeId chooser, absl::string_view what,
            Use use = Use::kSteps) {
    if (verdict <= finding_.verdict) return;
    finding_ = {verdict, AxisNodeName(graph_, node),
                chooser == kNone
                    ? absl::StrCat(what, " that follows ", use == Use::kEven ? "" : "in steps ",
                                   "the size of ", facts_.question().axis)
                    : absl::StrCat(what, " that ", AxisNodeName(graph_, graph_.node(chooser)),
                                   " decides by the size of ", facts_.question().axis)};
  }

  SizeFacts facts_;
  const Graph& graph_;
  AxisFinding finding_;
};

// Whole numbers stay what they are, whatever they are cast to.
bool MayBend(const Graph& graph, const Node& node) {
  if (node.op != CastOp::kName) return FactsOf(node.op).Is(kBends);
  const DType to = graph.value(node.outputs[0]).dtype;
  return to == DType::kBool || (IsInteger(to) && !IsInteger(graph.value(node.inputs[0]).dtype));
}

// The first node that bends a number made of sizes, or takes a branch by one; kNone: there is none.
NodeId FindChooser(const Graph& graph) {
  std::set<ValueId> of_sizes;
  for (const NodeId id : graph.NodeIds()) {
    const Node& node = graph.node(id);
    const OpFacts& facts = FactsOf(node.op);
    const auto is_of_sizes = [&](ValueId input) { return of_sizes.contains(input); };
    const auto is_known = [&](ValueId input) {
      return input == kNone || graph.ConstantOf(input) != nullptr || is_of_sizes(input);
    };
    const bool some = absl::c_any_of(node.inputs, is_of_sizes);
    if (node.op == IfOp::kName && !node.inputs.empty() && is_of_sizes(node.inputs[0])) return id;
    const bool derived =
        facts.sizes == Sizes::kOfShape || (some && absl::c_all_of(node.inputs, is_known));
    if (derived && facts.sizes != Sizes::kOfShape && MayBend(graph, node)) return id;
    if (derived) of_sizes.insert(node.outputs.begin(), node.outputs.end());
  }
  return kNone;
}

}  // namespace

bool MayHoldSizeChoices(const Graph& graph) {
  bool sizes = false, order = false, squeezes = false;
  for (const NodeId id : graph.NodeIds()) {
    const OpFacts& facts = FactsOf(graph.node(id).op);
    sizes = sizes || facts.sizes == Sizes::kOfShape;
    order = order || facts.Is(kBends);
    squeezes = squeezes || DropsDimsOfOne(graph.node(id));
  }
  return (sizes && order) || squeezes;
}

AxisFinding FindSizeChoices(const SizeQuestion& question) {
  const size_t axes = question.largest.size();
  const bool enough =
      axes <= SizePolynomial::kMaxAxes && question.samples.size() >= (size_t{1} << axes);
  if (enough) return SizeWalk(question).Run();
  // No number of such a model is known for all sizes.
  const std::string how = absl::StrCat("may decide something by the size of ", question.axis);
  const NodeId chooser = FindChooser(*question.graph);
  if (chooser == kNone) return {Verdict::kUndecided, "the model", how};
  return {Verdict::kMixes, AxisNodeName(*question.graph, question.graph->node(chooser)), how};
}

}  // namespace reprise
