#include "tests/fuzz/obligations/contents.h"

#include <algorithm>
#include <limits>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "runtime/certify/numbers.h"
#include "runtime/engine/replay/gather.h"

namespace reprise::obligations {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// A name, taken apart.
struct InputKind {
  std::string kind;
  int64_t bound = 1;

  InputKind(const std::string& name, const Sizes& sizes) {
    const std::vector<std::string> parts = absl::StrSplit(name, '.');
    kind = parts[0];
    if (parts.size() < 3 || absl::SimpleAtoi(parts[1], &bound)) return;
    const auto size = sizes.find(parts[1]);
    bound = size == sizes.end() ? 1 : size->second;
  }
  bool is_bounded() const {
    return kind == "index" || kind == "place" || kind == "count" || kind == "some";
  }
  bool is_flag() const { return kind == "flag" || kind == "mask"; }
};

void FillMask(Numbers& numbers, Chance& chance) {
  const int64_t length = numbers.shape.empty() ? 1 : numbers.shape.back();
  const bool whole = chance.OneIn(3), holes = chance.OneIn(4);
  for (size_t i = 0; i < numbers.values.size();) {
    const int64_t ones = whole ? length : chance.Between(1, std::max<int64_t>(length, 1));
    for (int64_t k = 0; k < length; ++k, ++i) {
      numbers.values[i] = holes ? static_cast<double>(k == 0 || chance.OneIn(2)) : k < ones;
    }
  }
}

double OrdinaryNumber(const InputKind& kind, DType dtype, bool round, Chance& chance) {
  const auto between = [&](double low, double high) {
    const double share = static_cast<double>(chance.Below(17)) / 16;
    return low + (high - low) * share;
  };
  const int64_t last = std::max<int64_t>(kind.bound, 1) - 1;
  if (kind.kind == "index") return static_cast<double>(chance.Between(0, last));
  if (kind.kind == "place") return static_cast<double>(chance.Between(-last - 1, last));
  if (kind.kind == "count") return static_cast<double>(chance.Between(0, kind.bound));
  if (kind.kind == "some") return static_cast<double>(chance.Between(1, last + 1));
  if (kind.kind == "whole") return static_cast<double>(chance.Below(4));
  if (kind.is_flag() || dtype == DType::kBool) return static_cast<double>(chance.Below(2));
  if (kind.kind == "unit") return between(-0.875, 0.875);
  if (kind.kind == "pos") {
    return IsFloating(dtype) ? between(0.5, 2.5) : static_cast<double>(chance.Between(1, 9));
  }
  if (IsFloating(dtype)) return chance.Number(1, round);
  return static_cast<double>(IsSigned(dtype) ? chance.Between(-9, 9) : chance.Between(0, 9));
}

// Numbers that the engine might write; beyond kOrdinaryWays those that an op might leave.
constexpr int64_t kOrdinaryWays = 3, kWays = 9;

double HostileNumber(DType dtype, int64_t way, Chance& chance) {
  constexpr double kLargest = std::numeric_limits<float>::max();
  if (!IsFloating(dtype)) {
    constexpr double kFar = 9.3e18;  // is clamped to the ends of the type
    return way % 3 == 0 ? kFar : way % 3 == 1 ? -kFar : static_cast<double>(chance.Between(-9, 9));
  }
  switch (way) {
    case 0:
      return chance.Number(1, true);
    case 1:
      return chance.Number(500, false);
    case 2:
      return chance.Of({1000.0, -1000.0});
    case 3:
      return std::numeric_limits<double>::quiet_NaN();
    case 4:
      return kInfinity;
    case 5:
      return -kInfinity;
    case 6:
      return dtype == DType::kFloat16 ? 65504 : kLargest;
    case 7:
      return dtype == DType::kFloat16 ? -65504 : -kLargest;
    default:
      return HostileNumber(dtype, chance.Below(8), chance);
  }
}

// The same as ToTensor, which makes infinities finite.
Tensor TensorOf(const Numbers& numbers) {
  if (!IsFloating(numbers.dtype)) return ToTensor(numbers);
  return Tensor::Make(numbers.dtype, numbers.shape, [&](void* data) {
    const size_t size = DTypeSize(numbers.dtype);
    for (size_t i = 0; i < numbers.values.size(); ++i) {
      FillElements(numbers.dtype, numbers.values[i], 1, static_cast<char*>(data) + i * size);
    }
  });
}

}  // namespace

Shape ShapeAt(const std::vector<Dim>& dims, const Sizes& sizes) {
  Shape shape;
  for (const Dim& dim : dims) shape.push_back(dim.is_constant() ? dim.size : sizes.at(dim.symbol));
  return shape;
}

Tensor OrdinaryContents(const std::string& name, DType dtype, const std::vector<Dim>& dims,
                        const Sizes& sizes, Chance& chance) {
  Numbers numbers = {.dtype = dtype, .shape = ShapeAt(dims, sizes)};
  numbers.values.resize(NumElements(numbers.shape));
  const InputKind kind(name, sizes);
  if (kind.kind == "mask") {
    FillMask(numbers, chance);
    return ToTensor(numbers);
  }
  const bool round = !chance.OneIn(4);
  for (double& value : numbers.values) value = OrdinaryNumber(kind, dtype, round, chance);
  return ToTensor(numbers);
}

Tensor HostileContents(const std::string& name, DType dtype, const std::vector<Dim>& dims,
                       const Sizes& sizes, Padding padding, Chance& chance) {
  const InputKind kind(name, sizes);
  if (kind.is_bounded() || kind.is_flag() || dtype == DType::kBool || chance.OneIn(8)) {
    return OrdinaryContents(kind.kind == "mask" ? "flag" : name, dtype, dims, sizes, chance);
  }
  Numbers numbers = {.dtype = dtype, .shape = ShapeAt(dims, sizes)};
  numbers.values.resize(NumElements(numbers.shape));
  const int64_t way = chance.Below(padding == Padding::kLoud ? kWays : kOrdinaryWays);
  for (double& value : numbers.values) value = HostileNumber(dtype, way, chance);
  return TensorOf(numbers);
}

void MakeWild(Tensor& tensor, Chance& chance) {
  if (!IsFloating(tensor.dtype())) return;
  const double what = chance.Of({kInfinity, -kInfinity, kInfinity - kInfinity});
  Numbers numbers = {tensor.dtype(), tensor.shape(), tensor.ToDoubles()};
  for (double& value : numbers.values) {
    if (chance.OneIn(4)) value = what;
  }
  tensor = TensorOf(numbers);
}

}  // namespace reprise::obligations
