#include "runtime/verify/size_choices.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <optional>
#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "runtime/graph/extent.h"
#include "runtime/graph/graph.h"
#include "runtime/ops/axis/axis_rules.h"
#include "runtime/ops/control/control_op.h"
#include "runtime/ops/elementwise/select_op.h"
#include "runtime/ops/kit/op.h"
#include "runtime/ops/kit/op_facts.h"
#include "runtime/ops/movement/expand_op.h"
#include "runtime/ops/movement/reshape_op.h"
#include "runtime/passes/kit/branches.h"
#include "runtime/shapes/periods.h"
#include "runtime/verify/size_uses.h"

namespace reprise {
namespace {

using Verdict = AxisFinding::Verdict;
using Use = SizeUse;

// Sizes of the axes while a model is read: the first one, and the next ones farther by the second.
constexpr std::pair<int64_t, int64_t> kReadSizes[] = {
    {19, 4}, {7, 4}, {67, 34}, {64, 32}, {227, 32}, {224, 32}, {1031, 468}, {4099, 904}};
constexpr int64_t kReadBatch = 3;
// "To the end", as exporters write it, is any number beyond all sizes.
constexpr int64_t kBeyondAllSizes = 1'000'000'000;

// Returns whether it is a Squeeze without axes.
bool DropsDimsOfOne(const Node& node) {
  return node.op == SqueezeOp::kName && (node.inputs.size() < 2 || node.inputs[1] == kNone);
}

// Returns whether it is the number of all positions along a dim, which is right at any size.
bool CountsPositions(const OpRow& row) {
  return row.axis == ops::LiveMaskAxis || row.axis == ops::LiveShareAxis ||
         row.axis == ops::LiveExtentAxis || row.axis == ops::LiveCompactAxis;
}

class ChoiceWalk {
 public:
  ChoiceWalk(const Graph& graph, const SizeReading& reading, const ModelAxis& axis, size_t symbol,
             bool forms)
      : graph_(graph),
        reading_(reading),
        axis_(axis),
        forms_(forms),
        symbol_(symbol),
        uses_(static_cast<int64_t>(symbol)),
        flows_(graph.num_values()),
        alias_(graph.num_values(), kNone),
        cut_(graph.num_values(), kNone) {}

  AxisFinding Run() {
    for (ValueId id = 0; id < static_cast<ValueId>(graph_.num_values()); ++id) {
      if (graph_.value(id).kind == Value::Kind::kConstant) flows_[id] = {.use = Use::kFixed};
    }
    for (const Guard& guard : reading_.table->guards()) {
      if (uses_.Of(guard.form) == Use::kFixed) continue;
      decided_.insert(guard.origin);
      if (!HoldsForAxis(guard)) cutting_.insert(guard.origin);
    }
    for (const NodeId id : graph_.NodeIds()) {
      Visit(id, graph_.node(id));
      if (finding_.verdict == Verdict::kMixes) break;
    }
    for (const ValueId output : graph_.outputs()) {
      const Flow& flow = FlowOf(output);
      const NodeId producer = graph_.value(output).producer;
      if (flow.use < Use::kEven || producer == kNone) continue;
      Note(Verdict::kMixes, graph_.node(producer), flow.chooser, "answers with a number", flow.use);
    }
    return finding_;
  }

 private:
  struct Flow {
    Use use = Use::kData;
    NodeId chooser = kNone;  // the node that chooses, for kChosen
  };

  ValueId Resolved(ValueId id) const {
    while (id != kNone && alias_[id] != kNone) id = alias_[id];
    return id;
  }
  const SizeReading::Value& Read(ValueId id) const {
    static const SizeReading::Value kLeftOut;
    id = Resolved(id);
    return id == kNone ? kLeftOut : reading_.values[static_cast<size_t>(id)];
  }
  const Flow& FlowOf(ValueId id) const {
    static const Flow kLeftOut = {.use = Use::kFixed};
    id = Resolved(id);
    return id == kNone ? kLeftOut : flows_[id];
  }
  const Flow& In(const Node& node, size_t i) const { return FlowOf(node.input(i)); }
  Use DimsOf(ValueId id) {
    const auto& shape = Read(id).shape;
    return shape.has_value() ? uses_.OfAny(*shape) : Use::kFixed;
  }

