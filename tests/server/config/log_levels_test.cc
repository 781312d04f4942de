// The values of --log-level and --metrics-file-on.
#include "server/config/log_levels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/engine/types/metrics_triggers.h"
#include "server/config/log_switch.h"

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
              HasSubstr("'loud' is not a level"));
  EXPECT_THAT(std::string(LogLevels::Parse("info,gears=debug").status().message()),
              HasSubstr("'gears' is not a module: load, certificate"));
  EXPECT_FALSE(LogLevels::Parse("info,warning").ok());
}

TEST(LogSwitchTest, LevelsChangeWhileTheyAreAsked) {
  LogSwitch levels({.base = LogLevel::kWarning});
  EXPECT_FALSE(levels.Wants(LogLevel::kInfo));
  EXPECT_FALSE(levels.Wants(LogModule::kPass));
  levels.Set(*LogLevels::Parse("info,pass=debug"));
  EXPECT_TRUE(levels.Wants(LogLevel::kInfo));
  EXPECT_TRUE(levels.Wants(LogModule::kPass));
  EXPECT_FALSE(levels.Wants(LogModule::kKernel));
  EXPECT_EQ(levels.levels().ToString(), "info,pass=debug");
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
