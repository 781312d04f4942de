#include "runtime/onnx/gguf/gguf_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/runtime/onnx/gguf/gguf_builder.h"
#include "tests/testing/temp_folder.h"

namespace reprise {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

absl::StatusOr<GgufFile> ReadBytes(const std::string& bytes) {
  return GgufFile::Read("model.gguf", CopyBytes(bytes));
}

std::string ErrorOf(const GgufBuilder& builder) {
  const auto file = ReadBytes(builder.Bytes());
  return file.ok() ? "OK" : file.status().ToString();
}

TEST(GgufFileTest, MembersAndTensorsAreFound) {
  GgufBuilder b;
  b.Text("a", "text").U32("b", 7).F32("c", 0.5f).Member("d", 7, uint8_t{1});
  b.Texts("e", {"x", "", "yz"}).Member("f", 10, uint64_t{1} << 40).Member("g", 1, int8_t{-3});
  b.Floats("t", {2, 3}, {1, 2, 3, 4, 5, 6}).Tensor("q", {64}, 2, std::string(36, '\1'));
  const auto file = ReadBytes(b.Bytes());
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(*file->Text("a"), "text");
  EXPECT_EQ(*file->Int("b"), 7);
  EXPECT_EQ(*file->Number("c"), 0.5);
  EXPECT_EQ(*file->Number("b"), 7.0);
  EXPECT_EQ(*file->Bool("d"), true);
  EXPECT_THAT(*file->Texts("e"), ElementsAre("x", "", "yz"));
  EXPECT_EQ(*file->Int("f"), int64_t{1} << 40);
  EXPECT_EQ(*file->Int("g"), -3);
  EXPECT_EQ(*file->Int("absent"), std::nullopt);
  EXPECT_THAT(file->Int("a").status().message(), HasSubstr("member 'a' is not a whole number"));
  const GgufTensor* const tensor = file->Tensor("t");
  ASSERT_NE(tensor, nullptr);
  EXPECT_THAT(tensor->dims, ElementsAre(3, 2));
  EXPECT_EQ(tensor->bytes, 24);
  EXPECT_EQ(file->Tensor("q")->bytes, 36);
  EXPECT_EQ(file->Tensor("q")->offset % 32, 0);
}

TEST(GgufFileTest, AFileThatEndsAnywhereIsRefused) {
  const std::string bytes = TinyLlama().Bytes();
  ASSERT_TRUE(ReadBytes(bytes).ok());
  for (size_t size = 0; size < bytes.size(); ++size) {
    const auto file = ReadBytes(bytes.substr(0, size));
    ASSERT_EQ(file.status().code(), absl::StatusCode::kInvalidArgument) << size;
  }
}

TEST(GgufFileTest, CountsAndSizesThatCannotBeAreRefused) {
  GgufBuilder b;
  b.more_tensors = uint64_t{1} << 60;
  EXPECT_THAT(ErrorOf(b), HasSubstr("1152921504606846976 tensors and 0 members in"));
  b = {};
  b.more_members = ~uint64_t{0};
  EXPECT_THAT(ErrorOf(b), HasSubstr("18446744073709551615 members"));
  b = {};
  std::string list;
  GgufBuilder::Text(list, "l");
  GgufBuilder::Put(list, uint32_t{9});
  GgufBuilder::Put(list, uint32_t{6});
  GgufBuilder::Put(list, uint64_t{1} << 62);
  EXPECT_THAT(ErrorOf(b.Raw(list)), HasSubstr("member 'l': 4611686018427387904 elements in"));
  const auto tensor = [](const std::vector<uint64_t>& dims, uint32_t type, uint64_t offset) {
    return ErrorOf(GgufBuilder().U32("general.alignment", 32).TensorAt("t", dims, type, offset));
  };
  EXPECT_THAT(tensor({uint64_t{1} << 40, uint64_t{1} << 40}, 0, 0), HasSubstr("overflows"));
  EXPECT_THAT(tensor({uint64_t{1} << 62}, 0, 0), HasSubstr("its bytes overflow"));
  EXPECT_THAT(tensor({~uint64_t{0}}, 0, 0), HasSubstr("dim 0 is 18446744073709551615"));
  EXPECT_THAT(tensor({0}, 0, 0), HasSubstr("dim 0 is 0"));
  EXPECT_THAT(tensor({1, 1, 1, 1, 1}, 0, 0), HasSubstr("has 5 dims"));
  EXPECT_THAT(tensor({4}, 0, 32), HasSubstr("tensor 't' is bytes ["));
  EXPECT_THAT(tensor({4}, 0, 8), HasSubstr("no multiple of 32"));
  EXPECT_THAT(tensor({4}, 0, ~uint64_t{31}), HasSubstr("beyond the file"));
  EXPECT_THAT(tensor({33}, 2, 0),
              HasSubstr("rows of 33 numbers are not whole blocks of 32 of Q4_0"));
}

TEST(GgufFileTest, WhatIsNotSupportedIsRefusedByName) {
  GgufBuilder b;
  b.version = 0x03000000;
  EXPECT_THAT(ErrorOf(b), HasSubstr("UNIMPLEMENTED: GGUF file 'model.gguf': it is big-endian"));
  b.version = 1;
  EXPECT_THAT(ErrorOf(b), HasSubstr("version 1 is not supported"));
  EXPECT_THAT(ErrorOf(GgufBuilder().Tensor("t", {256}, 10, std::string(84, 0))),
              HasSubstr("UNIMPLEMENTED: GGUF file 'model.gguf': tensor 't' is of type 10 (Q2_K)"));
  EXPECT_THAT(ErrorOf(GgufBuilder().Tensor("t", {256}, 99, std::string(84, 0))),
              HasSubstr("is of type 99, which"));
  std::string nested;
  GgufBuilder::Text(nested, "n");
  GgufBuilder::Put(nested, uint32_t{9});
  GgufBuilder::Put(nested, uint32_t{9});
  GgufBuilder::Put(nested, uint64_t{0});
  EXPECT_THAT(ErrorOf(GgufBuilder().Raw(nested)), HasSubstr("lists of lists"));
}

TEST(GgufFileTest, ContradictionsAreRefused) {
  EXPECT_THAT(ErrorOf(GgufBuilder().U32("a", 1).U32("a", 2)), HasSubstr("'a' comes twice"));
  EXPECT_THAT(ErrorOf(GgufBuilder().Floats("t", {1}, {1}).Floats("t", {1}, {2})),
              HasSubstr("tensor 't' comes twice"));
  EXPECT_THAT(ErrorOf(GgufBuilder().U32("general.alignment", 24)), HasSubstr("not a power of two"));
  EXPECT_THAT(ErrorOf(GgufBuilder().Member("a", 77, uint32_t{0})), HasSubstr("no type 77"));
}

class SplitGgufTest : public testing::Test {
 protected:
  static GgufBuilder Part(uint16_t part, uint16_t parts) {
    GgufBuilder b;
    b.Member("split.no", 2, part).Member("split.count", 2, parts);
    b.Member("split.tensors.count", 5, int32_t{2});
    b.Floats(part == 0 ? "a" : "b", {2}, {1, 2});
    return b;
  }
  std::string Error(const std::string& name) {
    const auto file = GgufFile::Open(folder_.File(name));
    return file.ok() ? "OK" : std::string(file.status().message());
  }
  const TempFolder folder_;
};

TEST_F(SplitGgufTest, PartsAreOneModel) {
  const std::string path = folder_.Write("m-00001-of-00002.gguf", Part(0, 2).Bytes());
  folder_.Write("m-00002-of-00002.gguf", Part(1, 2).Bytes());
  const auto file = GgufFile::Open(path);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->files().size(), 2);
  EXPECT_EQ(file->Tensor("a")->file, 0);
  EXPECT_EQ(file->Tensor("b")->file, 1);
}

TEST_F(SplitGgufTest, PartsThatAreMissingOrLieAreRefused) {
  folder_.Write("m-00001-of-00002.gguf", Part(0, 2).Bytes());
  EXPECT_THAT(Error("m-00001-of-00002.gguf"), HasSubstr("m-00002-of-00002.gguf"));
  folder_.Write("m-00002-of-00002.gguf", Part(0, 2).Bytes());
  EXPECT_THAT(Error("m-00001-of-00002.gguf"), HasSubstr("comes twice"));
  GgufBuilder other = Part(1, 3);
  folder_.Write("m-00002-of-00002.gguf", other.Bytes());
  EXPECT_THAT(Error("m-00001-of-00002.gguf"), HasSubstr("says that it is file 2 of 3"));
  EXPECT_THAT(Error("m-00002-of-00002.gguf"), HasSubstr("it is file 2 of 3: the first one"));
  folder_.Write("whole.gguf", Part(0, 2).Bytes());
  EXPECT_THAT(Error("whole.gguf"), HasSubstr("does not end with '-00001-of-00002.gguf'"));
}

}  // namespace
}  // namespace reprise
