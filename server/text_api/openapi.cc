#include "server/text_api/openapi.h"

#include <nlohmann/json.hpp>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace reprise {
namespace {

using nlohmann::json;

// THE schemas. "Texts" is what most requests hold.
constexpr char kSchemas[] = R"({
"Texts": {"oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}},
  {"type": "array", "items": {"type": "integer"}},
  {"type": "array", "items": {"type": "array", "items": {"type": "integer"}}}]},
"Numbers": {"type": "array", "items": {"type": "number"}},
"Usage": {"type": "object", "properties": {"prompt_tokens": {"type": "integer"}, "total_tokens": {"type": "integer"}}},
"Model": {"type": "object", "required": ["id", "object"], "properties": {"id": {"type": "string"},
  "object": {"type": "string"}, "created": {"type": "integer"}, "owned_by": {"type": "string"},
  "task": {"type": "string"}, "max_model_len": {"type": "integer"}}},
"ModelList": {"type": "object", "required": ["object", "data"], "properties": {"object": {"type": "string"},
  "data": {"type": "array", "items": {"$ref": "#/components/schemas/Model"}}}},
"EmbeddingsRequest": {"type": "object", "required": ["input"], "properties": {"model": {"type": "string"},
  "input": {"$ref": "#/components/schemas/Texts"}, "encoding_format": {"enum": ["float", "base64"]},
  "dimensions": {"type": "integer", "minimum": 1}, "truncate": {"type": "boolean", "default": false},
  "truncation_direction": {"enum": ["Right", "Left"]}, "prompt_name": {"type": "string"}}},
"EmbeddingsResponse": {"type": "object", "required": ["object", "data", "model", "usage"], "properties": {
  "object": {"type": "string"}, "model": {"type": "string"}, "usage": {"$ref": "#/components/schemas/Usage"},
  "data": {"type": "array", "items": {"type": "object", "properties": {"object": {"type": "string"},
    "index": {"type": "integer"}, "embedding": {"oneOf": [{"$ref": "#/components/schemas/Numbers"}, {"type": "string"}]}}}}}},
"CompletionUsage": {"type": "object", "properties": {"prompt_tokens": {"type": "integer"}, "completion_tokens": {"type": "integer"},
  "total_tokens": {"type": "integer"}, "prompt_tokens_details": {"type": "object", "properties": {"cached_tokens": {"type": "integer"}}}}},
