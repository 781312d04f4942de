// Damaged files: whatever the bytes, the importer answers with a status.
#include <gtest/gtest.h>

#include <random>

#include "runtime/graph/verifier.h"
#include "runtime/onnx/importer.h"
#include "tests/runtime/onnx/model_builder.h"

namespace reprise {
namespace {

std::string SmallModel() {
  ModelBuilder builder(11);
  builder.Input("x", {"batch", "16"}).Output("y");
  builder.Floats("w", {16, 16}, std::vector<float>(256, 0.5f));
  builder.Initializer<int64_t>("shape", onnx::TensorProto::INT64, {2}, {0, -1});
  builder.Node("MatMul", {"x", "w"}, {"a"}, "product");
  builder.Node("Softmax", {"a"}, {"b"}, "soft");
  builder.Node("Reshape", {"b", "shape"}, {"c"}, "shape");
  SetAttribute(builder.Node("Constant", {}, {"two"}), "value_float", 2.0f);
  SetAttribute(builder.Node("Squeeze", {"c"}, {"d"}), "axes", std::vector<int64_t>{});
  builder.Node("Mul", {"d", "two"}, {"y"}, "scale");
  return builder.Bytes();
}

void ImportMustNotCrash(const std::string& bytes) {
  const auto model = ImportOnnxBytes(absl::string_view(bytes.data(), bytes.size()));
  if (model.ok()) {
    EXPECT_TRUE(Verify(model->graph, false).ok());
  } else {
    EXPECT_FALSE(model.status().message().empty());
  }
}

TEST(DamagedModelTest, EveryTruncationIsAnsweredWithAStatus) {
  const std::string bytes = SmallModel();
  ASSERT_TRUE(ImportOnnxBytes(absl::string_view(bytes.data(), bytes.size())).ok());
  for (size_t length = 0; length < bytes.size(); ++length) {
    SCOPED_TRACE(length);
    ImportMustNotCrash(bytes.substr(0, length));
  }
}

TEST(DamagedModelTest, EverySingleByteChangeIsAnsweredWithAStatus) {
  const std::string bytes = SmallModel();
  for (size_t at = 0; at < bytes.size(); ++at) {
    SCOPED_TRACE(at);
    for (int value : {0x00, 0x01, 0x7F, 0x80, 0xFF}) {
      std::string damaged = bytes;
      damaged[at] = static_cast<char>(value);
      ImportMustNotCrash(damaged);
    }
  }
}

TEST(DamagedModelTest, RandomDamageIsAnsweredWithAStatus) {
  const std::string bytes = SmallModel();
  std::mt19937 random(7);
  for (int round = 0; round < 2000; ++round) {
    std::string damaged = bytes;
    const int changes = 1 + static_cast<int>(random() % 8);
    for (int i = 0; i < changes; ++i) {
      const size_t at = random() % damaged.size();
      switch (random() % 3) {
        case 0:
          damaged[at] = static_cast<char>(random());
          break;
        case 1:
          damaged.erase(at, 1 + random() % 16);
          if (damaged.empty()) damaged = "x";
          break;
        default:
          damaged.insert(at, bytes.substr(random() % bytes.size(), random() % 32));
      }
    }
    SCOPED_TRACE(round);
    ImportMustNotCrash(damaged);
  }
}

}  // namespace
}  // namespace reprise
