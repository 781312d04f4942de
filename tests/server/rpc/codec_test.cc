#include "server/rpc/codec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>

namespace reprise {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class DecodeTest : public ::testing::Test {
 protected:
  inference::ModelInferRequest::InferInputTensor& AddInput(const std::string& name,
                                                           const std::string& datatype,
                                                           std::initializer_list<int64_t> shape) {
    auto& input = *message.add_inputs();
    input.set_name(name);
    input.set_datatype(datatype);
    input.mutable_shape()->Add(shape.begin(), shape.end());
    return input;
  }
  void ExpectRefused(absl::StatusCode code, const std::string& text) {
    const absl::Status status = Decode(message, decoded);
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(text));
  }
  // Returns the elements of input `index` as T.
  template <typename T>
  std::vector<T> Elements(int index) const {
    const absl::string_view bytes = decoded.view.inputs[index].bytes;
    std::vector<T> values(bytes.size() / sizeof(T));
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }
  inference::ModelInferRequest message;
  DecodedRequest decoded;
};

TEST_F(DecodeTest, RawContentsAreUsedInPlace) {
  message.set_model_name("bert");
  message.set_model_version("3");
  AddInput("ids", "INT64", {1, 4});
  message.add_raw_input_contents(std::string(32, 'x'));
  message.add_outputs()->set_name("hidden");
  ASSERT_TRUE(Decode(message, decoded).ok());
  EXPECT_EQ(decoded.view.model, "bert");
  EXPECT_EQ(decoded.view.version, "3");
  ASSERT_EQ(decoded.view.inputs.size(), 1u);
  EXPECT_EQ(decoded.view.inputs[0].bytes.data(), message.raw_input_contents(0).data());
  EXPECT_THAT(decoded.view.inputs[0].shape, ElementsAre(1, 4));
  EXPECT_THAT(decoded.view.outputs, ElementsAre("hidden"));
}

TEST_F(DecodeTest, TypedContentsOfEveryDatatype) {
  AddInput("bool", "BOOL", {2}).mutable_contents()->mutable_bool_contents()->Add(true);
  AddInput("i8", "INT8", {1}).mutable_contents()->add_int_contents(-8);
  AddInput("i16", "INT16", {1}).mutable_contents()->add_int_contents(-1600);
  AddInput("i32", "INT32", {1}).mutable_contents()->add_int_contents(-320000);
  AddInput("i64", "INT64", {1}).mutable_contents()->add_int64_contents(-64);
  AddInput("u8", "UINT8", {1}).mutable_contents()->add_uint_contents(200);
  AddInput("u16", "UINT16", {1}).mutable_contents()->add_uint_contents(60000);
  AddInput("u32", "UINT32", {1}).mutable_contents()->add_uint_contents(4000000000u);
  AddInput("u64", "UINT64", {1}).mutable_contents()->add_uint64_contents(~0ull);
  AddInput("f32", "FP32", {1}).mutable_contents()->add_fp32_contents(1.5f);
  AddInput("f64", "FP64", {1}).mutable_contents()->add_fp64_contents(2.5);
  const absl::Status status = Decode(message, decoded);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(decoded.view.inputs[0].bytes, absl::string_view("\1", 1));
  EXPECT_THAT(Elements<int8_t>(1), ElementsAre(-8));
  EXPECT_THAT(Elements<int16_t>(2), ElementsAre(-1600));
  EXPECT_THAT(Elements<int32_t>(3), ElementsAre(-320000));
  EXPECT_THAT(Elements<int64_t>(4), ElementsAre(-64));
  EXPECT_THAT(Elements<uint8_t>(5), ElementsAre(200));
  EXPECT_THAT(Elements<uint16_t>(6), ElementsAre(60000));
  EXPECT_THAT(Elements<uint32_t>(7), ElementsAre(4000000000u));
  EXPECT_THAT(Elements<uint64_t>(8), ElementsAre(~0ull));
  EXPECT_THAT(Elements<float>(9), ElementsAre(1.5f));
  EXPECT_THAT(Elements<double>(10), ElementsAre(2.5));
}

TEST_F(DecodeTest, TypedElementOutOfRangeIsNamed) {
  AddInput("small", "INT8", {1}).mutable_contents()->add_int_contents(128);
  ExpectRefused(absl::StatusCode::kInvalidArgument, "\"small\": element 0 is 128");
}

