#include "server/requests/sequence_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <utility>
#include <vector>

namespace reprise {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kIdleNs = 1000;

// A call that is in no queue.
class QuietCall final : public Call {
 public:
  void Cancel() override { cancelled = true; }
  bool cancelled = false;
};

// The model: "x" and the state "s" in, "s_out" out. Its requests are answered by hand.
class SequenceTableTest : public ::testing::Test {
 protected:
  SequenceTableTest() {
    const Dim four = {.size = 4};
    auto servable = std::make_shared<Servable>();
    servable->signature.inputs = {{.name = "x", .dtype = DType::kFloat32, .dims = {four}},
                                  {.name = "s", .dtype = DType::kFloat32, .dims = {four}}};
    servable->signature.outputs = {{.name = "s_out", .dtype = DType::kFloat32}};
    servable_ = servable;
  }
  void Open(SequenceTable::Options options, int64_t max_candidates = 0) {
    StatefulForm form;
    form.states.push_back({.input = 1, .output = 0, .sizes = {4}});
    form.max_idle_ns = kIdleNs;
    form.max_candidates = max_candidates;
    options.on_deadline = [this] { ++deadlines; };
    table = std::make_shared<SequenceTable>(std::move(form), std::move(options), clock);
  }

  struct Asked {
    InferRequest request;
    std::shared_ptr<Call> call;
    absl::Status refused;
    std::optional<InferResult> answer;
    // Once its turn has come.
    std::optional<std::string> state;  // as the model sees it
    const char* read = nullptr;        // where it lies
    Call::Done finish;
    std::vector<AnswerStep> steps;
    std::shared_ptr<QuietCall> queued;
  };
  std::unique_ptr<Asked> Ask(uint64_t number, bool start = false, bool end = false,
                             int64_t deadline_ns = kNoDeadline, absl::Status go_on = {}) {
    auto asked = std::make_unique<Asked>();
    asked->request.sequence = {.number = number, .text = text, .start = start, .end = end};
    asked->request.key = key;
    RequestState state;
    state.model.servable = servable_;
    state.deadline_ns = deadline_ns;
    state.request.inputs = {{.shape = {4}, .data = kBytes}, {}};
    state.request.wanted_outputs = {false};
    Asked* const to = asked.get();
    auto call = table->Enter(
        asked->request, std::move(state),
        [to, go_on](const InferRequest& request, RequestState& walked,
                    const Call::Done& done) -> absl::StatusOr<std::shared_ptr<Call>> {
          if (!go_on.ok()) return go_on;
          EXPECT_TRUE(walked.request.wanted_outputs[0]);
          EXPECT_EQ(request.inputs.back().name, "s");
          to->read = static_cast<const char*>(walked.request.inputs[1].data);
          to->state = std::string(to->read, 16);
          to->finish = done;
          to->steps = walked.on_answer;
          to->queued = std::make_shared<QuietCall>();
          return to->queued;
        },
        [to](InferResult result) { to->answer = std::move(result); });
    if (call.ok()) {
      asked->call = *call;
    } else {
      asked->refused = call.status();
    }
    return asked;
  }
  // Lets the model answer `state`.
  static void Finish(Asked& asked, char state) {
    InferResult result;
    result.response.outputs = {{.shape = {4}, .bytes = std::string(16, state)}};
    for (const AnswerStep& step : asked.steps) EXPECT_TRUE(step(result).ok());
    std::exchange(asked.finish, nullptr)(std::move(result));
  }
  static void Fail(Asked& asked) {
    std::exchange(asked.finish,
                  nullptr)(InferResult{.status = absl::InternalError("the model failed")});
  }
  static std::string Of(char state) { return std::string(16, state); }

