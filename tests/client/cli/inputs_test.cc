// Made-up inputs, inputs from JSON, and sentences.

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <cstring>
#include <set>

#include "client/cli/json_inputs.h"
#include "client/cli/random_inputs.h"
#include "client/cli/sentences.h"

namespace reprise::cli {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::Le;

inference::ModelMetadataResponse Metadata(const std::string& text) {
  inference::ModelMetadataResponse metadata;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &metadata));
  return metadata;
}

inference::ModelMetadataResponse Bert() {
  return Metadata(R"(name: "bert"
    inputs { name: "input_ids" datatype: "INT64" shape: [-1, -1] }
    inputs { name: "attention_mask" datatype: "INT64" shape: [-1, -1] }
    inputs { name: "token_type_ids" datatype: "INT32" shape: [-1, -1] }
    inputs { name: "scale" datatype: "FP32" shape: [-1, 4] })");
}

template <typename T>
std::vector<T> Values(const OwnedTensor& tensor) {
  std::vector<T> values(tensor.bytes.size() / sizeof(T));
  std::memcpy(values.data(), tensor.bytes.data(), values.size() * sizeof(T));
  return values;
}

TEST(RandomInputsTest, NamesAndMetadataDecideShapesAndValues) {
  std::mt19937_64 random(1);
  const auto inputs = RandomInputs(Bert(), {.batch = 2, .length = 50, .max_id = 30}, random);
  ASSERT_TRUE(inputs.ok()) << inputs.status();
  ASSERT_EQ(inputs->size(), 4);
  EXPECT_THAT((*inputs)[0].shape, ElementsAre(2, 50));
  EXPECT_THAT(Values<int64_t>((*inputs)[0]), Each(AllOf(Ge(1), Le(30))));
  EXPECT_THAT(Values<int64_t>((*inputs)[1]), Each(1));
  EXPECT_THAT(Values<int32_t>((*inputs)[2]), Each(0));
  EXPECT_THAT((*inputs)[3].shape, ElementsAre(2, 4));
  EXPECT_THAT(Values<float>((*inputs)[3]), Each(AllOf(Ge(-1), Le(1))));
}

