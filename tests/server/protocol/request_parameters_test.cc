#include "server/protocol/request_parameters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace reprise {
namespace {

using ::testing::HasSubstr;

TEST(RequestParametersTest, KnownOnesAreSet) {
  InferRequest request;
  EXPECT_TRUE(SetParameter("timeout", int64_t{5}, request).ok());
  EXPECT_TRUE(SetParameter("priority", int64_t{2}, request).ok());
  EXPECT_TRUE(SetParameter("reprise.on_miss", std::string("eager"), request).ok());
  EXPECT_TRUE(SetParameter("sequence_id", ~uint64_t{0}, request).ok());
  EXPECT_TRUE(SetParameter("sequence_start", true, request).ok());
  EXPECT_TRUE(SetParameter("sequence_end", false, request).ok());
  EXPECT_TRUE(SetParameter("triton_enable_empty_final_response", true, request).ok());
  EXPECT_EQ(request.timeout_us, 5);
  EXPECT_EQ(request.priority, 2u);
  EXPECT_EQ(request.on_miss, OnMiss::kEager);
  EXPECT_EQ(request.sequence.number, ~uint64_t{0});
  EXPECT_TRUE(request.sequence.start);
  EXPECT_FALSE(request.sequence.end);
  EXPECT_TRUE(SetParameter("sequence_id", std::string("a"), request).ok());
  EXPECT_EQ(request.sequence.text, "a");
}

TEST(RequestParametersTest, WrongOnesAreRefusedWithTheirValue) {
  InferRequest request;
  const auto error = [&](const char* name, ParameterValue value) {
    const absl::Status status = SetParameter(name, value, request);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  };
  EXPECT_THAT(error("timeout", std::string("soon")), HasSubstr("timeout must be an integer of 64 "
                                                               "bits, it is \"soon\""));
  EXPECT_THAT(error("timeout", ~uint64_t{0}), HasSubstr("18446744073709551615"));
  EXPECT_THAT(error("priority", int64_t{-1}), HasSubstr("priority is -1"));
  EXPECT_THAT(error("reprise.on_miss", true), HasSubstr("it is true"));
  EXPECT_THAT(error("sequence_id", 1.5), HasSubstr("a text, it is 1.5"));
  EXPECT_THAT(error("sequence_id", int64_t{-3}), HasSubstr("an unsigned integer of 64 bits"));
  EXPECT_THAT(error("sequence_start", int64_t{1}), HasSubstr("true or false, it is 1"));
  EXPECT_THAT(error("triton_magic", int64_t{1}), HasSubstr("triton_magic"));
}

}  // namespace
}  // namespace reprise
