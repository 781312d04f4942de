#include "runtime/lazy/function.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/lazy/trace.h"

namespace reprise::lazy {
namespace {

std::string OperandsKey(const std::vector<Tensor>& operands) {
  std::string key;
  for (const Tensor& operand : operands) {
    absl::StrAppend(&key, DTypeName(operand.dtype()), ShapeToString(operand.shape()), ";");
  }
  return key;
}

}  // namespace

absl::Status Function::CaptureFor(const std::vector<Tensor>& operands, Captured& captured) {
  for (size_t i = 0; i < operands.size(); ++i) {
    captured.operands.push_back(stream_.Zeros(operands[i].dtype(), operands[i].shape()));
    captured.operands.back().SetName(absl::StrCat("operand_", i));
  }
  Capture capture(stream_, captured.graph);
  const std::vector<Tensor> results = body_(captured.operands);
  for (size_t i = 0; i < results.size(); ++i) {
    captured.outputs.push_back(absl::StrCat("result_", i));
    capture.Output(captured.outputs.back(), results[i]);
  }
  return capture.End();
}

absl::StatusOr<std::vector<Tensor>> Function::operator()(const std::vector<Tensor>& operands) {
  for (const Tensor& operand : operands) RETURN_IF_ERROR(operand.status());
  if (stream_.mode() != Mode::kGraph || stream_.state()->capturing()) {
    std::vector<Tensor> results = body_(operands);
    for (const Tensor& result : results) RETURN_IF_ERROR(result.status());
    if (!stream_.state()->capturing()) RETURN_IF_ERROR(stream_.MarkStep());
    return results;
  }
  // Pending ops are computed before their results are copied.
  RETURN_IF_ERROR(stream_.MarkStep());
  std::unique_ptr<Captured>& known = graphs_[OperandsKey(operands)];
  if (known == nullptr) {
    auto captured = std::make_unique<Captured>();
    RETURN_IF_ERROR(CaptureFor(operands, *captured));
    known = std::move(captured);
  }
  for (size_t i = 0; i < operands.size(); ++i) {
    const TracedValuePtr& from = TensorHandle::Of(operands[i]);
    RETURN_IF_ERROR(from->stream->Materialize(from, SourceLocation::current()));
    const TracedValuePtr& to = TensorHandle::Of(known->operands[i]);
    if (from->size() > 0) std::memcpy(to->bytes.get(), from->view().data, from->size());
  }
  std::vector<Tensor> results;
  for (size_t i = 0; i < known->outputs.size(); ++i) {
    const Session::Place& place = known->graph.session()->outputs()[i];
    Tensor result = stream_.Zeros(place.dtype, place.shape);
    const TracedValuePtr& value = TensorHandle::Of(result);
    value->is_result = true;
    RETURN_IF_ERROR(known->graph.PlaceOutput(place.name, value->bytes.get(), value->size()));
    results.push_back(std::move(result));
  }
  RETURN_IF_ERROR(known->graph.Replay());
  return results;
}

}  // namespace reprise::lazy
