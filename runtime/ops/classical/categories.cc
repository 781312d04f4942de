#include "runtime/ops/classical/categories.h"

#include <algorithm>
#include <vector>

#include "runtime/base/status_macros.h"
#include "runtime/ops/kit/typed.h"

namespace reprise::ops {
namespace {

using KeyList = TypeList<float, double, int8_t, uint8_t, int16_t, uint16_t, int32_t, uint32_t,
                         int64_t, uint64_t>;

}  // namespace

absl::Status CategoryIndexRule(InferContext& context) {
  constexpr uint32_t kKeys = kInts | TypeBit(DType::kFloat32) | TypeBit(DType::kFloat64);
  RETURN_IF_ERROR(CheckType(context, 0, kKeys));
  RETURN_IF_ERROR(CheckSameType(context, 0, 1));
  RETURN_IF_ERROR(CheckRank(context, 1, 1));
  context.SetOutput(0, DType::kInt64, context.shape(0));
  return absl::OkStatus();
}

absl::Status CategoryIndexKernel(const KernelContext& context) {
  return Dispatch(KeyList{}, context.inputs[0].dtype, [&]<typename T>() {
    const T* x = context.inputs[0].as<T>();
    const T* keys = context.inputs[1].as<T>();
    const int64_t count = context.inputs[1].num_elements();
    const int64_t size = context.inputs[0].num_elements();
    const UnknownCategory unknown =
        UnknownCategoryOf<T>(context.node.attributes, absl::MakeConstSpan(keys, count));
    int64_t* y = context.outputs[0].as<int64_t>();
    const std::vector<int64_t> order = KeyOrder(absl::MakeConstSpan(keys, count));
    for (int64_t i = 0; i < size; ++i) {
      const auto at = std::lower_bound(order.begin(), order.end(), x[i], [&](int64_t key, T value) {
        return KeyIsBefore(keys[key], value);
      });
      const bool found = at != order.end() && !KeyIsBefore(x[i], keys[*at]);
      y[i] = found ? *at : count;
      if (found) continue;
      unknown.Tell(x[i], i, [&](auto... what) { context.errors.Report(what...); });
    }
  });
}

}  // namespace reprise::ops
