#include "server/hub/text_package.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "absl/strings/str_cat.h"
#include "server/hub/folder_members.h"
#include "server/hub/head_steps.h"
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

Tensor Zeros(int64_t rows, int64_t columns) {
  return Tensor::FromVector(DType::kFloat32, {rows, columns},
                            std::vector<float>(static_cast<size_t>(rows * columns)));
}

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
  EXPECT_EQ(PoolingNames(package->steps, "+"), "mean");
  EXPECT_TRUE(EndsNormalized(package->steps, kTextVectors));
  EXPECT_EQ(package->max_tokens, 128);
  EXPECT_EQ(package->max_tokens_from, "sentence_bert_config.json");
}

TEST_F(TextPackageTest, PositionsAfterThePaddingLeaveFewerTokens) {
  Write("vocab.txt", "[UNK]\n[CLS]\n[SEP]\n");
  Write("config.json", R"({"model_type": "roberta", "max_position_embeddings": 514,
                           "pad_token_id": 1})");
  Write("tokenizer_config.json", R"({"model_max_length": 1000000000000000019884624838656})");
  const auto package = Read();
  ASSERT_TRUE(package.ok()) << package.status();
  EXPECT_EQ(package->max_tokens, 512);
  EXPECT_EQ(package->first_position, 2);
  EXPECT_EQ(package->padding_id, 1);
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
      {"{", nullptr, "is not JSON"},
      {R"({"pooling_mode": ["mean", "attention"]})", nullptr, "\"attention\" is not supported"},
      {R"({"pooling_mode": "mean", "pooling_mode_odd_tokens": true})", nullptr,
       "the member \"pooling_mode_odd_tokens\" is not known"},
      {R"({"pooling_mode": "mean", "word_embedding_dimension": "8"})", nullptr,
       "word_embedding_dimension is \"8\", which is no number"},
      {R"({"pooling_mode_cls_token": true})",
       R"([{"path": "", "type": "sentence_transformers.models.LSTM"}])", "\"LSTM\""},
      {R"({"pooling_mode_cls_token": true})", R"([{"path": "", "type": "custom_st.Transformer"}])",
       "\"custom_st.Transformer\" is not supported"},
      {R"({"pooling_mode_cls_token": true})",
       R"([{"path": "", "type": "sentence_transformers.models.Transformer", "kwargs": ["task"]}])",
       "kwargs is [\"task\"]"},
      {R"({"pooling_mode_cls_token": true})", R"({"a": 1})", "modules.json is not a list"},
  };
  for (const auto& each : cases) {
    WriteSentenceTransformer(each.pooling);
    if (each.modules != nullptr) Write("modules.json", each.modules);
    const auto package = Read();
    ASSERT_FALSE(package.ok()) << each.culprit;
    EXPECT_THAT(package.status().message(), HasSubstr(each.culprit));
  }
}

TEST_F(TextPackageTest, PoolingsAreJoinedInTheOrderOfTheirList) {
  WriteSentenceTransformer(R"({"embedding_dimension": 8, "pooling_mode": ["max", "cls"],
                               "pooling_mode_mean_tokens": true})");
  EXPECT_EQ(PoolingNames(Read()->steps, "+"), "max+cls");
  WriteSentenceTransformer(R"({"pooling_mode_max_tokens": true, "pooling_mode_cls_token": true})");
  EXPECT_EQ(PoolingNames(Read()->steps, "+"), "cls+max");
  WriteSentenceTransformer(R"({"word_embedding_dimension": 8, "pooling_mode_cls_token": false})");
  EXPECT_EQ(PoolingNames(Read()->steps, "+"), "mean");
}

