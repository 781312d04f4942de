#include "runtime/lazy/trace.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/memory_net.h"
#include "runtime/base/shared_bytes.h"
#include "runtime/base/status_macros.h"
#include "runtime/graph/parameter_expr.h"
#include "runtime/lazy/numbers.h"
#include "runtime/ops/kit/host_op.h"
#include "runtime/ops/kit/op.h"

namespace reprise::lazy {
namespace {

// Kernels may load a vector that begins at the last element.
constexpr size_t kRoomBehind = 64;
// The largest value that one op makes by itself.
constexpr int64_t kMostResultBytes = int64_t{4} << 30;

absl::Status Located(const absl::Status& status, absl::string_view op, const SourceLocation& at) {
  return absl::Status(status.code(), absl::StrCat(op, " ", PlaceText(at), ": ", status.message()));
}

absl::Status NotDuringCapture(absl::string_view what, const SourceLocation& at,
                              absl::string_view way_out) {
  return absl::FailedPreconditionError(
      absl::StrCat(what, " is not supported during capture, ", PlaceText(at), ": ", way_out));
}

reprise::Tensor TensorOf(const TracedValue& value) {
  if (value.parameter.has_value()) return *value.parameter;
  return reprise::Tensor(value.dtype, value.shape, value.bytes);
}

reprise::Tensor Copied(const reprise::Tensor& tensor) {
  return reprise::Tensor::Make(tensor.dtype(), tensor.shape(), [&](void* to) {
    if (tensor.bytes() > 0) std::memcpy(to, tensor.data(), tensor.bytes());
  });
}

std::vector<Dim> DimsOf(const Shape& shape) {
  std::vector<Dim> dims;
  for (const int64_t size : shape) dims.push_back({.size = size});
  return dims;
}

// Returns dtypes and shapes of the results, by the op's rule.
absl::StatusOr<std::vector<std::pair<DType, Shape>>> Infer(const TracedOp& op, size_t results) {
  const OpRow* row = FindOp(op.op);
  Graph graph;
  std::vector<ValueId> inputs;
  for (size_t i = 0; i < op.operands.size(); ++i) {
    const TracedValue* operand = op.operands[i].get();
    if (operand == nullptr) {
      inputs.push_back(kNone);
      continue;
    }
    const bool known = operand->is_constant || (row->IsValueInput(i) && operand->has_bytes());
    const ValueId id = known ? graph.AddConstant("", TensorOf(*operand))
                             : graph.AddInput("", operand->dtype, DimsOf(operand->shape));
    if (!known) graph.value(id).shape = operand->shape;
    inputs.push_back(id);
  }
  const NodeId node = graph.AddNode(op.op, std::move(inputs), op.attributes, results);
  RETURN_IF_ERROR(InferNode(graph, node));
  std::vector<std::pair<DType, Shape>> types;
  for (const ValueId id : graph.node(node).outputs) {
    types.emplace_back(graph.value(id).dtype, *graph.value(id).shape);
  }
  return types;
}

}  // namespace

std::string PlaceText(const SourceLocation& at) {
  const absl::string_view file = at.file_name();
  const size_t slash = file.rfind('/');
  return absl::StrCat("at ", slash == absl::string_view::npos ? file : file.substr(slash + 1), ":",
                      at.line());
}

std::shared_ptr<std::byte> NewBytes(size_t bytes) {
  auto buffer = std::make_shared<AlignedBuffer>(std::max<size_t>(bytes, 1) + kRoomBehind);
  std::byte* const data = buffer->data();
  return std::shared_ptr<std::byte>(std::move(buffer), data);
}

Tensor TensorHandle::Wrap(const TracedValuePtr& value) {
  std::shared_ptr<TensorHandle> handle = value->handle.lock();
  if (handle == nullptr) {
    handle = std::make_shared<TensorHandle>(TensorHandle{value});
    value->handle = handle;
  }
  return Tensor(std::move(handle));
}

const TracedValuePtr& TensorHandle::Of(const Tensor& tensor) {
  static const TracedValuePtr kNone;
  return tensor.handle_ == nullptr ? kNone : tensor.handle_->value;
}

TracedGraph GraphOf(const std::vector<TracedValuePtr>& wanted, const GraphOptions& options) {
  std::map<int64_t, const TracedOp*> ops;  // keyed by number: operands come first
  std::vector<const TracedOp*> stack;
  const auto visit = [&](const TracedValuePtr& value) {
    if (value == nullptr || value->has_bytes() || value->made_by == nullptr) return;
    const TracedOp* op = value->made_by.get();
    if (ops.emplace(op->number, op).second) stack.push_back(op);
  };
  for (const TracedValuePtr& value : wanted) visit(value);
  while (!stack.empty()) {
    const TracedOp* op = stack.back();
    stack.pop_back();
    for (const TracedValuePtr& operand : op->operands) visit(operand);
  }

  TracedGraph traced;
  std::map<const TracedValue*, ValueId> ids;
  std::set<std::string> taken;
  const auto name_for = [&](const TracedValue& value, absl::string_view kind, size_t position) {
    std::string counted = absl::StrCat(kind, "_", position);
    if (!options.names || value.name.empty() || !taken.insert(value.name).second) return counted;
    return value.name;
  };
  const auto id_of = [&](const TracedValuePtr& value, bool as_constant) {
    if (value == nullptr) return kNone;
    Graph& graph = traced.graph;
    if (value->is_number && !as_constant && options.held != nullptr) {
      const size_t position = traced.numbers.size();
      traced.numbers.push_back(value);
      const bool held = position < options.held->size() && (*options.held)[position];
      if (!held) {
        const size_t input = traced.inputs.size();
        traced.inputs.push_back(value);
        return graph.AddInput(absl::StrCat("input_", input), value->dtype, {});
      }
    }
    if (value->is_constant) return graph.AddConstant("", TensorOf(*value));
    // The present elements: the program may write others later.
    if (as_constant && value->has_bytes()) return graph.AddConstant("", Copied(TensorOf(*value)));
    const auto [it, added] = ids.emplace(value.get(), kNone);
    if (!added) return it->second;
    if (value->parameter.has_value()) {
      const auto leaf = static_cast<int>(traced.parameters.size());
      traced.parameters.push_back(value);
      it->second =
          IsParameterLike(value->dtype, NumElements(value->shape))
              ? graph.AddParameter("", ParameterExpr::Leaf(leaf, value->dtype, value->shape))
              : graph.AddConstant("", *value->parameter);
      return it->second;
    }
    it->second = graph.AddInput(name_for(*value, "input", traced.inputs.size()), value->dtype,
                                DimsOf(value->shape));
    traced.inputs.push_back(value);
    return it->second;
  };
  for (const auto& [number, op] : ops) {
    const OpRow* row = FindOp(op->op);
    std::vector<ValueId> inputs;
    for (size_t i = 0; i < op->operands.size(); ++i) {
      inputs.push_back(id_of(op->operands[i], row->IsValueInput(i)));
    }
    const NodeId node =
        traced.graph.AddNode(op->op, std::move(inputs), op->attributes, op->results.size());
    for (size_t i = 0; i < op->results.size(); ++i) {
      const TracedValuePtr result = op->results[i].lock();
      if (result != nullptr) ids.emplace(result.get(), traced.graph.node(node).outputs[i]);
    }
  }
  for (const TracedValuePtr& value : wanted) {
    traced.graph.AddOutput(id_of(value, /*as_constant=*/false));
    traced.outputs.push_back(value);
  }
  return traced;
}

absl::Status StreamState::Report(const absl::Status& status) {
  if (status.ok()) return status;
  if (error_.ok()) error_ = status;
  if (options_.on_error) options_.on_error(status);
  return status;
}

OpStreamStats StreamState::stats() const {
  return {.ops = next_op_ - 1,
          .captures = programs_.captures(),
          .replays = programs_.replays,
          .evictions = programs_.evictions()};
}

Tensor StreamState::AddLeaf(DType dtype, const Shape& shape, const void* data) {
  auto value = std::make_shared<TracedValue>();
  value->stream = shared_from_this();
  value->dtype = dtype;
  value->shape = shape;
  value->bytes = NewBytes(value->size());
  if (data == nullptr) {
    std::memset(value->bytes.get(), 0, value->size());
  } else if (value->size() > 0) {
    std::memcpy(value->bytes.get(), data, value->size());
  }
  return TensorHandle::Wrap(value);
}

Tensor StreamState::AddParameter(reprise::Tensor parameter) {
  auto value = std::make_shared<TracedValue>();
  value->stream = shared_from_this();
  value->dtype = parameter.dtype();
  value->shape = parameter.shape();
  value->parameter = std::move(parameter);
  value->parameter_number = next_parameter_++;
  return TensorHandle::Wrap(value);
}

std::vector<Tensor> StreamState::Call(absl::string_view op, const std::vector<Arg>& operands,
                                      size_t results, Attributes attributes, SourceLocation at) {
  for (const Arg& operand : operands) {
    if (operand.kind() != Arg::Kind::kTensor || operand.handle() == nullptr) continue;
    const std::shared_ptr<StreamState>& stream = TensorHandle::Of(operand.tensor())->stream;
    return stream->CallHere(op, operands, results, std::move(attributes), at);
  }
  // Without a tensor there is no stream to report to: the result says that it has no value.
  return std::vector<Tensor>(std::max<size_t>(results, 1));
}

std::vector<Tensor> StreamState::CallHere(absl::string_view op, const std::vector<Arg>& operands,
                                          size_t results, Attributes attributes,
                                          SourceLocation at) {
  absl::StatusOr<std::vector<TracedValuePtr>> made = absl::InternalError("");
  const absl::Status status =
      WithinMemory([&] { return std::string(op); },
                   [&] {
                     made = Record(op, operands, results, std::move(attributes), at);
                     return made.status();
                   });
  std::vector<Tensor> tensors;
  if (status.ok()) {
    for (const TracedValuePtr& value : *made) tensors.push_back(TensorHandle::Wrap(value));
    return tensors;
  }
  // An error that came with an operand was reported at its own line.
  const bool inherited = std::any_of(operands.begin(), operands.end(), [](const Arg& arg) {
    return arg.handle() != nullptr && !arg.handle()->value->status.ok();
  });
  if (capturing()) FailCapture(status);
  if (!inherited) (void)Report(status);
  for (size_t i = 0; i < std::max<size_t>(results, 1); ++i) tensors.push_back(Without(status));
  return tensors;
}

Tensor StreamState::Without(const absl::Status& status) {
  auto value = std::make_shared<TracedValue>();
  value->stream = shared_from_this();
  value->status = status;
  return TensorHandle::Wrap(value);
}

Tensor StreamState::Refused(const absl::Status& status) {
  if (capturing()) FailCapture(status);
  return Without(Report(status));
}

absl::StatusOr<TracedValuePtr> StreamState::OperandOf(const Arg& arg, DType number_dtype) {
  if (arg.kind() == Arg::Kind::kNone) return TracedValuePtr();
  if (arg.kind() == Arg::Kind::kTensor) {
    const TracedValuePtr& value = TensorHandle::Of(arg.tensor());
    if (value == nullptr) return absl::FailedPreconditionError("an operand is an empty tensor");
    RETURN_IF_ERROR(value->status);
    if (value->stream.get() != this) {
      return absl::InvalidArgumentError("operands are tensors of two streams");
    }
    if (value->capture != 0 && value->capture != capture_ && !value->has_bytes()) {
      return absl::FailedPreconditionError(
          "an operand was recorded by a capture that failed, and has no value");
    }
    return value;
  }
  const reprise::Tensor constant = arg.kind() == Arg::Kind::kNumber
                                       ? ScalarOf(arg.number(), number_dtype)
                                       : reprise::Tensor::Int64s(arg.numbers());
  auto value = std::make_shared<TracedValue>();
  value->stream = shared_from_this();
  value->dtype = constant.dtype();
  value->shape = constant.shape();
  value->bytes = NewBytes(value->size());
  if (value->size() > 0) std::memcpy(value->bytes.get(), constant.data(), value->size());
  value->is_constant = true;
  value->is_number = arg.kind() == Arg::Kind::kNumber;
  return value;
}

absl::StatusOr<std::vector<TracedValuePtr>> StreamState::Record(absl::string_view op,
                                                                const std::vector<Arg>& operands,
                                                                size_t results,
                                                                Attributes attributes,
                                                                SourceLocation at) {
  const OpRow* row = FindOp(op);
  if (row == nullptr || row->Has(kInternal)) {
    return Located(
        absl::UnimplementedError("there is no such op; RegisterOp brings one of your own"), op, at);
  }
  DType number_dtype = DType::kFloat32;
  for (const Arg& arg : operands) {
    if (arg.kind() != Arg::Kind::kTensor || arg.handle() == nullptr) continue;
    number_dtype = arg.tensor().dtype();
    if (number_dtype != DType::kBool)
      break;  // a condition does not decide the dtype of the values
              // that it selects
  }
  auto traced = std::make_shared<TracedOp>();
  traced->op = std::string(op);
  traced->attributes = std::move(attributes);
  traced->at = at;
  traced->number = next_op_++;
  for (const Arg& arg : operands) {
    absl::StatusOr<TracedValuePtr> operand = OperandOf(arg, number_dtype);
    if (!operand.ok()) return operand.status();
    traced->operands.push_back(*std::move(operand));
  }
  const bool on_host = row->Has(kHost) || row->Has(kDataDependent);
  for (size_t i = 0; i < traced->operands.size(); ++i) {
    const TracedValuePtr& operand = traced->operands[i];
    if (operand == nullptr || operand->has_bytes()) continue;
    if (!row->IsValueInput(i) && !on_host) continue;
    if (capturing()) {
      return NotDuringCapture(
          absl::StrCat(op, " of operand ", i, ", which the capture computes"), at,
          row->IsValueInput(i) ? "its elements decide the shape of the result; give them as "
                                 "numbers, or compute them "
                                 "before the capture"
                               : "the op runs on the host; call it before or after the capture");
    }
    RETURN_IF_ERROR(Compute());
    if (operand->has_bytes()) continue;
    RETURN_IF_ERROR(Run({operand}));  // it has no handle
  }
  if (on_host && capturing()) {
    return NotDuringCapture(op, at,
                            row->Has(kHost)
                                ? "it comes from a library and runs on the host; call it before or "
                                  "after the capture"
                                : "the shape of its result depends on data; call it before the "
                                  "capture, or after it");
  }
  std::vector<TracedValuePtr> values;
  for (size_t i = 0; i < std::max<size_t>(results, 1); ++i) {
    auto value = std::make_shared<TracedValue>();
    value->stream = shared_from_this();
    value->is_result = true;
    value->result = i;
    value->capture = capture_;
    traced->results.push_back(value);
    values.push_back(std::move(value));
  }
  if (on_host) {
    if (const absl::Status status = RunOnHost(*traced, values); !status.ok()) {
      return Located(status, op, at);
    }
    return values;
  }
  const auto types = Infer(*traced, values.size());
  if (!types.ok()) return Located(types.status(), op, at);
  for (size_t i = 0; i < values.size(); ++i) {
    values[i]->dtype = (*types)[i].first;
    values[i]->shape = (*types)[i].second;
    values[i]->made_by = traced;
    if (capturing()) recorded_.push_back(values[i]);
  }
  if (capturing()) return values;
  if (options_.mode != Mode::kEager) {
    for (const TracedValuePtr& value : values) pending_.push_back(value);
  }
  if (options_.mode == Mode::kEager) {
    const absl::Status status = Run(values);
    if (!status.ok()) return Located(status, op, at);
  } else if (static_cast<int64_t>(pending_.size()) >= options_.max_pending_ops) {
    // The results have no handles yet: they stay pending, and hold their operands.
    RETURN_IF_ERROR(Compute());
    for (const TracedValuePtr& value : values) pending_.push_back(value);
  }
  return values;
}

absl::Status StreamState::RunOnHost(const TracedOp& op,
                                    const std::vector<TracedValuePtr>& results) {
  Node node = {.op = op.op, .attributes = op.attributes};
  std::vector<std::optional<reprise::Tensor>> inputs;
  for (size_t i = 0; i < op.operands.size(); ++i) {
    node.inputs.push_back(op.operands[i] == nullptr ? kNone : static_cast<ValueId>(i));
    inputs.push_back(op.operands[i] == nullptr ? std::nullopt
                                               : std::optional(TensorOf(*op.operands[i])));
  }
  for (size_t i = 0; i < results.size(); ++i) {
    node.outputs.push_back(static_cast<ValueId>(op.operands.size() + i));
  }
  ASSIGN_OR_RETURN(const std::vector<reprise::Tensor> made,
                   Evaluate(node, inputs, kMostResultBytes));
  for (size_t i = 0; i < results.size(); ++i) {
    results[i]->dtype = made[i].dtype();
    results[i]->shape = made[i].shape();
    results[i]->bytes = NewBytes(made[i].bytes());
    if (made[i].bytes() > 0) std::memcpy(results[i]->bytes.get(), made[i].data(), made[i].bytes());
  }
  return absl::OkStatus();
}

absl::Status StreamState::Compute() {
  std::vector<TracedValuePtr> wanted;
  for (const std::weak_ptr<TracedValue>& one : pending_) {
    TracedValuePtr value = one.lock();
    if (value == nullptr || value->has_bytes() || value->handle.expired()) continue;
    wanted.push_back(std::move(value));
  }
  pending_.clear();
  return wanted.empty() ? absl::OkStatus() : Run(wanted);
}

absl::Status StreamState::Run(const std::vector<TracedValuePtr>& wanted) {
  std::vector<TracedValuePtr> inputs;
  ASSIGN_OR_RETURN(Session* const session, programs_.Find(wanted, inputs));
  for (size_t i = 0; i < inputs.size(); ++i) {
    RETURN_IF_ERROR(
        session->PlaceInput(session->inputs()[i].name, inputs[i]->bytes.get(), inputs[i]->size()));
  }
  std::vector<std::shared_ptr<std::byte>> made;
  for (size_t i = 0; i < wanted.size(); ++i) {
    made.push_back(NewBytes(wanted[i]->size()));
    RETURN_IF_ERROR(
        session->PlaceOutput(session->outputs()[i].name, made.back().get(), wanted[i]->size()));
  }
  RETURN_IF_ERROR(session->Replay());
  ++programs_.replays;
  for (size_t i = 0; i < wanted.size(); ++i) {
    wanted[i]->bytes = std::move(made[i]);
    wanted[i]->made_by = nullptr;
  }
  return absl::OkStatus();
}

absl::Status StreamState::Materialize(const TracedValuePtr& value, SourceLocation at) {
  RETURN_IF_ERROR(value->status);
  if (value->has_bytes()) return absl::OkStatus();
  if (value->capture != 0) {
    if (value->capture != capture_) {
      return Report(absl::FailedPreconditionError(
          absl::StrCat("a value that was recorded by a capture is read ", PlaceText(at),
                       ", and is not one of its outputs: name it with Capture::Output")));
    }
    const absl::Status status =
        NotDuringCapture("reading a value that the capture records", at,
                         "read it after the capture, when the graph was replayed");
    FailCapture(status);
    return Report(status);
  }
  absl::Status status = Compute();
  if (status.ok() && !value->has_bytes()) status = Run({value});
  if (!status.ok()) return Report(Located(status, "a value that is read", at));
  return status;
}

int64_t StreamState::BeginCapture() {
  recorded_.clear();
  capture_error_ = absl::OkStatus();
  capture_ = next_capture_++;
  return capture_;
}

void StreamState::FailCapture(const absl::Status& status) {
  if (capture_error_.ok()) capture_error_ = status;
}

absl::StatusOr<std::vector<TracedValuePtr>> StreamState::EndCapture() {
  std::vector<TracedValuePtr> reachable;
  for (const std::weak_ptr<TracedValue>& one : recorded_) {
    if (TracedValuePtr value = one.lock()) reachable.push_back(std::move(value));
  }
  recorded_.clear();
  capture_ = 0;
  RETURN_IF_ERROR(capture_error_);
  return reachable;
}

}  // namespace reprise::lazy
