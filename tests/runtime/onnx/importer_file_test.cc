#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "runtime/graph/graph.h"
#include "tests/runtime/onnx/import_test_util.h"
#include "tests/testing/temp_folder.h"

namespace reprise {
namespace {

using ::testing::HasSubstr;

class ImporterFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(folder_ / "model");
    path_ = (folder_ / "model" / "model.onnx").string();
  }

  static void Write(const std::filesystem::path& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
  }

  // Returns a model whose initializer of 256 floats is in the external file `location`.
  ModelBuilder External(const std::string& location, const std::string& offset = "0",
                        const std::string& length = "1024") {
    ModelBuilder builder;
    builder.Input("x", {"256"}).Output("y");
    builder.Node("Add", {"x", "w"}, {"y"});
    auto* tensor = builder.graph().add_initializer();
    tensor->set_name("w");
    tensor->set_data_type(onnx::TensorProto::FLOAT);
    tensor->add_dims(256);
    tensor->set_data_location(onnx::TensorProto::EXTERNAL);
    for (const auto& [key, value] : std::map<std::string, std::string>{
             {"location", location}, {"offset", offset}, {"length", length}}) {
      auto* entry = tensor->add_external_data();
      entry->set_key(key);
      entry->set_value(value);
    }
    return builder;
  }
  std::string Weights() {
    std::vector<float> values(256, 1.5f);
    return std::string(reinterpret_cast<const char*>(values.data()), 1024);
  }
  std::string ImportError(const ModelBuilder& builder) {
    Write(path_, builder.Bytes());
    const auto model = ImportOnnxFile(path_);
    EXPECT_EQ(model.status().code(), absl::StatusCode::kInvalidArgument) << model.status();
    return std::string(model.status().message());
  }

  const TempFolder temp_;
  const std::filesystem::path& folder_ = temp_.path();
  std::string path_;
};

TEST_F(ImporterFileTest, MissingFileIsNotFound) {
  EXPECT_EQ(ImportOnnxFile(path_).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(ImporterFileTest, EmptyFileAndFolderAreRefused) {
  Write(path_, "");
  EXPECT_EQ(ImportOnnxFile(path_).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ImportOnnxFile(folder_.string()).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(ImporterFileTest, ExternalDataIsReadAtItsOffset) {
  Write(folder_ / "model" / "weights.bin", "12345678" + Weights());
  Write(path_, External("weights.bin", "8").Bytes());
  const auto model = ImportOnnxFile(path_);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->parameters[0].Aligned().span<float>()[255], 1.5f);
}

TEST_F(ImporterFileTest, ParametersAtOddAddressesStayInTheFileUntilTheyAreRead) {
  Write(folder_ / "model" / "weights.bin", "123" + Weights());
  Write(path_, External("weights.bin", "3").Bytes());
  const auto model = ImportOnnxFile(path_);
  ASSERT_TRUE(model.ok()) << model.status();
  const Tensor& stored = model->parameters[0];
  EXPECT_FALSE(stored.aligned());
  EXPECT_EQ(model->files.back().bytes.data() + 3, stored.data());
  EXPECT_EQ(stored.Aligned(),
            Tensor::FromVector(DType::kFloat32, stored.shape(), std::vector<float>(256, 1.5f)));
}

TEST_F(ImporterFileTest, LinkToTheModelFindsDataBesideTheModel) {
  Write(folder_ / "model" / "weights.bin", Weights());
  Write(path_, External("weights.bin").Bytes());
  std::filesystem::create_symlink(path_, folder_ / "link.onnx");
  EXPECT_TRUE(ImportOnnxFile((folder_ / "link.onnx").string()).ok());
}

TEST_F(ImporterFileTest, ExternalDataOutsideTheFolderIsRefused) {
  Write(folder_ / "weights.bin", Weights());
  EXPECT_THAT(ImportError(External("../weights.bin")), HasSubstr("'../weights.bin'"));
  EXPECT_THAT(ImportError(External((folder_ / "weights.bin").string())),
              HasSubstr("is not inside the model's folder"));
  std::filesystem::create_symlink(folder_ / "weights.bin", folder_ / "model" / "link.bin");
  EXPECT_THAT(ImportError(External("link.bin")), HasSubstr("leads out of the model's folder"));
}

TEST_F(ImporterFileTest, ExternalDataBeyondTheFileIsRefused) {
  Write(folder_ / "model" / "weights.bin", Weights());
  EXPECT_THAT(ImportError(External("weights.bin", "1")), HasSubstr("of 1024 bytes"));
  EXPECT_THAT(ImportError(External("weights.bin", "9223372036854775807")), HasSubstr("outside"));
  EXPECT_THAT(ImportError(External("weights.bin", "0", "512")),
              HasSubstr("has 512 bytes of data, expected 1024"));
  EXPECT_THAT(ImportError(External("weights.bin", "-4")), HasSubstr("offset '-4'"));
  EXPECT_THAT(ImportError(External("absent.bin")), HasSubstr("'absent.bin' does not exist"));
}

TEST_F(ImporterFileTest, ParametersOutliveTheImport) {
  ModelBuilder builder;
  builder.Input("x", {"1024"}).Output("y");
  std::vector<int8_t> bytes(1024);
  std::iota(bytes.begin(), bytes.end(), int8_t{0});
  builder.Initializer("q", onnx::TensorProto::INT8, {1024}, bytes);
  SetAttribute(builder.Node("Cast", {"q"}, {"w"}), "to", int64_t{onnx::TensorProto::FLOAT});
  builder.Node("Mul", {"x", "w"}, {"y"});
  Write(path_, builder.Bytes());
  auto model = ImportOnnxFile(path_);
  ASSERT_TRUE(model.ok()) << model.status();
  const Tensor parameter = model->parameters.at(0);
  *model = ImportedModel();
  EXPECT_EQ(parameter.span<int8_t>()[1023], -1);
}

}  // namespace
}  // namespace reprise
