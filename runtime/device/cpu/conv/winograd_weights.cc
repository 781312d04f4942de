// The weights of plan_conv_winograd.cc: panel by panel of maps, form by form, and tap by tap of the
// slices that a window sees.
#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/device/cpu/conv/conv_plans.h"
#include "runtime/device/cpu/conv/winograd.h"
#include "runtime/device/cpu/gemm/gemm.h"
#include "runtime/device/cpu/plan/plan.h"
#include "runtime/device/cpu/simd/weight_memory.h"

namespace reprise::cpu {

absl::StatusOr<Tensor> RunPackWinograd(const PrepareCall& call) {
  const Tensor& weights = call.weight();
  const GemmKernels& gemm = GemmKernelsFor(call.target.isa);
  constexpr int64_t kWindow = 9;
  const Shape& shape = weights.shape();
  const int64_t width = gemm.panel_columns;
  const size_t dims = shape.size();
  if (weights.dtype() != DType::kFloat32 || dims < 4 || dims > 5 || shape[dims - 2] != 3 ||
      shape[dims - 1] != 3 || call.attributes.Int("panel", 0) != width) {
    return absl::InternalError(absl::StrCat(
        kPackWinogradOp, " of ", DTypeName(weights.dtype()), " ", ShapeToString(shape),
        " into panels of ", call.attributes.Int("panel", 0), " columns on a device of ", width));
  }
  const int64_t maps = shape[0], channels = shape[1], taps = dims == 5 ? shape[2] : 1;
  const int64_t panel_floats = gemm.PackedFloats(channels, 1);
  const int64_t bytes = static_cast<int64_t>(sizeof(float)) * kWinogradForms * gemm.Panels(maps) *
                        taps * panel_floats;
  std::shared_ptr<std::byte> packed = call.memory.Allocate(static_cast<size_t>(bytes));
  auto* to = reinterpret_cast<float*>(packed.get());
  // One panel and tap at a time: its maps a row each, in all forms.
  const int64_t step = width * channels;
  std::vector<float> of_tap(step * kWindow), forms(kWinogradForms * step);
  for (int64_t map = 0; map < maps; map += width) {
    const int64_t count = std::min(width, maps - map);
    for (int64_t tap = 0; tap < taps; ++tap) {
      const float* from = weights.span<float>().data() + (map * channels * taps + tap) * kWindow;
      for (int64_t i = 0; i < count * channels; ++i) {
        std::copy_n(from + i * taps * kWindow, kWindow, of_tap.data() + i * kWindow);
      }
      WinogradWeights(of_tap.data(), count * channels, step, forms.data());
      for (int64_t form = 0; form < kWinogradForms; ++form) {
        gemm.pack({.data = forms.data() + form * step, .ld = channels, .transposed = true},
                  channels, count, 1.0f, to + (form * taps + tap) * panel_floats);
      }
    }
    to += kWinogradForms * taps * panel_floats;
  }
  return Tensor(DType::kUInt8, {bytes}, std::move(packed));
}

}  // namespace reprise::cpu