  static constexpr char kBytes[16] = {};
  FakeClock clock;
  int deadlines = 0;
  std::shared_ptr<KeyUse> key;  // the key of the requests that come next, and the text of their ids
  std::string text;
  std::shared_ptr<const Servable> servable_;
  std::shared_ptr<SequenceTable> table;
};

TEST_F(SequenceTableTest, RequestsOfOneSequenceTakeTurnsAndHandTheStateOn) {
  Open({});
  auto first = Ask(1, true), second = Ask(1), third = Ask(1, false, true), other = Ask(2, true);
  EXPECT_EQ(first->state, Of('\0'));
  EXPECT_FALSE(second->state.has_value());
  EXPECT_EQ(other->state, Of('\0'));
  Finish(*first, 'a');
  EXPECT_EQ(second->state, Of('a'));
  EXPECT_FALSE(third->state.has_value());
  Finish(*second, 'b');
  EXPECT_EQ(third->state, Of('b'));
  Finish(*third, 'c');
  EXPECT_TRUE(third->answer->status.ok());
  EXPECT_EQ(table->size(), 1);
  Finish(*other, 'd');
  EXPECT_EQ(table->state_bytes(), 16);
  EXPECT_THAT(std::string(Ask(1)->refused.message()), HasSubstr("sequence 1 is not known"));
}

TEST_F(SequenceTableTest, TheSameIdOfAnotherKeyIsAnotherSequence) {
  Open({});
  key = std::make_shared<KeyUse>("team-a");
  auto first = Ask(1, true);
  Finish(*first, 'a');
  key = std::make_shared<KeyUse>("team-b");
  EXPECT_THAT(std::string(Ask(1)->refused.message()), HasSubstr("sequence 1 is not known"));
  auto other = Ask(1, true);
  EXPECT_EQ(other->state, Of('\0'));
  Finish(*other, 'b');
  EXPECT_EQ(table->size(), 2);
  key = std::make_shared<KeyUse>("team-a");
  EXPECT_EQ(Ask(1)->state, Of('a'));
}

TEST_F(SequenceTableTest, IdsThatAreTextsCount) {
  Open({.max_bytes = 100});
  text = std::string(90, 'x');
  auto first = Ask(0, true);
  EXPECT_EQ(table->state_bytes(), 90);
  Finish(*first, 'a');
  EXPECT_EQ(table->state_bytes(), 106);
  text = "y";
  EXPECT_THAT(std::string(Ask(0, true)->refused.message()), HasSubstr("takes 106 bytes"));
  clock.AdvanceNs(kIdleNs + 1);
  table->Expire();
  EXPECT_EQ(table->state_bytes(), 0);
}

TEST_F(SequenceTableTest, ARequestThatFailsLeavesTheSequenceAsItWas) {
  Open({});
  auto first = Ask(1, true);
  Finish(*first, 'a');
  auto fails = Ask(1, true), next = Ask(1);
  Fail(*fails);
  EXPECT_EQ(fails->answer->status.code(), absl::StatusCode::kInternal);
  EXPECT_EQ(next->state, Of('a'));
  Finish(*next, 'b');
  auto refused = Ask(1, false, true, kNoDeadline, absl::InvalidArgumentError("a wrong shape"));
  EXPECT_EQ(refused->answer->status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Ask(1)->state, Of('b'));
}

TEST_F(SequenceTableTest, StateThatAnAnsweredRequestReadsStaysUntilItsReplayLetsGo) {
  Open({});
  auto first = Ask(1, true);
  Finish(*first, 'a');
  auto early = Ask(1), next = Ask(1);
  // It is cancelled while a replay reads its bytes: `done` holds them.
  const Call::Done replay = early->finish;
  Fail(*early);
  Finish(*next, 'b');
  EXPECT_EQ(std::string(early->read, 16), Of('a'));
}

TEST_F(SequenceTableTest, WhereTheFirstRequestFailsThoseBehindItAreTold) {
  Open({});
  auto first = Ask(1, true), second = Ask(1), again = Ask(1, true);
  Fail(*first);
  EXPECT_THAT(std::string(second->answer->status.message()), HasSubstr("sequence 1 is not known"));
  EXPECT_EQ(again->state, Of('\0'));
  Fail(*again);
  EXPECT_EQ(table->size(), 0);
}

TEST_F(SequenceTableTest, IdleSequencesAreForgottenAndBusyOnesNot) {
  Open({});
  auto idle = Ask(1, true), busy = Ask(2, true);
  Finish(*idle, 'a');
  EXPECT_EQ(table->Expire(), clock.NowNs() + kIdleNs);
  EXPECT_GT(deadlines, 0);
  clock.AdvanceNs(kIdleNs);
  EXPECT_EQ(table->Expire(), kNoDeadline);
  EXPECT_EQ(table->size(), 1);
  EXPECT_EQ(table->state_bytes(), 0);
  EXPECT_FALSE(Ask(1)->refused.ok());
  Finish(*busy, 'b');
  EXPECT_EQ(Ask(2)->state, Of('b'));
}

TEST_F(SequenceTableTest, RequestsThatWaitAreCancelledOrDroppedAtTheirDeadline) {
  Open({});
  auto first = Ask(1, true);
  auto gone = Ask(1), late = Ask(1, false, false, clock.NowNs() + 10), last = Ask(1);
  gone->call->Cancel();
  EXPECT_EQ(gone->answer->status.code(), absl::StatusCode::kCancelled);
  clock.AdvanceNs(10);
  table->Expire();
  EXPECT_EQ(late->answer->status.code(), absl::StatusCode::kDeadlineExceeded);
  // One that is in the queue is cancelled there.
  first->call->Cancel();
  EXPECT_TRUE(first->queued->cancelled);
  Finish(*first, 'a');
  EXPECT_EQ(last->state, Of('a'));
}

TEST_F(SequenceTableTest, BeyondTheCandidatesTheOldestBeginsOnceOneEnds) {
  Open({}, /*max_candidates=*/1);
  auto one = Ask(1, true), two = Ask(2, true), three = Ask(3, true);
  Finish(*one, 'a');
  EXPECT_FALSE(two->state.has_value());
  auto end = Ask(1, false, true);
  Finish(*end, 'b');
  EXPECT_TRUE(two->state.has_value());
  EXPECT_FALSE(three->state.has_value());
  two->call->Cancel();
  Fail(*two);
  EXPECT_TRUE(three->state.has_value());
  Finish(*three, 'c');
}

TEST_F(SequenceTableTest, LimitsNameTheirNumbers) {
  Open({.max_sequences = 1, .max_waiting = 1});
  auto one = Ask(1, true), waits = Ask(1);
  EXPECT_THAT(std::string(Ask(1)->refused.message()), HasSubstr("1 requests wait for their turn"));
  Finish(*one, 'a');
  Finish(*waits, 'b');
  EXPECT_THAT(std::string(Ask(2, true)->refused.message()),
              HasSubstr("the state of 1 sequences is kept already, and of 1 may"));
  Open({.max_bytes = 16});
  Finish(*Ask(1, true), 'a');
  EXPECT_THAT(std::string(Ask(2, true)->refused.message()),
              HasSubstr("1 sequences takes 16 bytes, and 16 may"));
}

TEST_F(SequenceTableTest, AtTheEndWhatWaitsIsAnsweredAndNothingComesIn) {
  Open({});
  auto first = Ask(1, true), second = Ask(1);
  table->Close(absl::UnavailableError("the server is stopping"));
  EXPECT_EQ(second->answer->status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(Ask(1)->refused.code(), absl::StatusCode::kUnavailable);
  Finish(*first, 'a');
  EXPECT_TRUE(first->answer->status.ok());
}

}  // namespace
}  // namespace reprise
