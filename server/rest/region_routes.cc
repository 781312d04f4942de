#include "server/rest/region_routes.h"

#include <simdjson.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "server/protocol/region_answers.h"
#include "server/rest/json_document.h"
#include "server/rest/reply.h"

namespace reprise {
namespace {

using Exchange = std::shared_ptr<HttpExchange>;
using simdjson::dom::element;
using simdjson::dom::object;

constexpr char kSystem[] = "/v2/systemsharedmemory";
constexpr char kCuda[] = "/v2/cudasharedmemory";

std::string RegionOf(const PathParts& parts) {
  const auto it = parts.find("region");
  return it == parts.end() ? "" : it->second;
}

HttpReply StatusOf(const absl::StatusOr<std::vector<RegionInfo>>& regions) {
  if (!regions.ok()) return StatusReply(regions.status());
  auto list = nlohmann::ordered_json::array();
  for (const RegionInfo& region : *regions) {
    list.push_back({{"name", region.name},
                    {"key", region.key},
                    {"offset", region.offset},
                    {"byte_size", region.bytes}});
  }
  return {.content_type = "application/json",
          .body = list.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)};
}

HttpReply Done(const absl::Status& status) {
  return status.ok() ? HttpReply{} : StatusReply(status);
}

absl::StatusOr<int64_t> SizeOf(const object& root, const char* name, bool needed) {
  element json;
  if (root.at_key(name).get(json) != simdjson::SUCCESS || json.is_null()) {
    if (!needed) return 0;
    return absl::InvalidArgumentError(absl::StrCat("\"", name, "\" is missing"));
  }
  int64_t size = 0;
  if (json.get(size) == simdjson::SUCCESS) return size;
  return absl::InvalidArgumentError(absl::StrCat(
      "\"", name, "\" is ", simdjson::minify(json).substr(0, 40), ", expected a number of bytes"));
}

// Returns the region that the body of a request to register it describes.
absl::StatusOr<RegionInfo> ReadRegion(const std::string& name, absl::string_view body,
                                      MemoryBudget& parsing) {
  JsonDocument document(parsing);
  ASSIGN_OR_RETURN(const object root, document.ParseObject(body));
  std::string_view key;
  if (root.at_key("key").get(key) != simdjson::SUCCESS) {
    return absl::InvalidArgumentError("\"key\" is missing, or is not a string");
  }
  RegionInfo region = {.name = name, .key = std::string(key)};
  ASSIGN_OR_RETURN(region.offset, SizeOf(root, "offset", false));
  ASSIGN_OR_RETURN(region.bytes, SizeOf(root, "byte_size", true));
  return region;
}

absl::Status RegisterFrom(SharedRegions* regions, const std::string& name, absl::string_view body,
                          MemoryBudget& parsing) {
  RETURN_IF_ERROR(CheckRegionsAreOn(regions));
  ASSIGN_OR_RETURN(RegionInfo region, ReadRegion(name, body, parsing));
  return regions->Register(std::move(region));
}

}  // namespace

void AddRegionRoutes(SharedRegions* regions, MemoryBudget& parsing, Router& router) {
  // The regions of each kind; devices have none.
  const std::pair<const char*, SharedRegions*> kinds[] = {{kSystem, regions}, {kCuda, nullptr}};
  for (const auto& [kind, of_kind] : kinds) {
    for (const char* path : {"", "/region/{region}"}) {
      const auto answer = [of_kind = of_kind](const Exchange& exchange, auto make) {
        exchange->Answer([of_kind, make] { return make(of_kind); });
      };
      router.Add("GET", absl::StrCat(kind, path, "/status"), Right::kInfer,
                 [answer](const Exchange& exchange, const PathParts& parts) {
                   answer(exchange, [name = RegionOf(parts)](SharedRegions* of_kind) {
                     return StatusOf(ListRegions(of_kind, name));
                   });
                 });
      router.Add("POST", absl::StrCat(kind, path, "/unregister"), Right::kInfer,
                 [answer](const Exchange& exchange, const PathParts& parts) {
                   answer(exchange, [name = RegionOf(parts)](SharedRegions* of_kind) {
                     UnregisterRegions(of_kind, name);
                     return HttpReply{};
                   });
                 });
    }
    const bool is_cuda = kind == kCuda;
    router.Add("POST", absl::StrCat(kind, "/region/{region}/register"), Right::kInfer,
               [regions, is_cuda, &parsing](const Exchange& exchange, const PathParts& parts) {
                 const absl::Status status = is_cuda
                                                 ? NoDeviceRegions()
                                                 : RegisterFrom(regions, RegionOf(parts),
                                                                exchange->request().body, parsing);
                 exchange->Answer([status] { return Done(status); });
               });
  }
}

}  // namespace reprise
