// Tensor: a value of an OpStream, or the promise of one.
//
//   Tensor a = stream.FromVector<float>({2, 3}, {1, 2, 3, 4, 5, 6});
//   Tensor b = Relu(a - 3) * 2;                 // recorded, or computed: as the stream's mode says
//   absl::StatusOr<absl::Span<const float>> values = b.data<float>();   // computed by now
//
// Dtype and shape are known at once. An op that cannot be (shapes that do not agree, a missing
// value) makes a tensor with a status, which is passed on to all results of it: check the result,
// or give the stream an `on_error`, which is called at the line of the op.
//
// Ownership: copies share one value. The stream outlives its tensors.
// Threads:   a stream and its tensors belong to one thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "runtime/graph/attribute.h"
#include "runtime/graph/dtype.h"
#include "runtime/graph/element_type.h"
#include "runtime/graph/shape.h"
#include "runtime/graph/tensor.h"
#include "runtime/lazy/source_location.h"

namespace reprise::lazy {

struct TensorHandle;  // trace.h

class Tensor {
 public:
  Tensor() = default;  // it has no value, as its status says

  // Returns OK, or why there is no value and will be none.
  absl::Status status() const;
  DType dtype() const;
  const Shape& shape() const;
  int64_t num_elements() const { return NumElements(shape()); }

  // Returns the elements, computed now if they were not. INVALID_ARGUMENT where they are no T;
  // FAILED_PRECONDITION inside a capture that has recorded the tensor. Valid while the tensor is
  // there; the elements of a captured graph's output are the ones that its last replay wrote.
  template <typename T>
  absl::StatusOr<absl::Span<const T>> data(SourceLocation at = SourceLocation::current()) const {
    absl::StatusOr<TensorView> view = View(kElementDType<T>, at);
    if (!view.ok()) return view.status();
    return absl::Span<const T>(view->as<T>(), static_cast<size_t>(view->num_elements()));
  }
  template <typename T>
  absl::StatusOr<std::vector<T>> ToVector(SourceLocation at = SourceLocation::current()) const {
    absl::StatusOr<absl::Span<const T>> values = data<T>(at);
    if (!values.ok()) return values.status();
    return std::vector<T>(values->begin(), values->end());
  }
  // Returns the elements of a tensor that the program has made, to be written: graphs that read it
  // see the new ones when they replay. Empty for the result of an op, and where they are no T.
  template <typename T>
  absl::Span<T> mutable_data() const {
    absl::Span<std::byte> bytes = MutableBytes(kElementDType<T>);
    return {reinterpret_cast<T*>(bytes.data()), bytes.size() / sizeof(T)};
  }

  // Sets its name in a captured graph, and in messages.
  Tensor& SetName(absl::string_view name);

 private:
  friend class Arg;
  friend struct TensorHandle;
  explicit Tensor(std::shared_ptr<TensorHandle> handle) : handle_(std::move(handle)) {}
  absl::StatusOr<TensorView> View(DType dtype, SourceLocation at) const;
  absl::Span<std::byte> MutableBytes(DType dtype) const;

  std::shared_ptr<TensorHandle> handle_;
};

// An operand of an op: a tensor, a number (of the dtype of the op's first tensor), or whole numbers
// (an int64 list: a shape, axes). It remembers the line that it stands in.
class Arg {
 public:
  Arg(const Tensor& tensor,  // NOLINT: operands are written as they are
      SourceLocation at = SourceLocation::current())
      : tensor_(tensor), at_(at) {}
  Arg(double number,  // NOLINT
      SourceLocation at = SourceLocation::current())
      : number_(number), kind_(Kind::kNumber), at_(at) {}
  Arg(std::vector<int64_t> numbers,  // NOLINT
      SourceLocation at = SourceLocation::current())
      : numbers_(std::move(numbers)), kind_(Kind::kNumbers), at_(at) {}
  // Returns an optional operand that is left out.
  static Arg None(SourceLocation at = SourceLocation::current()) {
    Arg arg(0.0, at);
    arg.kind_ = Kind::kNone;
    return arg;
  }

  enum class Kind { kTensor, kNumber, kNumbers, kNone };
  Kind kind() const { return kind_; }
  const Tensor& tensor() const { return tensor_; }
  double number() const { return number_; }
  const std::vector<int64_t>& numbers() const { return numbers_; }
  const SourceLocation& at() const { return at_; }
  const std::shared_ptr<TensorHandle>& handle() const { return tensor_.handle_; }

 private:
  Tensor tensor_;
  double number_ = 0;
  std::vector<int64_t> numbers_;
  Kind kind_ = Kind::kTensor;
  SourceLocation at_;
};

}  // namespace reprise::lazy
