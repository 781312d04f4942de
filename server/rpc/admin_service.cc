#include "server/rpc/admin_service.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <optional>
#include <tuple>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/debug_log.h"
#include "runtime/base/memory_net.h"
#include "runtime/base/status_macros.h"
#include "runtime/bucket/axis_sizes.h"
#include "runtime/graph/hide_bytes.h"
#include "server/http2/unary_method.h"
#include "server/metrics/compilations.h"
#include "server/protocol/answers.h"
#include "server/repository/warmup_sizes.h"
#include "server/rpc/dynamicity_codec.h"
#include "server/rpc/explain_codec.h"
#include "server/rpc/printable_message.h"
#include "server/rpc/recipe_codec.h"
#include "server/rpc/recompiles_codec.h"
#include "server/rpc/stats_codec.h"

namespace reprise {
namespace {

// Finishes a report for people.
absl::Status Report(google::protobuf::Message& report) {
  MakePrintable(report);
  return absl::OkStatus();
}

// Returns the op that an eager recipe computes; of several, how many.
std::string OpsOf(const Recipe& recipe) {
  if (recipe.launches.empty()) return "-";
  if (recipe.launches.size() > 1) return absl::StrCat(recipe.launches.size(), " launches");
  return recipe.launches[0].node;
}

void EncodeShaped(DType dtype, const Shape& shape, v1::ShapedTensor& message) {
  message.set_dtype(std::string(DTypeName(dtype)));
  message.mutable_shape()->Add(shape.begin(), shape.end());
}

// Adds the model's weights that `expression` reads, each in the shape that the file has it in.
void EncodeWeights(const ParameterExpr& expression, v1::RecipeInfo& message) {
  if (expression.is_leaf()) {
    v1::ShapedTensor& weight = *message.add_inputs();
    EncodeShaped(expression.dtype(), expression.shape(), weight);
    weight.set_weight(true);
  }
  for (const ParameterExprPtr& input : expression.inputs()) {
    if (input != nullptr) EncodeWeights(*input, message);
  }
}

// Says which op an eager run prepared, and for which shapes.
void EncodeEager(const Recipe& recipe, v1::RecipeInfo& message) {
  message.set_op(OpsOf(recipe));
  for (const TensorSlot& slot : recipe.inputs) {
    EncodeShaped(slot.dtype, slot.shape, *message.add_inputs());
  }
  for (const TensorSlot& slot : recipe.outputs) {
    EncodeShaped(slot.dtype, slot.shape, *message.add_outputs());
  }
  if (recipe.launches.size() > 1) return;  // The list of a whole model's weights tells nothing.
  for (const ParameterExprPtr& weight : recipe.parameters) EncodeWeights(*weight, message);
}

// Returns the number that a recipe is listed by, however a person writes it.
std::optional<uint64_t> ParseKey(const std::string& text) {
  const bool is_hex =
      !text.empty() && text.size() <= 16 && absl::c_all_of(text, absl::ascii_isxdigit);
  uint64_t key = 0;
  return is_hex && absl::SimpleHexAtoi(text, &key) ? std::optional(key) : std::nullopt;
}

// Returns the recipes that a request asks to capture.
absl::StatusOr<WarmupOfAll> WantedBy(const v1::WarmupRequest& request, const Servable& servable) {
  const Model& model = *servable.model;
  WarmupOfAll wanted;
  if (request.all()) {
    const ShapeTable seen = servable.shapes->Snapshot();
    ASSIGN_OR_RETURN(wanted, EverythingOf(model, &seen));
  } else if (!request.buckets().empty()) {
    const std::vector<std::string> labels(request.buckets().begin(), request.buckets().end());
    ASSIGN_OR_RETURN(wanted.bindings, BindingsOf(model, labels));
  }
  for (const auto& [texts, bindings_of] : {std::pair(&request.sizes(), &BindingsOfSizes),
                                           std::pair(&request.requests(), &BindingsOfRequests)}) {
    std::vector<AxisSizes> sizes;
    for (const std::string& text : *texts) {
      ASSIGN_OR_RETURN(sizes.emplace_back(), ParseAxisSizes(text));
    }
    ASSIGN_OR_RETURN(const std::vector<AxisSizes> bindings, bindings_of(model, sizes));
    wanted.bindings.insert(wanted.bindings.end(), bindings.begin(), bindings.end());
  }
  return wanted;
}

// Returns whether it is selected: empty fields of a request select everything.
template <typename Request>
bool Selects(const Request& request, const std::string& model, const std::string& version) {
  return (request.model().empty() || request.model() == model) &&
         (request.version().empty() || request.version() == version);
}

// Requests that change the server for others, or show a model's numbers, take more than the right
// of their method.
bool NeedsAdmin(const v1::DumpRecipeRequest& request) { return request.include_constants(); }
bool NeedsAdmin(const v1::WarmupRequest& request) {
  return request.all() || !request.buckets().empty() || !request.sizes().empty() ||
         !request.requests().empty();
}
bool NeedsAdmin(const google::protobuf::Message&) { return false; }

}  // namespace

void AdminService::AddTo(RpcRoutes& routes) {
  Add(routes, "ListRecipes", &AdminService::ListRecipes);
  Add(routes, "DumpRecipe", &AdminService::DumpRecipe);
  Add(routes, "GetStats", &AdminService::GetStats);
  Add(routes, "GetPorts", &AdminService::GetPorts);
  Add(routes, "ExplainMisses", &AdminService::ExplainMisses);
  Add(routes, "GetRecompilations", &AdminService::GetRecompilations);
  Add(routes, "ExplainModel", &AdminService::ExplainModel);
  Add(routes, "GetDynamicity", &AdminService::GetDynamicity);
  Add(routes, "Warmup", &AdminService::Warmup);
  Add(routes, "ChangeModel", &AdminService::ChangeModel);
}

template <typename Request, typename Response>
void AdminService::Add(RpcRoutes& routes, const char* method,
                       absl::Status (AdminService::*body)(const Request&, Response&)) {
  using Call = UnaryCall<Request, Response>;
  const auto answer = [this, body](const std::shared_ptr<Call>& call) -> absl::Status {
    if (NeedsAdmin(call->request()) && context_.may_administer != nullptr) {
      RETURN_IF_ERROR(context_.may_administer(call->head()));
    }
    return (this->*body)(call->request(), call->response());
  };
  AddLateMethod<Request, Response>(
      routes, absl::StrCat("/reprise.v1.Admin/", method),
      [answer](const std::shared_ptr<Call>& call) {
        call->Finish(WithinMemory([] { return "the answer"; }, [&] { return answer(call); }));
      });
}

absl::Status AdminService::ListRecipes(const v1::ListRecipesRequest& request,
                                       v1::ListRecipesResponse& response) {
  if (request.eager()) {
    for (const CachedRecipe& cached : context_.engine->ListEager()) {
      if (!Selects(request, cached.recipe->note.model, absl::StrCat(cached.recipe->note.version))) {
        continue;
      }
      v1::RecipeInfo& info = *response.add_recipes();
      EncodeRecipeInfo(cached, info);
      EncodeEager(*cached.recipe, info);
    }
    return Report(response);
  }
  std::vector<CachedRecipe> recipes = context_.engine->ListRecipes();
  const auto order = [](const CachedRecipe& cached) {
    const Recipe& recipe = *cached.recipe;
    return std::tie(recipe.note.model, recipe.note.version, recipe.key.binding);
  };
  std::sort(recipes.begin(), recipes.end(),
            [&](const CachedRecipe& a, const CachedRecipe& b) { return order(a) < order(b); });
  for (const CachedRecipe& cached : recipes) {
    const CaptureNote& note = cached.recipe->note;
    if (!Selects(request, note.model, absl::StrCat(note.version))) continue;
    EncodeRecipeInfo(cached, *response.add_recipes());
  }
  return Report(response);
}

absl::Status AdminService::DumpRecipe(const v1::DumpRecipeRequest& request,
                                      v1::DumpRecipeResponse& response) {
  const std::optional<uint64_t> key = ParseKey(request.key());
  if (!key.has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat("key \"", request.key(), "\" is not a hexadecimal number of 64 bits"));
  }
  for (const CachedRecipe& cached : context_.engine->ListRecipes()) {
    if (cached.recipe->key.hash != *key) continue;
    EncodeRecipeInfo(cached, *response.mutable_info());
    MakePrintable(*response.mutable_info());
    EncodeRecipe(*cached.recipe, request.include_constants(), *response.mutable_recipe());
    if (request.include_graphs()) {
      RecipeGraphs graphs = context_.engine->GraphsOf(*cached.recipe);
      for (std::string* text : {&graphs.symbolic, &graphs.specialized}) {
        if (!request.include_constants()) *text = HideBytes(*text);
      }
      response.set_symbolic_graph(std::move(graphs.symbolic));
      response.set_graph(std::move(graphs.specialized));
    }
    return absl::OkStatus();
  }
  return absl::NotFoundError(absl::StrCat("no recipe ", request.key(), " is in memory"));
}