  void Visit(NodeId id, const Node& node) {
    if (node.op == IfOp::kName) return VisitIf(id, node);
    const auto made = absl::c_find_if(node.outputs, [](ValueId output) { return output != kNone; });
    // It lies in a branch that is not taken.
    if (made == node.outputs.end() || !Read(*made).shape.has_value()) return;
    MarkCut(id, node);
    // Which dims are 1 differs between the smallest requests and all others.
    if (forms_ || DropsDimsOfOne(node)) JudgeForm(id, node);
    const SizeReading::Value& value = Read(*made);
    if (FactsOf(node.op).SlidesWindows())
      absl::c_copy(*value.shape, std::back_inserter(of_windows_));
    if (!value.determined && !value.constant.has_value()) return Judge(node);
    for (const ValueId output : node.outputs) {
      if (output != kNone) flows_[output] = Derive(id, node, output);
    }
  }

  // Which sizes results have may be decided by a node in front of them, for one of its forms.
  void MarkCut(NodeId id, const Node& node) {
    NodeId cut = kNone;
    for (const ValueId input : node.inputs) {
      const ValueId from = Resolved(input);
      if (from != kNone && cut_[from] != kNone) cut = cut_[from];
    }
    if (cutting_.contains(id) && HasForms(node)) cut = id;
    for (const ValueId output : node.outputs) {
      if (output != kNone) cut_[output] = cut;
    }
  }

  // How a number changes as the axis grows.
  struct Course {
    bool straight = true;  // its graph is a line
    bool never_falls = true;
    bool never_rises = true;
  };

  Course CourseOf(const Term& atom) {
    if (atom.kind == TermKind::kSymbol) return {.never_rises = false};
    const bool divides = atom.kind == TermKind::kQuotient && atom.operands[1].is_constant() &&
                         atom.operands[1].hint() > 0;
    Course course =
        divides ? CourseOf(atom.operands[0]) : Course{.never_falls = false, .never_rises = false};
    course.straight = false;
    return course;
  }

  Course CourseOf(Size size) {
    Course course;
    for (const TermPart& part : Polynomial::Of(size).parts) {
      bool negative = part.factor < 0;
      size_t following = 0;
      Course of_part;
      for (const Term* atom : part.atoms) {
        if (uses_.Of(Size(atom->hint, atom)) == Use::kFixed) {
          negative ^= atom->hint < 0;
        } else {
          ++following;
          of_part = CourseOf(*atom);
        }
      }
      if (following > 1) of_part = {.straight = false, .never_falls = false, .never_rises = false};
      if (negative) std::swap(of_part.never_falls, of_part.never_rises);
      course.straight &= of_part.straight;
      course.never_falls &= of_part.never_falls;
      course.never_rises &= of_part.never_rises;
    }
    return course;
  }

  // Returns whether `guard` holds for all sizes of the axis beside those that others have in the
  // reading: what sizes of others decide is found when they are asked for.
  bool HoldsForAxis(const Guard& guard) {
    const bool is_order =
        guard.relation == Guard::Relation::kAtLeast || guard.relation == Guard::Relation::kAtMost;
    const Course course = CourseOf(guard.form);
    if (!is_order || !(course.straight || course.never_falls || course.never_rises)) return false;
    const Interval range = reading_.table->RangeOf(symbol_);
    SizeEvaluator at(*reading_.table, {});
    return absl::c_all_of(std::vector<int64_t>{range.low, range.high}, [&](int64_t size) {
      at.Move({{axis_.symbol, size}});
      const std::optional<int64_t> number = at.At(guard.form);
      return number.has_value() && guard.HoldsFor(*number);
    });
  }

  // Returns whether results hold elements of operands, each by itself, however many there are.
  static bool KeepsElements(const Node& node) {
    const OpRow* row = FindOp(node.op);
    const OpFacts& facts = FactsOf(node.op);
    return row->Has(kElementwise) || row->Has(kView) || facts.OnlyMoves() ||
           facts.sizes == Sizes::kCut || facts.sizes == Sizes::kCount ||
           facts.sizes == Sizes::kFill || facts.sizes == Sizes::kLookup;
  }

