// Every route of the HTTP port, as each kind of client may spell it, with each right: a request is
// let through where its key has the right of the route that answers it, and nowhere else.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "runtime/base/clock.h"
#include "server/front_door.h"
#include "server/http/pages.h"
#include "server/openapi/openapi_page.h"
#include "server/page/live_page.h"
#include "server/rest/rest_api.h"
#include "server/text_api/text_api.h"
#include "server/vision/vision_api.h"

namespace reprise {
namespace {

namespace fs = std::filesystem;
using ::testing::UnorderedElementsAre;

class RecordingExchange final : public HttpExchange {
 public:
  using HttpExchange::HttpExchange;
  void Answer(std::function<HttpReply()> make) noexcept override { reply = make(); }
  void OnLeave(std::function<void()>) override {}

  HttpReply reply;
};

std::string PathOf(const Router::Route& route) {
  return absl::StrReplaceAll(route.pattern,
                             {{"{model}", "m"}, {"{version}", "1"}, {"{region}", "r"}});
}

std::string PercentEncoded(absl::string_view text) {
  std::string encoded;
  for (const char c : text) {
    absl::StrAppend(&encoded, "%", absl::Hex(static_cast<unsigned char>(c), absl::kZeroPad2));
  }
  return encoded;
}

// Returns a path of other segments in the place of segment `at`.
std::string WithSegment(const std::vector<std::string>& segments, size_t at,
                        absl::string_view other) {
  std::vector<std::string> changed = segments;
  changed[at] = std::string(other);
  return absl::StrCat("/", absl::StrJoin(changed, "/"));
}

// Targets that ask for `path` in other words.
std::vector<std::string> SameTargets(const std::string& path) {
  std::vector<std::string> targets = {path,
                                      absl::StrCat(path, "?a=b"),
                                      absl::StrCat(path, "?a=/v2/health/live"),
                                      absl::StrCat(path, "?%2F..%00%zz"),
                                      absl::StrCat(path, "/"),
                                      absl::StrCat("//", path, "//?x"),
                                      absl::StrCat("http://host:8000", path),
                                      absl::StrCat("HTTP://host", path, "?a=b"),
                                      absl::StrCat("https://host", path)};
  const std::vector<std::string> segments = RequestPath::Parse(path)->segments();
  std::vector<std::string> encoded;
  for (size_t i = 0; i < segments.size(); ++i) {
    const std::string& segment = segments[i];
    encoded.push_back(PercentEncoded(segment));
    targets.push_back(WithSegment(
        segments, i, absl::StrCat(PercentEncoded(segment.substr(0, 1)), segment.substr(1))));
    targets.push_back(WithSegment(segments, i, encoded[i]));
    targets.push_back(WithSegment(segments, i, absl::AsciiStrToUpper(encoded[i])));
    targets.push_back(WithSegment(segments, i, absl::StrCat("/", segment, "/")));
  }
  targets.push_back(absl::StrCat("/", absl::StrJoin(encoded, "/")));
  targets.push_back(absl::StrCat("http://host//", absl::StrJoin(encoded, "///"), "/?a=b"));
  return targets;
}

// Targets that a program in front may take for `path`, or for another one.
std::vector<std::string> RefusedTargets(const std::string& path) {
  std::vector<std::string> targets = {absl::StrCat(path, "#"),
                                      absl::StrCat("http://host", path, "#a"),
                                      path.substr(1),
                                      absl::StrCat("ftp://host", path),
                                      absl::StrCat("/..", path),
                                      absl::StrCat("/%2e%2E", path),
                                      absl::StrCat(path, "/."),
                                      absl::StrCat(path, "/x/.."),
                                      absl::StrCat(path, "/x/.%2e/"),
                                      absl::StrCat("http://host/.", path)};
  const std::vector<std::string> segments = RequestPath::Parse(path)->segments();
  for (size_t i = 0; i < segments.size(); ++i) {
    for (const char* more : {"%2f", "%2F..", "%00", "%ff", "%c0%af", "%", "%7", "%zz", "\xff"}) {
      targets.push_back(WithSegment(segments, i, absl::StrCat(segments[i], more)));
    }
    if (i + 1 < segments.size()) {
      targets.push_back(
          absl::StrReplaceAll(path, {{absl::StrCat("/", segments[i], "/", segments[i + 1]),
                                      absl::StrCat("/", segments[i], "%2f", segments[i + 1])}}));
    }
  }
  return targets;
}

// Targets of other paths: whatever answers them, its right counts.
std::vector<std::string> OtherTargets(const std::string& path) {
  std::vector<std::string> targets = {absl::AsciiStrToUpper(path),
                                      absl::StrCat(path, "/x"),
                                      absl::StrCat("/x", path),
                                      absl::StrCat(path, ";a=b"),
                                      "*",
                                      "http://host?a=" + path};
  const std::vector<std::string> segments = RequestPath::Parse(path)->segments();
  for (size_t i = 0; i < segments.size(); ++i) {
    targets.push_back(WithSegment(segments, i, absl::AsciiStrToUpper(segments[i])));
    targets.push_back(
        WithSegment(segments, i, absl::StrReplaceAll(PercentEncoded(segments[i]), {{"%", "%25"}})));
    targets.push_back(WithSegment(segments, i, absl::StrCat(segments[i], "%20")));
    targets.push_back(WithSegment(segments, i, absl::StrCat("%5c", segments[i])));
  }
  return targets;
}

class RouteRightsTest : public testing::Test {
 protected:
  RouteRightsTest() {
    std::string pattern = (fs::temp_directory_path() / "routesXXXXXX").string();
    folder_ = mkdtemp(pattern.data());
    std::ofstream file(folder_ / "keys");
    for (const Right right : {Right::kInfer, Right::kObserve, Right::kAdmin, Right::kMetrics}) {
      file << RightName(right) << " " << KeyWith(right) << " " << RightName(right) << "\n";
    }
    AddPages({}, routes_);
    AddRestApi({.parsing = &parsing_, .version = "1"}, routes_);
    AddTextApi({.parsing = &parsing_, .version = "1"}, routes_);
    AddVisionApi({}, parsing_, routes_);
    AddLivePage({}, routes_);
    AddOpenApi("1", routes_);
    // The same routes, which say where a request came.
    for (const Router::Route& route : routes_.routes()) {
      const auto number = static_cast<int>(numbers_++);
      const auto handler = [number](const std::shared_ptr<HttpExchange>& exchange,
                                    const PathParts&) {
        exchange->Answer([number] { return HttpReply{.body = absl::StrCat(number)}; });
      };
      router_.Add(route.method, route.pattern, route.right, handler);
    }
  }
  ~RouteRightsTest() override { fs::remove_all(folder_); }

