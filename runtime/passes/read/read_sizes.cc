#include "runtime/passes/read/read_sizes.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/graph/graph.h"
#include "runtime/ops/control/control_op.h"
#include "runtime/ops/kit/element_bits.h"
#include "runtime/ops/kit/op.h"
#include "runtime/ops/kit/op_facts.h"
#include "runtime/ops/movement/gather_op.h"
#include "runtime/passes/kit/branches.h"
#include "runtime/passes/kit/fold.h"
#include "runtime/passes/read/element_rules.h"
#include "runtime/passes/read/opaque_rules.h"
#include "runtime/shapes/dim_expression.h"

namespace reprise {
namespace {

// Constants that are folded on the way, and tables that a rule wants as a whole.
constexpr int64_t kMostFoldedBytes = 64 << 20;
constexpr int64_t kMostPinned = 1 << 20;
// All that is evaluated since a rule asks for it.
constexpr int64_t kMostPinnedBytes = 256 << 20;

bool IsConstant(absl::Span<const Size> sizes) {
  return std::all_of(sizes.begin(), sizes.end(), [](Size size) { return size.is_constant(); });
}

class Reader {
 public:
  Reader(const Graph& symbolic, SizeReading& reading)
      : graph_(symbolic),
        reading_(reading),
        table_(*reading.table),
        allowance_(graph_, kMostFoldedBytes) {}

  absl::Status BindInputs(const std::map<std::string, Size>& axes,
                          const std::map<std::string, Tensor>& shape_inputs) {
    for (const ValueId id : std::vector<ValueId>(graph_.inputs())) {
      Value& value = graph_.value(id);
      SizeList shape;
      for (const Dim& dim : value.dims) {
        const absl::StatusOr<Size> size = SizeOfDim(dim, axes);
        if (!size.ok()) {
          return absl::Status(size.status().code(),
                              absl::StrCat("input '", value.name, "': ", size.status().message()));
        }
        shape.push_back(*size);
      }
      SetShape(id, value.dtype, std::move(shape));
    }
    for (const auto& [name, tensor] : shape_inputs) {
      const ValueId id = graph_.FindValue(name);
      if (id == kNone || !reading_.values[static_cast<size_t>(id)].shape.has_value()) {
        return absl::InvalidArgumentError(
            absl::StrCat("the binding's shape input '", name, "' is no input of the model"));
      }
      SetConstant(id, tensor);
    }
    return absl::OkStatus();
  }

  void BindConstants() {
    for (ValueId id = 0; id < static_cast<ValueId>(graph_.num_values()); ++id) {
      Value& value = graph_.value(id);
      value.overridable = false;
      if (value.kind == Value::Kind::kConstant) {
        SetConstant(id, value.constant);
      } else if (value.kind == Value::Kind::kParameter) {
        SetShape(id, value.dtype, SizesOf(*value.shape));
      }
    }
  }

  absl::Status Walk() {
    if (HasBranches(graph_)) {
      listed_.assign(graph_.num_nodes(), false);
      RETURN_IF_ERROR(WalkBehind(graph_.outputs(), 0));
    } else {
      for (const NodeId id : graph_.NodeIds()) {
        if (!graph_.node(id).removed) RETURN_IF_ERROR(Visit(id));
      }
    }
    reading_.outputs = graph_.outputs();
    return absl::OkStatus();
  }

 private:
  static constexpr int kMaxDepth = 1000;

  SizeReading::Value& At(ValueId id) { return reading_.values[static_cast<size_t>(id)]; }

  // Sets a shape: the graph that is walked has constant shapes where the region has.
  void SetShape(ValueId id, DType dtype, SizeList shape) {
    graph_.value(id).dtype = dtype;
    if (IsConstant(shape)) graph_.value(id).shape = HintsOf(shape);
    if (table_.open()) {
      for (const Size size : shape) table_.AssumeNotNegative(size);
    }
    At(id).dtype = dtype;
    At(id).shape = std::move(shape);
  }

  void SetConstant(ValueId id, const Tensor& tensor) {
    At(id) = {.dtype = tensor.dtype(), .shape = SizesOf(tensor.shape()), .constant = tensor};
    Value& value = graph_.value(id);
    value.shape = tensor.shape();
    if (value.kind != Value::Kind::kConstant) graph_.ReplaceWithConstant(id, tensor);
  }

