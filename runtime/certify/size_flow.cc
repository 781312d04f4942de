#include "runtime/certify/size_flow.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "runtime/certify/size_numbers.h"
#include "runtime/ops/op.h"

namespace reprise {
namespace {

using Verdict = AxisFinding::Verdict;
using Elements = std::vector<SizePolynomial>;

// Shapes are short; what is longer is known by how it is made alone.
constexpr int64_t kMaxElements = 64;

// How a number hangs on the size of the axis; the larger the worse.
enum class Use {
  kData,    // it is not made of sizes
  kFixed,   // it does not; or only how many of it there are does, the first ones alike
  kEven,    // it follows the size so that it differs between any two sizes
  kSteps,   // in steps, as quotients do
  kChosen,  // what the size decides
};

struct SizeFlow {
  Use use = Use::kData;
  NodeId chooser = kNone;  // of kChosen
  Elements elements;       // for all sizes of all axes; empty: not known
};

bool IsComparison(absl::string_view op) {
  static const auto* const kOps =
      new std::set<absl::string_view>{"Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual"};
  return kOps->contains(op);
}

// What sums, copies and moves: straight lines stay straight.
bool IsEven(absl::string_view op) {
  static const auto* const kOps = new std::set<absl::string_view>{
      "Add",       "Sub",       "Neg",        "Sum",    "Identity", "Reshape", "Squeeze",
      "Unsqueeze", "Flatten",   "Transpose",  "Concat", "Split",    "Expand",  "Tile",
      "Mul",       "ReduceSum", "ReduceProd", "Gather", "Slice"};
  return kOps->contains(op);
}

// What turns a straight line into a curve without a step.
bool IsSmooth(absl::string_view op) {
  static const auto* const kOps =
      new std::set<absl::string_view>{"Sqrt", "Log", "Reciprocal", "Pow", "Div"};
  return kOps->contains(op);
}

bool LooksForOrder(absl::string_view op) {
  static const auto* const kOps = new std::set<absl::string_view>{
      "Equal", "Less",      "LessOrEqual", "Greater", "GreaterOrEqual",
      "Min",   "Max",       "Mod",         "Div",     "Clip",
      "Abs",   "Sign",      "Floor",       "Ceil",    "Round",
      "If",    "ReduceMax", "ReduceMin",   "ArgMax",  "ArgMin",
      "TopK",  "Relu",      "Tanh",        "Sigmoid", "Erf",
      "Exp",   "Sin",       "Cos",         "Cast"};
  return kOps->contains(op);
}

class SizeWalk {
 public:
  explicit SizeWalk(const SizeQuestion& question)
      : question_(question),
        graph_(*question.graph),
        axes_(question.largest.size()),
        flows_(graph_.num_values()),
        alias_(graph_.num_values(), kNone) {
    low_ = question.samples[0].sizes;
    high_ = question.samples[(size_t{1} << axes_) - 1].sizes;
  }

  AxisFinding Run() {
    for (ValueId id = 0; id < static_cast<ValueId>(graph_.num_values()); ++id) {
      const Value& value = graph_.value(id);
      if (value.kind != Value::Kind::kConstant) continue;
      flows_[id] = {.use = Use::kFixed};
      if (value.constant.num_elements() > kMaxElements) continue;
      for (const double element : value.constant.ToDoubles()) {
        flows_[id].elements.push_back(SizePolynomial::Constant(axes_, element));
      }
    }
    for (const NodeId id : graph_.NodeIds()) {
      Visit(id, graph_.node(id));
      if (finding_.verdict == Verdict::kMixes) break;
    }
    for (const ValueId output : graph_.outputs()) {
      const SizeFlow& flow = FlowOf(output);
      const NodeId producer = graph_.value(output).producer;
      if (flow.use < Use::kEven || producer == kNone) continue;
      Note(Verdict::kMixes, graph_.node(producer), flow.chooser, "answers with a number", flow.use);
    }
    return finding_;
  }

 private:
  ValueId Resolved(ValueId id) const {
    while (id != kNone && alias_[id] != kNone) id = alias_[id];
    return id;
  }
  const SizeFlow& FlowOf(ValueId id) const {
    static const SizeFlow kNothing = {.use = Use::kFixed};
    id = Resolved(id);
    return id == kNone ? kNothing : flows_[id];
  }
  const SizeFlow& In(const Node& node, size_t i) const { return FlowOf(node.input(i)); }

