#include "server/http/router.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace reprise {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

class FakeExchange final : public HttpExchange {
 public:
  using HttpExchange::HttpExchange;
  void Answer(std::function<HttpReply()> make) noexcept override { reply = make(); }
  void OnLeave(std::function<void()>) override {}

  HttpReply reply;
};

class RouterTest : public ::testing::Test {
 protected:
  RouterTest() {
    Add("GET", "/");
    Add("GET", "/models/{model}");
    Add("POST", "/models/{model}/infer");
    Add("GET", "/models/stats");
  }
  void Add(const char* method, const char* pattern) {
    router_.Add(
        method, pattern,
        [this, pattern](const std::shared_ptr<HttpExchange>& exchange, const PathParts& parts) {
          parts_ = parts;
          exchange->Answer([pattern] { return HttpReply{.body = pattern}; });
        });
  }
  HttpReply Ask(const std::string& method, const std::string& path) {
    auto exchange = std::make_shared<FakeExchange>(HttpRequest{.method = method, .path = path});
    router_.Handle(exchange);
    return exchange->reply;
  }

  Router router_;
  PathParts parts_;
};

TEST_F(RouterTest, PartsOfThePathAreDecoded) {
  EXPECT_EQ(Ask("GET", "/models/a%2Fb%20c").body, "/models/{model}");
  EXPECT_THAT(parts_, ElementsAre(Pair("model", "a/b c")));
}

TEST_F(RouterTest, FirstRouteThatFitsAnswersAndSlashesAtTheEndMeanNothing) {
  EXPECT_EQ(Ask("GET", "/models/stats").body, "/models/{model}");
  EXPECT_EQ(Ask("GET", "/models/x/").body, "/models/{model}");
  EXPECT_EQ(Ask("GET", "").body, "/");
}

TEST_F(RouterTest, HeadIsAnsweredAsGet) { EXPECT_EQ(Ask("HEAD", "/").status, 200); }

TEST_F(RouterTest, UnknownPathIsNotFoundByName) {
  for (const char* path : {"/nothing", "/models/x/infer/y", "/models/%zz", "/models/a%2"}) {
    const HttpReply reply = Ask("GET", path);
    EXPECT_EQ(reply.status, 404) << path;
    EXPECT_THAT(reply.body, HasSubstr(path));
  }
}

TEST_F(RouterTest, OtherMethodIsNamedWithThoseThatAreTaken) {
  const HttpReply reply = Ask("GET", "/models/x/infer");
  EXPECT_EQ(reply.status, 405);
  EXPECT_THAT(reply.body, HasSubstr("takes POST, not GET"));
  EXPECT_THAT(reply.fields, ElementsAre(Pair("Allow", "POST")));
}

}  // namespace
}  // namespace reprise
