// /openapi.json against the table of routes, both ways.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/http/pages.h"
#include "server/openapi/openapi_page.h"
#include "server/openapi/operations.h"
#include "server/page/live_page.h"
#include "server/page/page_files.h"
#include "server/rest/rest_api.h"
#include "server/text_api/text_api.h"
#include "server/vision/vision_api.h"

namespace reprise {
namespace {

using nlohmann::json;

class OpenApiTest : public testing::Test {
 protected:
  OpenApiTest() {
    AddPages({.grpc_and_http_ports = [] { return std::pair(1, 2); }}, router_);
    AddLivePage({}, router_);
    AddRestApi({.parsing = &parsing_, .version = "1"}, router_);
    AddTextApi({.parsing = &parsing_, .version = "1"}, router_);
    AddVisionApi({}, parsing_, router_);
    AddOpenApi("1", router_);
    for (const RouteInfo& info : TextRoutes()) infos_.push_back(info);
    for (const RouteInfo& info : OtherRoutes()) infos_.push_back(info);
    page_ = json::parse(OpenApiPage(router_.routes(), TextRoutes(), OtherRoutes(), "1"));
  }

  MemoryBudget parsing_{0};
  Router router_;
  std::vector<RouteInfo> infos_;
  json page_;
};

TEST_F(OpenApiTest, EveryRouteIsDescribedAndEveryDescriptionIsOfARoute) {
  for (const Router::Route& route : router_.routes()) {
    const bool is_file = absl::StartsWith(route.pattern, "/page/");
    EXPECT_EQ(FindInfo(infos_, route) != nullptr, !is_file) << route.method << " " << route.pattern;
    const json& paths = page_["paths"];
    EXPECT_EQ(paths.contains(route.pattern) &&
                  paths[route.pattern].contains(absl::AsciiStrToLower(route.method)),
              !is_file)
        << route.method << " " << route.pattern;
  }
  for (const RouteInfo& info : infos_) {
    int routes = 0;
    for (const Router::Route& route : router_.routes()) {
      const RouteInfo* const found = FindInfo(infos_, route);
      if (found != nullptr && std::string(found->method) == info.method &&
          std::string(found->path) == info.path) {
        ++routes;
      }
    }
    EXPECT_GE(routes, 1) << info.method << " " << info.path;
  }
}

TEST_F(OpenApiTest, PartOfASegmentIsAParameterToo) {
  const json& parameters = page_["paths"]["/v1/models/{model}:predict"]["post"]["parameters"];
  ASSERT_EQ(parameters.size(), 1);
  EXPECT_EQ(parameters[0]["name"], "model");
}

TEST_F(OpenApiTest, SecurityIsTheRightOfTheRoute) {
  for (const Router::Route& route : router_.routes()) {
    if (absl::StartsWith(route.pattern, "/page/")) continue;
    const json& operation =
        page_["paths"][route.pattern][absl::AsciiStrToLower(route.method)]["security"];
    if (route.right == Right::kNone) {
      EXPECT_EQ(operation, json::array()) << route.pattern;
      continue;
    }
    const json rights = json::array({std::string(RightName(route.right))});
    ASSERT_EQ(operation.size(), 2) << route.pattern;
    EXPECT_EQ(operation[0]["bearer"], rights) << route.pattern;
    EXPECT_EQ(operation[1]["header"], rights) << route.pattern;
  }
}

// Collects the names of all schemas below `value` that it refers to.
void CollectReferences(const json& value, std::vector<std::string>& names) {
  constexpr char kSchema[] = "#/components/schemas/";
  if (value.is_object() && value.contains("$ref") && value["$ref"].is_string()) {
    const std::string reference = value["$ref"];
    ASSERT_TRUE(absl::StartsWith(reference, kSchema)) << reference;
    names.push_back(reference.substr(sizeof(kSchema) - 1));
  }
  if (!value.is_structured()) return;
  for (const json& part : value) CollectReferences(part, names);
}

TEST_F(OpenApiTest, EverySchemaThatIsNamedIsThereAndIsUsed) {
  std::vector<std::string> names;
  CollectReferences(page_, names);
  const json& schemas = page_["components"]["schemas"];
  for (const std::string& name : names) EXPECT_TRUE(schemas.contains(name)) << name;
  for (const auto& [name, schema] : schemas.items()) {
    EXPECT_THAT(names, testing::Contains(name));
  }
}

TEST_F(OpenApiTest, FilesOfThePageAreWhole) {
  for (const PageFile& file : PageFiles()) {
    EXPECT_GT(file.bytes.size(), 100) << file.name;
    EXPECT_EQ(file.bytes.back(), '\n') << file.name;
    EXPECT_FALSE(absl::StrContains(file.bytes, "innerHTML")) << file.name;
  }
}

}  // namespace
}  // namespace reprise