  static std::string KeyWith(Right right) {
    return absl::StrCat(RightName(right), "-key-of-many-characters");
  }
  std::unique_ptr<FrontDoor> Door(bool with_keys, bool with_admin_port) {
    Options options;
    if (with_keys) options.api_key_file = (folder_ / "keys").string();
    if (with_admin_port) options.admin.port = 0;
    auto door = FrontDoor::Open(options, clock_, catalogue_.server(), nullptr, nullptr);
    EXPECT_TRUE(door.ok()) << door.status();
    return *std::move(door);
  }
  // Returns the status; the route that answered, or -1. 400 where the target cannot be read, as
  // connections answer it.
  std::pair<int, int> Ask(const HttpHandler& handler, const std::string& method,
                          const std::string& target, const std::string& key, bool is_local) {
    auto path = RequestPath::Parse(target);
    if (!path.ok()) return {400, -1};
    HttpRequest request = {.method = method, .path = *std::move(path)};
    if (!key.empty()) request.fields = {{"authorization", absl::StrCat("Bearer ", key)}};
    request.peer = std::make_shared<const Peer>(Peer{.is_local = is_local});
    auto exchange = std::make_shared<RecordingExchange>(std::move(request));
    handler(exchange);
    int route = -1;
    if (exchange->reply.status == 200) {
      EXPECT_TRUE(absl::SimpleAtoi(exchange->reply.body, &route)) << exchange->reply.body;
    }
    return {exchange->reply.status, route};
  }
  // Asks for every route in every spelling. `allows`: whether the client may use a right.
  template <typename Allows>
  void AskAll(const HttpHandler& handler, const std::string& key, bool is_local, Allows allows) {
    const auto& routes = router_.routes();
    for (size_t i = 0; i < routes.size(); ++i) {
      const std::string path = PathOf(routes[i]);
      for (const std::string& method : {routes[i].method, std::string("HEAD")}) {
        if (method == "HEAD" && routes[i].method != "GET") continue;
        for (const std::string& target : SameTargets(path)) {
          const auto [status, route] = Ask(handler, method, target, key, is_local);
          if (allows(routes[i].right)) {
            EXPECT_EQ(status, 200) << method << " " << target << " with " << key;
            EXPECT_EQ(route, static_cast<int>(i)) << method << " " << target;
          } else {
            EXPECT_TRUE(status == 401 || status == 403)
                << method << " " << target << " with " << key << ": " << status;
          }
        }
      }
      for (const char* method : {"GET", "POST", "PUT", "DELETE", "OPTIONS", "get"}) {
        for (const std::string& target : RefusedTargets(path)) {
          EXPECT_EQ(Ask(handler, method, target, key, is_local).first, 400) << target;
        }
        std::vector<std::string> others = OtherTargets(path);
        others.push_back(path);
        for (const std::string& target : others) {
          const auto [status, route] = Ask(handler, method, target, key, is_local);
          if (route < 0) continue;
          EXPECT_TRUE(allows(routes[route].right)) << method << " " << target << " with " << key;
        }
      }
    }
  }

