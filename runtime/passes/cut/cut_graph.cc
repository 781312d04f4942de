#include "runtime/passes/cut/cut_graph.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "runtime/graph/graph.h"
#include "runtime/ops/control/control_op.h"
#include "runtime/ops/control/loop.h"
#include "runtime/ops/kit/onnx_types.h"
#include "runtime/ops/kit/op.h"
#include "runtime/passes/cut/shape_source.h"
#include "runtime/passes/cut/size_numbers.h"
#include "runtime/passes/cut/stages.h"

namespace reprise {
namespace {

using ShapeInputs = std::set<std::string>;

// A part of a graph, of which a piece is made.
struct Selection {
  std::vector<NodeId> nodes;  // topological order
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
};

Graph Extract(const Graph& from, const Selection& selection) {
  Graph graph;
  std::vector<ValueId> copies(from.num_values(), kNone);
  for (const ValueId id : selection.inputs) {
    const Value& value = from.value(id);
    copies[id] = graph.AddInput(value.name, value.dtype, value.dims);
  }
  const auto copy_of = [&](ValueId id) {
    if (id == kNone || copies[id] != kNone) return id == kNone ? kNone : copies[id];
    const Value& value = from.value(id);
    if (value.kind == Value::Kind::kConstant) {
      copies[id] = graph.AddConstant(value.name, value.constant);
    } else {
      REPRISE_CHECK(value.kind == Value::Kind::kParameter);
      copies[id] = graph.AddParameter(value.name, value.parameter);
    }
    return copies[id];
  };
  for (const NodeId id : selection.nodes) {
    const Node& node = from.node(id);
    std::vector<ValueId> inputs;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      inputs.push_back(copy_of(OperandOf(from, id, i)));
    }
    std::vector<std::string> names;
    for (const ValueId output : node.outputs) {
      names.push_back(output == kNone ? "" : from.value(output).name);
    }
    const NodeId copy =
        graph.AddNodeWithOutputs(node.op, std::move(inputs), node.attributes, names, node.name);
    graph.node(copy).source_op = node.source_op;
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i] != kNone) copies[node.outputs[i]] = graph.node(copy).outputs[i];
    }
  }
  for (const ValueId id : selection.outputs) graph.AddOutput(copy_of(id));
  return graph;
}

// Scanned value `i` of a Loop, as its attributes say.
LoopBody::Scanned ScannedOf(const Node& loop, size_t i) {
  const auto number = [&](absl::string_view name) {
    const std::vector<int64_t> values = loop.attributes.Ints(name);
    return i < values.size() ? values[i] : 0;
  };
  LoopBody::Scanned scanned = {.axis = number("axes"), .backwards = number("directions") != 0};
  const absl::StatusOr<DType> dtype = ops::DTypeFromOnnx(number("dtypes"));
  if (dtype.ok()) scanned.dtype = *dtype;
  const std::vector<int64_t> dims = loop.attributes.Ints(absl::StrCat("dims", i));
  scanned.shape.assign(dims.begin(), dims.end());
  return scanned;
}

std::shared_ptr<const CutGraph> Split(const Graph& graph, const ShapeInputs& shape_inputs,
                                      CutAnalysis analysis, std::string label,
                                      bool splits_front = false);

class Splitter {
 public:
  // `label`: the first section's. It is empty for a whole graph, and then that section's
  // inputs are all inputs of the graph.
  Splitter(const Graph& graph, const ShapeInputs& shape_inputs, CutAnalysis analysis,
           std::string label, bool splits_front)
      : graph_(graph),
        shape_inputs_(shape_inputs),
        analysis_(std::move(analysis)),
        label_(std::move(label)),
        stages_(FindStages(graph, analysis_, splits_front)),
        size_numbers_(FindSizeNumbers(graph, analysis_)),
        cuts_(analysis_.Cuts(graph)),
        wanted_(graph.num_values(), false) {}

