#include "runtime/device/cpu/plan/plan.h"

#include "absl/strings/str_cat.h"
#include "runtime/graph/graph.h"

namespace reprise::cpu {

NodeView::NodeView(const Graph& graph, NodeId id) : graph_(graph), node_(graph.node(id)) {}

bool NodeView::output_is_used(size_t i) const {
  const ValueId id = node_.output(i);
  return id != kNone && (!graph_.value(id).users.empty() || graph_.IsOutput(id));
}

DType NodeView::dtype(size_t i) const {
  return has_input(i) ? graph_.value(node_.inputs[i]).dtype : DType::kUndefined;
}

const Shape& NodeView::shape(size_t i) const { return *graph_.value(node_.inputs[i]).shape; }

DType NodeView::out_dtype(size_t i) const { return graph_.value(node_.outputs[i]).dtype; }

const Shape& NodeView::out_shape(size_t i) const { return *graph_.value(node_.outputs[i]).shape; }

bool NodeView::is_parameter(size_t i) const {
  return has_input(i) && graph_.value(node_.inputs[i]).kind == Value::Kind::kParameter;
}

ParameterExprPtr NodeView::parameter(size_t i) const {
  return is_parameter(i) ? graph_.value(node_.inputs[i]).parameter : nullptr;
}

const Tensor* NodeView::constant(size_t i) const { return graph_.ConstantOf(node_.input(i)); }

int64_t NodeView::batch_rows() const {
  return has_output(0) ? graph_.value(node_.outputs[0]).batch_rows : 0;
}

bool NodeView::AllOf(DType wanted) const {
  for (const std::vector<ValueId>* values : {&node_.inputs, &node_.outputs}) {
    for (ValueId id : *values) {
      if (id != kNone && graph_.value(id).dtype != wanted) return false;
    }
  }
  return true;
}

double NodeView::OperandBytes() const {
  double bytes = 0;
  for (const std::vector<ValueId>* values : {&node_.inputs, &node_.outputs}) {
    for (ValueId id : *values) {
      if (id == kNone) continue;
      const Value& value = graph_.value(id);
      bytes += static_cast<double>(NumElements(*value.shape)) *
               static_cast<double>(DTypeSize(value.dtype));
    }
  }
  return bytes;
}

double NodeView::ParameterBytes() const {
  double bytes = 0;
  for (size_t i = 0; i < num_inputs(); ++i) {
    if (!is_parameter(i)) continue;
    bytes += static_cast<double>(NumElements(shape(i))) * static_cast<double>(DTypeSize(dtype(i)));
  }
  return bytes;
}

Candidate MakeCandidate(const CpuTarget& target, const NodeView& node, absl::string_view name,
                        KernelFn run, std::shared_ptr<const void> params, double flops) {
  Candidate candidate;
  candidate.option.kernel = absl::StrCat(name, "_", IsaName(FloatTier(target.isa)));
  candidate.bound.run = run;
  candidate.bound.params = std::move(params);
  candidate.bound.work = {
      .flops = flops, .bytes = node.OperandBytes(), .weight_bytes = node.ParameterBytes()};
  // Rough rates of one core of a server: only the order of options depends on them.
  candidate.option.estimate_ns = flops / 100 + candidate.bound.work.bytes / 10;
  for (size_t i = 0; i < node.num_inputs(); ++i) {
    if (!node.has_input(i)) continue;
    absl::StrAppend(&candidate.bound.detail, i == 0 ? "" : ", ", ShapeToString(node.shape(i)));
  }
  // Recurrent layers may have no first output.
  size_t first = 0;
  while (first < node.num_outputs() && !node.has_output(first)) ++first;
  if (first < node.num_outputs()) {
    absl::StrAppend(&candidate.bound.detail, " -> ", ShapeToString(node.out_shape(first)));
  }
  return candidate;
}

}  // namespace reprise::cpu