TEST_F(DecodeTest, WrongTypedFieldNamesTheRightOne) {
  AddInput("ids", "INT64", {1}).mutable_contents()->add_int_contents(1);
  ExpectRefused(absl::StatusCode::kInvalidArgument,
                "has int_contents, it belongs in int64_contents");
}

TEST_F(DecodeTest, TypedHalfFloatsMustBeRaw) {
  AddInput("x", "FP16", {1}).mutable_contents()->add_fp32_contents(1);
  ExpectRefused(absl::StatusCode::kInvalidArgument, "must be sent as raw_input_contents");
}

TEST_F(DecodeTest, RawAndTypedTogetherAreRefused) {
  AddInput("ids", "INT64", {1}).mutable_contents()->add_int64_contents(1);
  message.add_raw_input_contents(std::string(8, 'x'));
  ExpectRefused(absl::StatusCode::kInvalidArgument, "\"ids\" has contents");
}

TEST_F(DecodeTest, NumberOfRawContentsMustBeThatOfInputs) {
  AddInput("ids", "INT64", {1});
  AddInput("mask", "INT64", {1});
  message.add_raw_input_contents(std::string(8, 'x'));
  ExpectRefused(absl::StatusCode::kInvalidArgument, "2 inputs and 1 raw_input_contents");
}

TEST_F(DecodeTest, RequestParametersAreReadOrRefused) {
  auto& parameters = *message.mutable_parameters();
  parameters["timeout"].set_int64_param(1500);
  parameters["priority"].set_uint64_param(2);
  parameters["sequence_id"].set_int64_param(7);
  parameters["triton_enable_empty_final_response"].set_bool_param(true);
  parameters["anything_else"].set_string_param("fine");
  const absl::Status status = Decode(message, decoded);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(decoded.view.timeout_us, 1500);
  EXPECT_EQ(decoded.view.priority, 2u);
  parameters["triton_something_new"].set_bool_param(true);
  ExpectRefused(absl::StatusCode::kInvalidArgument, "triton_something_new");
}

TEST_F(DecodeTest, TimeoutThatIsNoIntegerIsRefused) {
  (*message.mutable_parameters())["timeout"].set_string_param("soon");
  ExpectRefused(absl::StatusCode::kInvalidArgument, "parameter timeout must be an integer");
}

TEST_F(DecodeTest, TensorsInSharedMemoryTakeNoEntryOfRawContents) {
  const auto lies = [](auto& tensor, const char* region, int64_t bytes, int64_t offset) {
    (*tensor.mutable_parameters())["shared_memory_region"].set_string_param(region);
    (*tensor.mutable_parameters())["shared_memory_byte_size"].set_int64_param(bytes);
    if (offset != 0) {
      (*tensor.mutable_parameters())["shared_memory_offset"].set_int64_param(offset);
    }
  };
  lies(AddInput("ids", "INT64", {1}), "in", 8, 16);
  AddInput("mask", "INT64", {1});
  message.add_raw_input_contents("12345678");
  message.add_outputs()->set_name("logits");
  message.add_outputs()->set_name("pooled");
  lies(*message.mutable_outputs(1), "out", 64, 0);
  const absl::Status status = Decode(message, decoded);
  ASSERT_TRUE(status.ok()) << status;
  ASSERT_TRUE(decoded.view.inputs[0].region.has_value());
  EXPECT_EQ(decoded.view.inputs[0].region->region, "in");
  EXPECT_EQ(decoded.view.inputs[0].region->bytes, 8);
  EXPECT_EQ(decoded.view.inputs[0].region->offset, 16);
  EXPECT_FALSE(decoded.view.inputs[1].region.has_value());
  EXPECT_EQ(decoded.view.inputs[1].bytes, "12345678");
  ASSERT_EQ(decoded.view.output_regions.size(), 2u);
  EXPECT_FALSE(decoded.view.output_regions[0].has_value());
  EXPECT_EQ(decoded.view.output_regions[1]->region, "out");
}

