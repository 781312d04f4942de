// Texts of a request and of its answer.
#include "server/requests/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "server/requests/admit.h"

namespace reprise {
namespace {

using ::testing::HasSubstr;

class TextTest : public ::testing::Test {
 protected:
  absl::Status Place(absl::string_view datatype, absl::string_view sent) {
    asked.inputs = {{"colour", datatype, shape, sent}};
    auto admitted = FitSignature(inputs, outputs, asked);
    if (!admitted.ok()) return admitted.status();
    request = std::move(admitted->request);
    texts = std::make_shared<RequestTexts>(vocabulary);
    return PlaceTexts(inputs, asked, *texts, request);
  }

  const std::vector<ModelIo> inputs = {
      {.name = "colour", .dtype = DType::kInt64, .dims = {Dim{.symbol = "batch"}}, .text = true}};
  const std::vector<ModelIo> outputs = {{.name = "y"}};
  const std::shared_ptr<Vocabulary> vocabulary = std::make_shared<Vocabulary>();
  const std::vector<int64_t> shape = {2};
  const std::string bytes = std::string("\3\0\0\0red\3\0\0\0own", 14);
  InferRequest asked;
  Request request;
  std::shared_ptr<RequestTexts> texts;
};

TEST_F(TextTest, TextsBecomePlacesOfTheVocabularyOrOfTheRequest) {
  const int64_t red = vocabulary->Add("red");
  const absl::Status placed = Place("BYTES", bytes);
  ASSERT_TRUE(placed.ok()) << placed;
  const auto* places = static_cast<const int64_t*>(request.inputs[0].data);
  EXPECT_EQ(places[0], red);
  EXPECT_EQ(texts->Text(places[1]), "own");
}

TEST_F(TextTest, BytesThatAreNoTextsAreRefusedByName) {
  EXPECT_THAT(std::string(Place("INT64", bytes).message()),
              HasSubstr("datatype INT64, the model expects BYTES"));
  EXPECT_THAT(std::string(Place("BYTES", absl::string_view(bytes).substr(0, 13)).message()),
              HasSubstr("input \"colour\" of shape [2] and datatype BYTES: element 1 says that it "
                        "has 3 bytes, 2 are left"));
}

}  // namespace
}  // namespace reprise
