// Names of models from elsewhere, and the files that are chosen of a repository.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "server/fetch/model_url.h"
#include "server/fetch/wanted_files.h"

namespace reprise {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(ModelUrlTest, PartsOfAHubName) {
  const auto url = ModelUrl::Parse("hf://acme/mini-lm.v2@refs/pr/1:onnx/model_int8.onnx");
  ASSERT_TRUE(url.ok()) << url.status();
  EXPECT_EQ(url->place, "acme/mini-lm.v2");
  EXPECT_EQ(url->revision, "refs/pr/1");
  EXPECT_EQ(url->file, "onnx/model_int8.onnx");
  EXPECT_EQ(url->DefaultName(), "mini-lm.v2");
}

TEST(ModelUrlTest, BucketsAndAddresses) {
  const auto bucket = ModelUrl::Parse("s3://acme.models/a/b/");
  ASSERT_TRUE(bucket.ok());
  EXPECT_EQ(bucket->place, "acme.models");
  EXPECT_EQ(bucket->path, "a/b");
  EXPECT_EQ(ModelUrl::Parse("gs://acme")->path, "");
  const std::string digest(64, 'A');
  const auto web = ModelUrl::Parse("https://u:p@host/a/m.tar.gz?sig=1#sha256=" + digest);
  ASSERT_TRUE(web.ok()) << web.status();
  EXPECT_EQ(web->shown, "https://host/a/m.tar.gz");
  EXPECT_EQ(web->place, "https://u:p@host/a/m.tar.gz?sig=1");
  EXPECT_EQ(web->sha256, std::string(64, 'a'));
  EXPECT_EQ(web->DefaultName(), "m");
}

TEST(ModelUrlTest, PlainHttpIsTakenWithADigestOrFromThisMachine) {
  EXPECT_FALSE(ModelUrl::Parse("http://host/m.onnx").ok());
  EXPECT_FALSE(ModelUrl::Parse("http://localhost.evil/m.onnx").ok());
  EXPECT_FALSE(ModelUrl::Parse("http://localhost:80@evil/m.onnx").ok());
  EXPECT_TRUE(ModelUrl::Parse("http://localhost:80/m.onnx").ok());
  EXPECT_TRUE(ModelUrl::Parse("http://[::1]/m.onnx").ok());
  EXPECT_TRUE(ModelUrl::Parse("http://host/m.onnx#sha256=" + std::string(64, '0')).ok());
}

TEST(ModelUrlTest, PathsThatLeaveTheirFolderAreNone) {
  for (const char* wrong : {"hf://a/b:../c", "hf://a/b:/c", "hf://../b", "s3://b/a/../c",
                            "hf://a/b@../../x", "https://host", "https:///x", "file:///etc"}) {
    EXPECT_FALSE(ModelUrl::Parse(wrong).ok()) << wrong;
  }
}

TEST(ModelUrlTest, ErrorsShowNoSecret) {
  const std::string why(ModelUrl::Parse("ftp://user:pass@host/x?key=1").status().message());
  EXPECT_THAT(why, HasSubstr("ftp://host/x"));
  EXPECT_EQ(why.find("pass"), std::string::npos);
}

const std::vector<std::string> kFiles = {"README.md",
                                         "config.json",
                                         "onnx/decoder_model.onnx",
                                         "onnx/encoder_model.onnx",
                                         "onnx/encoder_model_int8.onnx",
                                         "onnx/decoder_model_int8.onnx",
                                         "1_Pooling/config.json",
                                         "tokenizer.model",
                                         "sub/other.json"};

TEST(ChooseFilesTest, AnEncoderComesWithItsDecoder) {
  const auto wanted = ChooseFiles(kFiles, "", "", "acme/t5");
  ASSERT_TRUE(wanted.ok()) << wanted.status();
  EXPECT_EQ(wanted->model, "onnx/encoder_model.onnx");
  EXPECT_THAT(wanted->files,
              ElementsAre("1_Pooling/config.json", "config.json", "onnx/decoder_model.onnx",
                          "onnx/encoder_model.onnx", "tokenizer.model"));
  const auto variant = ChooseFiles(kFiles, "", "int8", "acme/t5");
  ASSERT_TRUE(variant.ok());
  EXPECT_THAT(variant->files, ::testing::Contains("onnx/decoder_model_int8.onnx"));
}

TEST(ChooseFilesTest, WhereNoneIsAModelTheErrorSaysWhatToDo) {
  const auto wanted = ChooseFiles({"model.safetensors", "config.json"}, "", "", "acme/bert");
  EXPECT_THAT(wanted.status().message(),
              HasSubstr("optimum-cli export onnx --model acme/bert FOLDER"));
  const auto several = ChooseFiles({"a.onnx", "b.onnx"}, "", "", "acme/m");
  EXPECT_THAT(several.status().message(), HasSubstr("it has a.onnx, b.onnx"));
}

}  // namespace
}  // namespace reprise
