#include "runtime/ops/kit/op.h"

#include <memory>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/memory_net.h"
#include "runtime/base/shared_bytes.h"
#include "runtime/base/status_macros.h"
#include "runtime/base/work_watch.h"
#include "runtime/graph/graph.h"
#include "runtime/graph/rank_error.h"
#include "runtime/ops/kit/element_bits.h"
#include "runtime/ops/kit/host_op.h"

namespace reprise {
namespace {

// Returns "(f32[2, 3], _, i64[1])": the operands as messages show them.
std::string OperandsText(absl::Span<const InferContext::Input> inputs) {
  return absl::StrCat("(",
                      absl::StrJoin(inputs, ", ",
                                    [](std::string* out, const InferContext::Input& input) {
                                      if (input.dtype == DType::kUndefined) {
                                        absl::StrAppend(out, "_");
                                      } else {
                                        absl::StrAppend(out, DTypeName(input.dtype),
                                                        ShapeToString(input.shape));
                                      }
                                    }),
                      ")");
}

absl::Status Annotate(const absl::Status& status, const Node& node,
                      absl::Span<const InferContext::Input> inputs) {
  return WithMessage(status,
                     absl::StrCat(NodeLabel(node), OperandsText(inputs), ": ", status.message()));
}

// Dims of a result: as many as numpy has. This bounds the work of kernels and passes for each dim.
constexpr size_t kMaxRank = 64;

absl::Status CheckCount(absl::string_view what, size_t count, int min, int max) {
  if (static_cast<int64_t>(count) >= min && (max < 0 || static_cast<int64_t>(count) <= max)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat("has ", count, " ", what, ", takes ", min, " to ",
                                                 max < 0 ? "any number" : absl::StrCat(max)));
}

// Checks arity and runs the shape rule.
absl::StatusOr<std::vector<InferContext::Output>> RunRule(
    const Node& node, absl::Span<const InferContext::Input> inputs) {
  const OpRow* row = FindOp(node.op);
  if (row == nullptr) return absl::UnimplementedError("unknown op");
  RETURN_IF_ERROR(CheckCount("inputs", inputs.size(), row->min_inputs, row->max_inputs));
  RETURN_IF_ERROR(CheckCount("outputs", node.outputs.size(), row->min_outputs, row->max_outputs));
  InferContext context(node, inputs);
  for (int i = 0; i < row->min_inputs; ++i) {
    if (!context.has_input(i)) {
      return absl::InvalidArgumentError(absl::StrCat("input ", i, " must not be left out"));
    }
  }
  try {
    RETURN_IF_ERROR(row->infer(context));
  } catch (const WorkEnded&) {
    return absl::ResourceExhaustedError("its shape depends on data, and takes too long to find");
  }
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    const InferContext::Output& output = context.outputs()[i];
    if (output.dtype == DType::kUndefined) {
      if (node.outputs[i] == kNone) continue;
      return absl::InvalidArgumentError(absl::StrCat("has no output ", i));
    }
    if (output.shape.size() > kMaxRank) {
      return absl::UnimplementedError(absl::StrCat("output ", i, " has ", output.shape.size(),
                                                   " dims, at most ", kMaxRank, " are supported"));
    }
    ASSIGN_OR_RETURN(const int64_t elements, CheckedNumElements(output.shape));
    if (elements > INT64_MAX / 8) {
      return absl::ResourceExhaustedError(
          absl::StrCat("output shape ", ShapeToString(output.shape), " overflows"));
    }
  }
  return context.outputs();
}

// Keeps the first report.
class FirstDataError : public DataErrors {
 public:
  void Report(int input, int64_t element, int64_t value, int64_t low, int64_t high) override {
    if (input_ >= 0) return;
    input_ = input;
    element_ = element;
    value_ = value;
    low_ = low;
    high_ = high;
  }
  absl::Status ToStatus() const {
    if (input_ < 0) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat("element ", element_, " of input ", input_,
                                                   " is ", value_, ", outside [", low_, ", ", high_,
                                                   "]"));
  }

 private:
  int input_ = -1;
  int64_t element_ = 0;
  int64_t value_ = 0;
  int64_t low_ = 0;
  int64_t high_ = 0;
};

// Returns whether no result has an element, so that there is nothing to compute.
bool MakesNothing(absl::Span<const MutableTensorView> outputs) {
  return absl::c_all_of(outputs, [](const MutableTensorView& output) {
    return output.dtype == DType::kUndefined || output.num_elements() == 0;
  });
}

