// Options of the ports, made from the flags: limits, times, certificates.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/config/options.h"
#include "server/http/http_server.h"
#include "server/http2/http2_server.h"
#include "server/log.h"
#include "server/repository/repository.h"
#include "server/transport/byte_account.h"

namespace reprise {

// How many connections each port may have, of the descriptors of the process: clients that hold all
// of one port leave the descriptors of the other ports, of probes and of files.
struct ConnectionShares {
  int clients = 0;   // a port of requests, where its flag does not say
  int spare = 0;     // above them, for probes
  int scrapers = 0;  // the port of the metrics
};
// Shares descriptors; `ports`: the ports of requests.
ConnectionShares ShareConnections(int64_t descriptors, int ports);

// Returns the account of requests and answers of all ports, and of one connection.
ByteLimits InFlightLimits(const Options& options);

// Errors: INVALID_ARGUMENT naming the certificate or key that cannot be used. `log` reports
// those that cannot be used later.
absl::StatusOr<Http2ServerOptions> GrpcPortOptions(const Options& options, int cores,
                                                   const ByteLimits& in_flight,
                                                   const Repository& repository,
                                                   const LogFunction& log);
// `in_flight` and `repository` outlive the server.
absl::StatusOr<HttpServerOptions> HttpPortOptions(const Options& options, int cores,
                                                  const ByteAccount& in_flight,
                                                  const Repository& repository,
                                                  const LogFunction& log);

// Returns the options of the port of the metrics.
absl::StatusOr<HttpServerOptions> MetricsPortOptions(const Options& options,
                                                     const LogFunction& log);

// Returns the most bytes of a request that the queue of a model could take: compressed bodies are
// inflated no further. `model`: its name; "": of any model.
int64_t MostWantedBytes(const Repository& repository, absl::string_view model);

}  // namespace reprise
