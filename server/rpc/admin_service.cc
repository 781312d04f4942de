#include "server/rpc/admin_service.h"

#include <algorithm>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "server/metrics/process_metrics.h"
#include "server/rpc/recipe_codec.h"
#include "server/rpc/stats_codec.h"
#include "server/rpc/status.h"

namespace reprise {
namespace {

grpc::ServerUnaryReactor* Finish(grpc::CallbackServerContext* call, const absl::Status& status) {
  grpc::ServerUnaryReactor* reactor = call->DefaultReactor();
  reactor->Finish(ToGrpc(status));
  return reactor;
}

bool IsHex(const std::string& key) {
  return !key.empty() && key.size() <= 16 &&
         std::all_of(key.begin(), key.end(), [](unsigned char c) { return std::isxdigit(c); });
}

// Empty fields of a request select everything.
template <typename Request>
bool Selects(const Request& request, const std::string& model, const std::string& version) {
  return (request.model().empty() || request.model() == model) &&
         (request.version().empty() || request.version() == version);
}

}  // namespace

grpc::ServerUnaryReactor* AdminService::ListRecipes(grpc::CallbackServerContext* call,
                                                    const v1::ListRecipesRequest* request,
                                                    v1::ListRecipesResponse* response) {
  std::vector<CachedRecipe> recipes = context_.engine->ListRecipes();
  const auto order = [](const CachedRecipe& cached) {
    const Recipe& recipe = *cached.recipe;
    return std::tie(recipe.note.model, recipe.note.version, recipe.key.binding);
  };
  std::sort(recipes.begin(), recipes.end(),
            [&](const CachedRecipe& a, const CachedRecipe& b) { return order(a) < order(b); });
  for (const CachedRecipe& cached : recipes) {
    const CaptureNote& note = cached.recipe->note;
    if (!Selects(*request, note.model, absl::StrCat(note.version))) continue;
    EncodeRecipeInfo(cached, *response->add_recipes());
  }
  return Finish(call, absl::OkStatus());
}

grpc::ServerUnaryReactor* AdminService::DumpRecipe(grpc::CallbackServerContext* call,
                                                   const v1::DumpRecipeRequest* request,
                                                   v1::DumpRecipeResponse* response) {
  if (!IsHex(request->key())) {
    return Finish(call, absl::InvalidArgumentError(absl::StrCat(
                            "key \"", request->key(), "\" is no hexadecimal number of 64 bits")));
  }
  for (const CachedRecipe& cached : context_.engine->ListRecipes()) {
    if (cached.recipe->key.hex() != request->key()) continue;
    EncodeRecipeInfo(cached, *response->mutable_info());
    EncodeRecipe(*cached.recipe, request->include_constants(), *response->mutable_recipe());
    return Finish(call, absl::OkStatus());
  }
  return Finish(call,
                absl::NotFoundError(absl::StrCat("no recipe ", request->key(), " is in memory")));
}

grpc::ServerUnaryReactor* AdminService::GetStats(grpc::CallbackServerContext* call,
                                                 const v1::GetStatsRequest* request,
                                                 v1::GetStatsResponse* response) {
  v1::CacheStats& total = *response->mutable_cache();
  for (const Repository::Listed& listed : context_.repository->List()) {
    v1::ModelStats stats;
    EncodeModelStats(
        listed, context_.catalogue->Model(listed.version->name, listed.version->version), stats);
    AddCacheStats(stats.cache(), total);
    if (Selects(*request, stats.model(), stats.version())) *response->add_models() = stats;
  }
  total.set_max_bytes(static_cast<uint64_t>(context_.max_cache_bytes));
  response->set_server_version(context_.version);
  response->set_device(context_.device);
  response->set_streams(static_cast<uint32_t>(context_.streams));
  response->set_threads_per_stream(static_cast<uint32_t>(context_.threads_per_stream));
  *response->mutable_started() = EncodeTime(context_.started);
  response->set_resident_bytes(static_cast<uint64_t>(ResidentBytes()));
  return Finish(call, absl::OkStatus());
}

}  // namespace reprise
