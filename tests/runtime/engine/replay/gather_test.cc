#include "runtime/engine/replay/gather.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <random>
#include <vector>

namespace reprise {
namespace {

using testing::Each;
using testing::ElementsAre;

TEST(CopyBlockTest, RowsLandAtTheirOffsetWithPaddingLeftAlone) {
  const std::vector<int> from = {1, 2, 3, 4};  // [2, 2]
  std::vector<int> to(12, 0);                  // [3, 4]
  CopyBlock({.shape = {2, 2},
             .from_shape = {2, 2},
             .from_offset = {0, 0},
             .to_shape = {3, 4},
             .to_offset = {1, 0},
             .element_bytes = sizeof(int)},
            from.data(), to.data());
  EXPECT_THAT(to, ElementsAre(0, 0, 0, 0, 1, 2, 0, 0, 3, 4, 0, 0));
}

TEST(CopyBlockTest, ScalarIsOneElement) {
  const int from = 5;
  int to = 0;
  CopyBlock({.element_bytes = sizeof(int)}, &from, &to);
  EXPECT_EQ(to, 5);
}

TEST(CopyBlockTest, EmptyBlockTouchesNothing) {
  int to = 7;
  CopyBlock({.shape = {0, 3},
             .from_shape = {0, 3},
             .from_offset = {0, 0},
             .to_shape = {1, 1},
             .to_offset = {0, 0},
             .element_bytes = sizeof(int)},
            nullptr, &to);
  EXPECT_EQ(to, 7);
}

TEST(CopyBlockTest, MatchesElementwiseCopyOnRandomBlocks) {
  std::mt19937 random(1);
  auto draw = [&](int low, int high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  for (int round = 0; round < 500; ++round) {
    const size_t rank = draw(1, 4);
    Shape from_shape, to_shape, shape, from_offset, to_offset;
    for (size_t d = 0; d < rank; ++d) {
      from_shape.push_back(draw(1, 5));
      to_shape.push_back(draw(1, 5));
      shape.push_back(draw(1, std::min(from_shape[d], to_shape[d])));
      from_offset.push_back(draw(0, from_shape[d] - shape[d]));
      to_offset.push_back(draw(0, to_shape[d] - shape[d]));
    }
    std::vector<int> from(NumElements(from_shape)), to(NumElements(to_shape), -1);
    std::iota(from.begin(), from.end(), 0);
    std::vector<int> expected = to;
    const Shape strides = Strides(shape), from_strides = Strides(from_shape),
                to_strides = Strides(to_shape);
    for (int64_t i = 0; i < NumElements(shape); ++i) {
      int64_t source = 0, target = 0;
      for (size_t d = 0; d < rank; ++d) {
        const int64_t index = i / strides[d] % shape[d];
        source += (index + from_offset[d]) * from_strides[d];
        target += (index + to_offset[d]) * to_strides[d];
      }
      expected[target] = from[source];
    }
    CopyBlock({.shape = shape,
               .from_shape = from_shape,
               .from_offset = from_offset,
               .to_shape = to_shape,
               .to_offset = to_offset,
               .element_bytes = sizeof(int)},
              from.data(), to.data());
    ASSERT_EQ(to, expected) << ShapeToString(shape) << " of " << ShapeToString(from_shape) << " to "
                            << ShapeToString(to_shape);
  }
}

TEST(FillElementsTest, ConvertsAndSaturates) {
  std::vector<int64_t> wide(3);
  FillElements(DType::kInt64, -7, 3, wide.data());
  EXPECT_THAT(wide, Each(-7));
  std::vector<int8_t> narrow(2);
  FillElements(DType::kInt8, 1000, 2, narrow.data());
  EXPECT_THAT(narrow, Each(127));
  std::vector<float> floats(2);
  FillElements(DType::kFloat32, 0.5, 2, floats.data());
  EXPECT_THAT(floats, Each(0.5f));
}

}  // namespace
}  // namespace reprise
