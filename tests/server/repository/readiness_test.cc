#include "server/repository/readiness.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace reprise {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Listed = Repository::Listed;
using State = ServerState::State;

Listed ListedModel(const std::string& name, int64_t number, ModelState state,
                   const absl::Status& why = absl::OkStatus()) {
  auto version = std::make_shared<ModelVersion>();
  version->name = name;
  version->number = number;
  version->version = number == 0 ? "" : std::to_string(number);
  return {.version = std::move(version), .state = state, .why = why};
}

Listed Refused(const std::string& name, int64_t number) {
  return ListedModel(name, number, ModelState::kUnavailable, absl::InvalidArgumentError("no ONNX"));
}

Listed Complete(Listed listed) {
  listed.model_was_complete = true;
  return listed;
}

constexpr ReadinessRule kNone = {};
constexpr ReadinessRule kExplicit = {.control = ModelControl::kExplicit};

TEST(ReadinessTest, ServerOfServedModelsIsReadyOnlyWhileItServes) {
  const std::vector<Listed> models = {ListedModel("a", 1, ModelState::kReady)};
  EXPECT_FALSE(Judge(kNone, State::kStarting, models).ready);
  EXPECT_TRUE(Judge(kNone, State::kServing, models).ready);
  EXPECT_EQ(Judge(kNone, State::kServing, models).why, "");
  EXPECT_FALSE(Judge(kNone, State::kLeaving, models).ready);
  EXPECT_FALSE(Judge(kNone, State::kDraining, models).ready);
}

TEST(ReadinessTest, EachModelThatIsNotServedIsNamedWithItsReason) {
  const std::vector<Listed> models = {ListedModel("a", 1, ModelState::kReady), Refused("b", 2),
                                      ListedModel("c", 1, ModelState::kLoading), Refused("d", 0)};
  const Readiness found = Judge(kNone, State::kServing, models);
  EXPECT_FALSE(found.ready);
  EXPECT_EQ(found.why, "model \"b\" version 2 was not loaded: no ONNX");
  EXPECT_THAT(found.missing,
              ElementsAre("\"b\" version 2 was not loaded: no ONNX", "\"c\" version 1 is loading",
                          "\"d\" was not loaded: no ONNX"));
}

TEST(ReadinessTest, RelaxedRuleNamesThemAndIsReady) {
  const std::vector<Listed> models = {ListedModel("a", 1, ModelState::kReady), Refused("b", 2)};
  const Readiness found = Judge({.strict = false}, State::kServing, models);
  EXPECT_TRUE(found.ready);
  EXPECT_THAT(found.missing, ElementsAre(HasSubstr("\"b\" version 2")));
}

TEST(ReadinessTest, ModelsThatWereUnloadedOnPurposeDoNotCount) {
  const std::vector<Listed> models = {ListedModel("a", 1, ModelState::kReady),
                                      ListedModel("b", 1, ModelState::kUnloaded)};
  const Readiness found = Judge(kExplicit, State::kServing, models);
  EXPECT_TRUE(found.ready);
  EXPECT_THAT(found.missing, IsEmpty());
}

TEST(ReadinessTest, SuccessorThatFailsOrLoadsLeavesAModelReadyThatWasComplete) {
  for (const Listed& successor : {Refused("a", 2), ListedModel("a", 2, ModelState::kLoading)}) {
    EXPECT_TRUE(Judge(kNone, State::kServing,
                      {Complete(ListedModel("a", 1, ModelState::kReady)), Complete(successor)})
                    .ready);
    // Two versions were asked for, and one of them never was there.
    EXPECT_FALSE(
        Judge(kNone, State::kServing, {ListedModel("a", 1, ModelState::kReady), successor}).ready);
    // The version that was served before is not any more: its file has changed.
    EXPECT_FALSE(
        Judge(kNone, State::kServing, {Complete(Refused("a", 1)), Complete(successor)}).ready);
  }
}

TEST(ReadinessTest, EmptyServerIsReadyWhereModelsAreLoadedByRequestOrWhereItIsAllowed) {
  const Readiness none = Judge(kNone, State::kServing, {});
  EXPECT_FALSE(none.ready);
  EXPECT_THAT(none.why, HasSubstr("--allow-empty"));
  EXPECT_FALSE(Judge({.control = ModelControl::kPoll}, State::kServing, {}).ready);
  EXPECT_FALSE(Judge({.strict = false}, State::kServing, {Refused("a", 1)}).ready);
  EXPECT_TRUE(Judge({.allow_empty = true}, State::kServing, {}).ready);
  EXPECT_TRUE(Judge(kExplicit, State::kServing, {}).ready);
  EXPECT_FALSE(Judge(kExplicit, State::kServing, {Refused("a", 1)}).ready);
}

}  // namespace
}  // namespace reprise