absl::StatusOr<std::vector<Tensor>> EvaluateNode(const Node& node,
                                                 absl::Span<const std::optional<Tensor>> inputs,
                                                 int64_t max_bytes) {
  std::vector<InferContext::Input> infer_inputs(inputs.size());
  std::vector<TensorView> views(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].has_value()) continue;
    infer_inputs[i] = {inputs[i]->dtype(), SizesOf(inputs[i]->shape()), &*inputs[i]};
    views[i] = inputs[i]->view();
  }
  auto shapes = RunRule(node, infer_inputs);
  if (!shapes.ok()) return Annotate(shapes.status(), node, infer_inputs);

  std::vector<Tensor> results;
  std::vector<MutableTensorView> outputs;
  for (const InferContext::Output& output : *shapes) {
    Shape shape = HintsOf(output.shape);
    const int64_t bytes = NumElements(shape) * DTypeSize(output.dtype);
    if (bytes > max_bytes) {
      return Annotate(absl::ResourceExhaustedError(
                          absl::StrCat("its result ", DTypeName(output.dtype), ShapeToString(shape),
                                       " takes ", bytes, " bytes, the limit is ", max_bytes)),
                      node, infer_inputs);
    }
    if (output.dtype == DType::kUndefined) {
      results.emplace_back();
      outputs.emplace_back();
      continue;
    }
    std::shared_ptr<void> data = MakeSharedBytes(bytes);
    outputs.push_back({output.dtype, shape, data.get()});
    results.emplace_back(output.dtype, std::move(shape), std::move(data));
  }
  if (MakesNothing(outputs)) return results;
  FirstDataError errors;
  absl::Status status = FindOp(node.op)->reference(
      {.node = node, .inputs = views, .outputs = outputs, .errors = errors});
  if (status.ok()) status = errors.ToStatus();
  if (!status.ok()) return Annotate(status, node, infer_inputs);
  return results;
}

}  // namespace

InferContext::InferContext(const Node& node, absl::Span<const Input> inputs)
    : node_(node), inputs_(inputs), outputs_(node.outputs.size()) {}

const Shape& InferContext::pinned_shape(size_t i) const {
  pinned_shapes_.resize(inputs_.size());
  if (pinned_shapes_[i] == nullptr) {
    auto shape = std::make_unique<Shape>();
    for (const Size size : inputs_[i].shape) shape->push_back(size.Pinned());
    pinned_shapes_[i] = std::move(shape);
  }
  return *pinned_shapes_[i];
}

void InferContext::PinSizes() const {
  for (size_t i = 0; i < inputs_.size(); ++i) {
    (void)pinned_shape(i);
    (void)constant(i);
  }
}

const Tensor* InferContext::constant(size_t i) const {
  if (!has_input(i)) return nullptr;
  if (inputs_[i].constant != nullptr || inputs_[i].elements == nullptr) return inputs_[i].constant;
  pinned_values_.resize(inputs_.size());
  if (pinned_values_[i] == nullptr) {
    pinned_values_[i] = std::make_unique<Tensor>(
        TensorOfElements(dtype(i), pinned_shape(i), PinnedAll(*inputs_[i].elements)));
  }
  return pinned_values_[i].get();
}

absl::StatusOr<std::vector<Size>> InferContext::RequireSizes(size_t i) const {
  if (has_input(i) && inputs_[i].elements != nullptr && IsInteger(dtype(i))) {
    return *inputs_[i].elements;
  }
  ASSIGN_OR_RETURN(const std::vector<int64_t> numbers, RequireInt64s(i));
  return std::vector<Size>(numbers.begin(), numbers.end());
}

absl::StatusOr<std::vector<int64_t>> InferContext::RequireInt64s(size_t i) const {
  if (!has_input(i)) return absl::InvalidArgumentError(absl::StrCat("input ", i, " is left out"));
  if (constant(i) == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat("its output shape depends on data (input ", i, ")"));
  }
  return constant(i)->ToInt64s();
}

void InferContext::SetOutput(size_t i, DType dtype, SizeList shape) {
  if (i < outputs_.size()) outputs_[i] = {dtype, std::move(shape)};
}

const OpRow* FindOp(absl::string_view name) {
  // The table is not sorted: a few hundred rows, found through an index made once.
  static const auto* const index = [] {
    auto* rows = new absl::flat_hash_map<absl::string_view, const OpRow*>();
    for (const OpRow& row : AllOps()) REPRISE_CHECK(rows->emplace(row.name, &row).second);
    return rows;
  }();
  auto it = index->find(name);
  return it == index->end() ? FindRegisteredOp(name) : it->second;
}

absl::StatusOr<std::vector<InferContext::Output>> InferOutputs(
    const Node& node, absl::Span<const InferContext::Input> inputs) {
  auto outputs = RunRule(node, inputs);
  if (!outputs.ok()) return Annotate(outputs.status(), node, inputs);
  return outputs;
}

absl::Status InferNode(Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  std::vector<InferContext::Input> inputs;
  inputs.reserve(node.inputs.size());
  for (ValueId input : node.inputs) {
    InferContext::Input& item = inputs.emplace_back();
    if (input == kNone) continue;
    const Value& value = graph.value(input);
    if (value.dtype == DType::kUndefined || !value.shape.has_value()) {
      return absl::InternalError(absl::StrCat(NodeLabel(node), ": the shape of its input '",
                                              value.name, "' is not known yet"));
    }
    item = {value.dtype, SizesOf(*value.shape), graph.ConstantOf(input)};
  }
  ASSIGN_OR_RETURN(const std::vector<InferContext::Output> outputs, InferOutputs(node, inputs));
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i] == kNone) continue;
    Value& value = graph.value(node.outputs[i]);
    value.dtype = outputs[i].dtype;
    value.shape = HintsOf(outputs[i].shape);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Tensor>> Evaluate(const Node& node,
                                             absl::Span<const std::optional<Tensor>> inputs,
                                             int64_t max_bytes) {
  return WithinMemory([&] { return NodeLabel(node); },
                      [&] { return EvaluateNode(node, inputs, max_bytes); });
}

}  // namespace reprise
