#include "server/rpc/status.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "server/metrics/metric_table.h"

namespace reprise {
namespace {

TEST(StatusTest, CodesKeepTheirMeaningOverGrpc) {
  EXPECT_TRUE(ToGrpc(absl::OkStatus()).ok());
  EXPECT_EQ(ToGrpc(absl::InvalidArgumentError("x")).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(ToGrpc(absl::ResourceExhaustedError("x")).error_code(),
            grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(ToGrpc(absl::DeadlineExceededError("x")).error_code(),
            grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_EQ(ToGrpc(absl::UnimplementedError("x")).error_code(), grpc::StatusCode::UNIMPLEMENTED);
  EXPECT_EQ(ToGrpc(absl::UnavailableError("x")).error_message(), "x");
}

TEST(StatusTest, CodeThatTheServerDoesNotUseIsInternal) {
  EXPECT_EQ(ToGrpc(absl::DataLossError("x")).error_code(), grpc::StatusCode::INTERNAL);
}

TEST(StatusTest, LongMessageIsCutBetweenCharacters) {
  std::string text(2047, 'a');
  text += "\xC3\xA9";  // two bytes, across the limit
  text += std::string(10000, 'b');
  const std::string message = ToGrpc(absl::InvalidArgumentError(text)).error_message();
  EXPECT_EQ(message, std::string(2047, 'a') + "...");
}

TEST(StatusTest, MetricsKnowEveryCodeOfTheTable) {
  for (int code = 0; code <= 16; ++code) {
    const absl::string_view name = ErrorRowOf(static_cast<absl::StatusCode>(code)).name;
    const auto codes = RequestCodes();
    EXPECT_NE(std::find(codes.begin(), codes.end(), name), codes.end()) << code;
  }
}

}  // namespace
}  // namespace reprise
