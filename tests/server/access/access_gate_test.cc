#include "server/access/access_gate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/clock.h"

namespace reprise {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

namespace fs = std::filesystem;

constexpr char kTeam[] = "team-key-of-24-characters";
constexpr char kOps[] = "ops-key-of-24-characters!";

TEST(RightTableTest, ServicesHaveTheRightsOfTheirMethods) {
  EXPECT_EQ(RightOfRpc("/grpc.health.v1.Health/Watch"), Right::kNone);
  EXPECT_EQ(RightOfRpc("/inference.GRPCInferenceService/ModelInfer"), Right::kInfer);
  EXPECT_EQ(RightOfRpc("/inference.GRPCInferenceService/RepositoryModelLoad"), Right::kAdmin);
  EXPECT_EQ(RightOfRpc("/reprise.v1.Admin/GetStats"), Right::kObserve);
  EXPECT_EQ(RightOfRpc("/nobody.knows/It"), Right::kInfer);
}

TEST(KeyFileTest, LinesAreKeysWithRightsAndLimits) {
  const auto keys = ParseKeys(
      "# who\n\n"
      "team 0123456789abcdef\tinfer rate=2.5 concurrent=3\r\n"
      "ops fedcba9876543210 infer,observe,admin,metrics rate=10 burst=20\n"
      "heavy 1123456789abcdef infer weight=2.5 pages=teams\n");
  ASSERT_TRUE(keys.ok()) << keys.status();
  ASSERT_EQ(keys->size(), 3);
  EXPECT_EQ((*keys)[0].name, "team");
  EXPECT_EQ((*keys)[0].rights, std::set<Right>{Right::kInfer});
  EXPECT_EQ((*keys)[0].limits, (KeyLimits{.rate = 2.5, .burst = 3, .concurrent = 3}));
  EXPECT_EQ((*keys)[1].rights.size(), 4);
  EXPECT_EQ((*keys)[1].limits, (KeyLimits{.rate = 10, .burst = 20}));
  EXPECT_EQ((*keys)[2].limits, (KeyLimits{.weight = 2.5, .pages = "teams"}));
}

TEST(KeyFileTest, MistakesNameTheLineAndNeverTheKey) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"a 0123456789abcdef", "line 1: has 2 fields"},
      {"a 0123456789abcde infer", "has 15 characters, at least 16"},
      {"a 0123456789abcdef infer,everything", "right \"everything\" is not known"},
      {"a 0123456789abcdef infer rate=0", "rate is \"0\", it must be a number above 0"},
      {"a 0123456789abcdef infer rate=inf", "rate is \"inf\""},
      {"a 0123456789abcdef infer concurrent=1.5", "concurrent is \"1.5\""},
      {"a 0123456789abcdef infer speed=1", "limit \"speed\" is not known"},
      {"a 0123456789abcdef infer burst=1", "burst= needs rate="},
      {"a 0123456789abcdef infer weight=0", "weight is \"0\""},
      {"a 0123456789abcdef infer weight=1e9", "weight is \"1e9\""},
      {"a 0123456789abcdef infer pages=", "pages= needs a name"},
      {"a 0123456789abcdef infer\na 1123456789abcdef infer", "line 2: the name \"a\""},
      {"a 0123456789abcdef infer\nb 0123456789abcdef infer", "line 2: \"b\" has the key of \"a\""},
      {"a 0123456789abcd\xc3\xa9 infer", "not ASCII"}};
  for (const auto& [text, why] : cases) {
    const auto keys = ParseKeys(text);
    ASSERT_FALSE(keys.ok()) << text;
    EXPECT_THAT(std::string(keys.status().message()), HasSubstr(why));
    EXPECT_THAT(std::string(keys.status().message()), Not(HasSubstr("0123456789")));
  }
}

