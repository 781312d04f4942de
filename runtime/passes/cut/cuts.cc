#include "runtime/passes/cut/cuts.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/graph/graph.h"
#include "runtime/ops/control/control_op.h"
#include "runtime/ops/control/loop.h"
#include "runtime/ops/kit/host_op.h"
#include "runtime/ops/kit/op.h"
#include "runtime/ops/movement/gather_op.h"
#include "runtime/passes/cut/shape_source.h"

namespace reprise {
namespace {

NodeId ProducerOf(const Graph& graph, ValueId id) {
  return id == kNone || graph.value(id).kind != Value::Kind::kResult ? kNone
                                                                     : graph.value(id).producer;
}

// Returns the operands of an If that its branches result in.
std::vector<ValueId> BranchResults(const Node& node) {
  return {node.inputs.begin() + 1, node.inputs.end()};
}

bool IsLookup(const Graph& graph, const Node& node) {
  return node.op == GatherOp::kName && graph.value(node.inputs[0]).kind == Value::Kind::kInput;
}

// Returns by node the loops, by their number, that change its result from one iteration to the
// next.
std::vector<std::set<int64_t>> LoopsAround(const Graph& graph) {
  std::vector<std::set<int64_t>> around(graph.num_nodes());
  for (const NodeId id : graph.NodeIds()) {
    const Node& node = graph.node(id);
    for (const ValueId input : node.inputs) {
      const NodeId producer = ProducerOf(graph, input);
      if (producer != kNone) around[id].insert(around[producer].begin(), around[producer].end());
    }
    if (node.op == LoopStepOp::kName) around[id].insert(LoopNumber(node));
    if (node.op == LoopOp::kName) around[id].erase(LoopNumber(node));
  }
  return around;
}

class Analysis {
 public:
  Analysis(const Graph& graph, const std::set<std::string>& shape_inputs, bool is_body,
           const CutWishes& wishes)
      : graph_(graph), is_body_(is_body), wishes_(wishes) {
    result_.is_static.assign(graph.num_values(), false);
    result_.is_cut.assign(graph.num_nodes(), false);
    result_.level.assign(graph.num_values(), 0);
    result_.is_everywhere = wishes.everywhere;
    result_.is_chosen.assign(graph.num_nodes(), false);
    for (const std::set<int64_t>& loops : LoopsAround(graph)) {
      result_.is_in_body.push_back(!loops.empty());
    }
    for (ValueId id = 0; id < static_cast<ValueId>(graph.num_values()); ++id) {
      const Value& value = graph.value(id);
      result_.is_static[id] =
          value.kind == Value::Kind::kConstant ||
          (value.kind == Value::Kind::kInput && shape_inputs.contains(value.name));
    }
  }

  CutAnalysis Run() {
    // Whatever becomes of any If.
    const std::vector<bool> always = NodesBehind(graph_.outputs(), [](NodeId) { return true; });
    for (const NodeId id : graph_.NodeIds()) Look(id, always);
    FindNeeded();
    for (const NodeId id : graph_.NodeIds()) {
      if (result_.is_needed[id]) SetLevel(id);
    }
    return std::move(result_);
  }

 private:
  // Returns the results of each of the two branches of an If.
  std::array<std::vector<ValueId>, 2> BranchesOf(NodeId id) const {
    const std::vector<ValueId> results = BranchResults(graph_.node(id));
    const auto middle = results.begin() + static_cast<std::ptrdiff_t>(results.size() / 2);
    return {std::vector<ValueId>(results.begin(), middle),
            std::vector<ValueId>(middle, results.end())};
  }

  bool IsCutIf(NodeId id) const { return graph_.node(id).op == IfOp::kName && result_.is_cut[id]; }

  std::vector<bool> NodesNeededBy(std::vector<ValueId> values) const {
    return NodesBehind(std::move(values), [&](NodeId id) { return result_.is_cut[id]; });
  }

  std::vector<NodeId> CutIfs() const {
    std::vector<NodeId> ifs;
    for (const NodeId id : graph_.NodeIds()) {
      if (IsCutIf(id)) ifs.push_back(id);
    }
    return ifs;
  }

