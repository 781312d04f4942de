#include "server/hub/text_package.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "server/hub/model_file.h"
#include "server/hub/safetensors.h"
#include "server/hub/text_offer.h"
#include "tests/testing/temp_folder.h"

namespace reprise {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class TextPackageTest : public ::testing::Test {
 protected:
  void Write(const std::string& name, const std::string& text) {
    const std::filesystem::path path = std::filesystem::path(folder_.path()) / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << text;
  }
  absl::StatusOr<TextPackage> Read(const std::string& model = "model.onnx") {
    return ReadTextPackage(std::filesystem::path(folder_.path()) / model);
  }
  void WriteSentenceTransformer(const std::string& pooling) {
    Write("vocab.txt", "[UNK]\n[CLS]\n[SEP]\na\n");
    Write("modules.json",
          R"([{"path": "", "type": "sentence_transformers.models.Transformer"},
              {"path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
              {"path": "2_Normalize", "type": "sentence_transformers.models.Normalize"}])");
    Write("1_Pooling/config.json", pooling);
  }

  TempFolder folder_;
};

std::string Safetensors(const std::string& header, size_t bytes) {
  const uint64_t size = header.size();
  std::string file(reinterpret_cast<const char*>(&size), sizeof(size));
  return file + header + std::string(bytes, '\0');
}

TEST_F(TextPackageTest, FolderWithoutATokenizerIsNone) {
  Write("model.onnx", "");
  const auto package = Read();
  ASSERT_TRUE(package.ok()) << package.status();
  EXPECT_FALSE(package->tokenizer.has_value());
}

TEST_F(TextPackageTest, FilesAboveTheFolderOnnxAreFound) {
  WriteSentenceTransformer(R"({"word_embedding_dimension": 8, "pooling_mode_mean_tokens": true})");
  Write("onnx/model.onnx", "");
  Write("sentence_bert_config.json", R"({"max_seq_length": 128})");
  Write("config.json", R"({"max_position_embeddings": 512})");
  const auto package = Read("onnx/model.onnx");
  ASSERT_TRUE(package.ok()) << package.status();
  EXPECT_EQ(package->tokenizer_file, "vocab.txt");
  EXPECT_THAT(package->poolings, ElementsAre(Pooling::kMean));
  EXPECT_TRUE(package->normalize);
  EXPECT_EQ(package->max_tokens, 128);
  EXPECT_EQ(package->max_tokens_from, "sentence_bert_config.json");
}

TEST_F(TextPackageTest, PositionsBehindThePaddingLeaveFewerTokens) {
  Write("vocab.txt", "[UNK]\n[CLS]\n[SEP]\n");
  Write("config.json", R"({"model_type": "roberta", "max_position_embeddings": 514,
                           "pad_token_id": 1})");
  Write("tokenizer_config.json", R"({"model_max_length": 1000000000000000019884624838656})");
  const auto package = Read();
  ASSERT_TRUE(package.ok()) << package.status();
  EXPECT_EQ(package->max_tokens, 512);
}

TEST_F(TextPackageTest, WhatIsNotSupportedIsNamed) {
  const struct {
    const char* pooling;
    const char* modules;
    const char* culprit;
  } cases[] = {
      {R"({"pooling_mode_cls_token": true, "include_prompt": false})", nullptr, "include_prompt"},
      {R"({"pooling_mode": "attention"})", nullptr, "\"attention\" is not supported"},
      {R"({})", nullptr, "names no pooling_mode"},
      {"{", nullptr, "is no JSON"},
      {R"({"pooling_mode_cls_token": true})", R"([{"path": "", "type": "a.b.LSTM"}])", "\"LSTM\""},
      {R"({"pooling_mode_cls_token": true})", R"({"a": 1})", "modules.json is no list"},
  };
  for (const auto& each : cases) {
    WriteSentenceTransformer(each.pooling);
    if (each.modules != nullptr) Write("modules.json", each.modules);
    const auto package = Read();
    ASSERT_FALSE(package.ok()) << each.culprit;
    EXPECT_THAT(package.status().message(), HasSubstr(each.culprit));
  }
}

TEST_F(TextPackageTest, DenseLayerOfAnotherWidthIsAContradiction) {
  WriteSentenceTransformer(R"({"word_embedding_dimension": 8, "pooling_mode_mean_tokens": true})");
  Write("modules.json", R"([{"path": "1_Pooling", "type": "Pooling"},
                            {"path": "2_Dense", "type": "Dense"}])");
  Write("2_Dense/config.json", R"({"in_features": 4, "out_features": 2})");
  Write(
      "2_Dense/model.safetensors",
      Safetensors(
          R"({"linear.weight": {"dtype": "F32", "shape": [2, 4], "data_offsets": [0, 32]}})", 32));
  const auto package = Read();
  ASSERT_FALSE(package.ok());
  EXPECT_THAT(package.status().message(),
              HasSubstr("2_Dense takes vectors of 4 elements, 1_Pooling makes 8"));
}

TEST_F(TextPackageTest, LabelsHaveIdsWithoutGaps) {
  Write("vocab.txt", "[UNK]\n[CLS]\n[SEP]\n");
  Write("config.json", R"({"id2label": {"1": "b", "0": "a"}})");
  EXPECT_THAT(Read()->labels, ElementsAre("a", "b"));
  Write("config.json", R"({"id2label": {"0": "a", "2": "b"}})");
  EXPECT_THAT(Read().status().message(), HasSubstr("id2label has the entry \"2\""));
}