"CompletionRequest": {"type": "object", "required": ["prompt"], "properties": {"model": {"type": "string"},
  "prompt": {"$ref": "#/components/schemas/Texts"}, "max_tokens": {"type": "integer", "minimum": 1, "default": 16},
  "temperature": {"type": "number", "default": 1}, "top_p": {"type": "number", "default": 1}, "n": {"type": "integer", "default": 1},
  "stream": {"type": "boolean", "default": false}, "stream_options": {"type": "object", "properties": {"include_usage": {"type": "boolean"}}},
  "logprobs": {"type": "integer"}, "echo": {"type": "boolean"}, "seed": {"type": "integer"},
  "stop": {"oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]},
  "presence_penalty": {"type": "number"}, "frequency_penalty": {"type": "number"}, "logit_bias": {"type": "object"},
  "response_format": {"type": "object"}}},
"CompletionResponse": {"type": "object", "properties": {"id": {"type": "string"}, "object": {"type": "string"},
  "created": {"type": "integer"}, "model": {"type": "string"}, "choices": {"type": "array", "items": {"type": "object", "properties": {
    "index": {"type": "integer"}, "text": {"type": "string"}, "finish_reason": {"type": "string"}, "logprobs": {"type": "object", "nullable": true}}}},
  "usage": {"$ref": "#/components/schemas/CompletionUsage"}, "reprise": {"type": "object"}}},
"ChatRequest": {"type": "object", "required": ["messages"], "properties": {"model": {"type": "string"},
  "messages": {"type": "array", "items": {"type": "object", "required": ["role"], "properties": {"role": {"type": "string"},
    "content": {"oneOf": [{"type": "string", "nullable": true}, {"type": "array", "items": {"type": "object"}}]}}}},
  "max_completion_tokens": {"type": "integer", "minimum": 1}, "max_tokens": {"type": "integer", "minimum": 1},
  "temperature": {"type": "number", "default": 1}, "top_p": {"type": "number", "default": 1}, "n": {"type": "integer", "default": 1},
  "stream": {"type": "boolean", "default": false}, "stream_options": {"type": "object", "properties": {"include_usage": {"type": "boolean"}}},
  "logprobs": {"type": "boolean"}, "top_logprobs": {"type": "integer"}, "seed": {"type": "integer"},
  "stop": {"oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]},
  "presence_penalty": {"type": "number"}, "frequency_penalty": {"type": "number"}, "logit_bias": {"type": "object"},
  "tools": {"type": "array", "items": {"type": "object"}}, "tool_choice": {}, "parallel_tool_calls": {"type": "boolean"},
  "response_format": {"type": "object"}, "chat_template_kwargs": {"type": "object"}, "add_generation_prompt": {"type": "boolean"},
  "continue_final_message": {"type": "boolean"}}},
"ChatResponse": {"type": "object", "properties": {"id": {"type": "string"}, "object": {"type": "string"},
  "created": {"type": "integer"}, "model": {"type": "string"}, "choices": {"type": "array", "items": {"type": "object", "properties": {
    "index": {"type": "integer"}, "message": {"type": "object"}, "finish_reason": {"type": "string"}, "logprobs": {"type": "object", "nullable": true}}}},
  "usage": {"$ref": "#/components/schemas/CompletionUsage"}, "reprise": {"type": "object"}}},
"EmbedRequest": {"type": "object", "required": ["inputs"], "properties": {"inputs": {"$ref": "#/components/schemas/Texts"},
  "normalize": {"type": "boolean", "default": true}, "truncate": {"type": "boolean", "default": false},
  "truncation_direction": {"enum": ["Right", "Left"]}, "prompt_name": {"type": "string"},
  "dimensions": {"type": "integer", "minimum": 1}}},
"EmbedResponse": {"type": "array", "items": {"$ref": "#/components/schemas/Numbers"}},
"SimilarityRequest": {"type": "object", "required": ["inputs"], "properties": {"inputs": {"type": "object",
  "required": ["source_sentence", "sentences"], "properties": {"source_sentence": {"type": "string"},
  "sentences": {"type": "array", "items": {"type": "string"}}}}}},
"RerankRequest": {"type": "object", "required": ["query"], "properties": {"model": {"type": "string"},
  "query": {"type": "string"}, "documents": {"type": "array", "items": {"oneOf": [{"type": "string"}, {"type": "object", "required": ["text"],
    "properties": {"text": {"type": "string"}}}]}}, "texts": {"type": "array", "items": {"type": "string"}},
  "top_n": {"type": "integer", "minimum": 1}, "return_documents": {"type": "boolean"}, "return_text": {"type": "boolean"},
  "raw_scores": {"type": "boolean"}, "truncate": {"type": "boolean", "default": false}}},
"RerankResponse": {"oneOf": [
  {"type": "array", "items": {"type": "object", "properties": {"index": {"type": "integer"}, "score": {"type": "number", "nullable": true}, "text": {"type": "string"}}}},
  {"type": "object", "properties": {"id": {"type": "string"}, "model": {"type": "string"},
    "results": {"type": "array", "items": {"type": "object", "properties": {"index": {"type": "integer"},
    "relevance_score": {"type": "number", "nullable": true}, "document": {"type": "object"}}}}, "usage": {"$ref": "#/components/schemas/Usage"}}}]},
"ScoreRequest": {"type": "object", "required": ["text_1", "text_2"], "properties": {"model": {"type": "string"},
  "text_1": {"oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]},
  "text_2": {"oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}}},
"ScoreResponse": {"type": "object", "properties": {"id": {"type": "string"}, "model": {"type": "string"},
  "data": {"type": "array", "items": {"type": "object", "properties": {"index": {"type": "integer"}, "score": {"type": "number", "nullable": true}}}},
  "usage": {"$ref": "#/components/schemas/Usage"}}},
"PredictRequest": {"type": "object", "required": ["inputs"], "properties": {"inputs": {"oneOf": [{"type": "string"},
  {"type": "array", "items": {"oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}}]}, "raw_scores": {"type": "boolean"}, "truncate": {"type": "boolean"},
  "aggregation_strategy": {"enum": ["none", "simple", "first", "average", "max"]}}},
"Label": {"type": "object", "required": ["label", "score"], "properties": {"label": {"type": "string"},
  "score": {"type": "number", "nullable": true}}},
"Entity": {"type": "object", "required": ["score", "word", "start", "end"], "properties": {
  "entity": {"type": "string"}, "entity_group": {"type": "string"}, "score": {"type": "number"},
  "index": {"type": "integer"}, "word": {"type": "string"}, "start": {"type": "integer"}, "end": {"type": "integer"}}},
"Finding": {"anyOf": [{"$ref": "#/components/schemas/Label"}, {"$ref": "#/components/schemas/Entity"}]},
"PredictResponse": {"type": "array", "items": {"anyOf": [{"$ref": "#/components/schemas/Finding"},
  {"type": "array", "items": {"$ref": "#/components/schemas/Finding"}}]}},
"HubRequest": {"anyOf": [{"$ref": "#/components/schemas/EmbedRequest"}, {"$ref": "#/components/schemas/SimilarityRequest"},
  {"$ref": "#/components/schemas/PredictRequest"}]},
"HubResponse": {"anyOf": [{"$ref": "#/components/schemas/EmbedResponse"}, {"$ref": "#/components/schemas/Numbers"},
  {"$ref": "#/components/schemas/PredictResponse"}]},
"TokenizeRequest": {"type": "object", "properties": {"model": {"type": "string"}, "prompt": {"type": "string"},
  "inputs": {"oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]},
  "add_special_tokens": {"type": "boolean", "default": true}, "return_token_strs": {"type": "boolean"}}},
"TokenizeResponse": {"oneOf": [{"type": "object", "required": ["count", "tokens"], "properties": {"count": {"type": "integer"},
  "max_model_len": {"type": "integer"}, "tokens": {"type": "array", "items": {"type": "integer"}},
  "token_strs": {"type": "array", "items": {"type": "string"}}}}, {"type": "array", "items": {"type": "array", "items": {"type": "object"}}}]},
"DetokenizeRequest": {"type": "object", "properties": {"model": {"type": "string"},
  "tokens": {"type": "array", "items": {"type": "integer"}}, "ids": {"$ref": "#/components/schemas/Texts"},
  "skip_special_tokens": {"type": "boolean"}}},
"DetokenizeResponse": {"oneOf": [{"type": "object", "properties": {"prompt": {"type": "string"}}}, {"type": "array", "items": {"type": "string"}}]},
"Info": {"type": "object", "required": ["model_id"], "properties": {"model_id": {"type": "string"},
  "model_type": {"type": "object"}, "max_input_length": {"type": "integer"}, "version": {"type": "string"}}}
})";

json Content(const char* schema) {
  return {{"application/json",
           {{"schema", {{"$ref", absl::StrCat("#/components/schemas/", schema)}}}}}};
}

}  // namespace

std::string OpenApiPage(const std::vector<RouteInfo>& routes, const std::string& version) {
  json page = {{"openapi", "3.0.3"},
               {"info", {{"title", "Reprise: texts"}, {"version", version}}},
               {"paths", json::object()}};
  page["components"]["schemas"] = json::parse(kSchemas, nullptr, /*allow_exceptions=*/false);
  for (const RouteInfo& route : routes) {
    json operation = {
        {"summary", route.summary},
        {"responses",
         {{"200", {{"description", "The answer"}, {"content", Content(route.response)}}},
          {"default", {{"description", "An error, in the protocol's own form"}}}}}};
    if (*route.request != '\0') {
      operation["requestBody"] = {{"required", true}, {"content", Content(route.request)}};
    }
    if (absl::StrContains(route.path, "{model}")) {
      operation["parameters"] = json::array({{{"name", "model"},
                                              {"in", "path"},
                                              {"required", true},
                                              {"schema", {{"type", "string"}}}}});
    }
    page["paths"][route.path][absl::AsciiStrToLower(route.method)] = std::move(operation);
  }
  return page.dump();
}

}  // namespace reprise
