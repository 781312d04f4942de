#include "server/http/http_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <httplib.h>

namespace reprise {
namespace {

using ::testing::HasSubstr;

std::unique_ptr<HttpServer> StartOnAnyPort() {
  auto server =
      HttpServer::Start({.address = "127.0.0.1", .port = 0},
                        {{"/", [] { return HttpReply{.body = "root"}; }},
                         {"/bad", [] { return HttpReply{.status = 503, .body = "not now"}; }}});
  EXPECT_TRUE(server.ok()) << server.status();
  return *std::move(server);
}

TEST(HttpServerTest, PagesAnswerWithTheirStatus) {
  auto server = StartOnAnyPort();
  httplib::Client client("127.0.0.1", server->port());
  auto root = client.Get("/");
  ASSERT_TRUE(root);
  EXPECT_EQ(root->status, 200);
  EXPECT_EQ(root->body, "root");
  auto bad = client.Get("/bad");
  ASSERT_TRUE(bad);
  EXPECT_EQ(bad->status, 503);
  auto missing = client.Get("/missing");
  ASSERT_TRUE(missing);
  EXPECT_EQ(missing->status, 404);
}

TEST(HttpServerTest, PortInUseIsAnErrorThatNamesIt) {
  auto first = StartOnAnyPort();
  auto second = HttpServer::Start({.address = "127.0.0.1", .port = first->port()}, {});
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(second.status().message()),
              HasSubstr("127.0.0.1:" + std::to_string(first->port())));
}

TEST(HttpServerTest, StoppingAtOnceIsClean) {
  for (int i = 0; i < 20; ++i) StartOnAnyPort();
}

}  // namespace
}  // namespace reprise
