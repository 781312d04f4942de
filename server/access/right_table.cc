#include "server/access/right_table.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace reprise {
namespace {

struct RpcRow {
  absl::string_view path;  // one that ends in '/' stands for all methods of the service
  Right right;
};

constexpr RpcRow kRpcRows[] = {
    {"/grpc.health.v1.Health/", Right::kNone},
    {"/grpc.reflection.v1alpha.ServerReflection/", Right::kInfer},
    {"/grpc.reflection.v1.ServerReflection/", Right::kInfer},

    {"/inference.GRPCInferenceService/ServerLive", Right::kNone},
    {"/inference.GRPCInferenceService/ServerReady", Right::kNone},
    {"/inference.GRPCInferenceService/ModelReady", Right::kNone},
    {"/inference.GRPCInferenceService/ServerMetadata", Right::kInfer},
    {"/inference.GRPCInferenceService/ModelMetadata", Right::kInfer},
    {"/inference.GRPCInferenceService/ModelConfig", Right::kInfer},
    {"/inference.GRPCInferenceService/ModelInfer", Right::kInfer},
    {"/inference.GRPCInferenceService/ModelStreamInfer", Right::kInfer},
    {"/inference.GRPCInferenceService/SystemSharedMemoryStatus", Right::kInfer},
    {"/inference.GRPCInferenceService/SystemSharedMemoryRegister", Right::kInfer},
    {"/inference.GRPCInferenceService/SystemSharedMemoryUnregister", Right::kInfer},
    {"/inference.GRPCInferenceService/CudaSharedMemoryStatus", Right::kInfer},
    {"/inference.GRPCInferenceService/CudaSharedMemoryRegister", Right::kInfer},
    {"/inference.GRPCInferenceService/CudaSharedMemoryUnregister", Right::kInfer},
    {"/inference.GRPCInferenceService/ModelStatistics", Right::kObserve},
    {"/inference.GRPCInferenceService/RepositoryIndex", Right::kObserve},
    {"/inference.GRPCInferenceService/RepositoryModelLoad", Right::kAdmin},
    {"/inference.GRPCInferenceService/RepositoryModelUnload", Right::kAdmin},
    {"/inference.GRPCInferenceService/TraceSetting", Right::kAdmin},
    {"/inference.GRPCInferenceService/LogSettings", Right::kAdmin},

    {"/reprise.v1.Admin/ListRecipes", Right::kObserve},
    {"/reprise.v1.Admin/DumpRecipe", Right::kObserve},  // kAdmin with constants: see the service
    {"/reprise.v1.Admin/ExplainMisses", Right::kObserve},
    {"/reprise.v1.Admin/ExplainModel", Right::kObserve},
    {"/reprise.v1.Admin/GetDynamicity", Right::kObserve},
    {"/reprise.v1.Admin/GetStats", Right::kObserve},
    {"/reprise.v1.Admin/Warmup", Right::kObserve},  // kAdmin with buckets: see the service
};

struct HttpRow {
  absl::string_view method;   // "*": each
  absl::string_view pattern;  // "*" stands for one segment
  Right right;
};

constexpr HttpRow kHttpRows[] = {
    {"*", "/v2/health/live", Right::kNone},
    {"*", "/v2/health/ready", Right::kNone},
    {"GET", "/v2/models/*/ready", Right::kNone},
    {"GET", "/v2/models/*/versions/*/ready", Right::kNone},
    {"*", "/metrics", Right::kMetrics},
    {"*", "/", Right::kObserve},
    {"*", "/v2/models/stats", Right::kObserve},
    {"*", "/v2/models/*/stats", Right::kObserve},
    {"*", "/v2/models/*/versions/*/stats", Right::kObserve},
    {"*", "/v2/models/*/compilations", Right::kObserve},
    {"*", "/v2/models/*/versions/*/compilations", Right::kObserve},
    {"*", "/v2/logging", Right::kAdmin},
    {"*", "/v2/repository/index", Right::kObserve},
    {"*", "/v2/repository/models/*/load", Right::kAdmin},
    {"*", "/v2/repository/models/*/unload", Right::kAdmin},
};

bool Fits(absl::string_view pattern, absl::string_view path) {
  const std::vector<absl::string_view> wanted = absl::StrSplit(pattern, '/', absl::SkipEmpty());
  const std::vector<absl::string_view> given = absl::StrSplit(path, '/', absl::SkipEmpty());
  return wanted.size() == given.size() &&
         std::equal(wanted.begin(), wanted.end(), given.begin(),
                    [](absl::string_view a, absl::string_view b) { return a == "*" || a == b; });
}

}  // namespace

absl::string_view RightName(Right right) {
  constexpr absl::string_view kNames[] = {"none", "infer", "observe", "admin", "metrics"};
  return kNames[static_cast<int>(right)];
}

Right RightOfRpc(absl::string_view path) {
  for (const RpcRow& row : kRpcRows) {
    if (row.path.back() == '/' ? path.substr(0, row.path.size()) == row.path : path == row.path) {
      return row.right;
    }
  }
  return Right::kInfer;
}

Right RightOfHttp(absl::string_view method, absl::string_view path) {
  if (method == "HEAD") method = "GET";
  for (const HttpRow& row : kHttpRows) {
    if ((row.method == "*" || row.method == method) && Fits(row.pattern, path)) return row.right;
  }
  return Right::kInfer;
}

std::vector<std::string> RightTableRows() {
  std::vector<std::string> rows;
  for (const RpcRow& row : kRpcRows) rows.emplace_back(row.path);
  for (const HttpRow& row : kHttpRows) rows.push_back(absl::StrCat(row.method, " ", row.pattern));
  return rows;
}

}  // namespace reprise
