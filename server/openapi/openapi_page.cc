#include "server/openapi/openapi_page.h"

#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "server/openapi/operations.h"
#include "server/openapi/schemas.h"
#include "server/text_api/text_api.h"

namespace reprise {
namespace {

using nlohmann::ordered_json;

constexpr char kOfModel[] = "/models/{model}";
constexpr char kOfVersion[] = "/versions/{version}";
constexpr char kPageFiles[] = "/page/";

ordered_json SchemaReference(absl::string_view schema) {
  return {{"$ref", absl::StrCat("#/components/schemas/", schema)}};
}

// Returns the content of a body or an answer: a schema, or the media type of one that is not JSON.
ordered_json ContentOf(absl::string_view what, const char* type = "application/json") {
  if (absl::StrContains(what, "/")) {
    return {{std::string(what), {{"schema", {{"type", "string"}}}}}};
  }
  return {{type, {{"schema", SchemaReference(what)}}}};
}

// A code of an error, and when it is answered.
struct ErrorCode {
  const char* code;
  const char* when;
  bool of_posts;  // only requests with a body get it
};

constexpr ErrorCode kErrorCodes[] = {
    {"400", "The client can mend it: names, types, shapes, values", false},
    {"401", "A key is needed, or is not known", false},
    {"403", "The key lacks the right, or the call is not accepted here", false},
    {"404", "There is no such model", false},
    {"413", "The body is too large", true},
    {"422", "A text cannot be used, in the form of text-embeddings-inference", true},
    {"429", "A limit that others fill as well: a later attempt may fit", true},
    {"503", "The model or the server is not ready, or leaves", false},
    {"504", "The time of the request was over", true},
};

// Returns whether a route may answer with the code.
bool MayAnswer(const Router::Route& route, const ErrorCode& error, bool takes_texts,
               bool is_openai) {
  const absl::string_view code = error.code;
  if (error.of_posts && route.method != "POST") return false;
  if (code == "422") return takes_texts && !is_openai;
  if (code == "401" || code == "403") return route.right != Right::kNone;
  if (code == "404") return takes_texts || absl::StrContains(route.pattern, "{");
  return true;
}

ordered_json ResponseObjects(const Router::Route& route, const RouteInfo& info, bool takes_texts) {
  ordered_json answer = ContentOf(info.response);
  // With "stream": true.
  if (absl::EndsWith(route.pattern, "/completions")) {
    answer["text/event-stream"] = {{"schema", {{"type", "string"}}}};
  }
  if (absl::string_view(info.response) == "InferResponse") {
    answer["application/octet-stream"] = {{"schema", {{"type", "string"}, {"format", "binary"}}}};
  }
  ordered_json responses = {{"200", {{"description", "The answer"}, {"content", answer}}}};
  const bool is_openai = absl::StartsWith(DescribedPath(route.pattern), "/v1/");
  for (const ErrorCode& error : kErrorCodes) {
    if (!MayAnswer(route, error, takes_texts, is_openai)) continue;
    responses[error.code] = {{"description", error.when},
                             {"content", ContentOf(is_openai ? "OpenAiError" : "Error")}};
  }
  return responses;
}

ordered_json ParameterList(const Router::Route& route) {
  ordered_json parameters = ordered_json::array();
  for (const std::string& segment : route.segments) {
    if (!absl::StartsWith(segment, "{")) continue;
    parameters.push_back({{"name", segment.substr(1, segment.find('}') - 1)},
                          {"in", "path"},
                          {"required", true},
                          {"schema", {{"type", "string"}}}});
  }
  return parameters;
}

// "post_v2_models_model_infer".
std::string OperationId(const Router::Route& route) {
  std::string id = absl::AsciiStrToLower(route.method);
  for (const std::string& segment : route.segments) {
    absl::StrAppend(&id, "_",
                    absl::StrReplaceAll(segment, {{"{", ""}, {"}", ""}, {".", "_"}, {":", "_"}}));
  }
  return id;
}

const char* TagOfRoute(const Router::Route& route, bool takes_texts) {
  if (takes_texts) return "Texts";
  for (const auto& [prefix, tag] :
       {std::pair("/v2/models/", "Inference"), std::pair("/v1/models/", "Inference"),
        std::pair("/v2/repository/", "Repository"), std::pair("/v1/vision/", "Pictures"),
        std::pair("/v2/systemsharedmemory/", "Shared memory"),
        std::pair("/v2/cudasharedmemory/", "Shared memory")}) {
    if (absl::StartsWith(route.pattern, prefix)) return tag;
  }
  return "Server";
}

// Returns the ways to show a key that has the right; none is needed where the server has no keys.
ordered_json SecurityList(Right right) {
  if (right == Right::kNone) return ordered_json::array();
  const ordered_json rights = ordered_json::array({std::string(RightName(right))});
  return ordered_json::array({{{"bearer", rights}}, {{"header", rights}}});
}

ordered_json OperationObject(const Router::Route& route, const RouteInfo& info, bool takes_texts) {
  ordered_json operation = {{"operationId", OperationId(route)},
                            {"summary", info.summary},
                            {"tags", ordered_json::array({TagOfRoute(route, takes_texts)})},
                            {"security", SecurityList(route.right)},
                            {"x-reprise-right", std::string(RightName(route.right))}};
  ordered_json parameters = ParameterList(route);
  if (!parameters.empty()) operation["parameters"] = std::move(parameters);
  if (*info.request != '\0') {
    ordered_json content = ContentOf(info.request, info.request_type);
    if (absl::string_view(info.request) == "InferRequest") {
      // JSON, then the bytes of tensors: see the header Inference-Header-Content-Length.
      content["application/octet-stream"] = {
          {"schema", {{"type", "string"}, {"format", "binary"}}}};
    }
    const bool is_optional = absl::StartsWith(route.pattern, "/v2/repository/");
    operation["requestBody"] = {{"required", !is_optional}, {"content", std::move(content)}};
  }
  operation["responses"] = ResponseObjects(route, info, takes_texts);
  return operation;
}

ordered_json ComponentsObject() {
  ordered_json schemas = ordered_json::object();
  for (const absl::string_view some : {OtherSchemas(), TextSchemas()}) {
    schemas.update(ordered_json::parse(some, nullptr, /*allow_exceptions=*/false));
  }
  const ordered_json ways = {
      {"bearer", {{"type", "http"}, {"scheme", "bearer"}}},
      {"header", {{"type", "apiKey"}, {"in", "header"}, {"name", "x-api-key"}}}};
  return {{"securitySchemes", ways}, {"schemas", std::move(schemas)}};
}

}  // namespace

std::string DescribedPath(const std::string& pattern) {
  std::string path = absl::StrReplaceAll(pattern, {{kOfVersion, ""}});
  if (!absl::StartsWith(path, kOfModel)) return path;
  path.erase(0, sizeof(kOfModel) - 1);
  return path.empty() ? "/" : path;
}

const RouteInfo* FindInfo(absl::Span<const RouteInfo> infos, const Router::Route& route) {
  const std::string path = DescribedPath(route.pattern);
  for (const RouteInfo& info : infos) {
    if (route.method == info.method && path == info.path) return &info;
  }
  return nullptr;
}

std::string OpenApiPage(const std::vector<Router::Route>& routes, absl::Span<const RouteInfo> texts,
                        absl::Span<const RouteInfo> others, const std::string& version) {
  ordered_json page = {
      {"openapi", "3.1.0"},
      {"info",
       {{"title", "Reprise"},
        {"version", version},
        {"description",
         "Inference of ONNX and GGUF models. Security counts where the server has keys "
         "(--api-key-file); the names of a requirement are rights of the key."}}},
      {"paths", ordered_json::object()}};
  for (const Router::Route& route : routes) {
    if (absl::StartsWith(route.pattern, kPageFiles)) continue;  // parts of a page
    const RouteInfo* const of_text = FindInfo(texts, route);
    const RouteInfo* const info = of_text != nullptr ? of_text : FindInfo(others, route);
    if (info == nullptr) continue;
    ordered_json& operations = page["paths"][route.pattern];
    const std::string method = absl::AsciiStrToLower(route.method);
    // The first route that fits answers.
    if (!operations.contains(method)) {
      operations[method] = OperationObject(route, *info, of_text != nullptr);
    }
  }
  page["components"] = ComponentsObject();
  return page.dump();
}

void AddOpenApi(const std::string& version, Router& router) {
  struct Page {
    std::once_flag made;
    std::string json;
  };
  const auto page = std::make_shared<Page>();
  router.Add(
      "GET", "/openapi.json", Right::kInfer,
      [page, &router, version](const std::shared_ptr<HttpExchange>& exchange, const PathParts&) {
        exchange->Answer([page, &router, version] {
          std::call_once(page->made, [&] {
            page->json = OpenApiPage(router.routes(), TextRoutes(), OtherRoutes(), version);
          });
          return HttpReply{.content_type = "application/json", .body = page->json};
        });
      });
}

}  // namespace reprise
