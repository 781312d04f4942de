// The values of --log-level and --metrics-file-on.
#include "server/config/log_levels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/config/log_switch.h"
#include "server/config/metrics_triggers.h"

namespace reprise {
namespace {

using testing::HasSubstr;

TEST(LogLevelsTest, ModulesStandBesideTheLevelOfAll) {
  const auto levels = LogLevels::Parse("warning,capture=debug,store=debug");
  ASSERT_TRUE(levels.ok()) << levels.status();
  EXPECT_EQ(levels->base, LogLevel::kWarning);
  EXPECT_TRUE(levels->debug[static_cast<size_t>(LogModule::kCapture)]);
  EXPECT_FALSE(levels->debug[static_cast<size_t>(LogModule::kPass)]);
  EXPECT_EQ(levels->ToString(), "warning,capture=debug,store=debug");
  EXPECT_EQ(LogLevels::Parse("debug,kernel=info")->ToString(), "debug,kernel=info");
  EXPECT_EQ(*LogLevels::Parse(levels->ToString()), *levels);
}

TEST(LogLevelsTest, ErrorsSayWhatThereIs) {
  EXPECT_THAT(std::string(LogLevels::Parse("loud").status().message()),
              HasSubstr("'loud' is no level"));
  EXPECT_THAT(std::string(LogLevels::Parse("info,gears=debug").status().message()),
              HasSubstr("'gears' is no module: load, certificate"));
  EXPECT_FALSE(LogLevels::Parse("info,warning").ok());
}

TEST(LogSwitchTest, LinesBelowTheLevelAreNotWrittenUntilItChanges) {
  std::vector<std::string> lines;
  LogSwitch log({.base = LogLevel::kWarning},
                [&](LogLevel, const std::string& text) { lines.push_back(text); });
  log.Log(LogLevel::kInfo, "a note");
  EXPECT_FALSE(log.Wants(LogModule::kPass));
  log.Set(*LogLevels::Parse("info,pass=debug"));
  log.Log(LogLevel::kInfo, "another");
  ASSERT_TRUE(log.Wants(LogModule::kPass));
  {
    const Phase phase(&log, LogModule::kPass, [] { return "phase fold"; });
  }
  ASSERT_EQ(lines.size(), 3);
  EXPECT_EQ(lines[0], "another");
  EXPECT_EQ(lines[1], "pass: begin phase fold");
  EXPECT_THAT(lines[2], HasSubstr("pass: end phase fold ("));
}

TEST(MetricsTriggersTest, AreExitCaptureAndAnInterval) {
  const auto triggers = MetricsTriggers::Parse("capture,interval:10s");
  ASSERT_TRUE(triggers.ok()) << triggers.status();
  EXPECT_TRUE(triggers->at_capture && !triggers->at_exit);
  EXPECT_EQ(triggers->interval.count(), 10);
  EXPECT_FALSE(MetricsTriggers::Parse("interval:0s").ok());
  EXPECT_FALSE(MetricsTriggers::Parse("now").ok());
}

}  // namespace
}  // namespace reprise