// Each member of each file is refused by its name where it is not supported.
TEST_F(TextPackageTest, MembersOfEveryFileAreReadOrRefused) {
  const struct {
    const char* file;
    const char* json;
    const char* culprit;
  } cases[] = {
      {"sentence_bert_config.json", R"({"max_seq_length": "128"})", "max_seq_length is \"128\""},
      {"sentence_bert_config.json", R"({"transformer_task": "any-to-any"})", "\"any-to-any\""},
      {"sentence_bert_config.json", R"({"query_length": 8})", "names no MultiVectorEncoder"},
      {"config_sentence_transformers.json", R"({"model_type": "ColBERT", "query_length": 1})",
       "query_length is 1"},
      {"sentence_bert_config.json", R"({"processing_kwargs": {"text": {"max_length": 8}}})",
       "processing_kwargs"},
      {"sentence_bert_config.json", R"({"modality_config": {"image": {}}})",
       "modality_config has no \"text\""},
      {"sentence_bert_config.json",
       R"({"modality_config": {"text": {"method": "get_text_features"}}})", "get_text_features"},
      {"sentence_bert_config.json",
       R"({"modality_config": {"text": {"method": "forward",
                                        "method_output_name": ["hidden_states", -2]}}})",
       "[\"hidden_states\",-2]"},
      {"sentence_bert_config.json", R"({"lower": true})", "the member \"lower\" is not known"},
      {"config_sentence_transformers.json", R"({"model_type": "WordEncoder", "x": 1})",
       "model_type is \"WordEncoder\""},
      {"config_sentence_transformers.json", R"({"similarity_fn_name": "jaccard"})", "jaccard"},
      {"config_sentence_transformers.json", R"({"activation_fn": "my.Sigmoid"})",
       "activation_fn \"my.Sigmoid\""},
      {"config_sentence_transformers.json", R"({"default_prompt_name": "q", "prompts": {}})",
       "default_prompt_name is \"q\""},
      {"config_sentence_transformers.json",
       R"({"default_prompt_name": "q", "prompts": {"q": "ask: "}, "model_type": "CrossEncoder"})",
       "prompts of a cross encoder"},
      {"config_sentence_transformers.json", R"({"truncate_dim": -1})", "truncate_dim is -1"},
      {"tokenizer_config.json", R"({"truncation_side": "both"})", "truncation_side is \"both\""},
      {"tokenizer_config.json", R"({"do_basic_tokenize": false})", "do_basic_tokenize is false"},
      {"tokenizer_config.json", R"({"novelty": 1})", "the member \"novelty\" is not known"},
      {"special_tokens_map.json", R"({"image_token": "<i>"})", "\"image_token\" is not known"},
      {"added_tokens.json", R"({"[x]": "9"})", "[x] is \"9\", which is no number"},
      {"config.json", R"({"sbert_ce_default_activation_function": "a.B"})", "\"a.B\""},
      {"config.json", R"({"id2label": ["a"]})", "id2label is [\"a\"], which is no object"},
  };
  Write("vocab.txt", "[UNK]\n[CLS]\n[SEP]\n");
  for (const auto& each : cases) {
    Write(each.file, each.json);
    const auto package = Read();
    ASSERT_FALSE(package.ok()) << each.culprit;
    EXPECT_THAT(package.status().message(), HasSubstr(each.file));
    EXPECT_THAT(package.status().message(), HasSubstr(each.culprit));
    std::filesystem::remove(std::filesystem::path(folder_.path()) / each.file);
  }
  ASSERT_TRUE(Read().ok());
}

// tokenizer.json holds the meaning of members that would be refused without it.
TEST_F(TextPackageTest, MembersBesideATokenizerJsonMayBeUnknown) {
  Write("tokenizer.json", "{}");
  Write("tokenizer_config.json", R"({"novelty": 1, "do_basic_tokenize": false,
                                     "model_input_names": ["input_ids"]})");
  const auto package = Read();
  ASSERT_TRUE(package.ok()) << package.status();
  EXPECT_FALSE(package->token_types);
}

