// Every seed is accepted, and some ten thousand changes of them never end the process.
#include <google/protobuf/stubs/logging.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "proto/grpc_service.pb.h"
#include "tests/fuzz/files/mutate.h"
#include "tests/fuzz/requests/feed.h"
#include "tests/fuzz/requests/seeds.h"

namespace reprise::fuzz {
namespace {

using Feed = bool (*)(absl::string_view);
using Mutate = std::string (*)(absl::string_view, Chance&);

// Returns how many of the changed seeds were taken. Changes pile up: each begins with the last one
// that was taken.
int FeedChanged(const std::vector<std::string>& seeds, Feed feed, Mutate mutate, int count) {
  google::protobuf::SetLogHandler(nullptr);  // a line for each message that is none
  Chance chance(7);
  int taken = 0;
  std::string bytes = seeds[0];
  for (int i = 0; i < count; ++i) {
    if (chance.OneIn(8)) bytes = chance.Of(seeds);
    std::string changed = mutate(bytes, chance);
    if (!feed(changed)) continue;
    ++taken;
    bytes = std::move(changed);
  }
  return taken;
}

std::string MutateRequest(absl::string_view bytes, Chance& chance) {
  inference::ModelInferRequest message;
  if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())) || chance.OneIn(16)) {
    return MutateBytes(bytes, chance);
  }
  MutateMessage(message, chance);
  return message.SerializeAsString();
}

TEST(RequestSeedsTest, ConfigsAreTakenAndChangedOnesEndNothing) {
  for (const std::string& seed : ConfigSeeds()) EXPECT_TRUE(FeedConfig(seed)) << seed;
  for (const std::string& seed : ConfigJsonSeeds()) EXPECT_TRUE(FeedConfigJson(seed)) << seed;
  for (const std::string& text : RefusedConfigs()) EXPECT_FALSE(FeedConfig(text)) << text;
  EXPECT_GT(FeedChanged(ConfigSeeds(), FeedConfig, MutateBytes, 10000), 100);
  EXPECT_GT(FeedChanged(ConfigJsonSeeds(), FeedConfigJson, MutateBytes, 10000), 100);
}

TEST(RequestSeedsTest, EachParameterTakesSomeValuesAndRefusesOthers) {
  std::map<std::string, std::pair<int, int>> seen;  // taken, refused
  for (const ParameterConfig& config : ParameterConfigs()) {
    auto& [taken, refused] = seen[config.name];
    ++(FeedConfig(config.text) ? taken : refused);
  }
  for (const auto& [name, counts] : seen) {
    EXPECT_GT(counts.first, 0) << name << ": no value among those of ParameterConfigs fits";
    EXPECT_GT(counts.second, 0) << name;
  }
}

TEST(RequestSeedsTest, BodiesAreTakenAndChangedOnesEndNothing) {
  for (const std::string& seed : RestSeeds()) EXPECT_TRUE(FeedRest(seed)) << seed;
  for (const std::string& body : RefusedRestBodies()) EXPECT_FALSE(FeedRest(body)) << body;
  EXPECT_GT(FeedChanged(RestSeeds(), FeedRest, MutateBytes, 20000), 100);
}

TEST(RequestSeedsTest, MessagesAreTakenAndChangedOnesEndNothing) {
  for (const std::string& seed : GrpcSeeds()) EXPECT_TRUE(FeedGrpc(seed));
  for (const std::string& seed : RefusedGrpcMessages()) EXPECT_FALSE(FeedGrpc(seed));
  EXPECT_GT(FeedChanged(GrpcSeeds(), FeedGrpc, MutateRequest, 20000), 100);
}

}  // namespace
}  // namespace reprise::fuzz
