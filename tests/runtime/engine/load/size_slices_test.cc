// Models in which the size of one axis decides the computation along another one, or which form an
// answer has: requests get the answers that they get alone and unpadded, whatever their sizes are.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "runtime/graph/graph.h"
#include "tests/runtime/engine/load/padding_cases/slice_request.h"
#include "tests/runtime/engine/load/padding_cases/slices.h"
#include "tests/testing/engine_fixture.h"
#include "tests/testing/temp_folder.h"

namespace reprise {
namespace {

using testing::HasSubstr;

class SizeSlicesTest : public testing::TestWithParam<SliceCase> {
 protected:
  std::shared_ptr<Model> Load(const std::string& name, std::set<std::string> no_padding,
                              bool declared = false) {
    ModelBuilder builder;
    builder.Input("x", {"n", "m", "4"});
    GetParam().build(builder);
    if (declared) {
      ModelBuilder::SetType(builder.graph().add_output(), "y", onnx::TensorProto::FLOAT,
                            {"n", "m", "4"});
    } else {
      builder.Output("y");
    }
    const TempFolder folder;
    auto model = fixture_.engine.Load({.id = {name, 1},
                                       .path = folder.Write("model.onnx", builder.Bytes()),
                                       .no_padding = std::move(no_padding)});
    EXPECT_TRUE(model.ok()) << model.status();
    return model.ok() ? *std::move(model) : nullptr;
  }

  bool IsExact(int64_t rows, int64_t length) const {
    for (const auto& [r, l] : GetParam().exact) {
      if ((r == 0 || r == rows) && (l == 0 || l == length)) return true;
    }
    return false;
  }

  EngineFixture fixture_;
};

TEST_P(SizeSlicesTest, AnswersInAnyCompanyAreThoseAloneAndUnpadded) {
  const std::shared_ptr<Model> model = Load("model", {});
  const std::shared_ptr<Model> exact = Load("exact", {"batch", "sequence"});
  ASSERT_TRUE(model != nullptr && exact != nullptr);
  int seed = 0;
  for (const int64_t length : GetParam().lengths) {
    for (const int64_t rows : GetParam().rows) {
      SCOPED_TRACE(absl::StrCat(rows, " rows of ", length));
      const SliceRequest first(rows, length, ++seed);
      const SliceRequest second(2, length, ++seed), third(1, length, ++seed);
      const Response alone = fixture_.engine.RunOne(*exact, first.request, *fixture_.stream);
      for (int again = 0; again < 2; ++again) {
        ExpectSame(fixture_.engine.RunOne(*model, first.request, *fixture_.stream), alone);
      }
      BatchPlan plan(*model);
      std::vector<const Request*> requests;
      for (const SliceRequest* one : {&first, &second, &third}) {
        const auto shape = model->Measure(one->request);
        ASSERT_TRUE(shape.ok()) << shape.status();
        EXPECT_TRUE(one != &first || !shape->in_new_slice) << "it has been looked at";
        EXPECT_TRUE(one != &first || GetParam().is_cut || shape->exact == IsExact(rows, length));
        if (plan.TryAdd(*shape)) requests.push_back(&one->request);
      }
      const auto responses = fixture_.engine.Run(plan, requests, *fixture_.stream);
      for (size_t i = 0; i < requests.size(); ++i) {
        ExpectSame(responses[i], fixture_.engine.RunOne(*exact, *requests[i], *fixture_.stream));
      }
    }
  }
}

TEST_P(SizeSlicesTest, TheCertificateSaysWhichSizesItHangsOn) {
  const std::shared_ptr<Model> model = Load("model", {});
  ASSERT_NE(model, nullptr);
  EXPECT_EQ(model->axes()[0].certificate.certified, GetParam().batch)
      << model->axes()[0].certificate.reason;
  const AxisCertificate& known = model->axes()[GetParam().batch ? 0 : 1].certificate;
  EXPECT_THAT(known.reason, HasSubstr(GetParam().words));
}

TEST_P(SizeSlicesTest, WhatTheFileDeclaresOfTheAnswerChangesNothing) {
  const std::shared_ptr<Model> model = Load("model", {}, /*declared=*/true);
  const std::shared_ptr<Model> exact = Load("exact", {"batch", "sequence"});
  ASSERT_TRUE(model != nullptr && exact != nullptr);
  for (const int64_t length : GetParam().lengths) {
    const SliceRequest one(3, length, static_cast<int>(length));
    ExpectSame(fixture_.engine.RunOne(*model, one.request, *fixture_.stream),
               fixture_.engine.RunOne(*exact, one.request, *fixture_.stream));
  }
}

INSTANTIATE_TEST_SUITE_P(Models, SizeSlicesTest, testing::ValuesIn(kSliceCases),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace reprise
