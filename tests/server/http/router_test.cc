#include "server/http/router.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

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
        method, pattern, Right::kInfer,
        [this, pattern](const std::shared_ptr<HttpExchange>& exchange, const PathParts& parts) {
          parts_ = parts;
          exchange->Answer([pattern] { return HttpReply{.body = pattern}; });
        });
  }
  HttpReply Ask(const std::string& method, const std::string& path) {
    auto exchange = std::make_shared<FakeExchange>(
        HttpRequest{.method = method, .path = *RequestPath::Parse(path)});
    router_.Find(exchange->request()).Answer(exchange);
    return exchange->reply;
  }

  Router router_;
  PathParts parts_;
};

TEST_F(RouterTest, PartsOfThePathAreDecoded) {
  EXPECT_EQ(Ask("GET", "/models/a%20b").body, "/models/{model}");
  EXPECT_THAT(parts_, ElementsAre(Pair("model", "a b")));
}

TEST_F(RouterTest, FirstRouteThatFitsAnswersAndSlashesAtTheEndMeanNothing) {
  EXPECT_EQ(Ask("GET", "/models/stats").body, "/models/{model}");
  EXPECT_EQ(Ask("GET", "/models/x/").body, "/models/{model}");
  EXPECT_EQ(Ask("GET", "//").body, "/");
}

TEST_F(RouterTest, EndOfASegmentIsNoPartOfItsVariable) {
  Add("POST", "/models/{model}:predict");
  EXPECT_EQ(Ask("POST", "/models/a%3Ab:predict").body, "/models/{model}:predict");
  EXPECT_THAT(parts_, ElementsAre(Pair("model", "a:b")));
  EXPECT_EQ(Ask("POST", "/models/a%3apredict/").body, "/models/{model}:predict");
  EXPECT_THAT(parts_, ElementsAre(Pair("model", "a")));
  for (const char* path : {"/models/:predict", "/models/a", "/models/a:predict:"}) {
    EXPECT_EQ(Ask("POST", path).status, 405) << path;
  }
}

TEST_F(RouterTest, HeadIsAnsweredAsGet) { EXPECT_EQ(Ask("HEAD", "/").status, 200); }

TEST_F(RouterTest, UnknownPathIsNotFoundByName) {
  for (const char* path : {"/nothing", "/models/x/infer/y", "/v1/nothing"}) {
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

TEST_F(RouterTest, RightIsThatOfTheRouteThatAnswers) {
  router_.Add("POST", "/", Right::kInfer, nullptr);
  router_.Add("GET", "/stats", Right::kObserve, nullptr);
  router_.Add("POST", "/{any}", Right::kAdmin, nullptr);
  const auto right = [this](const char* method, const char* path) {
    return router_.Find({.method = method, .path = *RequestPath::Parse(path)}).right();
  };
  EXPECT_EQ(right("GET", "/stats"), Right::kObserve);
  EXPECT_EQ(right("HEAD", "/%73tats/"), Right::kObserve);
  EXPECT_EQ(right("POST", "/stats"), Right::kAdmin);
  EXPECT_EQ(right("PUT", "/stats"), Right::kObserve) << "the first that has the path";
  EXPECT_EQ(right("GET", "/nothing/at/all"), Right::kInfer);
}

TEST_F(RouterTest, ErrorsBelowV1AreOpenAis) {
  for (const char* path : {"/v1/nothing", "/models/m/v1/nothing", "/v1"}) {
    const auto body = nlohmann::json::parse(Ask("GET", path).body);
    EXPECT_THAT(std::string(body["error"]["message"]), HasSubstr(path));
    EXPECT_EQ(body["error"]["type"], "invalid_request_error");
    EXPECT_EQ(body["error"]["code"], "not_found");
    EXPECT_TRUE(body["error"]["param"].is_null());
  }
  Add("POST", "/v1/embeddings");
  const auto body = nlohmann::json::parse(Ask("GET", "/v1/embeddings").body);
  EXPECT_EQ(body["error"]["code"], "method_not_supported");
  EXPECT_TRUE(nlohmann::json::parse(Ask("GET", "/v2/v1").body)["error"].is_string());
  const auto predict = nlohmann::json::parse(Ask("PUT", "/v1/models/m:predict").body);
  EXPECT_TRUE(predict["error"].is_string());
}

}  // namespace
}  // namespace reprise
