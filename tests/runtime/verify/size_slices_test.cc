#include "runtime/verify/size_slices.h"

#include <gtest/gtest.h>

namespace reprise {
namespace {

TEST(SizeSlicesTest, OneFindsOutAndAllAreTold) {
  SizeSlices slices({SizeSlices::kDecidesNothing, 512, 0});
  EXPECT_EQ(slices.Find({3, 100, 0}), SizeSlices::State::kHolds) << "nothing is fixed";
  EXPECT_EQ(slices.Find({3, 600, 7}), SizeSlices::State::kUnknown);
  const SizeSlices::Slice slice = slices.SliceOf({3, 600, 7});
  EXPECT_EQ(slice, (SizeSlices::Slice{SizeSlices::kFree, 600, 7}));
  int told = 0, begun = 0;
  const auto tell = [&] { ++told; };
  EXPECT_FALSE(slices.Await(slice, tell, [] { return false; })) << "no thread takes it";
  EXPECT_TRUE(slices.Await(slice, tell, [&] { return ++begun == 1; }));
  EXPECT_TRUE(slices.Await(slice, tell, [&] { return ++begun == 1; })) << "it is under way";
  slices.Learn(slice, absl::FailedPreconditionError("rows meet"));
  EXPECT_EQ(told, 2);
  EXPECT_EQ(begun, 1);
  EXPECT_FALSE(slices.Await(slice, tell, [&] { return ++begun == 1; })) << "it is known";
  EXPECT_EQ(slices.Find({9, 600, 7}), SizeSlices::State::kRefused);
  EXPECT_EQ(slices.FindWithReason(slice).why, "rows meet");
  EXPECT_EQ(slices.refused(), 1u);
  slices.Forget();
  EXPECT_EQ(slices.Find({9, 600, 7}), SizeSlices::State::kUnknown);
  EXPECT_EQ(told, 2);
}

}  // namespace
}  // namespace reprise