TEST(KeyUseTest, KeysOwnPagesByThemselvesUnlessTheirFileNamesThemTogether) {
  KeyUse a("a"), b("b"), none("pages teams");
  EXPECT_NE(a.page_owner(), b.page_owner());
  EXPECT_NE(a.id(), b.id());
  a.SetLimits({.pages = "teams"});
  EXPECT_NE(a.page_owner(), b.page_owner());
  b.SetLimits({.weight = 3, .pages = "teams"});
  EXPECT_EQ(a.page_owner(), b.page_owner());
  EXPECT_NE(a.page_owner(), none.page_owner());
  EXPECT_EQ(b.weight(), 3);
}

class AccessGateTest : public testing::Test {
 protected:
  AccessGateTest() {
    std::string pattern = (fs::temp_directory_path() / "keysXXXXXX").string();
    folder_ = mkdtemp(pattern.data());
  }
  ~AccessGateTest() override { fs::remove_all(folder_); }

  void Write(const std::string& text) {
    const fs::path next = folder_ / "next";
    std::ofstream(next) << text;
    fs::rename(next, folder_ / "keys");
  }
  void WriteBoth() {
    Write(std::string("team ") + kTeam + " infer concurrent=1\nops " + kOps +
          " infer,observe,admin,metrics rate=2\n");
  }
  AccessGate Gate(AccessGate::Options options = {}) {
    auto ring = KeyRing::Open((folder_ / "keys").string(), clock_,
                              [this](const absl::Status& why) { troubles_.push_back(why); });
    EXPECT_TRUE(ring.ok()) << ring.status();
    return AccessGate(options, *std::move(ring));
  }

  fs::path folder_;
  FakeClock clock_;
  std::vector<absl::Status> troubles_;
};

TEST_F(AccessGateTest, WithoutKeysAdminIsOpenToThisMachineAlone) {
  const AccessGate gate({}, nullptr);
  for (const Right right : {Right::kNone, Right::kInfer, Right::kObserve, Right::kMetrics}) {
    EXPECT_TRUE(gate.Check(right, {}).ok());
  }
  EXPECT_TRUE(gate.Check(Right::kAdmin, {.is_local = true}).ok());
  EXPECT_EQ(gate.Check(Right::kAdmin, {}).status().code(), absl::StatusCode::kPermissionDenied);
  EXPECT_TRUE(AccessGate({.allow_admin = true}, nullptr).Check(Right::kAdmin, {}).ok());
}

TEST_F(AccessGateTest, AdminPortIsTheOnlyOneForAdmin) {
  const AccessGate gate({.has_admin_port = true}, nullptr);
  EXPECT_EQ(gate.Check(Right::kAdmin, {.is_local = true}).status().code(),
            absl::StatusCode::kPermissionDenied);
  EXPECT_TRUE(gate.Check(Right::kAdmin, {.is_local = true, .on_admin_port = true}).ok());
  EXPECT_EQ(gate.Check(Right::kAdmin, {.on_admin_port = true}).status().code(),
            absl::StatusCode::kPermissionDenied);
  EXPECT_TRUE(gate.Check(Right::kInfer, {}).ok());
}

TEST_F(AccessGateTest, KeysAreReadFromEitherHeaderAndOpenTheirRightsAlone) {
  WriteBoth();
  const AccessGate gate = Gate();
  const std::string bearer = std::string("Bearer ") + kTeam;
  for (const Caller& caller : {Caller{.authorization = bearer}, Caller{.api_key = kTeam},
                               Caller{.authorization = "Basic abc", .api_key = kTeam}}) {
    const auto who = gate.Check(Right::kInfer, caller);
    ASSERT_TRUE(who.ok()) << who.status();
    EXPECT_EQ((*who)->name(), "team");
    const absl::Status denied = gate.Check(Right::kObserve, caller).status();
    EXPECT_EQ(denied.code(), absl::StatusCode::kPermissionDenied);
    EXPECT_EQ(denied.message(), "key \"team\" does not have the right observe");
  }
  EXPECT_TRUE(gate.Check(Right::kAdmin, {.api_key = kOps}).ok()) << "from anywhere";
  EXPECT_TRUE(gate.Check(Right::kNone, {}).ok()) << "health needs none";
}