  // Returns whether its shape rule does more than refuse operands that do not fit.
  bool HasForms(const Node& node) const {
    const Sizes sizes = FactsOf(node.op).sizes;
    if (DropsDimsOfOne(node) || sizes == Sizes::kCut || sizes == Sizes::kCount) return true;
    const OpRow* row = FindOp(node.op);
    for (size_t i = 0; row != nullptr && i < node.inputs.size(); ++i) {
      if (row->IsValueInput(i) && In(node, i).use >= Use::kEven) return true;
    }
    return false;
  }

  Flow Derive(NodeId id, const Node& node, ValueId output) {
    const SizeReading::Value& value = Read(output);
    Flow flow = {.use = Use::kFixed};
    if (value.known.has_value()) {
      flow.use = uses_.Of(*value.known);
    } else if ((value.pinned || !value.constant.has_value()) && AnyFollows(node)) {
      flow.use = Use::kChosen;
    }
    if (cut_[output] != kNone && !KeepsElements(node)) {
      return {.use = Use::kChosen, .chooser = cut_[output]};
    }
    // Which of numbers that follow no size is taken, where the place does.
    const Sizes sizes = FactsOf(node.op).sizes;
    if ((sizes == Sizes::kCut || sizes == Sizes::kLookup) && flow.use == Use::kEven &&
        In(node, 0).use == Use::kFixed) {
      flow.use = Use::kChosen;
    }
    // A number that is a constant in the reading alone, since a rule asked for it or since a cut
    // left nothing, has no term.
    if (sizes != Sizes::kOfShape) {
      for (const ValueId input : node.inputs) {
        const bool chosen = FlowOf(input).use == Use::kChosen;
        if (chosen && Read(input).constant.has_value()) return FlowOf(input);
      }
    }
    if (flow.use != Use::kChosen) return flow;
    flow.chooser = id;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (In(node, i).use == Use::kChosen) flow.chooser = In(node, i).chooser;
    }
    return flow;
  }

  bool AnyFollows(const Node& node) {
    return absl::c_any_of(node.inputs, [&](ValueId id) {
      return FlowOf(id).use >= Use::kEven || DimsOf(id) != Use::kFixed;
    });
  }

