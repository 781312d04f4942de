#include "runtime/ops/elementwise/random.h"

#include <atomic>
#include <bit>
#include <chrono>
#include <cmath>
#include <numbers>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/base/work_watch.h"
#include "runtime/ops/kit/onnx_types.h"
#include "runtime/ops/kit/typed.h"

namespace reprise::ops {
namespace {

// SplitMix64: numbers 1, 2, 3... from a starting point, mixed.
class Generator {
 public:
  explicit Generator(const Node& node) {
    if (const float* seed = node.attributes.Get<float>("seed"); seed != nullptr) {
      state_ = Mix(std::bit_cast<uint32_t>(*seed));
    } else {
      // Each run has a starting point of its own, in this process and in others.
      static std::atomic<uint64_t> runs{0};
      const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
      state_ = Mix(static_cast<uint64_t>(now)) ^ Mix(++runs);
    }
  }

  // Returns a number in [0, 1) with 53 random bits.
  double Uniform() { return static_cast<double>(Mix(state_ += kStep) >> 11) * 0x1p-53; }

  // Returns a normal number by Box and Muller's method: two at a time, of which the second is kept.
  double Normal() {
    if (has_second_) {
      has_second_ = false;
      return second_;
    }
    const double radius = std::sqrt(-2 * std::log(1 - Uniform()));
    const double angle = 2 * std::numbers::pi * Uniform();
    second_ = radius * std::sin(angle);
    has_second_ = true;
    return radius * std::cos(angle);
  }

 private:
  static constexpr uint64_t kStep = 0x9e3779b97f4a7c15;
  static uint64_t Mix(uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
  }

  uint64_t state_;
  double second_ = 0;
  bool has_second_ = false;
};

// A number costs as much as this many steps of a plain loop.
constexpr int64_t kStepsOfDraw = 16;

template <typename Draw>
absl::Status Fill(const KernelContext& context, Draw draw) {
  const MutableTensorView& out = context.outputs[0];
  return Dispatch(FloatList{}, out.dtype, [&]<typename T>() {
    const int64_t count = out.num_elements();
    for (int64_t i = 0; i < count; ++i) {
      WatchWork(kStepsOfDraw);
      out.as<T>()[i] = static_cast<T>(static_cast<Compute<T>>(draw()));
    }
  });
}

// Returns the `dtype` of the node, or `otherwise`.
absl::StatusOr<DType> ResultType(const Node& node, DType otherwise, uint32_t types) {
  DType dtype = otherwise;
  if (const int64_t* number = node.attributes.Get<int64_t>("dtype"); number != nullptr) {
    ASSIGN_OR_RETURN(dtype, DTypeFromOnnx(*number));
  }
  if ((TypeBit(dtype) & types) != 0) return dtype;
  return absl::UnimplementedError(absl::StrCat("no random numbers of dtype ", DTypeName(dtype)));
}

}  // namespace

absl::Status RandomRule(InferContext& context) {
  const std::vector<int64_t> shape = context.attributes().Ints("shape");
  for (const int64_t size : shape) {
    if (size < 0) return absl::InvalidArgumentError(absl::StrCat("negative size ", size));
  }
  if (!context.attributes().Has("shape")) {
    return absl::InvalidArgumentError("attribute 'shape' is missing");
  }
  ASSIGN_OR_RETURN(const DType dtype, ResultType(context.node(), DType::kFloat32, kFloats));
  context.SetOutput(0, dtype, SizeList(shape.begin(), shape.end()));
  return absl::OkStatus();
}

absl::Status RandomLikeRule(InferContext& context) {
  ASSIGN_OR_RETURN(const DType dtype, ResultType(context.node(), context.dtype(0), kFloats));
  context.SetOutput(0, dtype, context.shape(0));
  return absl::OkStatus();
}

absl::Status RandomNormalKernel(const KernelContext& context) {
  const double mean = context.node.attributes.Float("mean", 0);
  const double scale = context.node.attributes.Float("scale", 1);
  Generator generator(context.node);
  return Fill(context, [&] { return mean + scale * generator.Normal(); });
}

absl::Status RandomUniformKernel(const KernelContext& context) {
  const double low = context.node.attributes.Float("low", 0);
  const double high = context.node.attributes.Float("high", 1);
  Generator generator(context.node);
  return Fill(context, [&] { return low + (high - low) * generator.Uniform(); });
}

absl::Status BernoulliRule(InferContext& context) {
  RETURN_IF_ERROR(CheckType(context, 0, kFloats));
  ASSIGN_OR_RETURN(const DType dtype, ResultType(context.node(), context.dtype(0), kAnyType));
  context.SetOutput(0, dtype, context.shape(0));
  return absl::OkStatus();
}

absl::Status BernoulliKernel(const KernelContext& context) {
  const TensorView& in = context.inputs[0];
  Generator generator(context.node);
  std::vector<bool> hits(in.num_elements());
  RETURN_IF_ERROR(Dispatch(FloatList{}, in.dtype, [&]<typename T>() {
    for (size_t i = 0; i < hits.size(); ++i) {
      hits[i] = generator.Uniform() < static_cast<double>(static_cast<Compute<T>>(in.as<T>()[i]));
    }
  }));
  const MutableTensorView& out = context.outputs[0];
  return Dispatch(AllList{}, out.dtype, [&]<typename T>() {
    for (size_t i = 0; i < hits.size(); ++i) {
      out.as<T>()[i] = static_cast<T>(static_cast<Compute<T>>(hits[i]));
    }
  });
}

}  // namespace reprise::ops
