// TopK on every tier against its reference kernel: rows in every order, equals, and NaN.
#include <algorithm>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/runtime/device/cpu/device_harness.h"
#include "tests/runtime/device/cpu/tiers.h"

namespace reprise {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

enum class Order { kRandom, kAscending, kDescending, kEquals, kFewNumbers, kMostlyNan };
constexpr Order kOrders[] = {Order::kRandom, Order::kAscending,  Order::kDescending,
                             Order::kEquals, Order::kFewNumbers, Order::kMostlyNan};

class TopKTest : public DeviceOfTier {
 protected:
  // Returns rows of `size` elements; a few are infinite or zeros of both signs.
  Tensor Rows(int64_t rows, int64_t size, Order order) {
    std::vector<float> x(static_cast<size_t>(rows * size));
    std::normal_distribution<float> normal;
    constexpr float kOdd[] = {kInfinity, -kInfinity, 0.0f, -0.0f};
    for (float& value : x) {
      value = random_() % 50 == 0 ? kOdd[random_() % std::size(kOdd)] : normal(random_);
      if (order == Order::kEquals) value = 2.5f;
      if (order == Order::kFewNumbers) value = static_cast<float>(random_() % 4);
      if (order == Order::kMostlyNan && random_() % 10 != 0) value = kNan;
    }
    for (auto row = x.begin(); row != x.end(); row += size) {
      if (order == Order::kAscending) std::sort(row, row + size);
      if (order == Order::kDescending) std::sort(row, row + size, std::greater<>());
    }
    return Tensor::FromVector(DType::kFloat32, {rows, size}, x);
  }

  std::mt19937 random_{7};
};

TEST_P(TopKTest, ChoosesAndOrdersAsTheReference) {
  constexpr int64_t kRows = 3;
  for (const int64_t size : {1, 2, 15, 16, 64, 65, 67, 130, 1000, 4099}) {
    for (const int64_t k : {int64_t{1}, int64_t{2}, int64_t{5}, size / 3, size - 1, size}) {
      if (k < 1 || k > size) continue;
      for (const bool largest : {true, false}) {
        const bool doubles = (size + k) % 3 == 0;
        NodeRun run(absl::StrCat(
            "input %x: ", doubles ? "f64[" : "f32[", kRows, ", ", size, "]\nconst %k: i64[1] = {",
            k, "}\n%v: ?, %i: ? = TopK(%x, %k) {largest = ", static_cast<int>(largest),
            "}\noutput %v\noutput %i"));
        for (const Order order : kOrders) {
          run.inputs[0] = Rows(kRows, size, order);
          if (doubles) {
            run.inputs[0] = Tensor::FromVector<double>(DType::kFloat64, {kRows, size},
                                                       run.inputs[0]->ToDoubles());
          }
          const std::vector<Tensor> want = run.Reference();
          for (const KernelOption& option : device_.Options(run.graph, run.id)) {
            const std::vector<Tensor> got = run.RunOption(device_, option, 2);
            SCOPED_TRACE(absl::StrCat(option.kernel, ": ", k, " of ", size, ", order ",
                                      static_cast<int>(order), largest ? "" : ", smallest"));
            ExpectClose(got[0], want[0], 0);
            ASSERT_EQ(got[1], want[1]);
          }
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Tiers, TopKTest, testing::ValuesIn(cpu::TestedTiers()), cpu::TierName);

}  // namespace
}  // namespace reprise
