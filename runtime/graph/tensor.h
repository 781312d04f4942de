// Tensor: dtype, shape and shared immutable bytes.
//
// Copying a Tensor shares its bytes. The bytes may belong to a mapped model file: a Tensor keeps
// their owner alive. Row-major, densely packed, little-endian.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/base/aligned_buffer.h"
#include "runtime/base/status_macros.h"
#include "runtime/graph/dtype.h"
#include "runtime/graph/shape.h"

namespace reprise {

// A view of a tensor somewhere in memory: how kernels see their operands.
struct TensorView {
  DType dtype = DType::kUndefined;
  Shape shape;
  const void* data = nullptr;

  template <typename T>
  const T* as() const {
    return static_cast<const T*>(data);
  }
  int64_t num_elements() const { return NumElements(shape); }
  size_t bytes() const { return num_elements() * DTypeSize(dtype); }
};

struct MutableTensorView {
  DType dtype = DType::kUndefined;
  Shape shape;
  void* data = nullptr;

  template <typename T>
  T* as() const {
    return static_cast<T*>(data);
  }
  int64_t num_elements() const { return NumElements(shape); }
  size_t bytes() const { return num_elements() * DTypeSize(dtype); }
};

class Tensor {
 public:
  Tensor() = default;
  // Takes bytes that `data` keeps alive: at least NumElements(shape) * DTypeSize(dtype) at
  // `data.get()`.
  Tensor(DType dtype, Shape shape, std::shared_ptr<const void> data)
      : dtype_(dtype), shape_(std::move(shape)), data_(std::move(data)) {}

  // Returns a new 64-byte aligned tensor; `fill(void*)` writes its bytes before anyone can see it.
  static Tensor Make(DType dtype, Shape shape, const std::function<void(void*)>& fill);
  // Returns a copy of `values` with `shape` (which must hold values.size() elements).
  template <typename T>
  static Tensor FromVector(DType dtype, Shape shape, const std::vector<T>& values) {
    REPRISE_CHECK(DTypeSize(dtype) == sizeof(T));
    REPRISE_CHECK(NumElements(shape) == static_cast<int64_t>(values.size()));
    return Make(dtype, std::move(shape), [&](void* data) {
      if (!values.empty()) std::memcpy(data, values.data(), values.size() * sizeof(T));
    });
  }
  static Tensor Int64s(const std::vector<int64_t>& values) {  // shape [values.size()]
    return FromVector(DType::kInt64, {static_cast<int64_t>(values.size())}, values);
  }
  static Tensor Int64Scalar(int64_t value) {
    return FromVector<int64_t>(DType::kInt64, {}, {value});
  }
  static Tensor FloatScalar(float value) { return FromVector<float>(DType::kFloat32, {}, {value}); }

  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  const void* data() const { return data_.get(); }
  template <typename T>
  absl::Span<const T> span() const {
    REPRISE_CHECK(sizeof(T) == DTypeSize(dtype_));
    return {static_cast<const T*>(data_.get()), static_cast<size_t>(num_elements())};
  }
  int64_t num_elements() const { return NumElements(shape_); }
  size_t bytes() const { return num_elements() * DTypeSize(dtype_); }
  TensorView view() const { return {dtype_, shape_, data_.get()}; }

  // Returns whether its elements may be read as numbers: one that lies in a file may begin
  // anywhere.
  bool aligned() const {
    return reinterpret_cast<uintptr_t>(data_.get()) % std::max<size_t>(DTypeSize(dtype_), 1) == 0;
  }
  // Returns itself if it is aligned, else a copy that is.
  Tensor Aligned() const;

  // Returns the elements as int64; INVALID_ARGUMENT unless the dtype is an integer or bool.
  absl::StatusOr<std::vector<int64_t>> ToInt64s() const;
  // Returns the elements as double, any dtype.
  std::vector<double> ToDoubles() const;

  // Returns the same bytes under another shape with the same number of elements.
  Tensor Reshaped(Shape shape) const;

  // Returns whether dtype, shape and bytes are equal (so NaN equals itself, -0 differs from 0).
  friend bool operator==(const Tensor& a, const Tensor& b);

 private:
  DType dtype_ = DType::kUndefined;
  Shape shape_;
  std::shared_ptr<const void> data_;
};

// IEEE binary16 and bfloat16 conversions, round to nearest even.
float HalfToFloat(uint16_t half);
uint16_t FloatToHalf(float value);
float BFloat16ToFloat(uint16_t bits);
uint16_t FloatToBFloat16(float value);

}  // namespace reprise
