// A model that cannot run is refused at load, with every reason.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "runtime/onnx/reasons.h"
#include "tests/runtime/onnx/model_builder.h"
#include "tests/testing/engine_fixture.h"

namespace reprise {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

class RefusalTest : public testing::Test {
 protected:
  RefusalTest()
      : path_(testing::TempDir() + "/" +
              testing::UnitTest::GetInstance()->current_test_info()->name() + ".onnx") {}
  ~RefusalTest() override { std::filesystem::remove(path_); }

  absl::Status Load(const ModelBuilder& builder) {
    std::ofstream(path_, std::ios::binary) << builder.Bytes();
    return fixture_.engine.Load({.id = {"refused", 1}, .path = path_}).status();
  }

  const std::string path_;
  EngineFixture fixture_;
};

TEST_F(RefusalTest, UnknownOpsAndUnsupportedDtypesAreToldTogether) {
  ModelBuilder builder;
  builder.Input("x", {"batch", "sequence"}, onnx::TensorProto::INT32).Output("z");
  builder.Node("Erf", {"x"}, {"e"}, "integers");  // Floats only.
  builder.Node("Neg", {"x"}, {"n"}, "fine");
  builder.Node("Frobnicate", {"n"}, {"f"}, "odd", "com.example");
  builder.Node("Erf", {"n"}, {"g"}, "more_integers");
  builder.Node("Loop", {"e", "f"}, {"z"}, "loop");
  const absl::Status status = Load(builder);
  EXPECT_TRUE(absl::IsUnimplemented(status)) << status;
  EXPECT_THAT(
      ReasonsOf(status),
      UnorderedElementsAre(
          "op 'Frobnicate' (domain 'com.example', version ?, node 'odd', dtypes (i32)): is not "
          "supported",
          "op 'Loop' (domain 'ai.onnx', version 17, node 'loop', dtypes (?, ?)): is not supported",
          "op 'Erf' (domain 'ai.onnx', version 17, nodes 'integers', 'more_integers', dtypes "
          "(i32)): input 0 cannot be of dtype i32"));
}

TEST_F(RefusalTest, DtypesThatTheFileDeclaresLeadOnBehindARefusedNode) {
  ModelBuilder builder;
  builder.Input("x", {"batch"}).Output("z");
  builder.Node("Frobnicate", {"x"}, {"f"}, "odd");
  builder.SetType(builder.graph().add_value_info(), "f", onnx::TensorProto::INT64, {"batch"});
  builder.Node("Erf", {"f"}, {"z"}, "behind");
  EXPECT_THAT(ReasonsOf(Load(builder)),
              ElementsAre(HasSubstr("node 'odd', dtypes (f32)"),
                          AllOf(HasSubstr("node 'behind'"), HasSubstr("of dtype i64"))));
}

TEST_F(RefusalTest, MixedDtypesAreRefusedAtLoadNotInARequest) {
  ModelBuilder builder;
  builder.Input("x", {"batch"}).Input("k", {"batch"}, onnx::TensorProto::INT64).Output("y");
  builder.Node("Add", {"x", "k"}, {"y"}, "sum");
  EXPECT_THAT(ReasonsOf(Load(builder)),
              ElementsAre("op 'Add' (domain 'ai.onnx', version 17, node 'sum', dtypes (f32, i64)): "
                          "inputs 0 and 1 are of dtypes f32 and i64"));
}

TEST_F(RefusalTest, SoundModelIsNotRefused) {
  ModelBuilder builder;
  builder.Input("x", {"batch", "sequence"}).Output("y");
  builder.Node("Relu", {"x"}, {"y"}, "fine");
  EXPECT_TRUE(Load(builder).ok());
}

}  // namespace
}  // namespace reprise