  // Returns whether its elements are sizes, one by one.
  static bool HasNumbers(const SizeReading::Value& value) {
    return value.known.has_value() && !value.known->is_table() && !value.known->opaque;
  }

  absl::Status Visit(NodeId id) {
    table_.set_origin(id);
    const Node node = graph_.node(id);
    ASSIGN_OR_RETURN(const bool folded, allowance_.Fold(graph_, id));
    if (folded) {
      for (const ValueId output : node.outputs) {
        if (output != kNone) SetConstant(output, graph_.value(output).constant);
      }
      return absl::OkStatus();
    }
    if (FactsOf(node.op).growth == Growth::kFindsOnes && FindsAll(node)) return absl::OkStatus();
    std::vector<InferContext::Input> inputs = Inputs(node);
    absl::StatusOr<std::vector<InferContext::Output>> outputs = InferOutputs(node, inputs);
    if (outputs.status().code() == absl::StatusCode::kFailedPrecondition && PinInputs(node)) {
      inputs = Inputs(node);
      outputs = InferOutputs(node, inputs);
    }
    RETURN_IF_ERROR(outputs.status());
    if (node.op == GatherOp::kName) RETURN_IF_ERROR(CheckPlaces(node));
    MarkDetermined(node);
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i] == kNone) continue;
      SetShape(node.outputs[i], (*outputs)[i].dtype, (*outputs)[i].shape);
    }
    return FindValues(node, inputs, *outputs);
  }

  std::vector<InferContext::Input> Inputs(const Node& node) {
    std::vector<InferContext::Input> inputs;
    for (const ValueId id : node.inputs) {
      InferContext::Input& input = inputs.emplace_back();
      if (id == kNone) continue;
      const SizeReading::Value& value = At(id);
      input = {.dtype = value.dtype, .shape = *value.shape, .constant = graph_.ConstantOf(id)};
      if (HasNumbers(value)) {
        input.elements = &value.known->elements;
      }
    }
    return inputs;
  }

  // Returns whether the places of the nonzero numbers in a list of one number are all of them: how
  // exporters wrote arange.
  bool FindsAll(const Node& node) {
    const SizeReading::Value& list = At(node.inputs[0]);
    if (!list.known.has_value() || !list.known->is_table() || list.shape->size() != 1 ||
        !list.known->element->is_constant()) {
      return false;
    }
    const Tensor number = TensorOfElements(list.dtype, {}, {list.known->element->hint()});
    if (number.ToDoubles()[0] == 0) return false;
    const SizeList shape = {1, (*list.shape)[0]};
    SetShape(node.outputs[0], DType::kInt64, shape);
    Keep(node.outputs[0], {.dtype = DType::kInt64, .shape = shape, .element = table_.Index(1)});
    return true;
  }

  // Notes whether a Gather reads at a known place that its data does not have.
  absl::Status CheckPlaces(const Node& node) {
    const SizeList& data = *At(node.inputs[GatherOp::kX]).shape;
    const SizeReading::Value& places = At(node.inputs[GatherOp::kPlaces]);
    std::vector<Size> known;
    if (const Tensor* constant = graph_.ConstantOf(node.inputs[GatherOp::kPlaces])) {
      ASSIGN_OR_RETURN(const std::vector<int64_t> numbers, constant->ToInt64s());
      if (numbers.empty()) return absl::OkStatus();
      const auto [least, most] = std::minmax_element(numbers.begin(), numbers.end());
      known = {*least, *most};
    } else if (HasNumbers(places)) {
      known = places.known->elements;
    }
    ASSIGN_OR_RETURN(const int64_t axis,
                     NormalizeAxis(GatherOp::From(node.attributes).axis, std::ssize(data)));
    const Size size = data[static_cast<size_t>(axis)];
    for (const Size place : known) reading_.reads_beyond |= place < -size || place >= size;
    return absl::OkStatus();
  }

  // Pins operands for a rule that asks for values without terms: results of ops over tables, for
  // the sizes at hand alone. Returns whether some operand of `node` is known so.
  bool PinInputs(const Node& node) {
    bool found = false;
    for (const ValueId id : node.inputs) {
      if (id == kNone || graph_.ConstantOf(id) != nullptr || !At(id).determined) {
        continue;
      }
      if (HasNumbers(At(id))) continue;
      found |= PinValue(id, 0);
    }
    return found;
  }

  // Makes a constant of `id`, which sizes determine, at the hints. False beyond limits.
  bool PinValue(ValueId id, int depth) {
    if (graph_.ConstantOf(id) != nullptr) return true;
    if (depth > kMaxDepth) return false;
    if (At(id).known.has_value() && !At(id).known->opaque) {
      SizeEvaluator evaluator(table_, {});
      const std::optional<Tensor> tensor = TensorAt(*At(id).known, evaluator, kMostPinned);
      if (!tensor.has_value()) return false;
      PinAll(*At(id).known);
      reading_.evaluated += static_cast<int64_t>(tensor->bytes());
      SetPinned(id, *tensor);
      return true;
    }
    if (!At(id).determined || graph_.value(id).producer == kNone) return false;
    const Node node = graph_.node(graph_.value(id).producer);
    std::vector<std::optional<Tensor>> inputs;
    for (const ValueId input : node.inputs) {
      if (input != kNone && !PinValue(input, depth + 1)) return false;
      inputs.push_back(input == kNone ? std::nullopt
                                      : std::optional<Tensor>(*graph_.ConstantOf(input)));
    }
    const int64_t left = kMostPinnedBytes - reading_.evaluated;
    const auto results = Evaluate(node, inputs, std::min(kMostFoldedBytes, left));
    if (!results.ok()) return false;
    for (const Tensor& result : *results)
      reading_.evaluated += static_cast<int64_t>(result.bytes());
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i] == id) SetPinned(id, (*results)[i]);
    }
    return true;
  }

  void SetPinned(ValueId id, const Tensor& tensor) {
    SetConstant(id, tensor);
    At(id).pinned = true;
  }

  void PinAll(const KnownValue& value) {
    for (const Size size : value.shape) PinSymbols(size);
    for (const Size size : value.elements) PinSymbols(size);
    if (value.is_table()) PinSymbols(*value.element);
  }

  // Results that follow from sizes, whether a term says how or not.
  void MarkDetermined(const Node& node) {
    const OpRow* row = FindOp(node.op);
    bool determined = row != nullptr && !row->Has(kNoFold) && !node.inputs.empty();
    for (const ValueId id : node.inputs) {
      determined =
          determined && (id == kNone || At(id).determined || graph_.ConstantOf(id) != nullptr);
    }
    for (const ValueId id : node.outputs) {
      if (id != kNone) At(id).determined = determined;
    }
  }

  void PinSymbols(Size size) {
    if (size.is_constant()) return;
    const Term& term = *size.term();
    if (term.kind == TermKind::kSymbol) (void)size.Pinned();
    for (const TermPart& part : term.parts) {
      for (const Term* atom : part.atoms) PinSymbols(Size(atom->hint, atom));
    }
    for (const Size operand : term.operands) PinSymbols(operand);
  }

  absl::Status FindValues(const Node& node, absl::Span<const InferContext::Input> inputs,
                          absl::Span<const InferContext::Output> outputs) {
    std::vector<KnownOperand> operands;
    for (const ValueId id : node.inputs) {
      KnownOperand& operand = operands.emplace_back();
      if (id == kNone) continue;
      operand.constant = graph_.ConstantOf(id);
      if (At(id).known.has_value()) operand.value = &*At(id).known;
    }
    if (table_.terms().size() > kMostTerms) return absl::OkStatus();
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i] == kNone) continue;
      const ElementContext context{table_, node, operands, inputs, outputs, i};
      if (!MayKnow(context)) continue;
      absl::StatusOr<KnownValue> value = KnownResult(context);
      if (absl::IsUnimplemented(value.status())) {
        if (!table_.open()) continue;
        value = OpaqueResult(context);
      }
      RETURN_IF_ERROR(value.status());
      // A shape is known, whatever lies in it.
      const bool of_elements = FactsOf(node.op).sizes != Sizes::kOfShape;
      for (const KnownOperand& operand : operands) {
        value->opaque |= of_elements && operand.value != nullptr && operand.value->opaque;
      }
      Keep(node.outputs[i], *std::move(value));
    }
    return absl::OkStatus();
  }

  void Keep(ValueId id, KnownValue value) {
    if (!value.is_table() && IsConstant(value.elements)) {
      std::vector<int64_t> numbers;
      for (const Size element : value.elements) numbers.push_back(element.hint());
      SetConstant(id, TensorOfElements(value.dtype, HintsOf(value.shape), numbers));
    } else {
      At(id).known = std::move(value);
      At(id).determined = true;
    }
  }

  absl::Status VisitIf(NodeId id, int depth) {
    table_.set_origin(id);
    const Node node = graph_.node(id);
    const std::string label = NodeLabel(node);
    Size condition;
    const SizeReading::Value& value = At(node.input(0));
    if (const Tensor* known = KnownCondition(graph_, id); known != nullptr) {
      ASSIGN_OR_RETURN(const std::vector<int64_t> elements, known->ToInt64s());
      condition = elements[0];
    } else if (HasNumbers(value) && value.known->elements.size() == 1) {
      condition = value.known->elements[0];
    } else if (PinInputs(node) && KnownCondition(graph_, id) != nullptr) {
      condition = ElementBits(DType::kBool, KnownCondition(graph_, id)->data(), 0);
    } else {
      return graph_.ConstantOf(node.input(0)) == nullptr
                 ? absl::FailedPreconditionError(
                       absl::StrCat(label, ": its condition depends on data"))
                 : absl::InvalidArgumentError(
                       absl::StrCat(label, ": its condition is not one bool"));
    }
    const bool taken = condition != 0;
    RETURN_IF_ERROR(WalkBehind(BranchTaken(graph_, id, taken), depth + 1));
    TakeBranch(graph_, id, taken);
    return absl::OkStatus();
  }

  // Walks the nodes that `values` need and that were not walked yet, as Specialize does.
  absl::Status WalkBehind(const std::vector<ValueId>& values, int depth) {
    if (depth > kMaxDepth) return absl::InvalidArgumentError("If nodes nest too deeply");
    std::vector<NodeId> nodes;
    std::vector<ValueId> stack = values;
    while (!stack.empty()) {
      const NodeId id = stack.back() == kNone ? kNone : graph_.value(stack.back()).producer;
      stack.pop_back();
      if (id == kNone || listed_[static_cast<size_t>(id)]) continue;
      listed_[static_cast<size_t>(id)] = true;
      nodes.push_back(id);
      const std::vector<ValueId>& inputs = graph_.node(id).inputs;
      if (graph_.node(id).op == IfOp::kName) {
        stack.push_back(inputs[0]);
      } else {
        stack.insert(stack.end(), inputs.begin(), inputs.end());
      }
    }
    std::sort(nodes.begin(), nodes.end());
    for (const NodeId id : nodes) {
      if (graph_.node(id).removed) continue;
      RETURN_IF_ERROR(graph_.node(id).op == IfOp::kName ? VisitIf(id, depth) : Visit(id));
    }
    return absl::OkStatus();
  }

  // A model whose tables make more terms than this is read without the values that are left.
  static constexpr size_t kMostTerms = 1 << 18;

  Graph graph_;
  SizeReading& reading_;
  SizeTable& table_;
  FoldAllowance allowance_;
  std::vector<bool> listed_;
};

}  // namespace

absl::Status ReadSizes(const Graph& symbolic, const std::map<std::string, Size>& axes,
                       const std::map<std::string, Tensor>& shape_inputs, SizeReading& reading) {
  reading.values.resize(symbolic.num_values());
  Reader reader(symbolic, reading);
  reader.BindConstants();
  RETURN_IF_ERROR(reader.BindInputs(axes, shape_inputs));
  return reader.Walk();
}

absl::StatusOr<SizeReading> ReadSizes(const Graph& symbolic, const Binding& hint) {
  SizeReading reading{.table = std::make_unique<SizeTable>()};
  RETURN_IF_ERROR(ReadSizes(symbolic, hint, reading));
  return reading;
}

absl::Status ReadSizes(const Graph& symbolic, const Binding& hint, SizeReading& reading) {
  std::map<std::string, Size> axes;
  for (const auto& [name, size] : hint.axes) axes.emplace(name, reading.table->Symbol(name, size));
  return ReadSizes(symbolic, axes, hint.shape_inputs, reading);
}

}  // namespace reprise