  // Returns how often all of `ifs` stand in branches and around them, where each branch has its
  // own copy of the nodes that it needs, except for nodes that are needed whatever branches are
  // taken; no more than a little above `limit`.
  double CopiesOf(const std::vector<NodeId>& ifs, double limit) const {
    std::vector<double> copies(graph_.num_nodes(), 0);
    double all = 0;
    for (auto id = ifs.rbegin(); id != ifs.rend() && all <= limit; ++id) {
      const double own = copies[*id] + (result_.is_needed[*id] ? 1 : 0);
      all += own;
      for (const std::vector<ValueId>& branch : BranchesOf(*id)) {
        const std::vector<bool> found = NodesNeededBy(branch);
        for (const NodeId other : ifs) {
          if (found[other] && !result_.is_needed[other]) copies[other] += own;
        }
      }
    }
    return all;
  }

  // Nodes that both branches of an If need are needed whichever is taken. `ifs` are in order, so
  // that an If within a branch is known before the one around it.
  void FindCommon(const std::vector<NodeId>& ifs) {
    for (const NodeId id : ifs) {
      const auto branches = BranchesOf(id);
      const std::vector<bool> first = NodesNeededBy(branches[0]);
      const std::vector<bool> second = NodesNeededBy(branches[1]);
      std::vector<NodeId>& common = common_[id];
      for (NodeId other = 0; other < static_cast<NodeId>(first.size()); ++other) {
        if (first[other] && second[other]) common.push_back(other);
      }
    }
  }

  void FindNeeded() {
    // A few copies cost little, and nodes in a branch of the file do not run unless that is taken,
    // even where an equal node of another branch has been merged with one of them.
    constexpr double kMostCopies = 32;
    result_.is_needed = NodesNeededBy(graph_.outputs());
    const std::vector<NodeId> ifs = CutIfs();
    if (CopiesOf(ifs, kMostCopies) <= kMostCopies) return;
    // A chain of Ifs, each of which reads the one before in several branches, would be copied
    // without bound: nodes that both branches need, and an If that the branches of several read,
    // stay in front of them, as they do in the file.
    FindCommon(ifs);
    std::map<NodeId, std::vector<NodeId>> read;  // Ifs, by the branches of an If
    for (const NodeId id : ifs) {
      const std::vector<bool> found = NodesNeededBy(BranchResults(graph_.node(id)));
      for (const NodeId other : ifs) {
        if (found[other]) read[id].push_back(other);
      }
    }
    std::vector<ValueId> wanted = graph_.outputs();
    for (bool more = true; more;) {
      more = false;
      result_.is_needed = NodesNeededBy(wanted);
      std::map<NodeId, int> readers;
      for (const NodeId id : ifs) {
        if (!result_.is_needed[id]) continue;
        for (const NodeId other : read[id]) {
          if (result_.is_needed[other] || ++readers[other] < 2) continue;
          for (const ValueId output : graph_.node(other).outputs) {
            if (output != kNone) wanted.push_back(output);
          }
          more = true;
        }
      }
    }
  }

  // Returns the nodes that `values` need. An If for which `condition_only` holds adds its
  // condition, and the nodes that both branches share where these have been found.
  template <typename F>
  std::vector<bool> NodesBehind(std::vector<ValueId> stack, F condition_only) const {
    std::vector<bool> found(graph_.num_nodes(), false), seen(graph_.num_nodes(), false);
    while (!stack.empty()) {
      const NodeId id = ProducerOf(graph_, stack.back());
      stack.pop_back();
      if (id == kNone || seen[id]) continue;
      seen[id] = true;
      found[id] = !result_.is_in_body[id];
      const Node& node = graph_.node(id);
      if (node.op == IfOp::kName && condition_only(id)) {
        stack.push_back(node.input(0));
        const auto common = common_.find(id);
        if (common == common_.end()) continue;
        for (const NodeId other : common->second) {
          seen[other] = true;
          found[other] = !result_.is_in_body[other];
        }
      } else {
        stack.insert(stack.end(), node.inputs.begin(), node.inputs.end());
      }
    }
    return found;
  }

