#include "runtime/ops/products/stft.h"

#include <algorithm>
#include <complex>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/graph/rank_error.h"
#include "runtime/ops/kit/typed.h"
#include "runtime/ops/products/fourier_sums.h"

namespace reprise::ops {
namespace {

constexpr size_t kSignal = 0, kStep = 1, kWindow = 2, kFrameLength = 3;

template <typename Number>
struct Frames {
  Number step, length, count, bins;
};

// `length`: empty where the operand is left out. `window`: -1 where it is.
template <typename Number>
absl::StatusOr<Frames<Number>> FramesOf(const Node& node, absl::Span<const Number> signal,
                                        const std::vector<Number>& step,
                                        const std::vector<Number>& length, Number window) {
  Frames<Number> frames = {};
  frames.step = step[0];
  frames.length = !length.empty() ? length[0] : window >= 0 ? window : signal[1];
  if (frames.step < 1 || frames.length < 1 || frames.length > signal[1]) {
    return absl::InvalidArgumentError(absl::StrCat("frames of ", frames.length, " in steps of ",
                                                   frames.step, " do not fit a signal of ",
                                                   signal[1], " samples"));
  }
  frames.count = (signal[1] - frames.length) / frames.step + 1;
  const bool onesided = node.attributes.Int("onesided", 1) != 0;
  if (onesided && signal.size() == 3 && signal[2] == 2) {
    return absl::InvalidArgumentError("a one-sided transform of complex numbers");
  }
  frames.bins = onesided ? frames.length / 2 + 1 : frames.length;
  return frames;
}

}  // namespace

absl::Status StftRule(InferContext& context) {
  RETURN_IF_ERROR(CheckType(context, kSignal, kFloats));
  const SizeList& signal = context.shape(kSignal);
  if (signal.size() != 2 && signal.size() != 3) {
    return RankError(absl::StrCat("a signal of rank ", signal.size(), ", it has 2 or 3"));
  }
  if (signal.size() == 3 && signal[2] != 1 && signal[2] != 2) {
    return absl::InvalidArgumentError(absl::StrCat("a signal ", ShapeToString(signal),
                                                   " is neither of real nor of complex numbers"));
  }
  for (const size_t i : {kStep, kFrameLength}) {
    if (!context.has_input(i)) continue;
    RETURN_IF_ERROR(CheckType(context, i, kIndices));
    if (NumElements(context.shape(i)) != 1) {
      return absl::InvalidArgumentError(absl::StrCat("input ", i, " has the shape ",
                                                     ShapeToString(context.shape(i)),
                                                     ", which is not a scalar"));
    }
  }
  Size window = -1;
  if (context.has_input(kWindow)) {
    RETURN_IF_ERROR(CheckSameType(context, kSignal, kWindow));
    RETURN_IF_ERROR(CheckRank(context, kWindow, 1));
    window = context.shape(kWindow)[0];
  }
  ASSIGN_OR_RETURN(const std::vector<Size> step, context.RequireSizes(kStep));
  std::vector<Size> length;
  if (context.has_input(kFrameLength)) {
    ASSIGN_OR_RETURN(length, context.RequireSizes(kFrameLength));
  }
  ASSIGN_OR_RETURN(const Frames<Size> frames,
                   FramesOf<Size>(context.node(), signal, step, length, window));
  context.SetOutput(0, context.dtype(kSignal), {signal[0], frames.count, frames.bins, 2});
  return absl::OkStatus();
}

absl::Status StftKernel(const KernelContext& context) {
  const TensorView& signal = context.inputs[kSignal];
  const int64_t window = HasInput(context, kWindow) ? context.inputs[kWindow].shape[0] : -1;
  ASSIGN_OR_RETURN(const Frames<int64_t> frames,
                   FramesOf<int64_t>(context.node, signal.shape, Int64sOf(context, kStep),
                                     Int64sOf(context, kFrameLength), window));
  const int64_t samples = signal.shape[1];
  const int64_t parts = signal.shape.size() == 3 ? signal.shape[2] : 1;
  const int64_t taken = window < 0 ? frames.length : std::min(window, frames.length);
  FourierSums sums(frames.length);
  std::vector<std::complex<double>> x(frames.length);
  return Dispatch(FloatList{}, signal.dtype, [&]<typename T>() {
    const auto number = [](T value) { return static_cast<double>(static_cast<Compute<T>>(value)); };
    const T* const weights = window < 0 ? nullptr : context.inputs[kWindow].as<T>();
    T* to = context.outputs[0].as<T>();
    for (int64_t frame = 0; frame < signal.shape[0] * frames.count; ++frame) {
      const int64_t start = frame / frames.count * samples + frame % frames.count * frames.step;
      std::fill(x.begin(), x.end(), 0);
      for (int64_t i = 0; i < taken; ++i) {
        const T* const from = signal.as<T>() + (start + i) * parts;
        const double weight = weights == nullptr ? 1 : number(weights[i]);
        x[i] = {weight * number(from[0]), parts == 2 ? weight * number(from[1]) : 0};
      }
      sums.Run(x);
      for (int64_t bin = 0; bin < frames.bins; ++bin) {
        *to++ = static_cast<T>(static_cast<Compute<T>>(x[bin].real()));
        *to++ = static_cast<T>(static_cast<Compute<T>>(x[bin].imag()));
      }
    }
  });
}

}  // namespace reprise::ops
