#include "runtime/ops/movement/data_sized.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/base/work_watch.h"
#include "runtime/ops/kit/typed.h"

namespace reprise::ops {
namespace {

absl::Status DependsOnData(size_t input) {
  return absl::FailedPreconditionError(
      absl::StrCat("its output shape depends on data (input ", input, ")"));
}

// A tensor as items along one axis: item i is `outer` blocks of `inner` elements each.
struct Items {
  int64_t outer = 1;
  int64_t count = 1;
  int64_t inner = 1;

  int64_t At(int64_t block, int64_t item) const { return (block * count + item) * inner; }
};

// Returns the items: slices along the attribute `axis`, or without it the elements themselves.
absl::StatusOr<Items> ItemsOf(const Node& node, const Shape& shape) {
  Items items;
  const int64_t* given = node.attributes.Get<int64_t>("axis");
  if (given == nullptr) {
    items.count = NumElements(shape);
    return items;
  }
  ASSIGN_OR_RETURN(const int64_t axis, NormalizeAxis(*given, static_cast<int64_t>(shape.size())));
  const absl::Span<const int64_t> dims = shape;
  items.outer = NumElements(dims.first(axis));
  items.count = dims[axis];
  items.inner = NumElements(dims.subspan(axis + 1));
  return items;
}

// Returns `shape` with `count` items along the attribute `axis`; without it [count].
Shape WithItems(const Node& node, const Shape& shape, int64_t count) {
  const int64_t* axis = node.attributes.Get<int64_t>("axis");
  if (axis == nullptr) return {count};
  Shape result = shape;
  result[*axis < 0 ? *axis + static_cast<int64_t>(shape.size()) : *axis] = count;
  return result;
}

// Copies the items of `from` at `positions`, in that order.
void TakeItems(const TensorView& from, const Items& items, const std::vector<int64_t>& positions,
               const MutableTensorView& to) {
  DispatchSize(from.dtype, [&]<typename T>() {
    T* out = to.as<T>();
    for (int64_t block = 0; block < items.outer; ++block) {
      for (const int64_t position : positions) {
        out = std::copy_n(from.as<T>() + items.At(block, position), items.inner, out);
      }
    }
  });
}

// Returns the positions that a Compress keeps: conditions beyond the last item count for nothing.
std::vector<int64_t> KeptPositions(const TensorView& condition, int64_t items) {
  std::vector<int64_t> positions;
  const int64_t count = std::min(items, condition.num_elements());
  for (int64_t i = 0; i < count; ++i) {
    if (condition.as<Bool>()[i]) positions.push_back(i);
  }
  return positions;
}

// Equal items, one group each, in the order of the results of a Unique.
struct Groups {
  std::vector<int64_t> first;     // each group's first item
  std::vector<int64_t> counts;    // items of each group
  std::vector<int64_t> group_of;  // each item's group
};

// Returns -1, 0 or 1; NaN comes last and equals itself.
template <typename T>
int Compare(T left, T right) {
  const auto a = static_cast<Compute<T>>(left), b = static_cast<Compute<T>>(right);
  if (a < b) return -1;
  if (b < a) return 1;
  if (a == b) return 0;
  const bool a_is_number = a == a, b_is_number = b == b;
  return a_is_number == b_is_number ? 0 : a_is_number ? -1 : 1;
}

template <typename T>
int CompareItems(const T* data, const Items& items, int64_t a, int64_t b) {
  for (int64_t block = 0; block < items.outer; ++block) {
    const T* left = data + items.At(block, a);
    const T* right = data + items.At(block, b);
    for (int64_t i = 0; i < items.inner; ++i) {
      if (const int order = Compare(left[i], right[i]); order != 0) return order;
    }
  }
  return 0;
}

// Items lie anywhere: comparing two costs as much as this many steps of a plain loop.
constexpr int64_t kStepsOfComparison = 16;

absl::StatusOr<Groups> GroupItems(const TensorView& in, const Items& items, bool sorted) {
  std::vector<int64_t> order(items.count);
  std::iota(order.begin(), order.end(), 0);
  Groups groups;
  groups.group_of.resize(items.count);
  RETURN_IF_ERROR(Dispatch(AllList{}, in.dtype, [&]<typename T>() {
    const T* data = in.as<T>();
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
      WatchWork(kStepsOfComparison);
      return CompareItems(data, items, a, b) < 0;
    });
    for (int64_t i = 0; i < items.count; ++i) {
      if (i == 0 || CompareItems(data, items, order[i - 1], order[i]) != 0) {
        groups.first.push_back(order[i]);
        groups.counts.push_back(0);
      }
      ++groups.counts.back();
      groups.group_of[order[i]] = static_cast<int64_t>(groups.first.size()) - 1;
    }
  }));
  if (sorted) return groups;
  // Orders groups by first occurrence.
  std::vector<int64_t> rank(groups.first.size());
  std::iota(rank.begin(), rank.end(), 0);
  std::sort(rank.begin(), rank.end(),
            [&](int64_t a, int64_t b) { return groups.first[a] < groups.first[b]; });
  Groups ranked = groups;
  std::vector<int64_t> place(rank.size());
  for (size_t i = 0; i < rank.size(); ++i) {
    ranked.first[i] = groups.first[rank[i]];
    ranked.counts[i] = groups.counts[rank[i]];
    place[rank[i]] = static_cast<int64_t>(i);
  }
  for (int64_t& group : ranked.group_of) group = place[group];
  return ranked;
}

