#include "runtime/lazy/op_stream.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/lazy/trace.h"

namespace reprise::lazy {

OpStream::OpStream(Engine& engine, OpStreamOptions options)
    : state_(std::make_shared<StreamState>(engine, std::move(options))) {}

OpStream::~OpStream() = default;

Tensor OpStream::FromBytes(DType dtype, const Shape& shape, const void* data, size_t bytes) {
  const absl::StatusOr<int64_t> elements = CheckedNumElements(shape);
  const size_t wanted =
      elements.ok() ? static_cast<size_t>(*elements) * DTypeSize(dtype) : bytes + 1;
  if (dtype == DType::kUndefined || wanted != bytes) {
    return state_->Refused(absl::InvalidArgumentError(absl::StrCat(
        "a tensor ", DTypeName(dtype), ShapeToString(shape), " is given ", bytes, " bytes")));
  }
  return state_->AddLeaf(dtype, shape, data);
}

Tensor OpStream::Zeros(DType dtype, const Shape& shape) {
  const absl::StatusOr<int64_t> elements = CheckedNumElements(shape);
  if (!elements.ok() || dtype == DType::kUndefined) {
    return state_->Refused(absl::InvalidArgumentError(
        absl::StrCat("there is no tensor ", DTypeName(dtype), ShapeToString(shape))));
  }
  return state_->AddLeaf(dtype, shape, nullptr);
}

Tensor OpStream::Parameter(reprise::Tensor value) { return state_->AddParameter(std::move(value)); }

absl::Status OpStream::MarkStep() {
  if (state_->capturing()) {
    const absl::Status status = absl::FailedPreconditionError(
        "MarkStep is not supported during capture: Replay computes the captured ops");
    state_->FailCapture(status);
    return state_->Report(status);
  }
  return state_->Report(state_->Compute());
}

absl::Status OpStream::TakeError() { return state_->TakeError(); }
Mode OpStream::mode() const { return state_->options().mode; }
OpStreamStats OpStream::stats() const { return state_->stats(); }

}  // namespace reprise::lazy