  const std::optional<Shape>& ShapeIn(const SizeSample& sample, ValueId id) const {
    static const std::optional<Shape> kUnknown;
    id = Resolved(id);
    if (id == kNone) return kUnknown;
    return graph_.value(id).kind == Value::Kind::kConstant ? graph_.value(id).shape
                                                           : sample.shapes[id];
  }
  const std::optional<Shape>& LowShape(ValueId id) const {
    return ShapeIn(question_.samples[0], id);
  }
  const std::optional<Shape>& HighShape(ValueId id) const {
    return ShapeIn(question_.samples[size_t{1} << question_.position], id);
  }
  // The dims that follow the axis; nullopt where shapes are not known.
  std::optional<std::vector<size_t>> VaryingDims(ValueId id) const {
    const auto& low = LowShape(id);
    const auto& high = HighShape(id);
    if (!low || !high || low->size() != high->size()) return std::nullopt;
    std::vector<size_t> dims;
    for (size_t d = 0; d < low->size(); ++d) {
      if ((*low)[d] != (*high)[d]) dims.push_back(d);
    }
    return dims;
  }
  bool Varies(ValueId id) const {
    const auto dims = VaryingDims(id);
    return !dims || !dims->empty();
  }
  bool AnyVaries(const Node& node) const {
    return absl::c_any_of(node.inputs, [&](ValueId id) { return id != kNone && Varies(id); });
  }
  // Of each dim that follows the axis, its sizes and the elements inside it: the same before and
  // behind an op that only renames dims.
  std::vector<std::vector<int64_t>> Places(ValueId id) const {
    std::vector<std::vector<int64_t>> places;
    const Shape low = *LowShape(id), high = *HighShape(id);
    const std::vector<size_t> dims = *VaryingDims(id);
    for (const size_t d : dims) {
      places.push_back({low[d], high[d], Strides(low)[d], Strides(high)[d]});
    }
    return places;
  }

  // The elements of a result, as the samples say: for results of sums and products alone.
  Elements Fit(ValueId id) const {
    std::vector<std::vector<double>> values;
    for (const SizeSample& sample : question_.samples) {
      const std::optional<Tensor>& constant = sample.constants[id];
      if (!constant.has_value() || constant->num_elements() > kMaxElements) return {};
      values.push_back(constant->ToDoubles());
      if (values.back().size() != values[0].size()) return {};
    }
    Elements elements;
    const size_t corners = size_t{1} << axes_;
    for (size_t e = 0; e < values[0].size(); ++e) {
      std::vector<double> at;
      for (size_t i = 0; i < corners; ++i) at.push_back(values[i][e]);
      elements.push_back(SizePolynomial::Through(at, low_, high_));
      for (size_t i = corners; i < values.size(); ++i) {
        const double said = elements.back().At(question_.samples[i].sizes);
        if (std::abs(said - values[i][e]) > 1e-6 * std::max(1.0, std::abs(said))) return {};
      }
    }
    return elements;
  }

  Use UseOf(const Elements& elements) const {
    const bool follows = absl::c_any_of(
        elements, [&](const SizePolynomial& one) { return one.DependsOn(question_.position); });
    return follows ? Use::kEven : Use::kFixed;
  }
  static bool AllKnown(const Node& node, const SizeWalk& walk) {
    return absl::c_all_of(
        node.inputs, [&](ValueId id) { return id == kNone || !walk.FlowOf(id).elements.empty(); });
  }
  static size_t AxesOf(const Elements& elements) {
    size_t axes = 0;
    for (const SizePolynomial& one : elements) axes |= one.axes();
    return axes;
  }

  // `f(a, b)` for the elements of two operands that meet in `output`; false where one is not known.
  template <typename F>
  bool ForEachPair(ValueId a, ValueId b, ValueId output, F&& f) const {
    const Elements& left = FlowOf(a).elements;
    const Elements& right = FlowOf(b).elements;
    const auto &left_shape = LowShape(a), &right_shape = LowShape(b), &shape = LowShape(output);
    if (left.empty() || right.empty() || !left_shape || !right_shape || !shape) return false;
    if (NumElements(*shape) > kMaxElements || Varies(output)) return false;
    const Shape strides = Strides(*shape);
    const auto element = [&](const Elements& elements, const Shape& own, int64_t e) {
      const Shape own_strides = Strides(own);
      int64_t at = 0;
      for (size_t d = 0; d < own.size(); ++d) {
        const size_t out = d + shape->size() - own.size();
        if (own[d] != 1) at += e / strides[out] % (*shape)[out] * own_strides[d];
      }
      return elements[at];
    };
    for (int64_t e = 0; e < NumElements(*shape); ++e) {
      if (!f(element(left, *left_shape, e), element(right, *right_shape, e))) return false;
    }
    return true;
  }