  std::shared_ptr<const CutGraph> Run() {
    for (const NodeId id : cuts_) result_.cuts.push_back(DescribeCut(graph_, analysis_, id));
    const int depth = static_cast<int>(stages_.labels.size()) - 1;
    result_.stages.resize(depth + 1);
    known_.resize(depth + 1);
    for (const ValueId output : graph_.outputs()) {
      result_.outputs.push_back(graph_.value(output).name);
      Want(output, depth);
    }
    // Earlier stages hand over the values that a stage needs.
    for (int stage = depth; stage >= 0; --stage) {
      std::vector<EagerNode> cuts;
      for (const NodeId id : cuts_) {
        if (IsWantedCut(id, stage)) cuts.push_back(MakeCut(id, stage));
      }
      std::sort(known_[stage].begin(), known_[stage].end());
      MakeSection(stage);
      result_.stages[stage].nodes = std::move(cuts);
    }
    PutKnown();
    return std::make_shared<const CutGraph>(std::move(result_));
  }

 private:
  bool IsFromCut(ValueId id) const {
    return graph_.value(id).kind == Value::Kind::kResult &&
           analysis_.is_cut[graph_.value(id).producer];
  }

  bool IsWantedCut(NodeId id, int stage) const {
    return absl::c_any_of(graph_.node(id).outputs, [&](ValueId output) {
      return output != kNone && wanted_[output] && stages_.of[output] == stage + 1;
    });
  }

  // `id` is to be at hand as a tensor when the eager nodes of stage `stage` run.
  void Want(ValueId id, int stage) {
    const Value& value = graph_.value(id);
    if (value.kind == Value::Kind::kConstant) {
      result_.constants[value.name] = value.constant;
    } else if (value.kind == Value::Kind::kParameter) {
      result_.parameters[value.name] = value.parameter;
    } else if (value.kind == Value::Kind::kResult) {
      if (analysis_.is_static[id]) {
        WantKnown(id, stage);
      } else {
        wanted_[id] = true;
      }
    }
  }

  // Marks the node that makes `id`, and those after it, to run among the eager nodes of `stage`.
  void WantKnown(ValueId id, int stage) {
    std::vector<ValueId> stack = {id};
    while (!stack.empty()) {
      const NodeId node = graph_.value(stack.back()).producer;
      stack.pop_back();
      if (absl::c_linear_search(known_[stage], node)) continue;
      known_[stage].push_back(node);
      for (size_t i = 0; i < graph_.node(node).inputs.size(); ++i) {
        const ValueId operand = OperandOf(graph_, node, i);
        if (operand == kNone) continue;
        if (graph_.value(operand).kind == Value::Kind::kResult && analysis_.is_static[operand]) {
          stack.push_back(operand);
        } else {
          Want(operand, stage);
        }
      }
    }
  }