absl::Status AdminService::ExplainMisses(const v1::ExplainMissesRequest& request,
                                         v1::ExplainMissesResponse& response) {
  const MissReport& misses = context_.engine->misses();
  response.set_last_sequence(static_cast<uint64_t>(misses.last_sequence()));
  // A number from outside may be larger than any of ours: then nothing is new.
  const auto after = static_cast<int64_t>(
      std::min<uint64_t>(request.after_sequence(), std::numeric_limits<int64_t>::max()));
  for (const MissRecord& record : misses.Since(after)) {
    if (!Selects(request, record.model.name, absl::StrCat(record.model.version))) continue;
    EncodeMiss(record, *response.add_misses());
  }
  return Report(response);
}

absl::Status AdminService::GetRecompilations(const v1::GetRecompilationsRequest& request,
                                             v1::GetRecompilationsResponse& response) {
  const std::vector<MissRecord> misses = context_.engine->misses().Since(0);
  if (!request.model().empty()) {
    const auto found = context_.repository->Find(request.model(), request.version());
    if (!found.ok()) return found.status();
    EncodeRecompilations(*found->servable->model, misses, *response.add_models());
    return Report(response);
  }
  for (const Repository::Listed& listed : context_.repository->List()) {
    if (listed.servable == nullptr || listed.servable->model == nullptr ||
        !Selects(request, listed.version->name, listed.version->version)) {
      continue;
    }
    EncodeRecompilations(*listed.servable->model, misses, *response.add_models());
  }
  return Report(response);
}

