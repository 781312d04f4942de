#include "runtime/ops/reduce/local_norm.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/base/work_watch.h"
#include "runtime/graph/rank_error.h"
#include "runtime/ops/kit/typed.h"

namespace reprise::ops {

absl::Status LrnRule(InferContext& context) {
  RETURN_IF_ERROR(CheckType(context, 0, kFloats));
  if (context.rank(0) < 3) return RankError("its operand has no dims after batch and channel");
  if (const int64_t size = context.attributes().Int("size", 0); size < 1) {
    return absl::InvalidArgumentError(absl::StrCat("there are no sums of ", size, " channels"));
  }
  context.SetOutput(0, context.dtype(0), context.shape(0));
  return absl::OkStatus();
}

absl::Status LrnKernel(const KernelContext& context) {
  const TensorView& in = context.inputs[0];
  const Attributes& attributes = context.node.attributes;
  const int64_t channels = in.shape[1], size = std::min(attributes.Int("size", 1), 2 * channels);
  const int64_t plane = NumElements(absl::Span<const int64_t>(in.shape).subspan(2));
  const double share =
      attributes.Float("alpha", 1e-4f) / static_cast<double>(attributes.Int("size", 1));
  const double beta = attributes.Float("beta", 0.75f), bias = attributes.Float("bias", 1.0f);
  return Dispatch(FloatList{}, in.dtype, [&]<typename T>() {
    using C = Compute<T>;
    std::vector<double> sums(plane);
    for (int64_t at = 0; at < in.shape[0] * channels; ++at) {
      const int64_t channel = at % channels;
      const int64_t first = std::max<int64_t>(0, channel - (size - 1) / 2);
      const int64_t end = std::min(channels, channel + size / 2 + 1);
      std::fill(sums.begin(), sums.end(), 0.0);
      for (int64_t other = first; other < end; ++other) {
        WatchWork(plane);
        const T* x = in.as<T>() + (at - channel + other) * plane;
        for (int64_t i = 0; i < plane; ++i) {
          const double element = static_cast<C>(x[i]);
          sums[i] += element * element;
        }
      }
      const T* x = in.as<T>() + at * plane;
      T* y = context.outputs[0].as<T>() + at * plane;
      for (int64_t i = 0; i < plane; ++i) {
        const double element = static_cast<C>(x[i]);
        y[i] = static_cast<T>(static_cast<C>(element / std::pow(bias + share * sums[i], beta)));
      }
    }
  });
}

}  // namespace reprise::ops
