#include "server/openapi/schemas.h"

namespace reprise {
namespace {

constexpr char kOtherSchemas[] = R"({
"Error": {"type": "object", "required": ["error"], "properties": {"error": {"type": "string"},
  "error_type": {"type": "string"}, "message": {"type": "string"}, "detail": {"type": "string"}}},
"OpenAiError": {"type": "object", "required": ["error"], "properties": {"error": {"type": "object",
  "required": ["message", "type"], "properties": {"message": {"type": "string"}, "type": {"type": "string"},
  "param": {"type": ["string", "null"]}, "code": {"type": ["string", "null"]}}}}},
"ServerMetadata": {"type": "object", "required": ["name", "version", "extensions"], "properties": {
  "name": {"type": "string"}, "version": {"type": "string"}, "extensions": {"type": "array", "items": {"type": "string"}}}},
"Ports": {"type": "object", "required": ["grpc", "http"], "properties": {"grpc": {"type": "integer"}, "http": {"type": "integer"}}},
"Live": {"type": "object", "required": ["live"], "properties": {"live": {"const": true}}},
"Version": {"type": "object", "required": ["version", "name"], "properties": {"version": {"type": "string"}, "name": {"type": "string"}}},
"ServerReady": {"type": "object", "required": ["ready", "state", "models"], "properties": {"ready": {"type": "boolean"},
  "state": {"enum": ["starting", "serving", "leaving", "draining"]}, "reason": {"type": "string"},
  "not_ready": {"type": "array", "items": {"type": "string"}},
  "models": {"type": "array", "items": {"type": "object", "required": ["name", "version", "state"], "properties": {
    "name": {"type": "string"}, "version": {"type": "string"}, "state": {"type": "string"}, "reason": {"type": "string"},
    "warmup": {"type": "object"}}}}}},
"OpenApi": {"type": "object", "required": ["openapi", "info", "paths"]},
"Series": {"type": "object", "required": ["labels"], "properties": {"labels": {"type": "object", "additionalProperties": {"type": "string"}},
  "value": {"type": "number"}, "count": {"type": "integer"}, "sum": {"type": "number"},
  "bounds": {"type": "array", "items": {"type": "number"}}, "counts": {"type": "array", "items": {"type": "integer"}}}},
"Overview": {"type": "object", "required": ["time_ms", "server", "models", "captures", "metrics"], "properties": {
  "time_ms": {"type": "integer"},
  "server": {"type": "object", "required": ["version", "device", "state", "ready", "uptime_seconds"], "properties": {
    "version": {"type": "string"}, "device": {"type": "string"}, "state": {"type": "string"}, "ready": {"type": "boolean"},
    "reason": {"type": "string"}, "uptime_seconds": {"type": "number"}}},
  "models": {"type": "array", "items": {"type": "object", "required": ["name", "version", "state"], "properties": {
    "name": {"type": "string"}, "version": {"type": "string"}, "state": {"type": "string"}, "reason": {"type": "string"},
    "warmup": {"type": "object"}, "offers": {"type": "object", "required": ["task"], "properties": {"task": {"type": "string"},
      "texts": {"type": "boolean"}, "chats": {"type": "boolean"}, "pictures": {"type": "boolean"}, "context": {"type": "integer"}}},
    "inputs": {"type": "array", "items": {"$ref": "#/components/schemas/TensorMetadata"}},
    "outputs": {"type": "array", "items": {"$ref": "#/components/schemas/TensorMetadata"}},
    "axes": {"type": "array", "items": {"type": "object"}}}}},
  "captures": {"type": "array", "items": {"type": "object", "required": ["sequence", "time_ms", "model", "version", "bucket", "reason"]}},
  "metrics": {"type": "object", "additionalProperties": {"type": "array", "items": {"$ref": "#/components/schemas/Series"}}}}},
"TensorMetadata": {"type": "object", "required": ["name", "datatype", "shape"], "properties": {"name": {"type": "string"},
  "datatype": {"$ref": "#/components/schemas/Datatype"},
  "shape": {"type": "array", "items": {"oneOf": [{"type": "integer"}, {"type": "string", "pattern": "^-?[0-9]+$"}]}}}},
"Datatype": {"enum": ["BOOL", "UINT8", "UINT16", "UINT32", "UINT64", "INT8", "INT16", "INT32", "INT64", "FP16", "BF16", "FP32", "FP64", "BYTES"]},
"ModelMetadata": {"type": "object", "required": ["name", "platform", "inputs", "outputs"], "properties": {"name": {"type": "string"},
  "versions": {"type": "array", "items": {"type": "string"}}, "platform": {"type": "string"},
  "inputs": {"type": "array", "items": {"$ref": "#/components/schemas/TensorMetadata"}},
  "outputs": {"type": "array", "items": {"$ref": "#/components/schemas/TensorMetadata"}}}},
"ModelReady": {"type": "object", "required": ["name", "ready"], "properties": {"name": {"type": "string"},
  "ready": {"type": "boolean"}, "error": {"type": "string"}}},
"ModelConfig": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}, "platform": {"type": "string"},
  "input": {"type": "array", "items": {"type": "object"}}, "output": {"type": "array", "items": {"type": "object"}},
  "parameters": {"type": "object"}}},
