#include "runtime/onnx/gguf/gguf_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/onnx/importer.h"
#include "tests/runtime/onnx/gguf/gguf_builder.h"
#include "tests/testing/temp_folder.h"

namespace reprise {
namespace {

using ::testing::HasSubstr;

class GgufModelTest : public testing::Test {
 protected:
  absl::StatusOr<ImportedModel> Import(const GgufBuilder& builder) {
    return ImportOnnxFile(folder_.Write("model.gguf", builder.Bytes()));
  }
  std::string Error(const GgufBuilder& builder) {
    const auto model = Import(builder);
    return model.ok() ? "OK" : model.status().ToString();
  }
  const TempFolder folder_;
};

TEST_F(GgufModelTest, ADecoderHasCachesAndScores) {
  const auto model = Import(TinyLlama());
  ASSERT_TRUE(model.ok()) << model.status();
  std::vector<std::string> names;
  for (const ModelIo& io : model->inputs) names.push_back(io.name);
  for (const ModelIo& io : model->outputs) names.push_back(io.name);
  EXPECT_THAT(names, testing::ElementsAre("input_ids", "attention_mask", "past_key_values.0.key",
                                          "past_key_values.0.value", "logits", "present.0.key",
                                          "present.0.value"));
}

TEST_F(GgufModelTest, WhatIsMissingOrWrongIsNamed) {
  GgufBuilder b;
  EXPECT_THAT(Error(b), HasSubstr("there is no member 'general.architecture'"));
  b.Text("general.architecture", "mamba");
  EXPECT_THAT(Error(b), HasSubstr("UNIMPLEMENTED: GGUF file 'model.gguf': architecture 'mamba'"));
  b = TinyLlama();
  EXPECT_THAT(Error(b.U32("llama.expert_count", 8)),
              HasSubstr("member 'llama.expert_count' is 8, which is not supported"));
  b = TinyLlama();
  EXPECT_THAT(Error(b.Floats("blk.0.ffn_gate_exps.weight", {8, 12}, std::vector<float>(96))),
              HasSubstr("tensor 'blk.0.ffn_gate_exps.weight' has no place"));
  b = TinyLlama();
  EXPECT_THAT(Error(b.Text("llama.rope.scaling.type", "ntk")), HasSubstr("is 'ntk'"));
  b = TinyLlama();
  EXPECT_THAT(Error(b.U32("llama.attention.value_length", 2)),
              HasSubstr("keys of 4 and values of 2 numbers a head"));
  b = TinyLlama();
  EXPECT_THAT(Error(b.U32("llama.rope.dimension_count", 6)), HasSubstr("is 6 of heads of 4"));
  b = TinyLlama();
  EXPECT_THAT(Error(b.Floats("rope_freqs.weight", {2}, {1, 0})), HasSubstr("holds 0"));
  b = TinyLlama();
  EXPECT_THAT(Error(b.Floats("output.weight", {8, 4}, std::vector<float>(32))),
              HasSubstr("tensor 'output.weight' has the shape [4, 8], expected [3, 8]"));
}

// Members that lie about sizes: each is an error that names it, or one about a tensor.
TEST_F(GgufModelTest, SizesThatContradictTensorsAreRefused) {
  for (const char* key : {"block_count", "embedding_length", "attention.head_count",
                          "attention.head_count_kv", "context_length", "feed_forward_length"}) {
    for (const uint32_t value : {0u, 5u, 7u, 1u << 20, 0xFFFFFFFFu}) {
      const std::string bytes = TinyLlama().Bytes();
      std::string changed = bytes;
      const size_t at = changed.find(std::string("llama.") + key);
      ASSERT_NE(at, std::string::npos);
      std::memcpy(changed.data() + at + 6 + std::string(key).size() + 4, &value, sizeof(value));
      const auto model = ImportOnnxFile(folder_.Write("model.gguf", changed));
      if (model.ok()) {
        EXPECT_STREQ(key, "context_length");  // any other length is as good
      } else {
        EXPECT_NE(model.status().code(), absl::StatusCode::kInternal) << model.status();
      }
    }
  }
}

}  // namespace
}  // namespace reprise