TEST_F(AccessGateTest, MissingAndWrongKeysAreNotAuthenticated) {
  WriteBoth();
  const AccessGate gate = Gate({.allow_admin = true});
  const std::string prefix = std::string(kTeam).substr(0, 20);
  const std::string longer = std::string(kTeam) + kTeam;
  for (const std::string& key : {std::string(), std::string("wrong-key-of-24-characters"), prefix,
                                 longer, std::string("a")}) {
    for (const Right right : {Right::kInfer, Right::kObserve, Right::kAdmin, Right::kMetrics}) {
      const absl::Status status = gate.Check(right, {.api_key = key, .is_local = true}).status();
      EXPECT_EQ(status.code(), absl::StatusCode::kUnauthenticated);
      if (key.size() > 1) EXPECT_THAT(std::string(status.message()), Not(HasSubstr(key)));
    }
  }
}

TEST_F(AccessGateTest, FileIsReadAgainAndAMistakeKeepsWhatWas) {
  WriteBoth();
  const AccessGate gate = Gate();
  EXPECT_TRUE(gate.Check(Right::kInfer, {.api_key = kTeam}).ok());
  Write(std::string("other ") + kOps + " infer\n");
  clock_.AdvanceNs(2'000'000'000);
  EXPECT_FALSE(gate.Check(Right::kInfer, {.api_key = kTeam}).ok()) << "taken out";
  EXPECT_EQ((*gate.Check(Right::kInfer, {.api_key = kOps}))->name(), "other");
  Write("other short infer\n");
  for (int i = 0; i < 3; ++i) {
    clock_.AdvanceNs(2'000'000'000);
    EXPECT_TRUE(gate.Check(Right::kInfer, {.api_key = kOps}).ok());
  }
  ASSERT_EQ(troubles_.size(), 1) << "told of once";
  EXPECT_THAT(std::string(troubles_[0].message()), HasSubstr("line 1"));
  fs::remove(folder_ / "keys");
  clock_.AdvanceNs(2'000'000'000);
  EXPECT_TRUE(gate.Check(Right::kInfer, {.api_key = kOps}).ok());
  EXPECT_EQ(troubles_.size(), 2);
}

TEST_F(AccessGateTest, LimitsCountByKeyAndStayWhenTheFileIsReadAgain) {
  WriteBoth();
  const AccessGate gate = Gate();
  const std::shared_ptr<KeyUse> team = *gate.Check(Right::kInfer, {.api_key = kTeam});
  absl::StatusOr<KeyUse::Ticket> one = team->Begin(clock_.NowNs());
  ASSERT_TRUE(one.ok());
  const absl::Status second = team->Begin(clock_.NowNs()).status();
  EXPECT_EQ(second.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(second.message(), "key \"team\" has 1 requests under way, the most is 1");
  WriteBoth();
  clock_.AdvanceNs(2'000'000'000);
  EXPECT_FALSE((*gate.Check(Right::kInfer, {.api_key = kTeam}))->Begin(clock_.NowNs()).ok());
  one = KeyUse::Ticket();
  EXPECT_TRUE(team->Begin(clock_.NowNs()).ok());

  const std::shared_ptr<KeyUse> ops = *gate.Check(Right::kInfer, {.api_key = kOps});
  EXPECT_TRUE(ops->Begin(clock_.NowNs()).ok());
  EXPECT_TRUE(ops->Begin(clock_.NowNs()).ok());
  EXPECT_THAT(std::string(ops->Begin(clock_.NowNs()).status().message()),
              HasSubstr("may send 2 requests a second, 2 at once"));
  clock_.AdvanceNs(500'000'000);
  EXPECT_TRUE(ops->Begin(clock_.NowNs()).ok());
  EXPECT_FALSE(ops->Begin(clock_.NowNs()).ok());
}

TEST_F(AccessGateTest, FileThatIsNotThereOrWrongEndsTheStart) {
  EXPECT_FALSE(KeyRing::Open((folder_ / "none").string(), clock_, nullptr).ok());
  Write("nonsense\n");
  EXPECT_THAT(
      std::string(KeyRing::Open((folder_ / "keys").string(), clock_, nullptr).status().message()),
      HasSubstr("line 1"));
}

}  // namespace
}  // namespace reprise
