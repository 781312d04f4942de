#include "server/access/right_table.h"

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

    {"/xds.service.orca.v3.OpenRcaService/StreamCoreMetrics", Right::kInfer},

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
    {"/reprise.v1.Admin/GetRecompilations", Right::kObserve},
    {"/reprise.v1.Admin/ExplainModel", Right::kObserve},
    {"/reprise.v1.Admin/GetDynamicity", Right::kObserve},
    {"/reprise.v1.Admin/GetStats", Right::kObserve},
    {"/reprise.v1.Admin/GetPorts", Right::kInfer},
    {"/reprise.v1.Admin/ChangeModel", Right::kAdmin},
    {"/reprise.v1.Admin/Warmup", Right::kObserve},  // kAdmin with buckets: see the service
};

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

}  // namespace reprise
