// The facts of rows, against the reference kernels that define the ops.
#include "runtime/ops/kit/op_facts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "runtime/ops/maps/map_rules.h"
#include "tests/runtime/ops/op_testing.h"

namespace reprise {
namespace {

// Numbers in [low, low + 1), the same for the same seed.
class Numbered {
 public:
  explicit Numbered(uint32_t seed) : state_(seed) {}
  float Next(float low) {
    state_ = state_ * 1664525 + 1013904223;
    return low + static_cast<float>(state_ >> 8) / static_cast<float>(1 << 24);
  }

 private:
  uint32_t state_;
};

Tensor Floats(const Shape& shape, float low, uint32_t seed) {
  Numbered numbers(seed);
  std::vector<float> values(NumElements(shape));
  for (float& value : values) value = numbers.Next(low) * 3;
  return F32(shape, values);
}

// Returns the results over floats of one shape, where the op takes such; else nothing.
std::vector<Tensor> OverFloats(const OpRow& row, const Shape& shape, float low, uint32_t seed) {
  OptionalTensors inputs;
  for (int i = 0; i < std::max(row.min_inputs, 1); ++i) {
    inputs.push_back(Floats(shape, low, seed + static_cast<uint32_t>(i)));
  }
  auto results = RunOp(row.name, inputs, {}, static_cast<size_t>(std::max(row.min_outputs, 1)));
  return results.ok() ? *std::move(results) : std::vector<Tensor>();
}

TEST(OpFactsTest, WhatIsNeverNegativeIsNot) {
  int seen = 0;
  for (const OpRow& row : AllOps()) {
    const Sign sign = FactsOf(row).sign;
    if (sign != Sign::kNeverNegative && sign != Sign::kOfOperands) continue;
    SCOPED_TRACE(std::string(row.name));
    const float low = sign == Sign::kNeverNegative ? -0.5f : 0;
    for (const Shape& shape : {Shape{2, 3}, Shape{1, 2, 4, 4}}) {
      for (const Tensor& result : OverFloats(row, shape, low, 7)) {
        ++seen;
        for (const double value : result.ToDoubles()) EXPECT_FALSE(value < 0) << value;
      }
    }
  }
  EXPECT_GT(seen, 40);  // Most of these ops take such operands.
}

// An op that only moves elements makes nothing that its operands do not hold.
TEST(OpFactsTest, WhatMovesElementsMakesNone) {
  const Tensor x = Floats({2, 3, 4}, -0.5f, 3);
  const std::vector<double> held = x.ToDoubles();
  const Tensor places = I64({2}, {1, 0}), axes = I64({1}, {0}), shape = I64({3}, {2, 3, 4});
  const auto more = [&](absl::string_view op) -> OptionalTensors {
    if (op == "Reshape" || op == "Expand") return {x, shape};
    if (op == "Tile") return {x, I64({3}, {1, 2, 1})};
    if (op == "Slice") return {x, I64({1}, {1}), I64({1}, {3}), axes};
    if (op == "Gather") return {x, places};
    if (op == "GatherElements") return {x, I64({1, 1, 1}, {1})};
    if (op == "GatherND") return {x, I64({1, 2}, {1, 2})};
    if (op == "Unsqueeze") return {x, axes};
    if (op == "Squeeze") return {Floats({1, 24}, -0.5f, 3), axes};
    if (op == "Compress") return {x, Bools({3}, {1, 0, 1})};
    if (op == "Where") return {Bools({1}, {1}), x, x};
    return {x};
  };
  for (const OpRow& row : AllOps()) {
    const OpFacts& facts = FactsOf(row);
    if (facts.elements == Elements::kMade) continue;
    SCOPED_TRACE(std::string(row.name));
    const auto results = RunOp(row.name, more(row.name));
    ASSERT_TRUE(results.ok()) << results.status();
    const std::vector<double> made = (*results)[0].ToDoubles();
    for (const double value : made) EXPECT_THAT(held, testing::Contains(value));
    if (facts.HoldsAllOfFirst()) {
      EXPECT_EQ(std::set<double>(made.begin(), made.end()),
                std::set<double>(held.begin(), held.end()));
    }
    if (facts.elements == Elements::kSame) EXPECT_EQ(made, held);
  }
}

TEST(OpFactsTest, FactsAgreeWithEachOther) {
  for (const OpRow& row : AllOps()) {
    SCOPED_TRACE(std::string(row.name));
    const OpFacts& facts = FactsOf(row);
    // Traits say it already: a rule next to them would not be asked.
    if (row.Has(kView) || row.Has(kElementwise)) {
      EXPECT_EQ(facts.map, nullptr);
      EXPECT_EQ(facts.packing, PackRule::kNone);
    }
    EXPECT_EQ(row.Has(kView), row.Has(kView) && facts.elements == Elements::kSame);
    EXPECT_FALSE(facts.Is(kLight) && facts.Is(kHeavy));
    if (!facts.becomes.empty()) {
      EXPECT_NE(FindOp(facts.becomes), nullptr) << facts.becomes;
    }
    if (facts.axis != 0) {
      EXPECT_TRUE(facts.map != nullptr || facts.packing != PackRule::kNone);
    }
  }
  EXPECT_EQ(FactsOf("no op").map, nullptr);
}

// A new op is a row, a kernel, a plan and a test: everything else about it stands in its row.
TEST(OpFactsTest, DetIsBatchedPackedAndBoundedByItsRowAlone) {
  const OpFacts& facts = FactsOf("Det");
  EXPECT_EQ(facts.map, ops::DetMap);
  EXPECT_EQ(facts.packing, PackRule::kLastDims);
  EXPECT_EQ(facts.growth, Growth::kReduces);
  EXPECT_TRUE(facts.Is(kHeavy));
}

}  // namespace
}  // namespace reprise
