#include "runtime/device/cpu/gemm/conv_prepare.h"

#include "absl/strings/str_cat.h"
#include "runtime/device/cpu/gemm/conv_product.h"
#include "runtime/device/cpu/gemm/gemm_plans.h"
#include "runtime/device/cpu/simd/weight_memory.h"
#include "runtime/ops/movement/transpose_op.h"

namespace reprise::cpu {

PrepareStep MapsLast(const Shape& weight, size_t dims) {
  std::vector<int64_t> order;
  Shape turned;
  for (size_t i = 0; i < weight.size(); ++i) {
    order.push_back(static_cast<int64_t>((i + dims) % weight.size()));
    turned.push_back(weight[order.back()]);
  }
  return {.input = 1,
          .op = TransposeOp::kName,
          .attributes = {{"perm", std::move(order)}},
          .dtype = DType::kFloat32,
          .shape = std::move(turned)};
}

std::vector<float> TapsFirst(const float* weights, int64_t maps, int64_t depth, int64_t taps) {
  std::vector<float> by_tap(static_cast<size_t>(maps * depth));
  const int64_t channels = depth / taps;
  for (int64_t map = 0; map < maps; ++map, weights += depth) {
    float* const to = by_tap.data() + map * depth;
    for (int64_t k = 0; k < depth; ++k) to[k % taps * channels + k / taps] = weights[k];
  }
  return by_tap;
}

absl::StatusOr<Tensor> RunPackMaps(const PrepareCall& call) {
  const Tensor& weights = call.weight();
  const int64_t groups = call.attributes.Int("groups", 0), tile = call.attributes.Int("tile", 0);
  const ConvProductKernels& panels = ConvProductKernelsFor(call.target.isa);
  const ConvProductKernels& kernels =
      tile == panels.tile_maps ? panels : ConvTapKernelsFor(call.target.isa);
  const int64_t taps = call.attributes.Int("taps", 1);
  const Shape& shape = weights.shape();
  if (weights.dtype() != DType::kFloat32 || shape.empty() || groups < 1 || shape[0] % groups != 0 ||
      tile != kernels.tile_maps) {
    return absl::InternalError(absl::StrCat(
        kPackMapsOp, " of ", DTypeName(weights.dtype()), " ", ShapeToString(shape), " in ", groups,
        " groups, into tiles of ", tile, " maps on a device of ", kernels.tile_maps));
  }
  const int64_t maps = shape[0] / groups;
  const int64_t floats = NumElements(shape), of_group = floats / groups;
  const int64_t bytes = floats * static_cast<int64_t>(sizeof(float));
  std::shared_ptr<std::byte> packed = call.memory.Allocate(static_cast<size_t>(bytes));
  auto* to = reinterpret_cast<float*>(packed.get());
  const float* from = weights.span<float>().data();
  std::vector<float> by_tap;
  if (taps > 1) {
    by_tap = TapsFirst(from, shape[0], floats / shape[0], taps);
    from = by_tap.data();
  }
  for (int64_t group = 0; group < groups; ++group) {
    kernels.pack(from + group * of_group, maps, of_group / maps, to + group * of_group);
  }
  return Tensor(DType::kUInt8, {bytes}, std::move(packed));
}

}  // namespace reprise::cpu
