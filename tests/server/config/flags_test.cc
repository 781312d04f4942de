#include "server/config/flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace reprise {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

absl::StatusOr<ParsedFlags> Parse(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "reprised");
  return ParseFlags(static_cast<int>(arguments.size()), arguments.data(), "1.2.3");
}

TEST(FlagsTest, DefaultsAreTritonsPortsOnLoopback) {
  auto parsed = Parse({"--model-repository", "/"});
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  const Options& options = parsed->options;
  EXPECT_EQ(options.model_repositories, std::vector<std::string>{"/"});
  EXPECT_EQ(options.http.port, 8000);
  EXPECT_EQ(options.grpc.port, 8001);
  EXPECT_EQ(options.metrics.port, 8002);
  for (const Endpoint& endpoint : {options.http, options.grpc, options.metrics}) {
    EXPECT_EQ(endpoint.address, "127.0.0.1");
  }
}

TEST(FlagsTest, ValuesReachTheOptions) {
  auto parsed = Parse({"--model-repository=/", "--grpc-port=0", "--max-isa=baseline",
                       "--gemm-provider=openblas", "--streams", "3", "--log-format=json",
                       "--log-level=warning", "--http-address=0.0.0.0"});
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->options.grpc.port, 0);
  EXPECT_EQ(parsed->options.max_isa, Isa::kBaseline);
  EXPECT_EQ(parsed->options.gemm_provider, GemmProvider::kOpenBlas);
  EXPECT_EQ(parsed->options.streams, 3);
  EXPECT_EQ(parsed->options.log_format, LogFormat::kJson);
  EXPECT_EQ(parsed->options.log_levels.base, LogLevel::kWarning);
  EXPECT_EQ(parsed->options.http.address, "0.0.0.0");
}

TEST(FlagsTest, BadFlagsGiveOneLineThatNamesThem) {
  const struct {
    std::vector<const char*> arguments;
    const char* culprit;
  } cases[] = {
      {{}, "--model-repository"},
      {{"--model-repository=/no/such/folder"}, "/no/such/folder"},
      {{"--model-repository=/", "--no-such-flag"}, "--no-such-flag"},
      {{"--model-repository=/", "--grpc-port=70000"}, "--grpc-port"},
      {{"--model-repository=/", "--grpc-port=many"}, "many"},
      {{"--model-repository=/", "--max-isa=sse9"}, "sse9"},
      {{"--model-repository=/", "--metrics-file=/no/such/folder/m.json"}, "'/no/such/folder'"},
      {{"--model-repository=/", "--metrics-file=/"}, "is a folder"},
      {{"--model-repository=/", "--gemm-provider=mkl"}, "mkl"},
      {{"--model-repository=/", "--model-control-mode=never"}, "never"},
      {{"--model-repository=/", "--http-port=8001"}, "--grpc-port"},
      {{"--model-repository=/", "stray"}, "stray"},
      {{"--model-repository=/", "--grpc-use-ssl"}, "--grpc-server-cert"},
      {{"--model-repository=/", "--http-server-cert=a.crt"}, "--http-use-ssl"},
      {{"--model-repository=/", "--grpc-use-ssl", "--grpc-server-cert=a", "--grpc-server-key=b",
        "--grpc-use-ssl-mutual"},
       "--grpc-root-cert"},
      {{"--model-repository=/", "--write-timeout-secs=0"}, "--write-timeout-secs"},
      {{"--model-repository=/", "--rank=1"}, "--rank needs --ranks"},
      {{"--model-repository=/", "--rank-address=unix:/tmp/r"}, "--rank-address needs --ranks"},
      {{"--model-repository=/", "--ranks=2"}, "--ranks 2 needs --rank-address"},
      {{"--model-repository=/", "--rank-parallelism=pipeline"}, "--rank-parallelism needs --ranks"},
      {{"--model-repository=/", "--rank-parallelism=wide"}, "--rank-parallelism"},
      {{"--model-repository=/", "--ranks=2", "--rank=2", "--rank-address=unix:/tmp/r"},
       "--rank 2 is out of range [0, 1]"},
      {{"--model-repository=/", "--ranks=2", "--rank-address=nowhere"}, "HOST:PORT"},
      {{"--model-repository=/", "--ranks=17", "--rank-address=unix:/tmp/r"}, "--ranks"},
      {{"--model-repository=/", "--ranks=2", "--rank-address=unix:/tmp/r", "--eager"}, "--eager"},
  };
  for (const auto& test : cases) {
    auto parsed = Parse(test.arguments);
    ASSERT_FALSE(parsed.ok()) << test.culprit;
    EXPECT_THAT(std::string(parsed.status().message()), HasSubstr(test.culprit));
    EXPECT_THAT(std::string(parsed.status().message()), Not(HasSubstr("\n")));
  }
}

TEST(FlagsTest, AFlagWithoutItsValueIsToldWhichThereAre) {
  for (const char* flag : {"--max-isa", "--max-isa="}) {
    const auto parsed = Parse({"--model-repository=/", flag});
    ASSERT_FALSE(parsed.ok());
    EXPECT_EQ(parsed.status().message(),
              "--max-isa needs a value, "
              "ISA:{baseline,avx2,avx2_vnni,avx512,avx512_vnni,avx512_bf16,amx}");
  }
  const auto port = Parse({"--model-repository=/", "--grpc-port"});
  ASSERT_FALSE(port.ok());
  EXPECT_EQ(port.status().message(), "--grpc-port needs a value, PORT:INT in [0 - 65535]");
  const auto file = Parse({"--model-repository=/", "--recipe-cache"});
  ASSERT_FALSE(file.ok());
  EXPECT_EQ(file.status().message(), "--recipe-cache needs a value, DIR");
}

TEST(FlagsTest, HelpNamesEveryFlagOfTheTable) {
  auto parsed = Parse({"--help"});
  ASSERT_TRUE(parsed.ok());
  std::set<std::string> names;
  for (const FlagInfo& flag : FlagTable()) {
    EXPECT_THAT(parsed->answer, HasSubstr(flag.name));
    EXPECT_FALSE(flag.meaning.empty()) << flag.name;
    EXPECT_TRUE(names.insert(flag.name).second) << flag.name << " is twice in the table";
  }
}

TEST(FlagsTest, VersionAnswersWithoutARepository) {
  auto parsed = Parse({"--version"});
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(parsed->answer, "reprised 1.2.3\n");
}

}  // namespace
}  // namespace reprise