TEST_F(TextPackageTest, ChatTemplatesAndSpecialTokensComeFromTheirFiles) {
  Write("tokenizer.json", "{}");
  Write("tokenizer_config.json", R"({"bos_token": {"content": "<s>"}, "eos_token": "</s>",
      "chat_template": [{"name": "default", "template": "a"},
                        {"name": "tool_use", "template": "b"}]})");
  Write("special_tokens_map.json", R"({"eos_token": "<other>", "pad_token": "<pad>"})");
  auto package = Read();
  ASSERT_TRUE(package.ok()) << package.status();
  EXPECT_EQ(package->chat_template, "a");
  EXPECT_THAT(package->chat_templates,
              ElementsAre(std::pair<std::string, std::string>("tool_use", "b")));
  EXPECT_EQ(package->bos_token, "<s>");
  EXPECT_EQ(package->eos_token, "</s>");
  EXPECT_EQ(package->pad_token, "<pad>");
  Write("chat_template.json", R"({"chat_template": "c"})");
  EXPECT_EQ(Read()->chat_template, "c");
  Write("chat_template.jinja", "d");
  Write("additional_chat_templates/rag.jinja", "e");
  package = Read();
  ASSERT_TRUE(package.ok()) << package.status();
  EXPECT_EQ(package->chat_template, "d");
  EXPECT_THAT(package->chat_templates,
              ElementsAre(std::pair<std::string, std::string>("rag", "e")));
}

TEST_F(TextPackageTest, WhatIsNoChatTemplateIsNamed) {
  Write("tokenizer.json", "{}");
  Write("tokenizer_config.json", R"({"chat_template": [{"name": "default"}]})");
  EXPECT_THAT(Read().status().message(), HasSubstr("tokenizer_config.json: chat_template"));
  Write("tokenizer_config.json", R"({"chat_template": 3})");
  EXPECT_THAT(Read().status().message(), HasSubstr("chat_template is 3"));
}

TEST(FolderMembersTest, EveryMemberIsInTheTableOnce) {
  std::set<std::pair<std::string, std::string>> seen;
  for (const FolderMember& row : FolderMembers()) {
    EXPECT_TRUE(seen.emplace(row.file, row.member).second) << row.file << " " << row.member;
    EXPECT_STRNE(row.says, "") << row.member;
    if (row.use == MemberUse::kOnly || row.use == MemberUse::kOnlyAlone) {
      EXPECT_TRUE(nlohmann::json::parse(row.values).is_array()) << row.member;
    }
  }
}

TEST(HeadStepsTest, WidthsAndNamesFollowTheOrderOfTheSteps) {
  const auto dense = [](int64_t in, int64_t out, const char* name) {
    return DenseLayer{.folder = absl::StrCat(in, "_Dense"),
                      .weight = Zeros(out, in),
                      .input = name,
                      .output = name};
  };
  const PoolingStep pooling{.poolings = {Pooling::kMean, Pooling::kMax}, .folder = "Pooling"};
  EXPECT_EQ(*WidthAfter({pooling, dense(16, 3, kTextVectors)}, kTokenVectors, 8, kTextVectors), 3);
  EXPECT_EQ(*WidthAfter({dense(8, 5, kTokenVectors), pooling}, kTokenVectors, 8, kTextVectors), 10);
  EXPECT_THAT(
      WidthAfter({dense(7, 5, kTokenVectors)}, kTokenVectors, 8, kTokenVectors).status().message(),
      HasSubstr("7_Dense takes vectors of 7 elements, the model makes 8"));
  EXPECT_THAT(
      WidthAfter({dense(8, 5, kTextVectors)}, kTokenVectors, 8, kTextVectors).status().message(),
      HasSubstr("8_Dense reads \"sentence_embedding\", which no module before it writes"));
  EXPECT_TRUE(EndsNormalized({pooling, NormalizeStep{}}, kTextVectors));
  EXPECT_FALSE(EndsNormalized({NormalizeStep{}, dense(8, 5, kTextVectors)}, kTextVectors));
}

TEST_F(TextPackageTest, DenseLayerOfAnotherWidthIsAContradiction) {
  WriteSentenceTransformer(R"({"word_embedding_dimension": 8, "pooling_mode_mean_tokens": true})");
  Write("modules.json",
        R"([{"path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
            {"path": "2_Dense", "type": "sentence_transformers.models.Dense"}])");
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