  void Look(NodeId id, const std::vector<bool>& always) {
    const Node& node = graph_.node(id);
    const OpRow* row = FindOp(node.op);
    const auto is_known = [&](ValueId input) { return input == kNone || result_.is_static[input]; };
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (row->IsValueInput(i) && !is_known(node.inputs[i])) result_.is_cut[id] = true;
    }
    if (node.op == LoopOp::kName || row->Has(kHost) ||
        (is_body_ && IsLookup(graph_, node) && !is_known(node.inputs[1]))) {
      result_.is_cut[id] = true;
    }
    if (node.op == IfOp::kName && !result_.is_cut[id]) {
      const std::vector<bool> branch =
          NodesBehind(BranchResults(node), [](NodeId) { return false; });
      for (const NodeId other : graph_.NodeIds()) {
        if (branch[other] && !always[other] && result_.is_cut[other]) result_.is_cut[id] = true;
      }
    }
    const bool is_static = !result_.is_cut[id] && !row->Has(kNoFold) &&
                           (row->Has(kShapeOnly) || absl::c_all_of(node.inputs, is_known));
    // Bodies of loops and branches have their own graphs, which are cut as they are.
    const bool is_step = node.op == IfOp::kName || node.op == LoopStepOp::kName;
    if (!is_static && !is_step && !result_.is_in_body[id]) {
      result_.is_chosen[id] = !wishes_.chosen.empty() && wishes_.chosen.Holds(graph_, id);
      if (wishes_.everywhere || result_.is_chosen[id]) result_.is_cut[id] = true;
    }
    for (const ValueId output : node.outputs) {
      if (output != kNone) result_.is_static[output] = is_static;
    }
  }

  void SetLevel(NodeId id) {
    const Node& node = graph_.node(id);
    int level = 0;
    for (const ValueId needed : NeededBy(graph_, result_, id)) {
      level = std::max(level, result_.level[needed]);
    }
    if (result_.is_cut[id]) ++level;
    for (const ValueId output : node.outputs) {
      if (output != kNone) result_.level[output] = level;
    }
  }

  const Graph& graph_;
  const bool is_body_;
  const CutWishes& wishes_;
  std::map<NodeId, std::vector<NodeId>> common_;  // keyed by a cut If: the nodes that both branches
                                                  // need
  CutAnalysis result_;
};

// "(input 'mask')": the inputs that `value` is made of; empty where it is one itself.
std::string Sources(const Graph& graph, ValueId value) {
  std::vector<bool> seen(graph.num_values(), false);
  std::vector<ValueId> stack = {value};
  std::vector<std::string> names;
  while (!stack.empty()) {
    const ValueId id = stack.back();
    stack.pop_back();
    if (id == kNone || seen[id]) continue;
    seen[id] = true;
    if (graph.value(id).kind == Value::Kind::kInput && id != value) {
      names.push_back(absl::StrCat("'", graph.value(id).name, "'"));
    }
    const NodeId producer = ProducerOf(graph, id);
    if (producer == kNone || FindOp(graph.node(producer).op)->Has(kShapeOnly)) continue;
    const std::vector<ValueId>& inputs = graph.node(producer).inputs;
    stack.insert(stack.end(), inputs.begin(), inputs.end());
  }
  if (names.empty()) return "";
  std::sort(names.begin(), names.end());
  return absl::StrCat(", which is computed from ", absl::StrJoin(names, ", "));
}

}  // namespace

std::vector<NodeId> CutAnalysis::Cuts(const Graph& graph) const {
  std::vector<NodeId> cuts;
  for (const NodeId id : graph.NodeIds()) {
    if (is_cut[id] && is_needed[id]) cuts.push_back(id);
  }
  return cuts;
}

CutAnalysis FindCuts(const Graph& graph, const std::set<std::string>& shape_inputs, bool is_body,
                     const CutWishes& wishes) {
  return Analysis(graph, shape_inputs, is_body, wishes).Run();
}

