// Values of float16 and bfloat16 become float32: the arithmetic is the same that their kernels
// would do, but float32's kernels and fusions serve it. Weights are widened by the prepare program,
// inputs and outputs keep their dtype after one Cast each.
//
// A Cast to half still rounds where its exact result matters: where it is an output or, at most
// moved, cast to another dtype or compared. Arithmetic in half reads the operand of the Cast
// itself, since its own rounding is up to the implementation.
#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "runtime/base/hash_map.h"
#include "runtime/base/status_macros.h"
#include "runtime/graph/graph.h"
#include "runtime/ops/elementwise/activation_op.h"
#include "runtime/ops/elementwise/select.h"
#include "runtime/ops/elementwise/select_op.h"
#include "runtime/ops/kit/onnx_types.h"
#include "runtime/ops/kit/op.h"
#include "runtime/ops/kit/op_facts.h"
#include "runtime/ops/result_types.h"
#include "runtime/passes/kit/rewrite.h"
#include "runtime/passes/simplify/simplify_passes.h"

namespace reprise {
namespace {

bool IsHalf(DType dtype) { return dtype == DType::kFloat16 || dtype == DType::kBFloat16; }
bool IsHalfNumber(int64_t number) {
  const absl::StatusOr<DType> dtype = ops::DTypeFromOnnx(number);
  return dtype.ok() && IsHalf(*dtype);
}

bool IsCast(const Node& node) { return node.op == CastOp::kName || node.op == CastLikeOp::kName; }

bool IsMovement(const Node& node) {
  const OpRow* row = FindOp(node.op);
  return row != nullptr && !row->Has(kDataDependent) && FactsOf(*row).OnlyMoves();
}

// Returns whether every number of it is one of either half.
bool IsExactInHalf(DType dtype) {
  return dtype == DType::kBool || dtype == DType::kInt8 || dtype == DType::kUInt8;
}

class Widening {
 public:
  explicit Widening(Graph& graph) : graph_(graph), types_(ResultTypes(graph)) {}

  absl::StatusOr<bool> Run() {
    if (absl::c_none_of(types_, IsHalf)) return false;
    std::vector<DType> outputs;
    for (const ValueId output : graph_.outputs()) outputs.push_back(types_[output]);
    const std::vector<NodeId> nodes = graph_.NodeIds();
    closely_.resize(graph_.num_nodes());
    for (auto it = nodes.rbegin(); it != nodes.rend(); ++it) closely_[*it] = LooksClosely(*it);
    for (const NodeId id : nodes) RETURN_IF_ERROR(Rewrite(id));
    RETURN_IF_ERROR(NarrowOutputs(outputs));
    return changed_;
  }

 private:
  // Returns the dtype in the model; a value that this pass added has its own.
  DType TypeOf(ValueId id) const {
    return id < static_cast<ValueId>(types_.size()) ? types_[id] : graph_.value(id).dtype;
  }
  bool IsHalfValue(ValueId id) const { return id != kNone && IsHalf(TypeOf(id)); }

  bool LooksClosely(NodeId id) const {
    const Node& node = graph_.node(id);
    if (FactsOf(node.op).Is(kHangsOnLastBit)) return true;
    const ValueId output = node.output(0);
    if (IsCast(node)) return output != kNone && !IsHalf(types_[output]);
    return IsMovement(node) && absl::c_any_of(node.outputs, [&](ValueId moved) {
             return moved != kNone && absl::c_any_of(graph_.value(moved).users,
                                                     [&](NodeId user) { return closely_[user]; });
           });
  }

  // Returns a Cast of `value`: one that is there, or a new one.
  absl::StatusOr<ValueId> CastTo(ValueId value, DType dtype) {
    const int64_t number = ops::OnnxNumber(dtype);
    for (const NodeId user : graph_.value(value).users) {
      const Node& node = graph_.node(user);
      if (node.op == CastOp::kName && node.attributes.Int("to", 0) == number)
        return node.outputs[0];
    }
    const NodeId id = graph_.AddNode(CastOp::kName, {value}, {{"to", number}});
    changed_ = true;
    if (graph_.value(value).shape.has_value()) RETURN_IF_ERROR(InferNode(graph_, id));
    const ValueId result = graph_.node(id).outputs[0];
    graph_.value(result).dtype = dtype;
    return result;
  }
  absl::StatusOr<ValueId> ToFloat(ValueId value) { return CastTo(value, DType::kFloat32); }