  std::pair<double, double> RangeOf(const SizePolynomial& number) const {
    return number.Range(question_.largest);
  }

  // What a comparison says of every element, wherever the sizes lie.
  std::optional<Elements> Decide(const Node& node) const {
    Elements results;
    const bool decided =
        ForEachPair(node.input(0), node.input(1), node.outputs[0],
                    [&](const SizePolynomial& a, const SizePolynomial& b) {
                      const auto [least, most] = RangeOf(a - b);
                      std::optional<bool> holds;
                      if (node.op == "Equal") {
                        if (least > 0 || most < 0) holds = false;
                        if (least == 0 && most == 0) holds = true;
                      } else if (node.op == "Less" || node.op == "GreaterOrEqual") {
                        if (most < 0) holds = node.op == "Less";
                        if (least >= 0) holds = node.op != "Less";
                      } else {
                        if (least > 0) holds = node.op == "Greater";
                        if (most <= 0) holds = node.op != "Greater";
                      }
                      if (holds.has_value())
                        results.push_back(SizePolynomial::Constant(axes_, *holds));
                      return holds.has_value();
                    });
    if (!decided) return std::nullopt;
    return results;
  }

  // One operand of the two is the smaller one (or the larger one) wherever the sizes lie.
  bool OneWins(ValueId a, ValueId b, ValueId output) const {
    return ForEachPair(a, b, output, [&](const SizePolynomial& left, const SizePolynomial& right) {
      const auto [least, most] = RangeOf(left - right);
      return least >= 0 || most <= 0;
    });
  }

  SizeFlow Chosen(NodeId id) const { return {.use = Use::kChosen, .chooser = id}; }
  SizeFlow Fitted(ValueId output, Use otherwise) const {
    Elements elements = Fit(output);
    if (elements.empty()) return {.use = otherwise};
    const Use use = UseOf(elements);
    return {.use = use, .elements = std::move(elements)};
  }

  void Visit(NodeId id, const Node& node) {
    const OpRow* row = FindOp(node.op);
    if (node.op == "If") return VisitIf(node);
    const bool of_shapes = node.op == "Shape" || node.op == "Size";
    const bool derived = of_shapes || (row != nullptr && !row->Has(kNoFold) &&
                                       absl::c_all_of(node.inputs, [&](ValueId input) {
                                         return input == kNone || FlowOf(input).use != Use::kData;
                                       }));
    if (!derived) return Judge(node, row);
    for (const ValueId output : node.outputs) {
      if (output != kNone)
        flows_[output] = of_shapes ? OfShape(node, output) : Derive(id, node, output);
    }
  }