BranchPart BranchBehind(const Graph& graph, const CutAnalysis& analysis,
                        const std::vector<ValueId>& results, NodeId step) {
  BranchPart part;
  std::vector<bool> seen(graph.num_values(), false), listed(graph.num_nodes(), false);
  std::vector<ValueId> stack = results;
  while (!stack.empty()) {
    const ValueId id = stack.back();
    stack.pop_back();
    if (id == kNone || seen[id]) continue;
    seen[id] = true;
    const NodeId producer = ProducerOf(graph, id);
    if (graph.value(id).kind == Value::Kind::kInput ||
        (producer != kNone &&
         (producer == step || (analysis.is_needed[producer] && !analysis.is_static[id])))) {
      part.operands.push_back(id);
    } else if (producer != kNone) {
      if (!listed[producer]) part.nodes.push_back(producer);
      listed[producer] = true;
      for (size_t i = 0; i < graph.node(producer).inputs.size(); ++i) {
        stack.push_back(OperandOf(graph, producer, i));
      }
    }
  }
  std::sort(part.nodes.begin(), part.nodes.end());
  std::sort(part.operands.begin(), part.operands.end());
  return part;
}

std::vector<ValueId> NeededBy(const Graph& graph, const CutAnalysis& analysis, NodeId id) {
  const Node& node = graph.node(id);
  std::vector<ValueId> needed;
  const auto add = [&](const std::vector<ValueId>& values) {
    needed.insert(needed.end(), values.begin(), values.end());
  };
  if (node.op == IfOp::kName && analysis.is_cut[id]) {
    needed.push_back(node.input(0));
    add(BranchBehind(graph, analysis, {node.inputs.begin() + 1, node.inputs.end()}).operands);
  } else if (node.op == LoopOp::kName) {
    const auto given = static_cast<std::ptrdiff_t>(LoopParts(node).first_result);
    add({node.inputs.begin(), node.inputs.begin() + given});
    add(BranchBehind(graph, analysis, BodyResults(node)).operands);
  } else {
    add(node.inputs);
  }
  std::erase(needed, kNone);
  return needed;
}

Cut DescribeCut(const Graph& graph, const CutAnalysis& analysis, NodeId id) {
  const Node& node = graph.node(id);
  const OpRow* row = FindOp(node.op);
  Cut cut = {.op = SourceOp(node), .node = NameOf(graph, id)};
  for (const ValueId output : node.outputs) {
    if (output != kNone) cut.level = analysis.level[output] - 1;
  }
  std::vector<std::string> reasons;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const ValueId input = node.inputs[i];
    if (!row->IsValueInput(i) || input == kNone || analysis.is_static[input]) continue;
    reasons.push_back(absl::StrCat("'", graph.value(input).name, "'", Sources(graph, input)));
  }
  if (row->Has(kHost)) {
    cut.why =
        "it comes from a library and runs on the host, between recipes; the time of one call "
        "of it cannot be cut";
  } else if (analysis.is_everywhere && reasons.empty() && node.op != IfOp::kName &&
             node.op != LoopOp::kName) {
    cut.why = "the model runs op by op";
  } else if (analysis.is_chosen[id] && reasons.empty()) {
    cut.why = "reprise.cut or reprise.eager_ops names it";
  } else if (node.op == LoopOp::kName) {
    cut.why = "its body runs once for each iteration";
  } else if (IsLookup(graph, node)) {
    cut.why =
        absl::StrCat("each iteration takes a part of '", graph.value(node.inputs[0]).name, "'");
  } else if (node.op != IfOp::kName) {
    cut.why = absl::StrCat("the size of its result depends on the elements of ",
                           absl::StrJoin(reasons, " and of "));
  } else if (!reasons.empty()) {
    cut.why = absl::StrCat("which branch runs depends on ", reasons[0]);
  } else {
    cut.why = "a branch of it has a size that depends on data";
  }
  return cut;
}

}  // namespace reprise
