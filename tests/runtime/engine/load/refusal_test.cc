// A model that cannot run is refused at load, with every reason.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/graph/graph.h"
#include "runtime/onnx/kit/reasons.h"
#include "tests/runtime/onnx/model_builder.h"
#include "tests/testing/engine_fixture.h"
#include "tests/testing/temp_folder.h"

namespace reprise {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

class RefusalTest : public testing::Test {
 protected:
  absl::Status Load(const ModelBuilder& builder) {
    const std::string path = folder_.Write("model.onnx", builder.Bytes());
    return fixture_.engine.Load({.id = {"refused", 1}, .path = path}).status();
  }

  const TempFolder folder_;
  EngineFixture fixture_;
};

TEST_F(RefusalTest, UnknownOpsAndUnsupportedDtypesAreToldTogether) {
  ModelBuilder builder;
  builder.Input("x", {"batch", "sequence"}, onnx::TensorProto::INT32).Output("z");
  builder.Node("Erf", {"x"}, {"e"}, "integers");  // Floats only.
  builder.Node("Neg", {"x"}, {"n"}, "fine");
  builder.Node("Frobnicate", {"n"}, {"f"}, "odd", "com.example");
  builder.Node("Erf", {"n"}, {"g"}, "more_integers");
  builder.Node("StringNormalizer", {"e", "f"}, {"z"}, "text");
  const absl::Status status = Load(builder);
  EXPECT_TRUE(absl::IsUnimplemented(status)) << status;
  EXPECT_THAT(
      ReasonsOf(status),
      UnorderedElementsAre(
          "op 'Frobnicate' (domain 'com.example', version ?, node 'odd', dtypes (i32)): is not "
          "supported: bring it with `reprised --op-library FILE.so`, or RegisterOp in a program",
          "op 'StringNormalizer' (domain 'ai.onnx', version 17, node 'text', dtypes (?, ?)): is "
          "not supported",
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

TEST_F(RefusalTest, InputsOfTooFewDimsAreRefusedWithWhatTheFileDeclares) {
  ModelBuilder transpose;
  transpose.Input("x", {"batch", "sequence"}).Output("y");
  SetAttribute(transpose.Node("Transpose", {"x"}, {"y"}, "turn"), "perm",
               std::vector<int64_t>{0, 2, 1});
  const absl::Status status = Load(transpose);
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("Transpose 'turn'"), HasSubstr("3 entries for an input of rank 2"),
                    HasSubstr("the file declares: x [batch, sequence]")));

  ModelBuilder gather;
  gather.Input("x", {"batch", ""}).Output("y");
  gather.Initializer<int64_t>("i", onnx::TensorProto::INT64, {1}, {0});
  SetAttribute(gather.Node("Gather", {"x", "i"}, {"y"}, "pick"), "axis", int64_t{2});
  EXPECT_THAT(std::string(Load(gather).message()),
              AllOf(HasSubstr("Gather 'pick'"), HasSubstr("x [batch, x:1]")));

  ModelBuilder gemm;
  gemm.Input("x", {"batch", "sequence", "8"}).Output("y");
  gemm.Floats("w", {8, 8}, std::vector<float>(64, 1));
  gemm.Node("Gemm", {"x", "w"}, {"y"}, "product");
  EXPECT_THAT(std::string(Load(gemm).message()), HasSubstr("input 0 has rank 3, expected 2"));

  ModelBuilder reshape;
  reshape.Input("x", {"batch", "sequence"}).Output("y");
  reshape.Initializer<int64_t>("s", onnx::TensorProto::INT64, {4}, {0, 0, 0, -1});
  reshape.Node("Reshape", {"x", "s"}, {"y"}, "heads");
  EXPECT_THAT(std::string(Load(reshape).message()),
              HasSubstr("copies dim 2 of an input of rank 2"));
}

TEST_F(RefusalTest, ASizeThatIsAskedForOfNoDimIsRefused) {
  ModelBuilder builder;
  builder.Input("x", {"batch", "sequence"}).Output("y");
  builder.Initializer<int64_t>("two", onnx::TensorProto::INT64, {1}, {2});
  builder.Node("Shape", {"x"}, {"s"}, "shape");
  builder.Node("Gather", {"s", "two"}, {"size"}, "third");
  builder.Node("Expand", {"x", "size"}, {"y"}, "wide");
  EXPECT_THAT(std::string(Load(builder).message()),
              AllOf(HasSubstr("Gather 'third'"), HasSubstr("outside [-2, 1]"),
                    HasSubstr("x [batch, sequence]")));
}

TEST_F(RefusalTest, ADimOfWhichOneSizeFitsIsServed) {
  ModelBuilder builder;
  builder.Input("x", {"batch", "sequence", "hidden"}).Output("y");
  builder.Floats("w", {8, 8}, std::vector<float>(64, 1));
  builder.Node("MatMul", {"x", "w"}, {"y"}, "product");
  EXPECT_TRUE(Load(builder).ok());
}

TEST_F(RefusalTest, ARankThatSizesDecideIsLeftToRequests) {
  ModelBuilder builder;
  builder.Input("x", {"batch", "sequence"}).Output("y");
  builder.Node("Squeeze", {"x"}, {"v"}, "squeeze");
  SetAttribute(builder.Node("Transpose", {"v"}, {"y"}, "turn"), "perm", std::vector<int64_t>{0});
  EXPECT_TRUE(Load(builder).ok());
}

TEST_F(RefusalTest, SoundModelIsNotRefused) {
  ModelBuilder builder;
  builder.Input("x", {"batch", "sequence"}).Output("y");
  builder.Node("Relu", {"x"}, {"y"}, "fine");
  EXPECT_TRUE(Load(builder).ok());
}

}  // namespace
}  // namespace reprise
