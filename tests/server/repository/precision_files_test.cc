// Files that the precision of a model is set by.
#include "server/repository/precision_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/testing/temp_folder.h"

namespace reprise {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

const std::vector<ModelIo> kCalibrated = {
    {.name = "ids", .dtype = DType::kInt64, .dims = {{.symbol = "b"}, {.symbol = "s"}}},
    {.name = "x", .dtype = DType::kFloat32, .dims = {{.symbol = "b"}, {.size = 2}}}};

class CalibrationTest : public testing::Test {
 protected:
  absl::StatusOr<std::vector<std::vector<Tensor>>> Read(const std::string& text) {
    folder_.Write("requests.jsonl", text);
    return Named("requests.jsonl");
  }
  absl::StatusOr<std::vector<std::vector<Tensor>>> Named(const std::string& file) {
    const TextLoad texts((folder_.path() / "model.onnx").string(), {.off = true});
    return CalibrationRequests({.version = folder_.path() / "1", .model = folder_.path()}, file,
                               kCalibrated, texts);
  }

  const TempFolder folder_;
};

TEST_F(CalibrationTest, ObjectsOfListsBecomeTensors) {
  const auto requests = Read(
      "{\"ids\": [[3, 4, 5]], \"x\": [[0.5, -2]]}\n\n  {\"x\": [[1, 2], [3, 4]], \"ids\": [[7], "
      "[8]]}\n");
  ASSERT_TRUE(requests.ok()) << requests.status();
  ASSERT_THAT(*requests, SizeIs(2));
  EXPECT_EQ((*requests)[0][0].shape(), Shape({1, 3}));
  EXPECT_THAT((*requests)[0][0].span<int64_t>(), ElementsAre(3, 4, 5));
  EXPECT_THAT((*requests)[0][1].span<float>(), ElementsAre(0.5F, -2.0F));
  EXPECT_THAT((*requests)[1][1].span<float>(), ElementsAre(1, 2, 3, 4));
}

TEST_F(CalibrationTest, AFileThatDoesNotFitIsRefusedByLineAndInput) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "'requests.jsonl': has no request"},
      {"\n{\"ids\": [[3]]}", "line 2: input 'x' is missing"},
      {"{\"ids\": [[3]], \"x\": [[1, 2]], \"y\": 1}", "line 1: input 'y' is none of the model's"},
      {"{\"ids\": [[3], [4, 5]], \"x\": [[1, 2]]}", "line 1: input 'ids' has uneven lists"},
      {"{\"ids\": [[\"three\"]], \"x\": [[1, 2]]}", "input 'ids' has \"three\", no number"},
      {"{\"ids\": [[3]], \"x\": [[1, 2, 3]]}", "line 1: input 'x'"},
      {"{\"ids\": [[3]], \"x\": [[1, 2], [3, 4]]}", "line 1: input 'x'"},
      {"{\"ids\": [[3]]", "line 1: is no JSON object"},
      {"a text", "line 1: the model takes no texts"}};
  for (const auto& [text, fault] : cases) {
    const auto requests = Read(text);
    EXPECT_EQ(requests.status().code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(requests.status().message(), HasSubstr("parameter reprise.calibration: ")) << text;
    EXPECT_THAT(requests.status().message(), HasSubstr(fault)) << text;
  }
}

TEST_F(CalibrationTest, OnlyFilesOfTheModelsFolderAreRead) {
  EXPECT_THAT(Named("absent.txt").status(),
              testing::Property(&absl::Status::code, absl::StatusCode::kNotFound));
  EXPECT_THAT(Named("absent.txt").status().message(), HasSubstr("cannot read '"));
  for (const char* outside : {"../secret", "/etc/hostname", "a/b"}) {
    EXPECT_THAT(Named(outside).status().message(),
                HasSubstr("is not a file of the model's own folder"))
        << outside;
  }
}

}  // namespace
}  // namespace reprise
