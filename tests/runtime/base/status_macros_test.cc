#include "runtime/base/status_macros.h"

#include <gtest/gtest.h>

#include <memory>

namespace reprise {
namespace {

absl::StatusOr<std::unique_ptr<int>> MakeInt(int value) {
  if (value < 0) return absl::InvalidArgumentError("negative");
  return std::make_unique<int>(value);
}

absl::StatusOr<int> Sum(int a, int b) {
  ASSIGN_OR_RETURN(const std::unique_ptr<int> x, MakeInt(a));
  std::unique_ptr<int> y;
  ASSIGN_OR_RETURN(y, MakeInt(b));
  RETURN_IF_ERROR(*x + *y > 100 ? absl::OutOfRangeError("large") : absl::OkStatus());
  return *x + *y;
}

TEST(StatusMacrosTest, ErrorsReturnAndValuesMove) {
  EXPECT_EQ(*Sum(1, 2), 3);
  EXPECT_EQ(Sum(-1, 2).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Sum(1, -2).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Sum(99, 2).status().code(), absl::StatusCode::kOutOfRange);
}

TEST(CheckDeathTest, ABrokenInvariantNamesPlaceAndCondition) {
  EXPECT_DEATH(REPRISE_CHECK(1 + 1 == 3),
               "status_macros_test.cc:[0-9]+: check failed: 1 \\+ 1 == 3");
}

}  // namespace
}  // namespace reprise
