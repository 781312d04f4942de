#include "server/wire/text_tensor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <vector>

namespace reprise {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Length(uint32_t length) {
  return std::string(reinterpret_cast<const char*>(&length), sizeof(length));
}

std::string Encoded(const std::vector<std::string>& texts) {
  std::string bytes;
  for (const std::string& text : texts) {
    bytes += Length(static_cast<uint32_t>(text.size())) + text;
  }
  return bytes;
}

class TextTensorTest : public ::testing::Test {
 protected:
  TextTensorTest() {
    auto made = std::make_shared<Vocabulary>();
    made->Add("red");
    vocabulary = made;
    texts = std::make_unique<RequestTexts>(vocabulary);
  }
  std::string Refusal(const std::string& bytes, int64_t elements) {
    std::vector<int64_t> places;
    const absl::Status status = DecodeTexts(bytes, elements, *texts, places);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  }
  std::string Places(const std::vector<int64_t>& places) {
    return std::string(reinterpret_cast<const char*>(places.data()), places.size() * 8);
  }

  std::shared_ptr<const Vocabulary> vocabulary;
  std::unique_ptr<RequestTexts> texts;
};

TEST_F(TextTensorTest, TextsComeBackAsTheyWereSent) {
  const std::string bytes = Encoded({"red", "", "own", std::string("\xff\0", 2), "own"});
  std::vector<int64_t> places;
  ASSERT_TRUE(DecodeTexts(bytes, 5, *texts, places).ok());
  const int64_t own = vocabulary->size();
  EXPECT_THAT(places, ElementsAre(*vocabulary->Find("red"), own, own + 1, own + 2, own + 1));
  std::string answer = Places(places);
  ASSERT_TRUE(EncodeTexts(*texts, 1000, answer).ok());
  EXPECT_EQ(answer, bytes);
}

TEST_F(TextTensorTest, NoElementsHaveNoBytes) {
  std::vector<int64_t> places;
  ASSERT_TRUE(DecodeTexts("", 0, *texts, places).ok());
  EXPECT_TRUE(places.empty());
  EXPECT_THAT(Refusal("x", 0), AllOf(HasSubstr("0 bytes"), HasSubstr("has 1")));
}

TEST_F(TextTensorTest, LyingLengthsAreNamedWithBothNumbers) {
  EXPECT_THAT(Refusal(Length(0xffffffff) + "ab", 1),
              AllOf(HasSubstr("element 0"), HasSubstr("4294967295"), HasSubstr("2 are left")));
  EXPECT_THAT(Refusal(Encoded({"abcd"}) + Length(1), 2),
              AllOf(HasSubstr("element 1"), HasSubstr("1 bytes"), HasSubstr("0 are left")));
}

TEST_F(TextTensorTest, TooFewAndTooManyElementsAreNamedWithBothNumbers) {
  EXPECT_THAT(Refusal(Encoded({"abcd"}) + "xy", 2),
              AllOf(HasSubstr("element 1 of 2"), HasSubstr("2 are left")));
  EXPECT_THAT(Refusal(Encoded({"abcdefgh"}), 2),
              AllOf(HasSubstr("element 1 of 2"), HasSubstr("0 are left")));
  EXPECT_THAT(Refusal(Encoded({"a", "b"}), 1), AllOf(HasSubstr("take 5"), HasSubstr("has 10")));
}

TEST_F(TextTensorTest, AClaimOfManyElementsTakesNoMemory) {
  EXPECT_THAT(Refusal("abcd", int64_t{1} << 60), HasSubstr("at least 4 bytes each"));
}

TEST_F(TextTensorTest, BytesAtRandomAreReadOrRefused) {
  std::mt19937 random(1);
  for (int i = 0; i < 20000; ++i) {
    std::string bytes(random() % 24, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random() % 4 == 0 ? random() : random() % 3);
    const int64_t elements = random() % 5;
    RequestTexts own(vocabulary);
    std::vector<int64_t> places;
    if (!DecodeTexts(bytes, elements, own, places).ok()) continue;
    ASSERT_EQ(static_cast<int64_t>(places.size()), elements);
    std::string answer = Places(places);
    ASSERT_TRUE(EncodeTexts(own, 1000, answer).ok());
    EXPECT_EQ(answer, bytes);
  }
}

TEST_F(TextTensorTest, AnAnswerThatNoMessageHoldsIsRefusedBeforeItIsWritten) {
  const std::string bytes = Encoded({std::string(100, 'x')});
  std::vector<int64_t> places;
  ASSERT_TRUE(DecodeTexts(bytes, 1, *texts, places).ok());
  std::string answer = Places(std::vector<int64_t>(50, places[0]));
  const absl::Status status = EncodeTexts(*texts, 5000, answer);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("5000"));
}

TEST_F(TextTensorTest, APlaceOfNoTextIsABugAndNoRead) {
  std::string answer = Places({1000});
  EXPECT_EQ(EncodeTexts(*texts, 1000, answer).code(), absl::StatusCode::kInternal);
}

}  // namespace
}  // namespace reprise
