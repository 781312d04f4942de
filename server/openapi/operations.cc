#include "server/openapi/operations.h"

namespace reprise {
namespace {

constexpr char kHtmlType[] = "text/html";
constexpr char kPlainType[] = "text/plain";

constexpr RouteInfo kRouteRows[] = {
    {"GET", "/v2", "Name, version and extensions of the server", "", "ServerMetadata"},
    {"GET", "/v2/ports", "The ports of both faces", "", "Ports"},
    {"GET", "/v2/health/live", "Whether the server lives", "", "Live"},
    {"GET", "/v2/health/ready", "Whether requests may be sent here, and why not", "",
     "ServerReady"},
    {"GET", "/health", "200 where requests may be sent here, else 503", "", kPlainType},
    {"GET", "/ping", "200 where requests may be sent here, else 503", "", kPlainType},
    {"GET", "/version", "The version of the server", "", "Version"},
    {"GET", "/metrics", "Metrics in the format of Prometheus", "", kPlainType},
    {"GET", "/openapi.json", "This document", "", "OpenApi"},
    {"GET", "/", "The live page", "", kHtmlType},
    {"GET", "/docs", "This document, for people", "", kHtmlType},
    {"GET", "/v2/overview", "The numbers that the live page shows", "", "Overview"},
    {"GET", "/v2/models/{model}", "Inputs and outputs of a model", "", "ModelMetadata"},
    {"GET", "/v2/models/{model}/ready", "Whether a model answers requests", "", "ModelReady"},
    {"GET", "/v2/models/{model}/config", "The config.pbtxt of a model, complete", "",
     "ModelConfig"},
    {"GET", "/v2/models/{model}/stats", "Counts and times of a model", "", "ModelStatistics"},
    {"GET", "/v2/models/stats", "Counts and times of all models", "", "ModelStatistics"},
    {"GET", "/v2/models/{model}/compilations", "Captures with their reasons, replays, padding", "",
     "Compilations"},
    {"POST", "/v2/models/{model}/infer", "One inference", "InferRequest", "InferResponse"},
    {"POST", "/v2/models/{model}/generate", "New tokens for ids or a text", "GenerateRequest",
     "GenerateResponse"},
    {"POST", "/v2/models/{model}/generate_stream",
     "New tokens for ids or a text, each as a server-sent event", "GenerateRequest",
     "text/event-stream"},
    {"POST", "/v1/vision/classify", "The classes of pictures", "ClassifyPicturesRequest",
     "ClassifyPicturesResponse"},
    {"POST", "/v1/vision/detect", "The objects in pictures, with their boxes",
     "DetectObjectsRequest", "DetectObjectsResponse"},
    {"POST", "/v2/repository/index", "Every model and its state", "IndexRequest",
     "RepositoryIndex"},
    {"POST", "/v2/repository/models/{model}/load", "Loads a model", "LoadRequest", kPlainType},
    {"POST", "/v2/repository/models/{model}/unload", "Unloads a model", "UnloadRequest",
     kPlainType},
    {"POST", "/v2/repository/models/{model}/freeze", "Has nothing captured for requests of a model",
     "", "ModelConditions"},
    {"POST", "/v2/repository/models/{model}/thaw", "Lets requests of a model be captured for", "",
     "ModelConditions"},
    {"POST", "/v2/repository/freeze", "Freezes all models", "", "ModelConditions"},
    {"POST", "/v2/repository/thaw", "Thaws all models", "", "ModelConditions"},
    {"GET", "/v2/logging", "The settings of the log", "", "LogSettings"},
    {"POST", "/v2/logging", "Changes the settings of the log", "LogSettings", "LogSettings"},
    {"GET", "/v2/trace/setting", "The settings of tracing", "", "TraceSettings"},
    {"POST", "/v2/trace/setting", "Changes the settings of tracing", "TraceSettings",
     "TraceSettings"},
    {"GET", "/v2/models/{model}/trace/setting", "The settings of tracing of a model", "",
     "TraceSettings"},
    {"POST", "/v2/models/{model}/trace/setting", "Changes the settings of tracing of a model",
     "TraceSettings", "TraceSettings"},
    {"GET", "/v2/systemsharedmemory/status", "The regions of shared memory", "", "Regions"},
    {"GET", "/v2/systemsharedmemory/region/{region}/status", "One region", "", "Regions"},
    {"POST", "/v2/systemsharedmemory/region/{region}/register", "Makes a region known",
     "RegisterRegion", kPlainType},
    {"POST", "/v2/systemsharedmemory/region/{region}/unregister", "Forgets a region", "",
     kPlainType},
    {"POST", "/v2/systemsharedmemory/unregister", "Forgets all regions", "", kPlainType},
    {"GET", "/v2/cudasharedmemory/status", "The regions of devices: none", "", "Regions"},
    {"GET", "/v2/cudasharedmemory/region/{region}/status", "A region of a device: there is none",
     "", "Regions"},
    {"POST", "/v2/cudasharedmemory/region/{region}/register", "Is refused: there are no devices",
     "RegisterRegion", kPlainType},
    {"POST", "/v2/cudasharedmemory/region/{region}/unregister", "Forgets a region of a device", "",
     kPlainType},
    {"POST", "/v2/cudasharedmemory/unregister", "Forgets all regions of devices", "", kPlainType},
};

}  // namespace

absl::Span<const RouteInfo> OtherRoutes() { return kRouteRows; }

}  // namespace reprise
