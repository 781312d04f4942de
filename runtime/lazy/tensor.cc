#include "runtime/lazy/tensor.h"

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/lazy/trace.h"

namespace reprise::lazy {
namespace {

bool MayBeSeenAs(DType dtype, DType as) {
  if (dtype == DType::kFloat16 || dtype == DType::kBFloat16) return as == DType::kUInt16;
  return dtype == as || (dtype == DType::kBool && as == DType::kUInt8);
}

}  // namespace

absl::Status Tensor::status() const {
  if (handle_ == nullptr) return absl::FailedPreconditionError("the tensor is empty");
  return handle_->value->status;
}

DType Tensor::dtype() const {
  return handle_ == nullptr ? DType::kUndefined : handle_->value->dtype;
}

const Shape& Tensor::shape() const {
  static const Shape kEmpty;
  return handle_ == nullptr ? kEmpty : handle_->value->shape;
}

absl::StatusOr<TensorView> Tensor::View(DType dtype, SourceLocation at) const {
  RETURN_IF_ERROR(status());
  const TracedValuePtr& value = handle_->value;
  if (!MayBeSeenAs(value->dtype, dtype)) {
    return absl::InvalidArgumentError(absl::StrCat("elements of a tensor of ",
                                                   DTypeName(value->dtype), " are read as ",
                                                   DTypeName(dtype), ", ", PlaceText(at)));
  }
  RETURN_IF_ERROR(value->stream->Materialize(value, at));
  return value->view();
}

absl::Span<std::byte> Tensor::MutableBytes(DType dtype) const {
  if (handle_ == nullptr) return {};
  const TracedValuePtr& value = handle_->value;
  if (value->is_result || value->bytes == nullptr || !MayBeSeenAs(value->dtype, dtype)) return {};
  return {value->bytes.get(), value->size()};
}

Tensor& Tensor::SetName(absl::string_view name) {
  if (handle_ != nullptr) handle_->value->name = std::string(name);
  return *this;
}

}  // namespace reprise::lazy
