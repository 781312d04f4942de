// grpc.reflection.v1 and v1alpha: which services, messages and files the server has, for tools such
// as grpcurl. The two differ in their names alone.
#pragma once

#include <string>
#include <vector>

#include "server/http2/rpc_routes.h"

namespace reprise {

// `services`: the full names to list, without the ones of reflection itself, which are added.
void AddReflection(std::vector<std::string> services, RpcRoutes& routes);

}  // namespace reprise
