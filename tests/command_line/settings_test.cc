// Flags from variables and files: which one counts, and errors in one.

#include "command_line/settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <string>
#include <vector>

#include "command_line/server_address.h"
#include "tests/testing/temp_folder.h"

namespace reprise::command_line {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class SettingsTest : public ::testing::Test {
 protected:
  SettingsTest() {
    app_.add_option("--port", port_, "Port")->check(CLI::Range(0, 65535))->default_str("80");
    app_.add_option("--model", models_, "Models")->allow_extra_args(false);
    app_.add_flag("--quiet", quiet_, "Quiet");
    app_.add_option("--config", config_, "File");
  }
  ~SettingsTest() override {
    for (const std::string& name : set_) unsetenv(name.c_str());
  }
  void Set(const std::string& name, const std::string& value) {
    setenv(name.c_str(), value.c_str(), 1);
    set_.push_back(name);
  }
  std::string File(const std::string& text) { return folder_.Write("settings.yaml", text); }
  absl::Status Read(std::vector<const char*> words) {
    words.insert(words.begin(), "saw");
    auto settings = Settings::Read(app_, "SAW_", static_cast<int>(words.size()), words.data());
    if (!settings.ok()) return settings.status();
    settings_ = *settings;
    return settings_.Parse(app_, "1").status();
  }

  CLI::App app_{"", "saw"};
  int port_ = 80;
  std::vector<std::string> models_;
  bool quiet_ = false;
  std::string config_;
  Settings settings_;
  std::vector<std::string> set_;
  const TempFolder folder_;
};

TEST_F(SettingsTest, TheCommandLineCountsThenTheVariableThenTheFile) {
  const std::string file = File("port: 1\nmodel: [a, b]\nquiet: true\n");
  Set("SAW_PORT", "2");
  ASSERT_TRUE(Read({"--config", file.c_str()}).ok());
  EXPECT_EQ(port_, 2);
  EXPECT_THAT(models_, ElementsAre("a", "b"));
  EXPECT_TRUE(quiet_);
  EXPECT_THAT(settings_.Text(app_), HasSubstr("port: 2  # $SAW_PORT\n"));
  EXPECT_THAT(settings_.Text(app_), HasSubstr("model:  # " + file + "\n  - a\n  - b\n"));
}

TEST_F(SettingsTest, AFlagOfTheCommandLineReplacesAList) {
  const std::string file = File("model: [a, b]\nport: 5\n");
  ASSERT_TRUE(Read({"--model", "c", "--config", file.c_str(), "--port=6"}).ok());
  EXPECT_THAT(models_, ElementsAre("c"));
  EXPECT_EQ(port_, 6);
}

TEST_F(SettingsTest, ListsHaveCommasInVariablesAndMapsInFiles) {
  Set("SAW_MODEL", "a=1,b=2");
  Set("SAW_QUIET", "false");
  ASSERT_TRUE(Read({}).ok());
  EXPECT_THAT(models_, ElementsAre("a=1", "b=2"));
  EXPECT_FALSE(quiet_);
}

TEST_F(SettingsTest, AMapOfAFileIsAListOfNamesWithValues) {
  const std::string file = File("model:\n  a: /one\n  b: hf://x/y\n");
  ASSERT_TRUE(Read({"--config", file.c_str()}).ok());
  EXPECT_THAT(models_, ElementsAre("a=/one", "b=hf://x/y"));
}

TEST_F(SettingsTest, ItsTextIsAFileThatMeansTheSame) {
  Set("SAW_PORT", "7");
  ASSERT_TRUE(Read({"--quiet", "--model", "a=b: c"}).ok());
  const std::string file = File(settings_.Text(app_));
  unsetenv("SAW_PORT");
  port_ = 0;
  models_.clear();
  quiet_ = false;
  ASSERT_TRUE(Read({"--config", file.c_str()}).ok()) << settings_.Text(app_);
  EXPECT_EQ(port_, 7);
  EXPECT_THAT(models_, ElementsAre("a=b: c"));
  EXPECT_TRUE(quiet_);
}

TEST_F(SettingsTest, MistakesNameTheirPlace) {
  const std::string bad_name = File("port: 1\nmodle: x\n");
  EXPECT_EQ(Read({"--config", bad_name.c_str()}).message(),
            bad_name + " line 2: modle is not a flag; did you mean model?");
  const std::string bad_value = File("port: 70000\n");
  EXPECT_THAT(Read({"--config", bad_value.c_str()}).message(),
              HasSubstr("(it comes from " + bad_value + ")"));
  const std::string bad_yaml = File("port: [\n");
  EXPECT_THAT(Read({"--config", bad_yaml.c_str()}).message(), HasSubstr(bad_yaml + " line "));
  EXPECT_THAT(Read({"--config", "/none.yaml"}).message(), HasSubstr("/none.yaml cannot be read"));
  Set("SAW_PORT", "many");
  EXPECT_THAT(Read({}).message(), HasSubstr("(it comes from $SAW_PORT)"));
  unsetenv("SAW_PORT");
  Set("SAW_QUIET", "maybe");
  EXPECT_THAT(Read({}).message(), HasSubstr("SAW_QUIET: --quiet is 'maybe'"));
}

TEST_F(SettingsTest, UnknownVariablesAreToldButThoseOfKubernetes) {
  Set("SAW_PROT", "1");
  Set("SAW_PORT_8000_TCP", "tcp://10.0.0.1:8000");
  Set("SAW_SERVICE_HOST", "10.0.0.1");
  ASSERT_TRUE(Read({}).ok());
  EXPECT_THAT(settings_.unknown(), ElementsAre("$SAW_PROT names no flag; did you mean SAW_PORT?"));
}

TEST_F(SettingsTest, SecretsOfAnAddressAreNotShown) {
  ASSERT_TRUE(
      Read({"--model", "m=https://user:pass@host/a?sig=abc", "--model", "n=hf://acme/m@v1"}).ok());
  const std::string text = settings_.Text(app_);
  EXPECT_THAT(text, HasSubstr("m=https://host/a\n"));
  EXPECT_THAT(text, HasSubstr("n=hf://acme/m@v1\n"));
}

TEST(ServerAddressTest, SchemesSayWhichPortItIs) {
  for (const auto& [text, http, tls] :
       {std::tuple("host:1", false, false), std::tuple("grpc://host:1", false, false),
        std::tuple("grpcs://host:1", false, true), std::tuple("http://host:1", true, false),
        std::tuple("https://host:1/", true, true)}) {
    const auto address = ServerAddress::Parse(text);
    ASSERT_TRUE(address.ok()) << text;
    EXPECT_EQ(address->host_and_port, "host:1");
    EXPECT_EQ(address->is_http, http) << text;
    EXPECT_EQ(address->use_tls, tls) << text;
  }
  EXPECT_EQ(ServerAddress::Parse("[::1]:80")->WithPort(90), "[::1]:90");
  for (const char* wrong : {"host", "host:", ":80", "ftp://host:1", "host:0", "host:99999"}) {
    EXPECT_FALSE(ServerAddress::Parse(wrong).ok()) << wrong;
  }
}

}  // namespace
}  // namespace reprise::command_line