TEST_F(DecodeTest, HalfOfWhatSharedMemoryNeedsIsRefusedByName) {
  auto& input = AddInput("ids", "INT64", {1});
  auto& parameters = *input.mutable_parameters();
  parameters["shared_memory_region"].set_string_param("region");
  ExpectRefused(absl::StatusCode::kInvalidArgument,
                "input \"ids\": parameter shared_memory_region is there without "
                "shared_memory_byte_size");
  parameters["shared_memory_byte_size"].set_int64_param(-1);
  ExpectRefused(absl::StatusCode::kInvalidArgument, "shared_memory_byte_size is -1");
  parameters["shared_memory_byte_size"].set_int64_param(8);
  message.add_raw_input_contents(std::string(8, 'x'));
  ExpectRefused(absl::StatusCode::kInvalidArgument,
                "1 inputs and 1 raw_input_contents, and 1 inputs are in shared memory");
  message.clear_raw_input_contents();
  message.mutable_inputs(0)->mutable_contents()->add_int64_contents(1);
  ExpectRefused(absl::StatusCode::kInvalidArgument,
                "input \"ids\" has contents and the parameter shared_memory_region");
  message.mutable_inputs(0)->clear_contents();
  parameters.erase("shared_memory_region");
  ExpectRefused(absl::StatusCode::kInvalidArgument,
                "shared_memory_byte_size is there without shared_memory_region");
}

TEST_F(DecodeTest, ClassificationIsOfItsOutputAndANumber) {
  message.add_outputs()->set_name("hidden");
  auto& output = *message.add_outputs();
  output.set_name("logits");
  (*output.mutable_parameters())["classification"].set_int64_param(3);
  DecodedRequest decoded;
  ASSERT_TRUE(Decode(message, decoded).ok());
  EXPECT_THAT(decoded.view.classes, ::testing::ElementsAre(std::nullopt, 3));
  (*output.mutable_parameters())["classification"].set_string_param("3");
  ExpectRefused(absl::StatusCode::kInvalidArgument, "output \"logits\": parameter classification");
}

class EncodeTest : public ::testing::Test {
 protected:
  EncodeTest() {
    auto version = std::make_shared<ModelVersion>();
    version->name = "bert";
    version->version = "3";
    auto servable = std::make_shared<Servable>();
    servable->signature.outputs = {{.name = "hidden", .dtype = DType::kFloat32},
                                   {.name = "pooled", .dtype = DType::kInt64}};
    result.model = {version, servable};
    result.outputs = {1, 0};
    result.response.outputs = {{.shape = {1, 2}, .bytes = "hiddenxx"},
                               {.shape = {1}, .bytes = "pooledxx"}};
    result.response.info = {.bucket = "b8_s128",
                            .recipe = "00000000000000ab",
                            .capture = CaptureOutcome::kWaited,
                            .batch = 12,
                            .batch_size = 5};
    result.batches = {11, 12};
  }
  InferResult result;
};

TEST_F(EncodeTest, OutputsComeInTheOrderAskedForWithOneRawEntryEach) {
  inference::ModelInferResponse message;
  ASSERT_TRUE(Encode(std::move(result), "request-7", message).ok());
  EXPECT_EQ(message.id(), "request-7");
  EXPECT_EQ(message.model_name(), "bert");
  EXPECT_EQ(message.model_version(), "3");
  ASSERT_EQ(message.outputs_size(), 2);
  EXPECT_EQ(message.outputs(0).name(), "pooled");
  EXPECT_EQ(message.outputs(0).datatype(), "INT64");
  EXPECT_EQ(message.raw_output_contents(0), "pooledxx");
  EXPECT_EQ(message.outputs(1).datatype(), "FP32");
  EXPECT_THAT(message.outputs(1).shape(), ElementsAre(1, 2));
  EXPECT_EQ(message.raw_output_contents(1), "hiddenxx");
}

TEST_F(EncodeTest, ParametersSayHowTheAnswerCameAbout) {
  inference::ModelInferResponse message;
  ASSERT_TRUE(Encode(std::move(result), "", message).ok());
  const auto& parameters = message.parameters();
  EXPECT_EQ(parameters.at("reprise.bucket").string_param(), "b8_s128");
  EXPECT_EQ(parameters.at("reprise.recipe").string_param(), "00000000000000ab");
  EXPECT_EQ(parameters.at("reprise.capture").string_param(), "waited");
  EXPECT_EQ(parameters.at("reprise.batch").int64_param(), 12);
  EXPECT_EQ(parameters.at("reprise.batch_size").int64_param(), 5);
  EXPECT_EQ(parameters.at("reprise.batches").string_param(), "11,12");
}

}  // namespace
}  // namespace reprise