absl::Status AdminService::ExplainModel(const v1::ExplainModelRequest& request,
                                        v1::ExplainModelResponse& response) {
  const auto found = context_.repository->Find(request.model(), request.version());
  if (!found.ok()) return found.status();
  EncodeExplanation(*found->servable->model, response);
  if (found->servable->generation != nullptr) {
    const Generator& generator = found->servable->generation->generator();
    const GeneratorStats stats = found->servable->generation->Stats();
    response.set_generation(absl::StrCat(
        generator.Describe(), "; now ", stats.running, " sequences run, ", stats.waiting, " wait, ",
        stats.pages_used, " pages are used, ", stats.pages_free, " are free"));
  }
  for (const SlowRequest& slow :
       found->version->slow_requests.List(std::chrono::system_clock::now())) {
    EncodeSlowRequest(slow, *response.add_slow_requests());
  }
  return Report(response);
}

absl::Status AdminService::GetDynamicity(const v1::GetDynamicityRequest& request,
                                         v1::GetDynamicityResponse& response) {
  const bool keeps = context_.engine->options().store != nullptr;
  if (!request.model().empty()) {
    const auto found = context_.repository->Find(request.model(), request.version());
    if (!found.ok()) return found.status();
    EncodeDynamicity(*found->servable, request.most_shapes(), keeps, *response.add_models());
    return Report(response);
  }
  for (const Repository::Listed& listed : context_.repository->List()) {
    if (listed.servable == nullptr ||
        !Selects(request, listed.version->name, listed.version->version)) {
      continue;
    }
    EncodeDynamicity(*listed.servable, request.most_shapes(), keeps, *response.add_models());
  }
  return Report(response);
}