TEST(RandomInputsTest, ALengthIsASizeBehindTheFirstThatARequestDecides) {
  EXPECT_TRUE(HasLength(Bert()));
  EXPECT_FALSE(HasLength(Metadata(R"(inputs { name: "x" datatype: "FP32" shape: [-1, 4] }
                                     inputs { name: "scale" datatype: "FP32" })")));
  EXPECT_FALSE(HasLength({}));
}

TEST(RandomInputsTest, HalvesLieBetweenAHalfAndOneOfEitherSign) {
  std::mt19937_64 random(1);
  const auto inputs = RandomInputs(Metadata(R"(inputs { name: "a" datatype: "FP16" shape: [64] }
                                               inputs { name: "b" datatype: "BF16" shape: [64] })"),
                                   {}, random);
  ASSERT_TRUE(inputs.ok()) << inputs.status();
  // The exponents of numbers from 0.5 up to 1.
  std::set<uint16_t> signs;
  for (const uint16_t half : Values<uint16_t>((*inputs)[0])) {
    EXPECT_EQ(half & 0x7c00, 14 << 10);
    signs.insert(half & 0x8000);
  }
  for (const uint16_t half : Values<uint16_t>((*inputs)[1])) EXPECT_EQ(half & 0x7f80, 126 << 7);
  EXPECT_EQ(signs.size(), 2);
}

TEST(RandomInputsTest, GivenShapeWinsAndUnknownInputIsNamed) {
  std::mt19937_64 random(1);
  const auto inputs = RandomInputs(Bert(), {.shapes = {{"scale", {3, 7}}}}, random);
  ASSERT_TRUE(inputs.ok()) << inputs.status();
  EXPECT_THAT((*inputs)[3].shape, ElementsAre(3, 7));
  EXPECT_THAT(RandomInputs(Bert(), {.shapes = {{"scales", {1}}}}, random).status().message(),
              HasSubstr("no input 'scales'"));
}

TEST(RandomInputsTest, DatatypeWithoutRandomValuesIsNamed) {
  std::mt19937_64 random(1);
  const auto metadata = Metadata(R"(inputs { name: "text" datatype: "WORDS" shape: [-1] })");
  const auto status = RandomInputs(metadata, {}, random).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(status.message(), HasSubstr("'text' of datatype WORDS"));
}

TEST(JsonInputsTest, NestedListsGiveShapeAndMetadataTheDatatype) {
  const auto inputs = ParseJsonInputs(R"({"input_ids": [[1, 2, 3], [4, 5, 6]]})", Bert());
  ASSERT_TRUE(inputs.ok()) << inputs.status();
  EXPECT_EQ((*inputs)[0].datatype, "INT64");
  EXPECT_THAT((*inputs)[0].shape, ElementsAre(2, 3));
  EXPECT_THAT(Values<int64_t>((*inputs)[0]), ElementsAre(1, 2, 3, 4, 5, 6));
}

TEST(JsonInputsTest, RestFormTakesItsShapeFromTheEntry) {
  const auto inputs = ParseJsonInputs(
      R"({"inputs": [{"name": "x", "datatype": "FP32", "shape": [2, 2], "data": [1, 2, 3, 4.5]}]})",
      Bert());
  ASSERT_TRUE(inputs.ok()) << inputs.status();
  EXPECT_THAT((*inputs)[0].shape, ElementsAre(2, 2));
  EXPECT_THAT(Values<float>((*inputs)[0]), ElementsAre(1, 2, 3, 4.5));
}

TEST(JsonInputsTest, WrongInputsAreNamedWithWhatIsWrong) {
  auto error = [](const char* text) {
    return std::string(ParseJsonInputs(text, Bert()).status().message());
  };
  EXPECT_THAT(error("{"), HasSubstr("not valid JSON"));
  EXPECT_THAT(error("[]"), HasSubstr("must be a JSON object"));
  EXPECT_THAT(error(R"({"ids": [1]})"), HasSubstr("input 'ids': model 'bert' has no such input"));
  EXPECT_THAT(error(R"({"input_ids": [[1], [2, 3]]})"), HasSubstr("have 1 and 2 entries"));
  EXPECT_THAT(error(R"({"input_ids": [[1], 2]})"), HasSubstr("not equally deep"));
  EXPECT_THAT(error(R"({"input_ids": [1.5]})"), HasSubstr("'1.5' is not an integer"));
  EXPECT_THAT(error(R"({"token_type_ids": [3000000000]})"), HasSubstr("'3000000000'"));
  EXPECT_THAT(
      error(R"({"inputs": [{"name": "x", "datatype": "FP32", "shape": [3], "data": [1]}]})"),
      HasSubstr("shape 3 needs 3 values, there are 1"));
}

TEST(SentencesTest, InputsAreIdsOnesAndZeros) {
  const auto metadata = Metadata(R"(name: "bert"
    inputs { name: "input_ids" datatype: "INT64" shape: [-1, -1] }
    inputs { name: "attention_mask" datatype: "INT64" shape: [-1, -1] }
    inputs { name: "token_type_ids" datatype: "INT64" shape: [-1, -1] })");
  const auto sentences = ParseSentences(
      R"({"sentences": [{"label": "a", "text": "A.", "input_ids": [101, 7, 102]}]})");
  ASSERT_TRUE(sentences.ok()) << sentences.status();
  const auto inputs = SentenceInputs(metadata, (*sentences)[0]);
  ASSERT_TRUE(inputs.ok()) << inputs.status();
  EXPECT_THAT(Values<int64_t>((*inputs)[0]), ElementsAre(101, 7, 102));
  EXPECT_THAT(Values<int64_t>((*inputs)[1]), ElementsAre(1, 1, 1));
  EXPECT_THAT(Values<int64_t>((*inputs)[2]), ElementsAre(0, 0, 0));
}

TEST(SentencesTest, WrongFileSaysWhichSentence) {
  EXPECT_THAT(ParseSentences("{}").status().message(), HasSubstr("list of \"sentences\""));
  EXPECT_THAT(ParseSentences(R"({"sentences": [{"label": "a", "text": "b"}]})").status().message(),
              HasSubstr("sentence 0: needs \"input_ids\""));
}

TEST(SentencesTest, MeanPooledHasLengthOne) {
  auto message = std::make_unique<inference::ModelInferResponse>();
  auto& output = *message->add_outputs();
  output.set_name("hidden");
  output.set_datatype("FP32");
  for (int64_t dim : {1, 2, 2}) output.add_shape(dim);
  const float values[] = {1, 5, 5, 3};  // mean (3, 4)
  message->add_raw_output_contents(values, sizeof(values));
  const auto result = client::InferResult::FromMessage(std::move(message));
  ASSERT_TRUE(result.ok()) << result.status();
  const auto pooled = MeanPooled(*result);
  ASSERT_TRUE(pooled.ok()) << pooled.status();
  EXPECT_THAT(*pooled, ElementsAre(0.6f, 0.8f));
  EXPECT_NEAR(Cosine(*pooled, *pooled), 1, 1e-6);
}

}  // namespace
}  // namespace reprise::cli
