// Ops from outside: which may be registered, and how they are found.
#include "runtime/ops/custom/registered_op.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "runtime/ops/custom/op_library.h"
#include "runtime/ops/kit/host_op.h"

namespace reprise {
namespace {

using testing::Contains;
using testing::HasSubstr;

RegisteredOp Twice(const std::string& name) {
  return {.domain = "optest",
          .name = name,
          .shape = SameShapeAsFirst,
          .kernel = [](const KernelContext& context) {
            for (int64_t i = 0; i < context.inputs[0].num_elements(); ++i) {
              context.outputs[0].as<float>()[i] = 2 * context.inputs[0].as<float>()[i];
            }
            return absl::OkStatus();
          }};
}

absl::StatusOr<std::vector<Tensor>> RunOp(const std::string& op) {
  Node node = {.op = op, .name = "node", .inputs = {0}, .outputs = {1}};
  return Evaluate(node, {Tensor::FromVector<float>(DType::kFloat32, {2}, {1, 2})}, 1 << 20);
}

TEST(RegisteredOpTest, IsFoundAndRunsByItsName) {
  EXPECT_EQ(FindOp("optest.Twice"), nullptr);
  ASSERT_TRUE(RegisterOp(Twice("Twice")).ok());
  const OpRow* row = FindOp("optest.Twice");
  ASSERT_NE(row, nullptr);
  EXPECT_TRUE(row->Has(kHost));
  EXPECT_FALSE(FactsOf("optest.Twice").OnlyMoves());
  EXPECT_THAT(RegisteredOps(), Contains("optest.Twice"));
  const auto results = RunOp("optest.Twice");
  ASSERT_TRUE(results.ok()) << results.status();
  EXPECT_THAT((*results)[0].span<float>(), testing::ElementsAre(2, 4));
}

TEST(RegisteredOpTest, ElementwiseStaysInRecipes) {
  RegisteredOp op = Twice("TwiceEach");
  op.elementwise = true;
  ASSERT_TRUE(RegisterOp(std::move(op)).ok());
  EXPECT_TRUE(FindOp("optest.TwiceEach")->Has(kElementwise));
  EXPECT_FALSE(FindOp("optest.TwiceEach")->Has(kHost));
}

TEST(RegisteredOpTest, WhatThrowsOrFailsIsAnErrorThatNamesIt) {
  RegisteredOp throws = Twice("Throws");
  throws.kernel = [](const KernelContext&) -> absl::Status { throw std::runtime_error("oops"); };
  ASSERT_TRUE(RegisterOp(std::move(throws)).ok());
  EXPECT_THAT(RunOp("optest.Throws").status().message(), HasSubstr("op optest.Throws threw: oops"));
  RegisteredOp fails = Twice("Fails");
  fails.shape = [](InferContext&) { return absl::InvalidArgumentError("takes no vector"); };
  ASSERT_TRUE(RegisterOp(std::move(fails)).ok());
  EXPECT_THAT(RunOp("optest.Fails").status().message(), HasSubstr("takes no vector"));
}

TEST(RegisteredOpTest, NamesThatAreTakenOrWrongAreRefused) {
  ASSERT_TRUE(RegisterOp(Twice("Once")).ok());
  EXPECT_TRUE(absl::IsAlreadyExists(RegisterOp(Twice("Once"))));
  RegisteredOp relu = Twice("Relu");
  relu.domain = "";
  EXPECT_TRUE(absl::IsAlreadyExists(RegisterOp(std::move(relu))));
  EXPECT_TRUE(absl::IsInvalidArgument(RegisterOp(Twice(""))));
  EXPECT_TRUE(absl::IsInvalidArgument(RegisterOp(Twice("a.b"))));
  RegisteredOp ours = Twice("Mine");
  ours.domain = "reprise";
  EXPECT_TRUE(absl::IsInvalidArgument(RegisterOp(std::move(ours))));
  RegisteredOp bare = Twice("Bare");
  bare.kernel = nullptr;
  EXPECT_THAT(RegisterOp(std::move(bare)).message(), HasSubstr("'optest.Bare' has no kernel"));
}

TEST(OpLibraryTest, AFileThatIsNoneSaysWhy) {
  const auto absent = LoadOpLibrary("/nowhere/libops.so");
  EXPECT_TRUE(absl::IsNotFound(absent.status()));
  EXPECT_THAT(absent.status().message(), HasSubstr("/nowhere/libops.so"));
  // A library, and none of ours.
  const auto other = LoadOpLibrary("libm.so.6");
  EXPECT_THAT(other.status().message(), HasSubstr("no function reprise_op_library"));
}

}  // namespace
}  // namespace reprise