"ModelStatistics": {"type": "object", "properties": {"model_stats": {"type": "array", "items": {"type": "object",
  "required": ["name", "version"], "properties": {"name": {"type": "string"}, "version": {"type": "string"}}}}}},
"Compilations": {"type": "object", "required": ["model", "version", "compiles", "compiles_by_reason", "replays", "captures"], "properties": {
  "model": {"type": "string"}, "version": {"type": "string"}, "compiles": {"type": "integer"}, "compile_seconds": {"type": "number"},
  "compiles_by_reason": {"type": "object", "additionalProperties": {"type": "integer"}}, "replays": {"type": "integer"},
  "replays_by_bucket": {"type": "object", "additionalProperties": {"type": "integer"}}, "cache": {"type": "object"},
  "padding": {"type": "object"}, "memory": {"type": "object"},
  "captures": {"type": "array", "items": {"type": "object", "required": ["sequence", "time", "bucket", "reason"]}}}},
"Parameters": {"type": "object", "additionalProperties": {"type": ["string", "number", "boolean"]}},
"InferTensor": {"type": "object", "required": ["name", "shape", "datatype"], "properties": {"name": {"type": "string"},
  "shape": {"type": "array", "items": {"type": "integer", "minimum": 0}}, "datatype": {"$ref": "#/components/schemas/Datatype"},
  "parameters": {"$ref": "#/components/schemas/Parameters"}, "data": {"type": "array"}}},
"InferRequest": {"type": "object", "required": ["inputs"], "properties": {"id": {"type": "string", "maxLength": 4096},
  "parameters": {"$ref": "#/components/schemas/Parameters"},
  "inputs": {"type": "array", "items": {"$ref": "#/components/schemas/InferTensor"}},
  "outputs": {"type": "array", "items": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"},
    "parameters": {"$ref": "#/components/schemas/Parameters"}}}}}},
"InferResponse": {"type": "object", "required": ["model_name", "outputs"], "properties": {"model_name": {"type": "string"},
  "model_version": {"type": "string"}, "id": {"type": "string"}, "parameters": {"$ref": "#/components/schemas/Parameters"},
  "outputs": {"type": "array", "items": {"$ref": "#/components/schemas/InferTensor"}}}},
"PredictV1Request": {"type": "object", "oneOf": [{"required": ["instances"]}, {"required": ["inputs"]}], "properties": {
  "instances": {"type": "array", "minItems": 1}, "inputs": {}, "signature_name": {"const": "serving_default"}}},
"PredictV1Response": {"type": "object", "anyOf": [{"required": ["predictions"]}, {"required": ["outputs"]}], "properties": {
  "predictions": {"type": "array"}, "outputs": {}}},
"GenerateRequest": {"type": "object", "properties": {"id": {"type": "string"}, "text_input": {"type": "string"},
  "input_ids": {"type": "array", "items": {"type": "integer"}}, "parameters": {"type": "object"}}},