absl::StatusOr<Groups> GroupItems(const Node& node, const TensorView& in) {
  ASSIGN_OR_RETURN(const Items items, ItemsOf(node, in.shape));
  return GroupItems(in, items, node.attributes.Int("sorted", 1) != 0);
}

}  // namespace

absl::Status NonZeroRule(InferContext& context) {
  const Tensor* value = context.constant(0);
  if (value == nullptr) return DependsOnData(0);
  const std::vector<double> elements = value->ToDoubles();
  const int64_t count =
      static_cast<int64_t>(elements.size()) - std::count(elements.begin(), elements.end(), 0.0);
  context.SetOutput(0, DType::kInt64, {context.rank(0), count});
  return absl::OkStatus();
}

absl::Status NonZeroKernel(const KernelContext& context) {
  const TensorView& in = context.inputs[0];
  const MutableTensorView& out = context.outputs[0];
  const int64_t columns = out.shape[1];
  const Shape strides = Strides(in.shape);
  return Dispatch(AllList{}, in.dtype, [&]<typename T>() {
    int64_t column = 0;
    for (int64_t i = 0; i < in.num_elements() && column < columns; ++i) {
      if (static_cast<Compute<T>>(in.as<T>()[i]) == Compute<T>(0)) continue;
      int64_t rest = i;
      for (size_t d = 0; d < strides.size(); ++d) {
        out.as<int64_t>()[d * columns + column] = rest / strides[d];
        rest %= strides[d];
      }
      ++column;
    }
  });
}

absl::Status CompressRule(InferContext& context) {
  RETURN_IF_ERROR(CheckType(context, 1, kBools));
  RETURN_IF_ERROR(CheckRank(context, 1, 1));
  ASSIGN_OR_RETURN(const Items items, ItemsOf(context.node(), context.pinned_shape(0)));
  if (context.constant(1) == nullptr) return DependsOnData(1);
  const auto kept =
      static_cast<int64_t>(KeptPositions(context.constant(1)->view(), items.count).size());
  context.SetOutput(0, context.dtype(0),
                    SizesOf(WithItems(context.node(), context.pinned_shape(0), kept)));
  return absl::OkStatus();
}

absl::Status CompressKernel(const KernelContext& context) {
  ASSIGN_OR_RETURN(const Items items, ItemsOf(context.node, context.inputs[0].shape));
  TakeItems(context.inputs[0], items, KeptPositions(context.inputs[1], items.count),
            context.outputs[0]);
  return absl::OkStatus();
}

absl::Status UniqueRule(InferContext& context) {
  RETURN_IF_ERROR(ItemsOf(context.node(), context.pinned_shape(0)).status());
  if (context.constant(0) == nullptr) return DependsOnData(0);
  ASSIGN_OR_RETURN(const Groups groups, GroupItems(context.node(), context.constant(0)->view()));
  const auto count = static_cast<int64_t>(groups.first.size());
  context.SetOutput(0, context.dtype(0),
                    SizesOf(WithItems(context.node(), context.pinned_shape(0), count)));
  context.SetOutput(1, DType::kInt64, {count});
  context.SetOutput(2, DType::kInt64, {static_cast<int64_t>(groups.group_of.size())});
  context.SetOutput(3, DType::kInt64, {count});
  return absl::OkStatus();
}

absl::Status UniqueKernel(const KernelContext& context) {
  ASSIGN_OR_RETURN(const Items items, ItemsOf(context.node, context.inputs[0].shape));
  ASSIGN_OR_RETURN(const Groups groups, GroupItems(context.node, context.inputs[0]));
  if (HasOutput(context, 0)) {
    TakeItems(context.inputs[0], items, groups.first, context.outputs[0]);
  }
  const auto write = [&](size_t output, const std::vector<int64_t>& values) {
    if (!HasOutput(context, output)) return;
    std::copy(values.begin(), values.end(), context.outputs[output].as<int64_t>());
  };
  write(1, groups.first);
  write(2, groups.group_of);
  write(3, groups.counts);
  return absl::OkStatus();
}

}  // namespace reprise::ops