  fs::path folder_;
  FakeClock clock_;
  Catalogue catalogue_{BuildInfo{}};
  MemoryBudget parsing_{0};
  size_t numbers_ = 0;
  Router routes_;
  Router router_;
};

TEST_F(RouteRightsTest, RoutesThatTakeMoreThanInferenceAreThese) {
  std::vector<std::string> rows;
  for (const Router::Route& route : routes_.routes()) {
    // Files of the pages, which show nothing by themselves.
    if (route.right == Right::kNone && absl::StartsWith(route.pattern, "/page/")) continue;
    if (route.right == Right::kInfer) continue;
    rows.push_back(absl::StrCat(RightName(route.right), " ", route.method, " ", route.pattern));
  }
  EXPECT_THAT(
      rows,
      UnorderedElementsAre(
          "none GET /v2/health/live", "none GET /v2/health/ready", "none GET /health",
          "none GET /ping", "none GET /", "none GET /docs", "none GET /v2/models/{model}/ready",
          "none GET /v2/models/{model}/versions/{version}/ready", "metrics GET /metrics",
          "observe GET /v2/overview", "observe GET /v2/models/stats",
          "observe GET /v2/models/{model}/stats",
          "observe GET /v2/models/{model}/versions/{version}/stats",
          "observe GET /v2/models/{model}/compilations",
          "observe GET /v2/models/{model}/versions/{version}/compilations",
          "observe POST /v2/repository/index", "admin GET /v2/logging", "admin POST /v2/logging",
          "admin GET /v2/trace/setting", "admin POST /v2/trace/setting",
          "admin GET /v2/models/{model}/trace/setting",
          "admin POST /v2/models/{model}/trace/setting",
          "admin POST /v2/repository/models/{model}/load",
          "admin POST /v2/repository/models/{model}/unload",
          "admin POST /v2/repository/models/{model}/weights",
          "admin POST /v2/repository/models/{model}/versions/{version}/weights",
          "admin POST /v2/repository/models/{model}/freeze",
          "admin POST /v2/repository/models/{model}/thaw", "admin POST /v2/repository/freeze",
          "admin POST /v2/repository/thaw", "admin POST /v2/repository/models/{model}/sleep",
          "admin POST /v2/repository/models/{model}/wake", "admin POST /v2/repository/sleep",
          "admin POST /v2/repository/wake"));
}

TEST_F(RouteRightsTest, KeysOpenTheRoutesOfTheirRightHoweverTheyAreSpelled) {
  const auto door = Door(/*with_keys=*/true, /*with_admin_port=*/false);
  const HttpHandler handler = door->ForHttp(router_, false);
  for (const Right has : {Right::kInfer, Right::kObserve, Right::kAdmin, Right::kMetrics}) {
    AskAll(handler, KeyWith(has), /*is_local=*/true,
           [has](Right wanted) { return wanted == Right::kNone || wanted == has; });
  }
  for (const char* key : {"", "a-key-that-nobody-has"}) {
    AskAll(handler, key, /*is_local=*/true, [](Right wanted) { return wanted == Right::kNone; });
  }
}

TEST_F(RouteRightsTest, AdminIsForThisMachineHoweverItsRoutesAreSpelled) {
  const auto door = Door(/*with_keys=*/false, /*with_admin_port=*/false);
  const HttpHandler handler = door->ForHttp(router_, false);
  AskAll(handler, "", /*is_local=*/false, [](Right wanted) { return wanted != Right::kAdmin; });
  AskAll(handler, "", /*is_local=*/true, [](Right) { return true; });
}

TEST_F(RouteRightsTest, AdminPortIsTheOnlyOneHoweverRoutesAreSpelled) {
  for (const bool with_keys : {false, true}) {
    const auto door = Door(with_keys, /*with_admin_port=*/true);
    const std::string key = with_keys ? KeyWith(Right::kAdmin) : "";
    const auto others = [with_keys](Right wanted) {
      return wanted == Right::kNone || (!with_keys && wanted != Right::kAdmin);
    };
    AskAll(door->ForHttp(router_, false), key, /*is_local=*/true, others);
    AskAll(door->ForHttp(router_, true), key, /*is_local=*/true,
           [&](Right wanted) { return wanted == Right::kAdmin || others(wanted); });
  }
}

}  // namespace
}  // namespace reprise