TEST(SafetensorsTest, HalvesAreWidened) {
  const std::string header =
      R"({"a": {"dtype": "F16", "shape": [4], "data_offsets": [0, 8]},
          "b": {"dtype": "BF16", "shape": [1], "data_offsets": [8, 10]}, "__metadata__": {"x": "y"}})";
  std::string file = Safetensors(header, 10);
  const uint16_t values[] = {0x3C00, 0xC000, 0x0001, 0x7C00,
                             0x4049};  // 1, -2, 2^-24, inf; 3.140625
  std::memcpy(file.data() + file.size() - 10, values, 10);
  const auto tensors = ReadSafetensors(file);
  ASSERT_TRUE(tensors.ok()) << tensors.status();
  EXPECT_THAT(tensors->at("a").ToDoubles(),
              ElementsAre(1, -2, 1.0 / (1 << 24), std::numeric_limits<double>::infinity()));
  EXPECT_THAT(tensors->at("b").ToDoubles(), ElementsAre(3.140625));
}

TEST(SafetensorsTest, DamagedFilesAreRefused) {
  const std::string entry = R"({"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}})";
  EXPECT_TRUE(ReadSafetensors(Safetensors(entry, 8)).ok());
  for (const std::string& file :
       {std::string(), std::string(7, 'x'), std::string(8, '\xff'), Safetensors("[]", 0),
        Safetensors(entry, 4), Safetensors(R"({"a": 1})", 0),
        Safetensors(R"({"a": {"dtype": "F32", "shape": [3], "data_offsets": [0, 8]}})", 8),
        Safetensors(R"({"a": {"dtype": "F32", "shape": [-1], "data_offsets": [0, 8]}})", 8),
        Safetensors(R"({"a": {"dtype": "I64", "shape": [1], "data_offsets": [0, 8]}})", 8),
        Safetensors(R"({"a": {"dtype": "F32", "shape": [9223372036854775807, 9],
                              "data_offsets": [0, 8]}})",
                    8)}) {
    EXPECT_FALSE(ReadSafetensors(file).ok());
  }
}

TEST(ModelFileTest, LayoutsOfFoldersAreKnown) {
  const TempFolder folder;
  const std::filesystem::path root(folder.path());
  EXPECT_FALSE(IsFlatFolder(root));
  std::filesystem::create_directories(root / "onnx");
  std::ofstream(root / "onnx/model_int8.onnx") << "x";
  EXPECT_EQ(*FindModelFile(root, ""), "onnx/model_int8.onnx");  // the only one
  std::ofstream(root / "onnx/model.onnx") << "x";
  EXPECT_EQ(*FindModelFile(root, ""), "onnx/model.onnx");
  EXPECT_EQ(*FindModelFile(root, "int8"), "onnx/model_int8.onnx");
  EXPECT_THAT(FindModelFile(root, "fp16").status().message(),
              HasSubstr("neither model_fp16.onnx nor onnx/model_fp16.onnx; it has "
                        "onnx/model.onnx, onnx/model_int8.onnx"));
  std::filesystem::create_directories(root / "1/model.onnx");
  EXPECT_EQ(ResolveModelFile(root / "1/model.onnx"), root / "1/model.onnx/model.onnx");
}

ModelIo Io(const std::string& name, DType dtype, std::vector<Dim> dims) {
  return {.name = name, .dtype = dtype, .dims = std::move(dims)};
}

const std::vector<ModelIo> kInputs = {
    Io("input_ids", DType::kInt64, {Dim{.symbol = "batch"}, Dim{.symbol = "sequence"}}),
    Io("attention_mask", DType::kInt64, {Dim{.symbol = "batch"}, Dim{.symbol = "sequence"}})};

std::vector<ModelIo> Hidden(int64_t width) {
  return {Io("last_hidden_state", DType::kFloat32,
             {Dim{.symbol = "batch"}, Dim{.symbol = "sequence"}, Dim{.size = width}})};
}

std::vector<ModelIo> Logits(int64_t width) {
  return {Io("logits", DType::kFloat32, {Dim{.symbol = "batch"}, Dim{.size = width}})};
}

TEST(TextOfferTest, OutputsAndFilesDecideWhatIsOffered) {
  TextPackage package{.tokenizer = TokenizerFiles()};
  EXPECT_EQ(DecideTextOffer(package, kInputs, Hidden(8)).task, TextTask::kEmbed);
  EXPECT_THAT(DecideTextOffer(package, kInputs, Hidden(8)).why, HasSubstr("mean is taken"));
  package.architecture = "BertForSequenceClassification";
  EXPECT_EQ(DecideTextOffer(package, kInputs, Logits(1)).task, TextTask::kRank);
  EXPECT_EQ(DecideTextOffer(package, kInputs, Logits(3)).task, TextTask::kClassify);
  EXPECT_EQ(DecideTextOffer({}, kInputs, Hidden(8)).task, TextTask::kNone);
}

TEST(TextOfferTest, ContradictionsNameBothSides) {
  TextPackage package{.tokenizer = TokenizerFiles(), .pooled_width = 16};
  EXPECT_THAT(DecideTextOffer(package, kInputs, Hidden(8)).refusal.message(),
              HasSubstr("word_embedding_dimension is 16, the model's output "
                        "\"last_hidden_state\" has 8"));
  package = {.tokenizer = TokenizerFiles(),
             .architecture = "XForSequenceClassification",
             .labels = {"a", "b"}};
  EXPECT_THAT(DecideTextOffer(package, kInputs, Logits(3)).refusal.message(),
              HasSubstr("config.json has 2 labels, its output \"logits\" has 3 scores"));
  std::vector<ModelIo> inputs = kInputs;
  inputs.push_back(Io("pixel_values", DType::kFloat32, {Dim{.symbol = "batch"}}));
  EXPECT_THAT(DecideTextOffer(package, inputs, Logits(2)).refusal.message(),
              HasSubstr("its input \"pixel_values\""));
}

}  // namespace
}  // namespace reprise