absl::Status AdminService::Warmup(const v1::WarmupRequest& request, v1::WarmupResponse& response) {
  std::shared_ptr<ModelVersion> version;
  if (NeedsAdmin(request)) {
    const auto found = context_.repository->Find(request.model(), request.version());
    if (!found.ok()) return found.status();
    absl::StatusOr<WarmupOfAll> wanted = WantedBy(request, *found->servable);
    if (!wanted.ok()) return wanted.status();
    found->servable->warmup->Request(wanted->bindings);
    for (std::string& note : wanted->notes) response.add_notes(std::move(note));
    version = found->version;
  } else {
    // A model may be asked about while it loads.
    version = context_.repository->FindListed(request.model(), request.version());
    if (version == nullptr) {
      return context_.repository->Find(request.model(), request.version()).status();
    }
  }
  const WarmupProgress::State state = version->warmup->state();
  response.set_model(version->name);
  response.set_version(version->version);
  response.set_wanted(static_cast<uint32_t>(state.wanted));
  response.set_done(static_cast<uint32_t>(state.done));
  response.set_failed(static_cast<uint32_t>(state.failed));
  response.set_elapsed_seconds(static_cast<double>(state.elapsed_ns) * 1e-9);
  response.set_stopped(state.stopped);
  return Report(response);
}

absl::Status AdminService::ChangeModel(const v1::ChangeModelRequest& request,
                                       v1::ChangeModelResponse& response) {
  ModelChange change = ModelChange::kFreeze;
  switch (request.change()) {
    case v1::MODEL_CHANGE_FREEZE:
      break;
    case v1::MODEL_CHANGE_THAW:
      change = ModelChange::kThaw;
      break;
    case v1::MODEL_CHANGE_SLEEP:
      change = ModelChange::kSleep;
      break;
    case v1::MODEL_CHANGE_WAKE:
      change = ModelChange::kWake;
      break;
    default:
      return absl::InvalidArgumentError(
          absl::StrCat("change is ", static_cast<int>(request.change()), ", which is not known"));
  }
  ASSIGN_OR_RETURN(response, AnswerModelChange(*context_.repository, request.model(),
                                               request.version(), change));
  return Report(response);
}

absl::Status AdminService::GetPorts(const v1::GetPortsRequest& request,
                                    v1::GetPortsResponse& response) {
  if (context_.grpc_and_http_ports == nullptr) return absl::OkStatus();
  const auto [grpc, http] = context_.grpc_and_http_ports();
  response.set_grpc(static_cast<uint32_t>(grpc));
  response.set_http(static_cast<uint32_t>(http));
  return absl::OkStatus();
}

absl::Status AdminService::GetStats(const v1::GetStatsRequest& request,
                                    v1::GetStatsResponse& response) {
  v1::CacheStats& total = *response.mutable_cache();
  for (const Repository::Listed& listed : context_.repository->List()) {
    v1::ModelStats stats;
    EncodeModelStats(
        listed, context_.catalogue->Find(listed.version->name, listed.version->version), stats);
    AddCacheStats(stats.cache(), total);
    if (Selects(request, stats.model(), stats.version())) *response.add_models() = stats;
  }
  total.set_max_bytes(static_cast<uint64_t>(context_.max_cache_bytes));
  response.set_server_version(context_.version);
  response.set_device(context_.device);
  response.set_streams(static_cast<uint32_t>(context_.streams));
  response.set_threads_per_stream(static_cast<uint32_t>(context_.threads_per_stream));
  *response.mutable_started() = EncodeTime(context_.started);
  response.set_resident_bytes(static_cast<uint64_t>(ResidentBytes()));
  RETURN_IF_ERROR(Report(response));
  // It has lines, which are no part of a report.
  if (request.include_metrics()) {
    response.set_metrics_json(
        MetricsJson(*context_.catalogue, context_.engine->misses(), context_.version));
  }
  return absl::OkStatus();
}

}  // namespace reprise
