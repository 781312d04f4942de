#include "runtime/passes/quantized/byte_function.h"

#include <numeric>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "runtime/graph/graph.h"
#include "runtime/ops/kit/op.h"
#include "runtime/ops/kit/op_facts.h"
#include "runtime/ops/quantized/byte_op.h"
#include "runtime/ops/quantized/byte_table.h"
#include "runtime/ops/quantized/quantize.h"
#include "runtime/ops/quantized/quantize_op.h"
#include "runtime/passes/kit/rewrite.h"
#include "runtime/passes/quantized/byte_scale.h"

namespace reprise {
namespace {

constexpr int kMostNodes = 24;
constexpr int64_t kMostBytes = 1 << 20;

// Returns all bytes, in the order of their bits.
Tensor AllBytes(DType dtype) {
  return Tensor::Make(dtype, {ops::kByteValues}, [](void* data) {
    auto* const bytes = static_cast<uint8_t*>(data);
    std::iota(bytes, bytes + ops::kByteValues, uint8_t{0});
  });
}

// The values of a graph that are computed from one value of bytes, element by element.
class OfOneByte {
 public:
  explicit OfOneByte(const Graph& graph) : graph_(graph) {}

  // Returns the results of `value` for each byte, [256], or [] where it is a known number; else
  // empty.
  std::optional<Tensor> Results(ValueId value) {
    if (const Tensor* known = KnownConstant(graph_, value); known != nullptr) {
      return known->num_elements() == 1 ? std::optional(known->Reshaped({})) : std::nullopt;
    }
    if (const auto found = results_.find(value); found != results_.end()) return found->second;
    std::optional<Tensor> results = Computed(value);
    if (results.has_value()) results_.emplace(value, *results);
    return results;
  }

  // Returns the bytes; kNone: there were none.
  ValueId source() const { return source_; }

 private:
  std::optional<Tensor> Computed(ValueId value) {
    const NodeId producer = ProducerOf(graph_, value);
    if (producer == kNone || ++nodes_ > kMostNodes) return std::nullopt;
    const Node& node = graph_.node(producer);
    const OpRow* row = FindOp(node.op);
    if (row == nullptr || row->Has(kNoFold) || node.outputs.size() != 1) return std::nullopt;
    if (ValueId bytes = kNone; Dequantised(graph_, value, bytes).has_value()) return Run(node);
    const bool by_element = row->Has(kElementwise) || node.op == FakeQuantizeOp::kName;
    if (!by_element || !IsFloat32(graph_, value)) return std::nullopt;
    return Run(node);
  }

  // Results of a value of bytes: the source itself, or one looked up by its bytes before.
  std::optional<Tensor> Bytes(ValueId value) {
    const Node* node = graph_.ProducerIf(value, ByteTableOp::kName);
    const Tensor* table = node == nullptr ? nullptr : KnownConstant(graph_, node->inputs[1]);
    if (table == nullptr) {
      if (source_ == kNone) source_ = value;
      return value == source_ ? std::optional(AllBytes(graph_.value(value).dtype)) : std::nullopt;
    }
    const std::optional<Tensor> from =
        ++nodes_ > kMostNodes ? std::nullopt : Bytes(node->inputs[0]);
    if (!from.has_value()) return std::nullopt;
    auto results = Evaluate(*node, {{from, *table}}, kMostBytes);
    return results.ok() ? std::optional((*results)[0]) : std::nullopt;
  }

  // Runs `node` over the tensors of its operands, with the shapes that these have here.
  std::optional<Tensor> Run(Node node) {
    std::vector<std::optional<Tensor>> operands;
    for (const ValueId input : node.inputs) {
      if (input == kNone) {
        operands.emplace_back();
        continue;
      }
      const bool known = KnownConstant(graph_, input) != nullptr;
      // Where shapes differ an element meets others than its own.
      if (!known && !SameShape(graph_, input, node.outputs[0])) return std::nullopt;
      const bool bytes = !known && ops::IsByte(graph_.value(input).dtype);
      operands.push_back(bytes ? Bytes(input) : Results(input));
      if (!operands.back().has_value()) return std::nullopt;
    }
    if (FactsOf(node.op).Is(kQuantises)) node.attributes.Set("axis", int64_t{0});
    auto results = Evaluate(node, operands, kMostBytes);
    if (!results.ok() || results->size() != 1) return std::nullopt;
    return std::move((*results)[0]);
  }

  const Graph& graph_;
  absl::flat_hash_map<ValueId, Tensor> results_;
  ValueId source_ = kNone;
  int nodes_ = 0;
};

}  // namespace

absl::StatusOr<ValueId> AsByteFunction(Graph& graph, const Node& quantize, ValueId floats) {
  OfOneByte of(graph);
  std::vector<std::optional<Tensor>> operands = {of.Results(floats)};
  const ValueId source = of.source();
  if (!operands[0].has_value() || source == kNone || !SameShape(graph, source, floats)) {
    return kNone;
  }
  for (size_t i = 1; i < quantize.inputs.size(); ++i) {
    operands.emplace_back();
    if (quantize.inputs[i] == kNone) continue;
    const Tensor* known = KnownConstant(graph, quantize.inputs[i]);
    if (known == nullptr || known->num_elements() != 1) return kNone;
    operands.back() = known->Reshaped({});
  }
  Node steps = quantize;
  steps.op = QuantizeLinearOp::kName;
  steps.attributes.Set("axis", int64_t{0});
  const auto results = Evaluate(steps, operands, kMostBytes);
  if (!results.ok()) return kNone;
  const Tensor& table = (*results)[0];
  if (table.shape() != Shape{ops::kByteValues} || !ops::IsByte(table.dtype())) return kNone;
  if (table == AllBytes(graph.value(source).dtype)) return source;
  return AddInferred(graph, ByteTableOp::kName, {source, graph.AddConstant("", table)}, {},
                     quantize.name);
}

}  // namespace reprise
