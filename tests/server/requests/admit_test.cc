#include "server/requests/admit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>

namespace reprise {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const Dim kBatch = {.symbol = "batch"};
const Dim kSequence = {.symbol = "sequence"};

class AdmitTest : public ::testing::Test {
 protected:
  AdmitTest() { request.inputs = {{"ids", "INT64", shape, ids}, {"scale", "FP32", {}, scale}}; }
  absl::StatusOr<Admitted> Run() { return FitSignature(inputs, outputs, request); }
  void ExpectRefused(const std::string& message) {
    auto admitted = Run();
    ASSERT_FALSE(admitted.ok()) << message;
    EXPECT_EQ(admitted.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(admitted.status().message()), HasSubstr(message));
  }

  const std::vector<ModelIo> inputs = {
      {.name = "ids", .dtype = DType::kInt64, .dims = {kBatch, kSequence}},
      {.name = "scale", .dtype = DType::kFloat32},
      {.name = "extra", .dtype = DType::kFloat32, .dims = {Dim{.size = 4}}, .optional = true}};
  const std::vector<ModelIo> outputs = {{.name = "hidden"}, {.name = "pooled"}};
  std::vector<int64_t> shape = {2, 3};
  const std::string ids = std::string(48, 'i');
  const std::string scale = std::string(4, 's');
  InferRequest request;
};

TEST_F(AdmitTest, GoodRequestKeepsItsBytesInPlace) {
  auto admitted = Run();
  ASSERT_TRUE(admitted.ok()) << admitted.status();
  ASSERT_EQ(admitted->request.inputs.size(), 3u);
  EXPECT_EQ(admitted->request.inputs[0].data, ids.data());
  EXPECT_THAT(admitted->request.inputs[0].shape, ElementsAre(2, 3));
  EXPECT_EQ(admitted->request.inputs[1].data, scale.data());
  EXPECT_EQ(admitted->request.inputs[2].data, nullptr);
  EXPECT_THAT(admitted->wanted_outputs, ElementsAre(0, 1));
}

TEST_F(AdmitTest, RequestedOutputsKeepTheClientsOrder) {
  request.outputs = {"pooled", "hidden"};
  auto admitted = Run();
  ASSERT_TRUE(admitted.ok()) << admitted.status();
  EXPECT_THAT(admitted->wanted_outputs, ElementsAre(1, 0));
}

TEST_F(AdmitTest, SubsetOfOutputsIsAllThatIsComputedForTheClient) {
  request.outputs = {"pooled"};
  auto admitted = Run();
  ASSERT_TRUE(admitted.ok()) << admitted.status();
  EXPECT_THAT(admitted->request.wanted_outputs, ElementsAre(false, true));
}

TEST_F(AdmitTest, UnknownInputIsNamedWithWhatThereIs) {
  request.inputs[0].name = "idz";
  ExpectRefused("no input \"idz\"; it has ids, scale, extra");
}

TEST_F(AdmitTest, InputGivenTwiceIsNamed) {
  request.inputs.push_back(request.inputs[0]);
  ExpectRefused("\"ids\" is given twice");
}

TEST_F(AdmitTest, MissingInputIsNamed) {
  request.inputs.pop_back();
  ExpectRefused("\"scale\" is missing");
}

TEST_F(AdmitTest, WrongDatatypeNamesBoth) {
  request.inputs[0].datatype = "INT32";
  ExpectRefused("\"ids\" has datatype INT32, the model expects INT64");
}

TEST_F(AdmitTest, WrongRankNamesBoth) {
  shape = {6};
  request.inputs[0].shape = shape;
  ExpectRefused("of rank 1, the model expects rank 2");
}

TEST_F(AdmitTest, NegativeDimIsNamed) {
  shape = {-2, -3};
  request.inputs[0].shape = shape;
  ExpectRefused("[-2, -3]: dim 0 is negative");
}

TEST_F(AdmitTest, FixedDimNamesBothSizes) {
  const std::string bytes(20, 'x');
  const std::vector<int64_t> five = {5};
  request.inputs.push_back({"extra", "FP32", five, bytes});
  ExpectRefused("dim 0 is 5, the model expects 4");
}

TEST_F(AdmitTest, WrongByteCountNamesBoth) {
  shape = {2, 4};
  request.inputs[0].shape = shape;
  ExpectRefused("takes 64 bytes, the request has 48");
}

TEST_F(AdmitTest, ShapeThatClaimsGigabytesIsRefusedWithoutAllocating) {
  shape = {1024, 400000};
  request.inputs[0].shape = shape;
  ExpectRefused("takes 3276800000 bytes, the request has 48");
}

TEST_F(AdmitTest, ShapeThatOverflowsIsRefused) {
  shape = {std::numeric_limits<int64_t>::max(), 16};
  request.inputs[0].shape = shape;
  ExpectRefused("[9223372036854775807, 16] has more than 2^63 elements");
  shape = {std::numeric_limits<int64_t>::max() / 4, 1};
  request.inputs[0].shape = shape;
  ExpectRefused("more bytes than can be counted");
}

TEST_F(AdmitTest, UnknownOutputIsNamedWithWhatThereIs) {
  request.outputs = {"logits"};
  ExpectRefused("no output \"logits\"; it has hidden, pooled");
}

TEST_F(AdmitTest, OutputAskedForTwiceIsNamed) {
  request.outputs = {"pooled", "pooled"};
  ExpectRefused("\"pooled\" is asked for twice");
}

TEST(StartDeadlineTest, TheEarlierOfDeadlineAndTimeoutCounts) {
  InferRequest request;
  EXPECT_EQ(*StartDeadline({}, request, 1000), kNoDeadline);
  request.timeout_us = 5;
  EXPECT_EQ(*StartDeadline({}, request, 1000), 6000);
  request.deadline_ns = 4000;
  EXPECT_EQ(*StartDeadline({}, request, 1000), 4000);
}

TEST(StartDeadlineTest, ModelsDefaultHoldsUnlessTheRequestMayOverride) {
  ModelSettings settings;
  settings.default_timeout_us = 7;
  settings.allow_timeout_override = false;
  InferRequest request;
  request.timeout_us = 5;
  EXPECT_EQ(*StartDeadline(settings, request, 0), 7000);
  settings.allow_timeout_override = true;
  EXPECT_EQ(*StartDeadline(settings, request, 0), 5000);
}

TEST(EndDeadlineTest, WhatTheClientAskedForCountsAndTheTimeInTheQueueDoesNot) {
  InferRequest request;
  ModelSettings settings;
  settings.default_timeout_us = 7;
  EXPECT_EQ(EndDeadline(settings, request, 0), kNoDeadline);
  request.timeout_us = 5;
  EXPECT_EQ(EndDeadline(settings, request, 1000), 6000);
  settings.allow_timeout_override = false;
  EXPECT_EQ(EndDeadline(settings, request, 1000), kNoDeadline);
  request.deadline_ns = 4000;
  EXPECT_EQ(EndDeadline(settings, request, 1000), 4000);
}

TEST(StartDeadlineTest, NegativeTimeoutIsRefused) {
  InferRequest request;
  request.timeout_us = -1;
  EXPECT_EQ(StartDeadline({}, request, 0).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(PriorityTest, LevelsAreThoseOfTheConfig) {
  ModelSettings settings;
  InferRequest request;
  request.priority = 9;
  EXPECT_EQ(*Priority(settings, request), 0u);
  settings.priority_levels = 3;
  settings.default_priority = 2;
  EXPECT_EQ(Priority(settings, request).status().code(), absl::StatusCode::kInvalidArgument);
  request.priority = 0;
  EXPECT_EQ(*Priority(settings, request), 2u);
  request.priority = 3;
  EXPECT_EQ(*Priority(settings, request), 3u);
}

}  // namespace
}  // namespace reprise
