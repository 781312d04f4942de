#include "server/repository/signature.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/config/model_config.h"

namespace reprise {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

ModelFacts Bert() {
  const Dim batch = {.symbol = "batch"};
  const Dim sequence = {.symbol = "sequence"};
  return {.inputs = {{.name = "ids", .dtype = DType::kInt64, .dims = {batch, sequence}}},
          .outputs = {{.name = "hidden",
                       .dtype = DType::kFloat32,
                       .dims = {batch, sequence, Dim{.size = 384}}}},
          .axes = {"batch", "sequence"},
          .max_batch = 32};
}

absl::StatusOr<Signature> With(const std::string& config, const ModelFacts& facts = Bert()) {
  auto settings = ParseModelConfig(config, "bert");
  EXPECT_TRUE(settings.ok()) << settings.status();
  return Reconcile(*settings, "bert", facts);
}

std::vector<int64_t> Dims(const google::protobuf::RepeatedField<int64_t>& dims) {
  return {dims.begin(), dims.end()};
}

TEST(SignatureTest, WithoutConfigTheLargestBatchBucketIsTheBatchSize) {
  auto signature = With("");
  ASSERT_TRUE(signature.ok()) << signature.status();
  const inference::ModelConfig& config = signature->config;
  EXPECT_EQ(config.name(), "bert");
  EXPECT_EQ(config.max_batch_size(), 32);
  EXPECT_TRUE(config.has_dynamic_batching());
  EXPECT_THAT(Dims(config.input(0).dims()), ElementsAre(-1));
  EXPECT_THAT(Dims(config.output(0).dims()), ElementsAre(-1, 384));
  EXPECT_THAT(MetadataShape(signature->inputs[0]), ElementsAre(-1, -1));
}

TEST(SignatureTest, WithoutCertifiedBatchShapesAreWhole) {
  ModelFacts facts = Bert();
  facts.max_batch = 0;
  auto signature = With("", facts);
  ASSERT_TRUE(signature.ok()) << signature.status();
  EXPECT_EQ(signature->config.max_batch_size(), 0);
  EXPECT_FALSE(signature->config.has_dynamic_batching());
  EXPECT_THAT(Dims(signature->config.input(0).dims()), ElementsAre(-1, -1));
}

TEST(SignatureTest, ConfigMayFixADim) {
  auto signature = With(R"pb(
    max_batch_size: 8
    input { name: "ids" data_type: TYPE_INT64 dims: 128 }
  )pb");
  ASSERT_TRUE(signature.ok()) << signature.status();
  EXPECT_EQ(signature->config.max_batch_size(), 8);
  EXPECT_THAT(MetadataShape(signature->inputs[0]), ElementsAre(-1, 128));
}

TEST(SignatureTest, ContradictionsNameBothSides) {
  const struct {
    const char* config;
    const char* message;
  } cases[] = {
      {"input { name: \"idz\" }", "the model has no input \"idz\"; it has ids"},
      {"input { name: \"ids\" data_type: TYPE_INT32 }",
       "input \"ids\".data_type is TYPE_INT32, the model has TYPE_INT64"},
      {"max_batch_size: 8 input { name: \"ids\" dims: [ -1, -1 ] }",
       "input \"ids\".dims is [-1, -1], the model has [-1] after the batch"},
      {"max_batch_size: 8 output { name: \"hidden\" dims: [ -1, 768 ] }",
       "output \"hidden\".dims is [-1, 768], the model has [-1, 384]"},
      {"parameters { key: \"reprise.buckets.past\" value { string_value: \"8\" } }",
       "axis \"past\", but the model's axes are batch, sequence"},
      {"parameters { key: \"reprise.padding.heads\" value { string_value: \"off\" } }",
       "\"heads\""},
      {"parameters { key: \"reprise.fill.mask\" value { string_value: \"1\" } }",
       "input \"mask\", but the model's inputs are ids"},
  };
  for (const auto& test : cases) {
    auto signature = With(test.config);
    ASSERT_FALSE(signature.ok()) << test.config;
    EXPECT_EQ(signature.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(signature.status().message()), HasSubstr(test.message));
  }
}

TEST(SignatureTest, BatchSizeWithoutABatchAxisIsRefused) {
  ModelFacts facts = Bert();
  facts.axes = {"sequence"};
  facts.max_batch = 0;
  auto signature = With("max_batch_size: 8", facts);
  ASSERT_FALSE(signature.ok());
  EXPECT_THAT(std::string(signature.status().message()), HasSubstr("no batch axis"));
}

TEST(SignatureTest, HalfAListOfInputsIsRefused) {
  ModelFacts facts = Bert();
  facts.inputs.push_back({.name = "mask", .dtype = DType::kInt64});
  auto signature = With("input { name: \"ids\" }", facts);
  ASSERT_FALSE(signature.ok());
  EXPECT_THAT(std::string(signature.status().message()), HasSubstr("\"mask\" is left out"));
}

}  // namespace
}  // namespace reprise