  void VisitIf(NodeId id, const Node& node) {
    const SizeReading::Value& condition = Read(node.input(0));
    if (!condition.shape.has_value()) return;
    const Flow& flow = In(node, 0);
    if (flow.use >= Use::kEven || decided_.contains(id)) {
      return Note(Verdict::kMixes, node, flow.chooser, "takes a branch");
    }
    const bool taken = condition.constant.has_value() ? condition.constant->ToDoubles()[0] != 0
                                                      : condition.known->elements[0].hint() != 0;
    const std::vector<ValueId> results = BranchTaken(graph_, id, taken);
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i] != kNone) alias_[node.outputs[i]] = results[i];
    }
  }

  // Reads a node that computes with data: which of its operands do sizes decide?
  void Judge(const Node& node) {
    const OpRow* row = FindOp(node.op);
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const Flow& flow = In(node, i);
      if (flow.use < Use::kSteps) continue;
      const bool shapes = row != nullptr && row->IsValueInput(i);
      const bool steps = flow.use == Use::kSteps;
      if (steps && shapes && IsSeenByWalk(node, *row)) continue;
      Note(steps && shapes ? Verdict::kUndecided : Verdict::kMixes, node, flow.chooser,
           shapes ? "has a shape" : "computes with a number");
    }
  }

  // Returns whether it is a shape in steps that the walk at two sizes sees through: the same
  // elements under another shape, the beginning of a table, the number of all positions, one
  // element for each position of others.
  bool IsSeenByWalk(const Node& node, const OpRow& row) {
    const bool cuts_table =
        FactsOf(row).sizes == Sizes::kCut && DimsOf(node.input(0)) == Use::kFixed;
    return row.Has(kView) || cuts_table || CountsPositions(row) ||
           (node.op == ExpandOp::kName && RepeatsForPositions(node));
  }

  // Returns whether the dims of an Expand that follow the axis in steps are those that windows
  // leave: the walk has found which positions lie along them.
  bool RepeatsForPositions(const Node& node) {
    const auto& shape = Read(node.outputs[0]).shape;
    return shape.has_value() && absl::c_all_of(*shape, [&](Size size) {
             return uses_.Of(size) < Use::kSteps ||
                    absl::c_any_of(of_windows_, [&](Size one) { return Agree(one, size); });
           });
  }

  // Returns whether the two are the same number at every size of the axis.
  bool Agree(Size a, Size b) {
    const SizeTable& table = *reading_.table;
    const Term* axis = table.symbol_sizes()[symbol_].term();
    if (periods_.empty()) periods_ = PeriodsOf(table, axis);
    return axis != nullptr && AgreeEverywhere(table, axis, periods_, a, b);
  }

  // Sizes decide no number here; do they decide what the node makes of its operands?
  void JudgeForm(NodeId id, const Node& node) {
    const absl::string_view how = FormThatFollows(id, node);
    if (how.empty() || finding_.verdict >= Verdict::kUndecided) return;
    finding_ = {Verdict::kUndecided, AxisNodeName(graph_, node),
                absl::StrCat(how, ", which the size of ", axis_.label, " decides")};
  }

  // Decisions of sizes about numbers (SizeUse::kSteps and more) are not looked at.
  absl::string_view FormThatFollows(NodeId id, const Node& node) {
    const bool decided = decided_.contains(id);
    const OpFacts& facts = FactsOf(node.op);
    if (DropsDimsOfOne(node)) return decided ? "drops the dims that are 1" : "";
    if (facts.sizes == Sizes::kCut) {
      return CutsAlike(id, node) ? "" : "cuts where there is less than it asks for";
    }
    if (facts.sizes == Sizes::kCount) {
      return decided || DimsOf(node.outputs[0]) == Use::kChosen ? "counts to a number" : "";
    }
    const OpRow* row = FindOp(node.op);
    if (row == nullptr || CountsPositions(*row)) return "";
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (In(node, i).use != Use::kEven) continue;
      if (row->IsValueInput(i)) {
        if (!facts.Is(kTakesSizes) || decided) return "has a shape or a place";
      } else if (i > 0 && facts.Chooses(i)) {
        return "takes what lies at a place";
      }
    }
    return "";
  }

  bool CutsAlike(NodeId id, const Node& node) {
    bool moves = DimsOf(node.input(0)) != Use::kFixed;
    for (size_t i = 1; i < node.inputs.size(); ++i) {
      if (In(node, i).use == Use::kData) return false;
      moves = moves || In(node, i).use >= Use::kEven;
    }
    if (!moves || TakesEnds(node) || GrowsInSteps(node)) return true;
    const Use chosen = DimsOf(node.outputs[0]);
    return !decided_.contains(id) && (chosen != Use::kChosen || DimsOf(node.input(0)) == chosen);
  }

  // Behind strides a dim has one position at least: the first and the last one are there at any
  // size that the model takes.
  bool TakesEnds(const Node& node) {
    const auto is_end = [&](size_t i) {
      const auto& bound = Read(node.input(i)).constant;
      return bound.has_value() && absl::c_all_of(bound->ToDoubles(), [](double at) {
               return std::abs(at) <= 1 || std::abs(at) >= static_cast<double>(kBeyondAllSizes);
             });
    };
    return DimsOf(node.input(0)) >= Use::kSteps && is_end(1) && is_end(2);
  }

  // Returns whether a table is cut in steps, and not at its own end: past it the model has no such
  // size.
  bool GrowsInSteps(const Node& node) {
    return DimsOf(node.input(0)) == Use::kFixed && In(node, 1).use == Use::kFixed &&
           In(node, 2).use == Use::kSteps && DimsOf(node.outputs[0]) != Use::kFixed;
  }

  void Note(Verdict verdict, const Node& node, NodeId chooser, absl::string_view what,
            Use use = Use::kSteps) {
    if (verdict <= finding_.verdict) return;
    finding_ = {verdict, AxisNodeName(graph_, node),
                chooser == kNone
                    ? absl::StrCat(what, " that follows ", use == Use::kEven ? "" : "in steps ",
                                   "the size of ", axis_.label)
                    : absl::StrCat(what, " that ", AxisNodeName(graph_, graph_.node(chooser)),
                                   " decides by the size of ", axis_.label)};
  }

  const Graph& graph_;
  const SizeReading& reading_;
  const ModelAxis& axis_;
  const bool forms_;
  const size_t symbol_;
  SizeUses uses_;
  std::vector<Flow> flows_;       // indexed by value
  std::vector<ValueId> alias_;    // indexed by value: the result of an If; kNone: itself
  std::vector<NodeId> cut_;       // indexed by value: a node that decides about its shape
  std::vector<Size> of_windows_;  // sizes of the results of convolutions and pools
  std::vector<int64_t> periods_;  // PeriodsOf the reading's terms; empty until asked for
  std::set<int64_t> decided_;     // nodes whose rules had to decide by the axis
  std::set<int64_t> cutting_;     // the ones among them that do so at all sizes of others
  AxisFinding finding_;
};

