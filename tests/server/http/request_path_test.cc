#include "server/http/request_path.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace reprise {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

std::vector<std::string> SegmentsOf(const std::string& target) {
  const auto path = RequestPath::Parse(target);
  EXPECT_TRUE(path.ok()) << path.status();
  return path.ok() ? path->segments() : std::vector<std::string>();
}

TEST(RequestPathTest, SegmentsAreDecodedOnce) {
  EXPECT_THAT(SegmentsOf("/v2/models/a%20b"), ElementsAre("v2", "models", "a b"));
  EXPECT_THAT(SegmentsOf("/%76%32/%c3%A9+c"), ElementsAre("v2", "\xc3\xa9+c"));
  EXPECT_THAT(SegmentsOf("/%2575nload"), ElementsAre("%75nload"));
}

TEST(RequestPathTest, SlashesServersAndQueriesMeanNothing) {
  for (const char* target :
       {"/v2/m", "//v2///m/", "/v2/m?x=/y", "http://host/v2/m", "HTTPS://host:8000//v2/m/?x"}) {
    EXPECT_THAT(SegmentsOf(target), ElementsAre("v2", "m")) << target;
  }
  for (const char* target : {"/", "//", "/?x", "http://host", "http://host?x=/v2/m"}) {
    EXPECT_THAT(SegmentsOf(target), IsEmpty()) << target;
  }
  EXPECT_THAT(SegmentsOf("*"), ElementsAre("*"));
}

TEST(RequestPathTest, ParametersAreDecodedInTheirOrder) {
  const absl::StatusOr<RequestPath> path =
      RequestPath::Parse("/v1/m?conf=0.4&a+b=%C3%A9%&&x&y=1=2");
  ASSERT_TRUE(path.ok());
  EXPECT_THAT(path->query(), ElementsAre(Pair("conf", "0.4"), Pair("a b", "\xc3\xa9%"),
                                         Pair("x", ""), Pair("y", "1=2")));
}

TEST(RequestPathTest, PathsThatOthersMayReadAnotherWayAreRefused) {
  const std::pair<const char*, const char*> cases[] = {{"/a%2fb", "decodes to a slash"},
                                                       {"/a%2Fb", "decodes to a slash"},
                                                       {"/a%00", "decodes to NUL"},
                                                       {"/a/../b", "step to another folder"},
                                                       {"/a/%2e/b", "step to another folder"},
                                                       {"/a/.%2E", "step to another folder"},
                                                       {"/%ff", "not UTF-8"},
                                                       {"/%c0%af", "not UTF-8"},
                                                       {"/%", "two hexadecimal digits"},
                                                       {"/a%2", "two hexadecimal digits"},
                                                       {"/%zz", "two hexadecimal digits"},
                                                       {"/a#b", "has a fragment"},
                                                       {"a/b", "neither a path from /"},
                                                       {"host:443", "neither a path from /"},
                                                       {"ftp://host/a", "neither a path from /"}};
  for (const auto& [target, why] : cases) {
    const absl::Status status = RequestPath::Parse(target).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << target;
    EXPECT_THAT(std::string(status.message()), HasSubstr(why)) << target;
  }
}

TEST(RequestPathTest, TextIsThePathThatWasUnderstood) {
  EXPECT_EQ(RequestPath::Parse("//v2/a%20b/?x")->Text(), "/v2/a b");
  EXPECT_EQ(RequestPath().Text(), "/");
}

}  // namespace
}  // namespace reprise