  EagerNode MakeEager(NodeId id) const {
    const Node& node = graph_.node(id);
    EagerNode eager = {.node = {.op = node.op,
                                .name = node.name,
                                .source_op = node.source_op,
                                .attributes = node.attributes}};
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const ValueId operand = OperandOf(graph_, id, i);
      eager.inputs.push_back(operand == kNone ? "" : graph_.value(operand).name);
      eager.node.inputs.push_back(operand == kNone ? kNone : static_cast<ValueId>(i));
    }
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      const ValueId output = node.outputs[i];
      eager.outputs.push_back(output == kNone ? "" : graph_.value(output).name);
      eager.node.outputs.push_back(output == kNone ? kNone : static_cast<ValueId>(i));
    }
    return eager;
  }

  EagerNode MakeCut(NodeId id, int stage) {
    EagerNode eager = MakeEager(id);
    eager.is_cut = true;
    const Node& node = graph_.node(id);
    if (node.op == LoopOp::kName) return MakeLoop(std::move(eager), node, id, stage);
    if (node.op != IfOp::kName) {
      for (const ValueId input : node.inputs) {
        if (input != kNone) Want(input, stage);
      }
      return eager;
    }
    Want(node.inputs[0], stage);
    eager.inputs.resize(1);
    eager.node.inputs.resize(1);
    const size_t results = node.inputs.size() / 2;
    const auto middle = node.inputs.begin() + 1 + static_cast<std::ptrdiff_t>(results);
    const Cut told = DescribeCut(graph_, analysis_, id);
    eager.then_branch = MakeBranch({node.inputs.begin() + 1, middle}, stage, told,
                                   absl::StrCat("in the first branch of If '", told.node, "'"));
    eager.else_branch = MakeBranch({middle, node.inputs.end()}, stage, told,
                                   absl::StrCat("in the second branch of If '", told.node, "'"));
    return eager;
  }

  EagerNode MakeLoop(EagerNode eager, const Node& node, NodeId id, int stage) {
    const LoopParts parts(node);
    for (size_t i = 0; i < parts.first_result; ++i) {
      if (node.inputs[i] != kNone) Want(node.inputs[i], stage);
    }
    eager.inputs.resize(parts.first_result);
    eager.node.inputs.resize(parts.first_result);
    LoopBody body = {.carried = parts.carried};
    for (size_t i = 0; i < parts.scanned; ++i) body.scanned.push_back(ScannedOf(node, i));
    const NodeId step = StepOf(graph_, node);
    for (size_t i = 0; i < parts.carried + LoopParts::kStepFirstCarried; ++i) {
      const ValueId value = step == kNone ? kNone : graph_.node(step).output(i);
      body.begins_with.push_back(value == kNone ? "" : graph_.value(value).name);
    }
    const Cut told = DescribeCut(graph_, analysis_, id);
    body.graph = MakeBranch(BodyResults(node), stage, told,
                            absl::StrCat("in ", SourceOp(node), " '", told.node, "'"), step);
    eager.body = std::make_shared<const LoopBody>(std::move(body));
    return eager;
  }

  std::shared_ptr<const CutGraph> MakeBranch(std::vector<ValueId> results, int stage,
                                             const Cut& told, std::string label,
                                             NodeId step = kNone) {
    BranchPart part = BranchBehind(graph_, analysis_, results, step);
    for (const ValueId operand : part.operands) {
      if (step == kNone || graph_.value(operand).producer != step) Want(operand, stage);
    }
    const Graph branch = Extract(graph_, {.nodes = std::move(part.nodes),
                                          .inputs = std::move(part.operands),
                                          .outputs = std::move(results)});
    std::shared_ptr<const CutGraph> split =
        Split(branch, shape_inputs_, FindCuts(branch, shape_inputs_, /*is_body=*/step != kNone),
              std::move(label));
    for (Cut cut : split->cuts) {
      cut.level += told.level + 1;
      result_.cuts.push_back(std::move(cut));
    }
    return split;
  }

  // How the nodes of a section use a value.
  struct Use {
    bool known = false;    // specialising has to know its elements, or it leaves the section
    bool as_data = false;  // a node that computes on data reads its elements
    bool certain = false;  // not within a branch of an If alone
    bool any() const { return known || as_data; }
  };

  // Returns whether value `id` is at hand when the section of `stage` runs.
  bool IsGiven(ValueId id, int stage) const {
    const Value& value = graph_.value(id);
    return value.kind == Value::Kind::kInput ||
           (value.kind == Value::Kind::kResult && !analysis_.is_static[id] &&
            (stages_.of[id] < stage || IsFromCut(id)));
  }

  // Returns whether the section of `stage` takes `id`, a few numbers of shapes, as an input instead
  // of computing it: else it would have a recipe for each shape.
  bool IsHandedOver(ValueId id, const Use& use, int stage) const {
    return size_numbers_[id] && graph_.node(graph_.value(id).producer).outputs.size() == 1 &&
           use.as_data && !use.known && use.certain && stages_.of[id] < stage;
  }

  // Makes the section with the nodes of the requested values of `stage`, and its inputs.
  void MakeSection(int stage) {
    Selection selection;
    std::vector<ValueId> stack;
    for (ValueId id = 0; id < static_cast<ValueId>(graph_.num_values()); ++id) {
      if (wanted_[id] && stages_.of[id] == stage && !IsFromCut(id)) {
        selection.outputs.push_back(id);
      }
    }
    GraphSection& section = result_.stages[stage].section;
    std::vector<Use> uses(graph_.num_values());
    std::vector<bool> given(graph_.num_values(), false);
    std::set<ValueId> read;  // the given values that a node reads
    for (const ValueId output : selection.outputs) uses[output] = {.known = true, .certain = true};
    const std::vector<NodeId> all = graph_.NodeIds();
    for (auto id = all.rbegin(); id != all.rend(); ++id) {
      const Node& node = graph_.node(*id);
      bool listed = false, certain = false;
      for (const ValueId output : node.outputs) {
        if (output == kNone || given[output] || !uses[output].any()) continue;
        if (IsHandedOver(output, uses[output], stage)) {
          given[output] = true;
          read.insert(output);
          WantKnown(output, stages_.of[output]);
        } else {
          listed = true;
          certain |= uses[output].certain;
        }
      }
      if (!listed) continue;
      selection.nodes.push_back(*id);
      const OpRow* row = FindOp(node.op);
      const bool is_known = absl::c_all_of(
          node.outputs, [&](ValueId out) { return out == kNone || analysis_.is_static[out]; });
      for (size_t i = 0; i < node.inputs.size(); ++i) {
        const ValueId operand = OperandOf(graph_, *id, i);
        if (operand == kNone) continue;
        Use& use = uses[operand];
        (is_known || row->IsValueInput(i) ? use.known : use.as_data) = true;
        use.certain |= certain && (node.op != IfOp::kName || i == IfOp::kCondition);
        if (!IsGiven(operand, stage)) continue;
        given[operand] = true;
        if (!row->Has(kShapeOnly)) read.insert(operand);
      }
    }
    for (ValueId id = 0; id < static_cast<ValueId>(graph_.num_values()); ++id) {
      if (given[id] && graph_.value(id).kind == Value::Kind::kResult && !analysis_.is_static[id]) {
        wanted_[id] = true;
      }
    }
    std::reverse(selection.nodes.begin(), selection.nodes.end());
    if (label_.empty() && stage == 0) {
      selection.inputs = graph_.inputs();
    } else {
      for (ValueId id = 0; id < static_cast<ValueId>(graph_.num_values()); ++id) {
        if (!given[id]) continue;
        selection.inputs.push_back(id);
        const std::string& name = graph_.value(id).name;
        if (graph_.value(id).kind == Value::Kind::kInput && shape_inputs_.contains(name)) {
          section.shape_inputs.insert(name);
        } else if (!read.contains(id)) {
          section.shape_only.insert(name);
        }
      }
    }
    for (const ValueId id : selection.outputs) section.outputs.push_back(graph_.value(id).name);
    section.label = stage == 0 ? label_ : stages_.labels[stage];
    section.is_light =
        absl::c_all_of(selection.nodes, [&](NodeId id) { return IsLight(graph_.node(id)); });
    section.graph = Extract(graph_, selection);
  }

  // Known values are computed once, in the first stage that needs them, before its cuts.
  void PutKnown() {
    std::set<NodeId> done;
    for (size_t stage = 0; stage < known_.size(); ++stage) {
      std::vector<EagerNode> nodes;
      for (const NodeId id : known_[stage]) {
        if (done.insert(id).second) nodes.push_back(MakeEager(id));
      }
      std::vector<EagerNode>& all = result_.stages[stage].nodes;
      all.insert(all.begin(), std::make_move_iterator(nodes.begin()),
                 std::make_move_iterator(nodes.end()));
    }
  }

  const Graph& graph_;
  const ShapeInputs& shape_inputs_;
  const CutAnalysis analysis_;
  const std::string label_;
  const CutStages stages_;
  const std::vector<bool> size_numbers_;  // indexed by value
  const std::vector<NodeId> cuts_;
  std::vector<bool> wanted_;                // indexed by value: handed over between pieces
  std::vector<std::vector<NodeId>> known_;  // indexed by stage: nodes known to specialising, to run
  CutGraph result_;
};

std::shared_ptr<const CutGraph> Split(const Graph& graph, const ShapeInputs& shape_inputs,
                                      CutAnalysis analysis, std::string label, bool splits_front) {
  return Splitter(graph, shape_inputs, std::move(analysis), std::move(label), splits_front).Run();
}

}  // namespace

std::shared_ptr<const CutGraph> CutAtData(const Graph& graph,
                                          const std::set<std::string>& shape_inputs,
                                          const CutWishes& wishes) {
  CutAnalysis analysis = FindCuts(graph, shape_inputs, /*is_body=*/false, wishes);
  if (analysis.Cuts(graph).empty()) return nullptr;
  const bool splits_front = wishes.splits_front && ResizesInFront(graph, analysis);
  return Split(graph, shape_inputs, std::move(analysis), /*label=*/"", splits_front);
}

}  // namespace reprise