// Whole numbers stay the same in whichever type they are cast to.
bool MayBend(const Graph& graph, const Node& node) {
  if (node.op != CastOp::kName) return FactsOf(node.op).Is(kBends);
  const DType to = graph.value(node.outputs[0]).dtype;
  return to == DType::kBool || (IsInteger(to) && !IsInteger(graph.value(node.inputs[0]).dtype));
}

// Returns the first node that bends a number made of sizes, or takes a branch by one; kNone: there
// is none.
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

// Without one of a few ops a model holds no number that sizes decide, and with `forms` nothing
// whose form follows one; this one may hold some.
bool MayHoldChoices(const Graph& graph, bool forms) {
  bool of_sizes = false, bends = false;
  for (const NodeId id : graph.NodeIds()) {
    const Node& node = graph.node(id);
    const OpFacts& facts = FactsOf(node.op);
    if (DropsDimsOfOne(node)) return true;
    of_sizes = of_sizes || facts.sizes == Sizes::kOfShape;
    bends = bends || facts.Is(kBends);
    if (forms && (of_sizes || facts.sizes == Sizes::kCut || node.op == ReshapeOp::kName)) {
      return true;
    }
  }
  return of_sizes && bends;
}

}  // namespace

std::shared_ptr<const SizeReading> SizeReadings::UpTo(size_t position, int64_t largest) const {
  if (largest > 0) return Read(position, largest);
  std::call_once(read_, [&] { of_all_ = Read(position, largest); });
  return of_all_;
}

UnevenTables SizeReadings::UnevenAt(const Binding& sizes) const {
  MutexLock lock(mutex_);
  return tables_.UnevenAt(sizes);
}

std::shared_ptr<const SizeReading> SizeReadings::Read(size_t position, int64_t largest) const {
  for (const auto& [first, apart] : kReadSizes) {
    auto reading = std::make_shared<SizeReading>();
    reading->table = std::make_unique<SizeTable>(/*open=*/true);
    std::map<std::string, Size> sizes(fixed_.begin(), fixed_.end());
    int64_t hint = first;
    for (size_t i = 0; i < axes_.size(); ++i) {
      // In steps of an axis that has multiples of one alone.
      const int64_t step = axes_[i].step;
      const int64_t most = i == position && largest > 0 ? largest : kLargestRequest;
      const int64_t at = axes_[i].is_batch ? kReadBatch : RoundUpTo(hint, step);
      if (!axes_[i].is_batch) hint = at + std::max(apart, step);
      const std::string& symbol = axes_[i].symbol;
      // Findings about a form with windows are for requests that all of these fit in.
      const int64_t least = (axes_[i].whole_from + step - 1) / step;
      const int64_t count = std::max(std::min(at, most) / step, least);
      sizes[symbol] = step * reading->table->Symbol(symbol, count, least, most / step);
    }
    if (ReadSizes(graph_, sizes, {}, *reading).ok()) return reading;
  }
  return nullptr;
}

AxisFinding FindSizeChoices(const SizeReadings& readings, size_t position, int64_t largest,
                            bool forms) {
  const Graph& graph = readings.graph();
  if (!MayHoldChoices(graph, forms)) return {};
  const ModelAxis& axis = readings.axes()[position];
  const std::shared_ptr<const SizeReading> reading = readings.UpTo(position, largest);
  if (reading != nullptr) return ChoiceWalk(graph, *reading, axis, position, forms).Run();
  // No number of such a model is known for all sizes.
  const std::string how = absl::StrCat("may decide something by the size of ", axis.label);
  const NodeId chooser = FindChooser(graph);
  if (chooser == kNone) return {Verdict::kUndecided, "the model", how};
  return {Verdict::kMixes, AxisNodeName(graph, graph.node(chooser)), how};
}

}  // namespace reprise