"GenerateResponse": {"type": "object", "properties": {"model_name": {"type": "string"}, "model_version": {"type": "string"},
  "token_ids": {"type": "array"}, "text_output": {}, "finish_reason": {}, "prompt_tokens": {"type": "integer"},
  "cached_tokens": {"type": "integer"}}},
"IndexRequest": {"type": "object", "properties": {"ready": {"type": "boolean", "default": false}}},
"RepositoryIndex": {"type": "array", "items": {"type": "object", "required": ["name", "state"], "properties": {"name": {"type": "string"},
  "version": {"type": "string"}, "state": {"enum": ["READY", "LOADING", "UNLOADED", "UNAVAILABLE"]}, "reason": {"type": "string"}}}},
"ModelConditions": {"type": "object", "properties": {"models": {"type": "array", "items": {"type": "object", "properties": {
  "model": {"type": "string"}, "version": {"type": "string"}, "frozen": {"type": "boolean"}, "asleep": {"type": "boolean"}}}}}},
"LoadRequest": {"type": "object", "properties": {"parameters": {"type": "object", "properties": {
  "config": {"type": "string", "description": "config.pbtxt as JSON in a text"}}}}},
"UnloadRequest": {"type": "object"},
"Picture": {"type": "string", "description": "a JPEG or PNG file in base64, or a data: address; one picture may be the body itself"},
"ClassifyPicturesRequest": {"type": "object", "properties": {"model": {"type": "string"}, "image": {"$ref": "#/components/schemas/Picture"},
  "images": {"type": "array", "minItems": 1, "maxItems": 256, "items": {"$ref": "#/components/schemas/Picture"}},
  "top": {"type": "integer", "minimum": 1, "maximum": 10000, "default": 5}}},
"ClassifyPicturesResponse": {"type": "object", "properties": {"model": {"type": "string"}, "images": {"type": "array",
  "items": {"type": "object", "properties": {"width": {"type": "integer"}, "height": {"type": "integer"}, "classes": {"type": "array",
  "items": {"type": "object", "properties": {"label": {"type": "string"}, "class": {"type": "integer"}, "score": {"type": "number"}}}}}}}}},
"DetectObjectsRequest": {"type": "object", "properties": {"model": {"type": "string"}, "image": {"$ref": "#/components/schemas/Picture"},
  "images": {"type": "array", "minItems": 1, "maxItems": 256, "items": {"$ref": "#/components/schemas/Picture"}},
  "conf": {"type": "number", "minimum": 0, "maximum": 1}, "iou": {"type": "number", "minimum": 0, "maximum": 1},
  "max": {"type": "integer", "minimum": 1, "maximum": 10000}}},
"DetectObjectsResponse": {"type": "object", "properties": {"model": {"type": "string"}, "images": {"type": "array",
  "items": {"type": "object", "properties": {"width": {"type": "integer"}, "height": {"type": "integer"}, "objects": {"type": "array",
  "items": {"type": "object", "properties": {"label": {"type": "string"}, "class": {"type": "integer"}, "score": {"type": "number"},
  "box": {"type": "array", "minItems": 4, "maxItems": 4, "items": {"type": "number"}}}}}}}}}},
"LogSettings": {"type": "object", "additionalProperties": {"type": ["string", "integer", "boolean"]}},
"TraceSettings": {"type": "object", "additionalProperties": {"type": ["string", "integer", "number", "array", "null"]}},
"Regions": {"type": "array", "items": {"type": "object", "required": ["name", "key", "offset", "byte_size"], "properties": {
  "name": {"type": "string"}, "key": {"type": "string"}, "offset": {"type": "integer"}, "byte_size": {"type": "integer"}}}},
"RegisterRegion": {"type": "object", "required": ["key", "byte_size"], "properties": {"key": {"type": "string"},
  "offset": {"type": "integer", "minimum": 0, "default": 0}, "byte_size": {"type": "integer", "minimum": 1}}}
})";

}  // namespace

absl::string_view OtherSchemas() { return kOtherSchemas; }

}  // namespace reprise
