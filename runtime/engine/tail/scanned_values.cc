#include "runtime/engine/tail/scanned_values.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"

namespace reprise {

absl::Status ScannedValues::Add(Tensor value, int64_t max_bytes) {
  if (!values_.empty()) {
    const Tensor& first = values_.front();
    if (value.dtype() != first.dtype() || value.shape() != first.shape()) {
      return absl::InvalidArgumentError(
          absl::StrCat(label_, ": iteration ", values_.size(), " results in ",
                       DTypeName(value.dtype()), ShapeToString(value.shape()), ", the first in ",
                       DTypeName(first.dtype()), ShapeToString(first.shape())));
    }
  }
  bytes_ += static_cast<int64_t>(value.bytes());
  if (bytes_ > max_bytes) {
    return absl::ResourceExhaustedError(absl::StrCat(label_, ": its iterations result in ", bytes_,
                                                     " bytes after ", values_.size() + 1,
                                                     " of them, the limit is ", max_bytes));
  }
  values_.push_back(std::move(value));
  return absl::OkStatus();
}

absl::StatusOr<Tensor> ScannedValues::Join() const {
  const DType dtype = values_.empty() ? declared_.dtype : values_.front().dtype();
  if (dtype == DType::kUndefined) {
    return absl::InvalidArgumentError(absl::StrCat(
        label_, ": no iteration ran, and the file does not declare the results of one"));
  }
  Shape shape = values_.empty() ? declared_.shape : values_.front().shape();
  const int64_t rank = static_cast<int64_t>(shape.size());
  const int64_t axis = declared_.axis < 0 ? declared_.axis + rank + 1 : declared_.axis;
  if (axis < 0 || axis > rank) {
    return absl::InvalidArgumentError(absl::StrCat(
        label_, ": axis ", declared_.axis, " of a result is outside its ", rank + 1, " dims"));
  }
  int64_t blocks = 1;
  for (int64_t d = 0; d < axis; ++d) blocks *= shape[d];
  const size_t count = values_.size();
  shape.insert(shape.begin() + axis, static_cast<int64_t>(count));
  return Tensor::Make(dtype, std::move(shape), [&](void* to) {
    if (count == 0 || blocks == 0) return;
    const size_t bytes = values_.front().bytes() / static_cast<size_t>(blocks);
    if (bytes == 0) return;
    for (size_t i = 0; i < count; ++i) {
      const auto* from =
          static_cast<const std::byte*>(values_[declared_.backwards ? count - 1 - i : i].data());
      for (size_t block = 0; block < static_cast<size_t>(blocks); ++block) {
        std::memcpy(static_cast<std::byte*>(to) + (block * count + i) * bytes, from + block * bytes,
                    bytes);
      }
    }
  });
}

}  // namespace reprise