  void VisitIf(const Node& node) {
    const SizeFlow& condition = In(node, 0);
    const bool known = condition.elements.size() == 1 && condition.elements[0].is_constant();
    if (!known) {
      if (condition.use >= Use::kEven) {
        Note(Verdict::kMixes, node, condition.chooser, "takes a branch");
      }
      return;  // Its results are data.
    }
    const size_t results = node.inputs.size() / 2;
    const bool taken = condition.elements[0].At(low_) != 0;
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i] != kNone) {
        alias_[node.outputs[i]] = node.inputs[1 + i + (taken ? 0 : results)];
      }
    }
  }

  // A node that computes with data: what of its operands do sizes decide?
  void Judge(const Node& node, const OpRow* row) {
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const SizeFlow& flow = In(node, i);
      if (flow.use < Use::kSteps) continue;
      const bool shapes = row != nullptr && row->IsValueInput(i);
      const bool steps = flow.use == Use::kSteps;
      Note(steps && shapes ? Verdict::kUndecided : Verdict::kMixes, node, flow.chooser,
           shapes ? "has a shape" : "computes with a number");
    }
  }

  SizeFlow OfShape(const Node& node, ValueId output) const {
    const SizeFlow& of = In(node, 0);
    if (of.use == Use::kChosen) return of;
    return Fitted(output, Use::kSteps);
  }

  SizeFlow Derive(NodeId id, const Node& node, ValueId output) const {
    const OpRow* row = FindOp(node.op);
    Use most = Use::kFixed;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const SizeFlow& flow = In(node, i);
      if (flow.use == Use::kChosen) return flow;
      // What a shape follows decides how many elements there are, not what they hold.
      const bool counts = !row->IsValueInput(i) || flow.use == Use::kSteps;
      if (counts) most = std::max(most, flow.use);
    }
    if (IsComparison(node.op)) {
      if (auto decided = Decide(node)) return {.use = Use::kFixed, .elements = *std::move(decided)};
      return most == Use::kFixed ? SizeFlow{.use = most} : Chosen(id);
    }
    if (node.op == "Where") return DeriveWhere(node, output, most);
    if (node.op == "Cast") return DeriveCast(id, node, output, most);
    if (node.op == "Range") {
      // Where it ends decides how long it is alone.
      return {.use = std::max({In(node, 0).use, In(node, 2).use, most})};
    }
    if (node.op == "ConstantOfShape")
      return Fitted(output, most == Use::kSteps ? most : Use::kFixed);
    if (IsEven(node.op)) return DeriveEven(id, node, output, most);
    if (most == Use::kFixed) return DeriveFixed(id, node, output);
    if (node.op == "Min" || node.op == "Max") {
      const bool wins =
          node.inputs.size() == 1 ||
          (node.inputs.size() == 2 && OneWins(node.inputs[0], node.inputs[1], output));
      return wins ? Fitted(output, most) : Chosen(id);
    }
    if (node.op == "Clip") {
      for (size_t i = 1; i < node.inputs.size(); ++i) {
        const bool wins =
            node.inputs[i] == kNone || OneWins(node.inputs[0], node.inputs[i], output);
        if (!wins) return Chosen(id);
      }
      return Fitted(output, most);
    }
    if (node.op == "Div" || node.op == "Mod") return DeriveQuotient(id, node, output, most);
    if (node.op == "Floor" || node.op == "Ceil" || node.op == "Round") {
      const Elements& from = In(node, 0).elements;
      const bool whole = !from.empty() &&
                         absl::c_all_of(from, [](const SizePolynomial& p) { return p.is_whole(); });
      return whole ? Fitted(output, most) : SizeFlow{.use = Use::kSteps};
    }
    if (node.op == "Abs") {
      const Elements& from = In(node, 0).elements;
      const bool known = !from.empty() && absl::c_all_of(from, [&](const SizePolynomial& p) {
        const auto [least, largest] = RangeOf(p);
        return least >= 0 || largest <= 0;
      });
      return known ? Fitted(output, most) : Chosen(id);
    }
    const bool smooth = IsSmooth(node.op) && most == Use::kEven;
    return smooth ? SizeFlow{.use = Use::kEven} : Chosen(id);
  }

  SizeFlow DeriveWhere(const Node& node, ValueId output, Use most) const {
    const SizeFlow& condition = In(node, 0);
    if (condition.elements.empty() || !AllKnown(node, *this)) return {.use = most};
    const bool constant = absl::c_all_of(
        condition.elements, [](const SizePolynomial& one) { return one.is_constant(); });
    return constant ? Fitted(output, most) : SizeFlow{.use = most};
  }

  SizeFlow DeriveCast(NodeId id, const Node& node, ValueId output, Use most) const {
    const SizeFlow& from = In(node, 0);
    if (most == Use::kFixed) {
      return from.elements.empty() ? SizeFlow{.use = most} : Fitted(output, most);
    }
    const auto to = static_cast<int64_t>(node.attributes.Int("to", 0));
    constexpr int64_t kBool = 9, kFloats[] = {1, 10, 11, 16};
    if (to == kBool) {
      Elements results;
      for (const SizePolynomial& one : from.elements) {
        const auto [least, largest] = RangeOf(one);
        if (least <= 0 && largest >= 0) return Chosen(id);
        results.push_back(SizePolynomial::Constant(axes_, 1));
      }
      return results.empty() ? Chosen(id)
                             : SizeFlow{.use = Use::kFixed, .elements = std::move(results)};
    }
    if (absl::c_linear_search(kFloats, to)) return Fitted(output, most);
    const bool whole =
        !from.elements.empty() &&
        absl::c_all_of(from.elements, [](const SizePolynomial& one) { return one.is_whole(); });
    if (whole) return Fitted(output, most);
    const Tensor* any = AnySample(Resolved(node.input(0)));
    return {.use = any != nullptr && IsFloating(any->dtype()) ? Use::kSteps : most};
  }

  const Tensor* AnySample(ValueId id) const {
    if (id == kNone) return nullptr;
    if (graph_.value(id).kind == Value::Kind::kConstant) return &graph_.value(id).constant;
    const std::optional<Tensor>& constant = question_.samples[0].constants[id];
    return constant.has_value() ? &*constant : nullptr;
  }

  SizeFlow DeriveQuotient(NodeId id, const Node& node, ValueId output, Use most) const {
    // What steps by the divisor leaves the same rest at every size.
    const auto divides = [&](const SizePolynomial& a, const SizePolynomial& b) {
      if (!b.is_constant()) return a.MultipleOf(b).has_value();
      return RangeOf(a).first >= 0 && b.At(low_) > 0 && a.StepsBy(b.At(low_));
    };
    const bool exact = ForEachPair(node.input(0), node.input(1), output, divides);
    const Tensor* any = AnySample(Resolved(node.input(0)));
    const bool floats = any != nullptr && IsFloating(any->dtype());
    if (node.op == "Div" && floats) {
      const SizeFlow& by = In(node, 1);
      const bool straight = by.use == Use::kFixed && !by.elements.empty() &&
                            AxesOf(by.elements) == 0 && AllKnown(node, *this);
      return straight ? Fitted(output, most) : SizeFlow{.use = most};
    }
    if (exact) return Fitted(output, most);
    return node.op == "Div" ? SizeFlow{.use = Use::kSteps} : Chosen(id);
  }

  // Sums, products, copies.
  SizeFlow DeriveEven(NodeId id, const Node& node, ValueId output, Use most) const {
    bool straight = AllKnown(node, *this);
    if (node.op == "Mul") {
      straight = straight && (AxesOf(In(node, 0).elements) & AxesOf(In(node, 1).elements)) == 0;
    }
    if (node.op == "ReduceProd") {
      size_t seen = 0;
      for (const SizePolynomial& one : In(node, 0).elements) {
        straight = straight && (seen & one.axes()) == 0;
        seen |= one.axes();
      }
    }
    if (straight) {
      SizeFlow flow = Fitted(output, most);
      if (!flow.elements.empty()) {
        // Which number is looked up, or where a table is cut, by a size: that is a choice.
        if (PlaceFollowsSize(node) && flow.use == Use::kEven) return Chosen(id);
        if (PlaceFollowsSize(node) && AxesOf(In(node, 0).elements) == 0) return Chosen(id);
        return flow;
      }
    }
    if (PlaceFollowsSize(node)) return Chosen(id);
    const bool reduces = node.op == "ReduceSum" || node.op == "ReduceProd";
    if (reduces && AnyVaries(node)) return Chosen(id);
    if (most != Use::kFixed || !AnyVaries(node)) return {.use = most};
    return {.use = KeepsPlaces(node, output) ? Use::kFixed : Use::kEven};
  }

  bool PlaceFollowsSize(const Node& node) const {
    if (node.op == "Gather") return In(node, 1).use >= Use::kEven;
    if (node.op == "Slice") return In(node, 1).use >= Use::kEven || In(node, 4).use >= Use::kEven;
    return false;
  }

  // The elements at the first places stay there, however long the axis is.
  bool KeepsPlaces(const Node& node, ValueId output) const {
    const auto dims = VaryingDims(node.input(0));
    if (!dims || !VaryingDims(output)) return false;
    const auto integers = [&](size_t i) -> std::vector<double> {
      const Tensor* tensor = AnySample(Resolved(node.input(i)));
      return tensor == nullptr ? std::vector<double>() : tensor->ToDoubles();
    };
    const auto negative = [](double value) { return value < 0; };
    if (node.op == "Slice") {
      return !absl::c_any_of(integers(1), negative) && !absl::c_any_of(integers(4), negative);
    }
    if (node.op == "Gather") {
      const auto rank = static_cast<int64_t>(LowShape(node.input(0))->size());
      int64_t dim = node.attributes.Int("axis", 0);
      if (dim < 0) dim += rank;
      // Places in a table that does not grow are places; those in one that grows must not be
      // counted from its end.
      return !absl::c_linear_search(*dims, static_cast<size_t>(dim)) ||
             !absl::c_any_of(integers(1), negative);
    }
    if (node.op == "Concat") {
      const auto rank = static_cast<int64_t>(LowShape(node.input(0))->size());
      int64_t dim = node.attributes.Int("axis", 0);
      if (dim < 0) dim += rank;
      for (size_t i = 0; i + 1 < node.inputs.size(); ++i) {
        const auto varying = VaryingDims(node.inputs[i]);
        if (!varying || absl::c_linear_search(*varying, static_cast<size_t>(dim))) return false;
      }
      return true;
    }
    if (node.op == "Reshape" || node.op == "Flatten" || node.op == "Squeeze" ||
        node.op == "Unsqueeze") {
      return Places(node.input(0)) == Places(output);
    }
    return node.op != "ReduceSum" && node.op != "ReduceProd";
  }

  // Of what does not depend on the size, but may be as long.
  SizeFlow DeriveFixed(NodeId id, const Node& node, ValueId output) const {
    const SizeFlow fixed = {.use = Use::kFixed};
    bool constants = AllKnown(node, *this);
    for (const ValueId input : node.inputs) {
      constants = constants && AxesOf(FlowOf(input).elements) == 0;
    }
    if (constants) return Fitted(output, Use::kFixed);
    if (FindOp(node.op)->Has(kElementwise) || !AnyVaries(node)) return fixed;
    const bool reduces = absl::StartsWith(node.op, "Reduce") || absl::StartsWith(node.op, "Arg") ||
                         node.op == "TopK" || node.op == "Softmax";
    const auto from = VaryingDims(node.input(0)), to = VaryingDims(output);
    if (!from || !to) return Chosen(id);
    if (reduces) return from->size() == to->size() && node.op != "TopK" ? fixed : Chosen(id);
    if (node.op == "MatMul") {
      const auto rank = LowShape(node.input(0))->size();
      return absl::c_linear_search(*from, rank - 1) ? Chosen(id) : fixed;
    }
    if (node.op == "Einsum") {
      size_t varying = 0;
      for (const ValueId input : node.inputs) varying += VaryingDims(input).value_or(*from).size();
      return varying == to->size() ? fixed : Chosen(id);
    }
    if (node.op == "CumSum") return node.attributes.Int("reverse", 0) == 0 ? fixed : Chosen(id);
    if (node.op == "NonZero") {
      const Node* producer = graph_.ProducerIf(Resolved(node.input(0)), "ConstantOfShape");
      return producer != nullptr ? fixed : Chosen(id);
    }
    static const auto* const kKeepPlaces = new std::set<absl::string_view>{
        "Trilu",    "EyeLike",        "OneHot",           "ScatterND", "ScatterElements",
        "GatherND", "GatherElements", "DequantizeLinear", "CastLike",  "Dropout"};
    return kKeepPlaces->contains(node.op) ? fixed : Chosen(id);
  }

  void Note(Verdict verdict, const Node& node, NodeId chooser, absl::string_view what,
            Use use = Use::kSteps) {
    if (verdict <= finding_.verdict) return;
    finding_ = {verdict, AxisNodeName(graph_, node),
                chooser == kNone
                    ? absl::StrCat(what, " that follows ", use == Use::kEven ? "" : "in steps ",
                                   "the size of ", question_.axis)
                    : absl::StrCat(what, " that ", AxisNodeName(graph_, graph_.node(chooser)),
                                   " decides by the size of ", question_.axis)};
  }

  const SizeQuestion& question_;
  const Graph& graph_;
  const size_t axes_;
  std::vector<int64_t> low_, high_;
  std::vector<SizeFlow> flows_;  // by value
  std::vector<ValueId> alias_;   // of an If's results: those of the branch that is taken
  AxisFinding finding_;
};

}  // namespace

bool MayHoldSizeChoices(const Graph& graph) {
  bool sizes = false, order = false;
  for (const NodeId id : graph.NodeIds()) {
    const std::string& op = graph.node(id).op;
    sizes = sizes || op == "Shape" || op == "Size";
    order = order || LooksForOrder(op);
  }
  return sizes && order;
}

AxisFinding FindSizeChoices(const SizeQuestion& question) {
  const size_t axes = question.largest.size();
  const bool enough =
      axes <= SizePolynomial::kMaxAxes && question.samples.size() >= (size_t{1} << axes);
  if (enough) return SizeWalk(question).Run();
  return {Verdict::kUndecided, "the model", "may decide something by the size of " + question.axis};
}

}  // namespace reprise