  absl::StatusOr<ValueId> CastWeight(ValueId value, DType dtype, const Shape& shape) {
    return AddWeight(graph_, CastOp::kName, {{"to", ops::OnnxNumber(dtype)}}, {value}, dtype,
                     shape);
  }

  // Returns the operand in float32 of a Cast to half, as the arithmetic after it reads it.
  absl::StatusOr<ValueId> WideSource(const Node& cast) {
    const ValueId source = cast.inputs[0];
    if (IsHalfValue(source)) return Wide(source, /*rounded=*/false);
    if (TypeOf(source) == DType::kFloat32 && KnownConstant(graph_, source) == nullptr) {
      return source;
    }
    if (!IsWeight(graph_, source)) return ToFloat(source);
    // A constant is replaced by the result of the Cast.
    const Shape shape = *graph_.value(source).shape;
    const DType half = TypeOf(cast.outputs[0]);
    ASSIGN_OR_RETURN(const ValueId stored, CastWeight(source, half, shape));
    return CastWeight(stored, DType::kFloat32, shape);
  }

  // `value`, which the model has in half, in float32; with `rounded`, with the numbers that half
  // has.
  absl::StatusOr<ValueId> Wide(ValueId value, bool rounded) {
    auto& known = rounded ? rounded_ : wide_;
    if (const auto it = known.find(value); it != known.end()) return it->second;
    ASSIGN_OR_RETURN(const ValueId made, MakeWide(value, rounded));
    known[value] = made;
    return made;
  }

  absl::StatusOr<ValueId> MakeWide(ValueId value, bool rounded) {
    if (IsWeight(graph_, value)) {
      changed_ = true;
      return CastWeight(value, DType::kFloat32, *graph_.value(value).shape);
    }
    const NodeId producer = ProducerOf(graph_, value);
    if (producer == kNone) return ToFloat(value);
    const Node& node = graph_.node(producer);
    if (!IsCast(node)) return value;  // It was computed in float32.
    const ValueId source = node.inputs[0];
    if (rounded && !IsWeight(graph_, source) && !IsExactInHalf(TypeOf(source))) {
      return ToFloat(value);
    }
    return WideSource(node);
  }

  absl::Status Rewrite(NodeId id) {
    const ValueId output = graph_.node(id).output(0);
    if (IsCast(graph_.node(id)) && output != kNone) {
      return IsHalfValue(output) ? RewriteNarrowing(id) : RewriteCast(id);
    }
    if (graph_.node(id).op == ClipOp::kName) BoundClip(id);
    const bool closely = closely_[id];
    for (size_t i = 0; i < graph_.node(id).inputs.size(); ++i) {
      const ValueId input = graph_.node(id).inputs[i];
      if (!IsHalfValue(input)) continue;
      ASSIGN_OR_RETURN(const ValueId wide, Wide(input, closely));
      SetInput(id, i, wide);
    }
    for (const ValueId result : graph_.node(id).outputs) {
      if (!IsHalfValue(result)) continue;
      changed_ = true;
      if (IsHalf(graph_.value(result).dtype)) graph_.value(result).dtype = DType::kFloat32;
    }
    WidenAttributes(graph_.node(id).attributes);
    return absl::OkStatus();
  }

  // Bounds of a Clip of half that are left out are the largest numbers of half.
  void BoundClip(NodeId id) {
    const DType dtype = TypeOf(graph_.node(id).inputs[ClipOp::kX]);
    if (!IsHalf(dtype)) return;
    const float largest = ops::LargestHalf(dtype);
    for (const auto& [input, bound] :
         {std::pair(ClipOp::kLow, -largest), std::pair(ClipOp::kHigh, largest)}) {
      if (graph_.node(id).input(input) != kNone) continue;
      SetInput(id, input, graph_.AddConstant("bound", Tensor::FloatScalar(bound)));
    }
  }

