#include "server/log.h"

#include <gmock/gmock.h>
#include <spdlog/sinks/ostream_sink.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "server/debug_lines.h"
#include "server/request_log.h"

namespace reprise {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

// A client could send this to look like another line, in either format.
constexpr char kForged[] =
    "x\n2026-01-01T00:00:00.000Z error forged\r\n{\"level\":\"error\"}\x1b[2J\u2028\xff\"} tail";

class LogTest : public testing::Test {
 protected:
  Log Make(LogFormat format, LogLevel level = LogLevel::kInfo) {
    return Log(format, LogLevels{.base = level},
               std::make_shared<spdlog::sinks::ostream_sink_mt>(out_));
  }
  // Returns the only line that was written.
  std::string Line() const {
    const std::string text = out_.str();
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1) << text;
    return text.substr(0, text.find('\n'));
  }
  nlohmann::json Object() const { return nlohmann::json::parse(Line()); }

  std::ostringstream out_;
};

TEST_F(LogTest, ForgedTextStaysOneLineInBothFormats) {
  Make(LogFormat::kText).Write(LogLevel::kInfo, kForged);
  EXPECT_THAT(Line(), HasSubstr("info x\\n2026"));
  EXPECT_THAT(Line(), Not(HasSubstr("\x1b")));
  out_.str("");
  Make(LogFormat::kJson).Write(LogLevel::kInfo, kForged);
  EXPECT_EQ(Object()["level"], "info");
  EXPECT_THAT(std::string(Object()["message"]), HasSubstr("\\x1b[2J\\u{2028}\\xff\"} tail"));
}

TEST_F(LogTest, FieldsAreMembersAndCannotBeForged) {
  const std::vector<LogField> fields = {{"id", "a\" code=\"OK"}, {"rows", int64_t{3}}};
  Make(LogFormat::kText).Write(LogLevel::kInfo, "request", fields);
  EXPECT_THAT(Line(), EndsWith(R"( info request id="a\" code=\"OK" rows=3)"));
  out_.str("");
  Make(LogFormat::kJson).Write(LogLevel::kInfo, "request", fields);
  EXPECT_EQ(Object()["id"], "a\" code=\"OK");
  EXPECT_EQ(Object()["rows"], 3);
}

TEST_F(LogTest, LongMessagesEndInTheirLength) {
  Make(LogFormat::kText).Write(LogLevel::kInfo, std::string(100000, 'a'));
  EXPECT_LT(Line().size(), 9000);
  EXPECT_THAT(Line(), EndsWith("… (100000 bytes)"));
}

TEST_F(LogTest, LinesBelowTheLevelAreNotWritten) {
  Log log = Make(LogFormat::kText, LogLevel::kWarning);
  log.Write(LogLevel::kInfo, "quiet");
  EXPECT_EQ(out_.str(), "");
  EXPECT_FALSE(log.Wants(LogLevel::kInfo));
  EXPECT_TRUE(log.Wants(LogLevel::kError));
}

TEST_F(LogTest, LevelsChangeAndModulesTellMoreThanTheRest) {
  Log log = Make(LogFormat::kText, LogLevel::kWarning);
  DebugLines lines(log, nullptr);
  EXPECT_FALSE(lines.Wants(LogModule::kPass));
  log.levels().Set(*LogLevels::Parse("warning,pass=debug"));
  log.Write(LogLevel::kInfo, "quiet");
  EXPECT_EQ(out_.str(), "");
  {
    const Phase phase(&lines, LogModule::kPass, [] { return "phase fold"; });
    EXPECT_THAT(Line(), EndsWith(" debug pass: begin phase fold"));
    out_.str("");
  }
  EXPECT_THAT(Line(), HasSubstr(" debug pass: end phase fold ("));
}

RequestRecord Answered() {
  return {.rows = 2,
          .total_ns = 5'000'000,
          .times = {.queue_ns = 1'000'000, .compute_infer_ns = 3'000'000},
          .id = "the client's",
          .model = "bert",
          .version = "1",
          .key = "team",
          .bytes_in = 128,
          .bytes_out = 256,
          .bucket = "b2_s16",
          .capture = "replayed"};
}

TEST_F(LogTest, AccessLogSaysWhoAskedForWhatAndHowItWent) {
  Log log = Make(LogFormat::kJson);
  RequestLog(log, /*every=*/true).OnRequest(Answered());
  const nlohmann::json line = Object();
  EXPECT_EQ(line["message"], "request");
  EXPECT_EQ(line["id"], "the client's");
  EXPECT_EQ(line["key"], "team");
  EXPECT_EQ(line["model"], "bert");
  EXPECT_EQ(line["version"], "1");
  EXPECT_EQ(line["code"], "OK");
  EXPECT_EQ(line["bytes_in"], 128);
  EXPECT_EQ(line["bytes_out"], 256);
  EXPECT_EQ(line["queue_us"], 1000);
  EXPECT_EQ(line["compute_us"], 3000);
  EXPECT_EQ(line["total_us"], 5000);
  EXPECT_EQ(line["capture"], "replayed");
}

TEST_F(LogTest, IdsAreCutInTheAccessLog) {
  Log log = Make(LogFormat::kJson);
  const std::string id(4096, 'i');
  RequestRecord record = Answered();
  record.id = id;
  RequestLog(log, /*every=*/true).OnRequest(record);
  EXPECT_EQ(Object()["id"], std::string(128, 'i') + "… (4096 bytes)");
}

TEST_F(LogTest, OnlyFailuresAreLoggedAtDebugWithoutTheAccessLog) {
  Log log = Make(LogFormat::kJson, LogLevel::kDebug);
  const RequestLog requests(log, /*every=*/false);
  requests.OnRequest(Answered());
  EXPECT_EQ(out_.str(), "");
  RequestRecord failed = Answered();
  failed.code = absl::StatusCode::kInvalidArgument;
  failed.why = "input \"x\" is missing";
  requests.OnRequest(failed);
  EXPECT_EQ(Object()["level"], "debug");
  EXPECT_EQ(Object()["code"], "INVALID_ARGUMENT");
  EXPECT_EQ(Object()["error"], "input \"x\" is missing");
  EXPECT_FALSE(Object().contains("capture"));
}

TEST_F(LogTest, FailuresAreNotLoggedAboveDebug) {
  Log log = Make(LogFormat::kText, LogLevel::kInfo);
  RequestRecord failed = Answered();
  failed.code = absl::StatusCode::kInternal;
  RequestLog(log, /*every=*/false).OnRequest(failed);
  EXPECT_EQ(out_.str(), "");
}

}  // namespace
}  // namespace reprise
