#include "server/port_options.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/cgroup.h"
#include "runtime/base/status_macros.h"
#include "server/descriptor_limit.h"
#include "server/requests/part.h"

namespace reprise {
namespace {

// They decode and encode messages, and JSON.
constexpr int kMostThreads = 4;
// Those of models, of the store, of ports and threads themselves.
constexpr int64_t kOwnDescriptors = 48;
constexpr int64_t kMostSpare = 64;
constexpr int64_t kLeastConnections = 4;
// Names, shapes and parameters of a request, and whatever is sent to no model.
constexpr int64_t kSmallRequestBytes = 16 << 20;

ConnectionShares SharesOf(const Options& options) {
  const int ports = 2 + (options.admin.port >= 0) + (options.admin_grpc.port >= 0);
  return ShareConnections(DescriptorLimit(), ports);
}

// Returns the most bytes. A message is there as bytes and in its decoded form for a moment.
int64_t MostMessageBytes(const ByteLimits& limits) {
  const int64_t most = std::min(limits.max_bytes, limits.max_connection_bytes) / 2;
  return std::min<int64_t>(most, std::numeric_limits<int32_t>::max());
}

// Returns nullptr where the port is plain.
absl::StatusOr<std::shared_ptr<TlsContext>> MakeTls(const TlsOptions& options, const char* protocol,
                                                    const LogFunction& log) {
  if (!options.use) return nullptr;
  return TlsContext::Make(
      {.certificate = options.certificate,
       .key = options.key,
       .root = options.root,
       .demands_client_certificate = options.mutual},
      {protocol}, [log](const absl::Status& why) {
        log(LogLevel::kError, absl::StrCat("the former certificate stays in use: ", why.message()));
      });
}

// Returns the model that a path of the inference protocol is about; "" where it is about none.
std::string ModelOf(const RequestPath& path) {
  const std::vector<std::string>& parts = path.segments();
  const bool is_model = parts.size() > 2 && parts[0] == "v2" && parts[1] == "models";
  return is_model ? parts[2] : "";
}

}  // namespace

ConnectionShares ShareConnections(int64_t descriptors, int ports) {
  const int64_t few = std::clamp(descriptors / 16, kLeastConnections, kMostSpare);
  const int64_t left = descriptors - kOwnDescriptors - few * (ports + 1);
  const int64_t clients = std::max(std::min(descriptors / 3, left / ports), kLeastConnections);
  return {.clients = static_cast<int>(clients),
          .spare = static_cast<int>(few),
          .scrapers = static_cast<int>(few)};
}

ByteLimits InFlightLimits(const Options& options) {
  ByteLimits limits;
  limits.max_bytes = options.in_flight_memory_mb > 0 ? options.in_flight_memory_mb << 20
                                                     : AvailableMemoryBytes() / 2;
  limits.max_connection_bytes =
      options.connection_memory_mb > 0 ? options.connection_memory_mb << 20 : limits.max_bytes / 2;
  return limits;
}

int64_t MostWantedBytes(const Repository& repository, absl::string_view model) {
  int64_t most = 0;
  for (const Repository::Listed& listed : repository.List()) {
    if (listed.servable == nullptr || (!model.empty() && listed.version->name != model)) continue;
    const int64_t queue = listed.servable->settings.max_queue_bytes;
    most = std::max(most, queue > 0 ? queue : QueueOptions<Part>().max_bytes);
  }
  return most + kSmallRequestBytes;
}

absl::StatusOr<Http2ServerOptions> GrpcPortOptions(const Options& options, int cores,
                                                   const ByteLimits& in_flight,
                                                   const Repository& repository,
                                                   const LogFunction& log) {
  const GrpcConnectionOptions& of = options.grpc_connections;
  const ConnectionShares shares = SharesOf(options);
  Http2ServerOptions made = {
      .address = options.grpc.address,
      .port = options.grpc.port,
      .threads = std::min(cores, kMostThreads),
      .max_connections = of.max_connections > 0 ? of.max_connections : shares.clients,
      .spare_connections = shares.spare};
  ASSIGN_OR_RETURN(made.tls, MakeTls(options.grpc_tls, "h2", log));
  made.http2.max_streams = static_cast<uint32_t>(of.max_streams);
  made.times = {.max_idle = std::chrono::seconds(of.max_idle_secs),
                .max_age = std::chrono::seconds(of.max_age_secs),
                .max_age_grace = std::chrono::seconds(of.max_age_grace_secs),
                .keepalive = std::chrono::milliseconds(of.keepalive_time_ms),
                .keepalive_timeout = std::chrono::milliseconds(of.keepalive_timeout_ms),
                .keepalive_without_calls = of.keepalive_permit_without_calls,
                .least_ping_interval = std::chrono::milliseconds(of.min_ping_interval_ms),
                .max_ping_strikes = of.max_ping_strikes};
  made.rpc = {.max_message_bytes = MostMessageBytes(in_flight),
              .max_inflated_bytes = [&repository] { return MostWantedBytes(repository, ""); },
              .write_timeout = std::chrono::seconds(options.write_timeout_secs)};
  return made;
}

absl::StatusOr<HttpServerOptions> HttpPortOptions(const Options& options, int cores,
                                                  const ByteAccount& in_flight,
                                                  const Repository& repository,
                                                  const LogFunction& log) {
  const ConnectionShares shares = SharesOf(options);
  const int wanted = options.http_max_connections;
  HttpServerOptions made = {.threads = std::min(cores, kMostThreads),
                            .max_connections = wanted > 0 ? wanted : shares.clients,
                            .spare_connections = shares.spare,
                            .max_body_bytes = AvailableMemoryBytes() / 16,
                            .max_inflated_bytes =
                                [&repository](const RequestPath& path) {
                                  const std::string model = ModelOf(path);
                                  return model.empty() ? kSmallRequestBytes
                                                       : MostWantedBytes(repository, model);
                                },
                            .account = &in_flight,
                            .write_timeout = std::chrono::seconds(options.write_timeout_secs)};
  ASSIGN_OR_RETURN(made.tls, MakeTls(options.http_tls, "http/1.1", log));
  return made;
}

absl::StatusOr<HttpServerOptions> MetricsPortOptions(const Options& options,
                                                     const LogFunction& log) {
  HttpServerOptions made = {.max_connections = SharesOf(options).scrapers};
  ASSIGN_OR_RETURN(made.tls, MakeTls(options.metrics_tls, "http/1.1", log));
  return made;
}

}  // namespace reprise