  // Casts to half: the readers of the result decide which form of it there will be.
  absl::Status RewriteNarrowing(NodeId id) {
    BecomeCast(id, TypeOf(graph_.node(id).outputs[0]));
    const ValueId source = graph_.node(id).inputs[0];
    if (!IsHalfValue(source)) return absl::OkStatus();
    const bool same = TypeOf(source) == TypeOf(graph_.node(id).outputs[0]);
    ASSIGN_OR_RETURN(const ValueId wide, Wide(source, /*rounded=*/!same));
    SetInput(id, 0, wide);
    return absl::OkStatus();
  }

  absl::Status RewriteCast(NodeId id) {
    const ValueId output = graph_.node(id).outputs[0];
    BecomeCast(id, TypeOf(output));
    const ValueId source = graph_.node(id).inputs[0];
    if (!IsHalfValue(source)) return absl::OkStatus();
    ASSIGN_OR_RETURN(const ValueId wide, Wide(source, /*rounded=*/true));
    if (wide == output) return absl::OkStatus();
    SetInput(id, 0, wide);
    if (TypeOf(output) == DType::kFloat32) graph_.ReplaceAllUses(output, wide);
    return absl::OkStatus();
  }

  // CastLike a half, or of one: the dtype that it means may go.
  void BecomeCast(NodeId id, DType dtype) {
    const Node& node = graph_.node(id);
    if (node.op != CastLikeOp::kName ||
        !(IsHalfValue(node.inputs[0]) || IsHalfValue(node.inputs[1]))) {
      return;
    }
    // For any other dtype, operand 1 goes on naming it.
    if (!IsHalf(dtype) && dtype != DType::kFloat32) return;
    graph_.SetInput(id, 1, kNone);
    Node& cast = graph_.node(id);
    cast.inputs.resize(1);
    cast.op = CastOp::kName;
    cast.attributes = {{"to", ops::OnnxNumber(dtype)}};
    changed_ = true;
  }

  void SetInput(NodeId id, size_t index, ValueId value) {
    if (graph_.node(id).input(index) == value) return;
    graph_.SetInput(id, index, value);
    changed_ = true;
  }

  // Widens dtypes of results, and of values in between, that a node names.
  void WidenAttributes(Attributes& attributes) {
    constexpr absl::string_view kNames[] = {"dtype", "output_dtype", "stash_type",
                                            "softmax_precision"};
    for (const absl::string_view name : kNames) {
      if (!IsHalfNumber(attributes.Int(name, 0))) continue;
      attributes.Set(name, ops::OnnxNumber(DType::kFloat32));
      changed_ = true;
    }
    const Tensor* value = attributes.Get<Tensor>("value");
    if (value == nullptr || !IsHalf(value->dtype())) return;
    const std::vector<double> elements = value->ToDoubles();
    attributes.Set("value", Tensor::Make(DType::kFloat32, value->shape(), [&](void* data) {
                     absl::c_transform(elements, static_cast<float*>(data),
                                       [](double element) { return static_cast<float>(element); });
                   }));
    changed_ = true;
  }

  // Outputs keep the dtype that the model gives them.
  absl::Status NarrowOutputs(const std::vector<DType>& wanted) {
    for (size_t i = 0; i < wanted.size(); ++i) {
      const ValueId output = graph_.outputs()[i];
      const NodeId producer = ProducerOf(graph_, output);
      if (!IsHalf(wanted[i]) || producer == kNone || IsCast(graph_.node(producer))) continue;
      ASSIGN_OR_RETURN(const ValueId narrow, CastTo(output, wanted[i]));
      graph_.SetOutput(i, narrow);
    }
    return absl::OkStatus();
  }

  Graph& graph_;
  const std::vector<DType> types_;
  std::vector<bool> closely_;  // indexed by node: half operands must be rounded to half
  HashMap<ValueId, ValueId> wide_, rounded_;
  bool changed_ = false;
};

absl::StatusOr<bool> WidenHalfIn(Graph& graph) { return Widening(graph).Run(); }

}  // namespace

std::unique_ptr<Pass> WidenHalf() { return PassOf("widen_half", WidenHalfIn); }

}  // namespace reprise