TEST_F(TextPackageTest, ScoresGoThroughWhatTheNewestFileSays) {
  Write("vocab.txt", "[UNK]\n[CLS]\n[SEP]\n");
  EXPECT_EQ(Read()->score_activation, std::nullopt);
  Write("config.json", R"({"sbert_ce_default_activation_function":
                           "torch.nn.modules.activation.Sigmoid"})");
  EXPECT_EQ(Read()->score_activation, Activation::kSigmoid);
  Write("config.json", R"({"sentence_transformers":
                           {"activation_fn": "torch.nn.modules.activation.Tanh"}})");
  EXPECT_EQ(Read()->score_activation, Activation::kTanh);
  Write("config_sentence_transformers.json",
        R"({"model_type": "CrossEncoder", "activation_fn": "torch.nn.modules.linear.Identity"})");
  EXPECT_EQ(Read()->score_activation, Activation::kIdentity);
  EXPECT_TRUE(Read()->cross_encoder);
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

TEST(TextOfferTest, ModulesAndKindOfModelDecideWhatIsOffered) {
  TextPackage package{.tokenizer = TokenizerFiles(), .sentence_transformer = true};
  EXPECT_EQ(DecideTextOffer(package, kInputs, Hidden(8)).task, TextTask::kTokens);
  package.steps = {SpladeStep{.folder = "1_SpladePooling", .width = 9}};
  package.sparse = true;
  EXPECT_EQ(DecideTextOffer(package, kInputs, Hidden(9)).task, TextTask::kSparse);
  EXPECT_THAT(DecideTextOffer(package, kInputs, Hidden(8)).refusal.message(),
              HasSubstr("1_SpladePooling takes vectors of 9 elements, the model makes 8"));
  package.sparse = false;
  package.steps.clear();
  package.late = LateFacts();
  package.late->query.filled_to = 32;
  EXPECT_THAT(
      DecideTextOffer(package, {{.name = "input_ids", .dtype = DType::kInt64, .dims = {{}, {}}}},
                      Hidden(8))
          .refusal.message(),
      HasSubstr("attention_mask"));
  package.late.reset();
  package.cross_encoder = true;
  EXPECT_EQ(DecideTextOffer(package, kInputs, Logits(1)).task, TextTask::kRank);
  EXPECT_EQ(DecideTextOffer(package, kInputs, Logits(3)).task, TextTask::kClassify);
  package.steps = {PoolingStep{.poolings = {Pooling::kCls}},
                   DenseLayer{.folder = "2_Dense", .weight = Zeros(1, 8), .output = kScores}};
  const TextOffer offer = DecideTextOffer(package, kInputs, Hidden(8));
  EXPECT_EQ(offer.task, TextTask::kRank);
  EXPECT_EQ(offer.output, "scores");
  EXPECT_TRUE(offer.append_head);
  package.cross_encoder = false;
  package.vectors_output = "pooler_output";
  package.vectors_name = kTextVectors;
  EXPECT_THAT(DecideTextOffer(package, kInputs, Hidden(8)).refusal.message(),
              HasSubstr("reads its output \"pooler_output\""));
  package = {.tokenizer = TokenizerFiles(), .truncate_dim = 4};
  EXPECT_THAT(DecideTextOffer(package, kInputs,
                              {Io("sentence_embedding", DType::kFloat32,
                                  {Dim{.symbol = "batch"}, Dim{.size = 8}})})
                  .refusal.message(),
              HasSubstr("truncate_dim is 4"));
}

TEST(TextOfferTest, ContradictionsNameBothSides) {
  TextPackage package{
      .tokenizer = TokenizerFiles(),
      .sentence_transformer = true,
      .steps = {PoolingStep{.poolings = {Pooling::kMean}, .width = 16, .folder = "1_Pooling"}}};
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
