#include "runtime/engine/tail/scanned_values.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace reprise {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr int64_t kMuch = 1 << 20;

Tensor Row(std::vector<float> values) {
  const auto size = static_cast<int64_t>(values.size());
  return Tensor::FromVector<float>(DType::kFloat32, {size}, values);
}

std::vector<float> Joined(const LoopBody::Scanned& declared, Shape expected) {
  const std::string label = "Loop 'l'";
  ScannedValues values(label, declared);
  for (const auto& row : {Row({1, 2}), Row({3, 4}), Row({5, 6})}) {
    EXPECT_TRUE(values.Add(row, kMuch).ok());
  }
  const auto joined = values.Join();
  EXPECT_TRUE(joined.ok()) << joined.status();
  EXPECT_EQ(joined->shape(), expected);
  return {joined->span<float>().begin(), joined->span<float>().end()};
}

TEST(ScannedValuesTest, TheyLieAlongTheDimAndInTheOrderThatWasDeclared) {
  EXPECT_THAT(Joined({}, {3, 2}), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(Joined({.backwards = true}, {3, 2}), ElementsAre(5, 6, 3, 4, 1, 2));
  EXPECT_THAT(Joined({.axis = 1}, {2, 3}), ElementsAre(1, 3, 5, 2, 4, 6));
  EXPECT_THAT(Joined({.axis = -1, .backwards = true}, {2, 3}), ElementsAre(5, 3, 1, 6, 4, 2));
}

TEST(ScannedValuesTest, OfNoIterationsWhatIsDeclared) {
  const std::string label = "Loop 'l'";
  const LoopBody::Scanned typed = {.dtype = DType::kInt64, .shape = {4, 0}};
  const auto none = ScannedValues(label, typed).Join();
  ASSERT_TRUE(none.ok());
  EXPECT_EQ(none->dtype(), DType::kInt64);
  EXPECT_EQ(none->shape(), Shape({0, 4, 0}));
  EXPECT_THAT(std::string(ScannedValues(label, {}).Join().status().message()),
              HasSubstr("Loop 'l': no iteration ran"));
}

TEST(ScannedValuesTest, WhatDoesNotFitTogetherIsAnError) {
  const std::string label = "Loop 'l'";
  const LoopBody::Scanned declared = {.axis = 2};
  ScannedValues values(label, declared);
  ASSERT_TRUE(values.Add(Row({1, 2}), kMuch).ok());
  EXPECT_THAT(std::string(values.Add(Row({1}), kMuch).message()),
              HasSubstr("iteration 1 results in f32[1], the first in f32[2]"));
  EXPECT_THAT(std::string(values.Add(Row({3, 4}), 15).message()),
              HasSubstr("16 bytes after 2 of them, the limit is 15"));
  EXPECT_THAT(std::string(values.Join().status().message()),
              HasSubstr("axis 2 of a result is outside its 2 dims"));
}

}  // namespace
}  // namespace reprise
