#include "runtime/generate/carried_steps.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/saturating.h"
#include "runtime/base/status_macros.h"
#include "runtime/engine/types/data_error.h"
#include "runtime/engine/types/run_control.h"
#include "runtime/generate/carried_batch.h"
#include "runtime/passes/paged/present_outputs.h"

namespace reprise {
namespace {

constexpr int kAbsent = -1;

int PositionOf(const Model& model, const std::string& name) {
  for (size_t i = 0; i < model.inputs().size() && !name.empty(); ++i) {
    if (model.inputs()[i].name == name) return static_cast<int>(i);
  }
  return kAbsent;
}

bool IsCarried(DType dtype) { return dtype == DType::kFloat32 || dtype == DType::kFloat16; }

DType DTypeOf(const Model& model, const std::string& input) {
  const int position = PositionOf(model, input);
  return position == kAbsent ? DType::kUndefined : model.inputs()[position].dtype;
}

absl::Status NotHere(absl::string_view input, absl::string_view why) {
  return absl::UnimplementedError(absl::StrCat("input '", input, "' ", why));
}

template <class T>
bool AllAre(const void* data, int64_t count, const auto& expected) {
  for (int64_t i = 0; i < count; ++i) {
    T value;
    std::memcpy(&value, static_cast<const std::byte*>(data) + i * sizeof(T), sizeof(T));
    if (!expected(static_cast<int64_t>(value), i)) return false;
  }
  return true;
}

// Returns whether `expected(value, place)` holds for each of the whole numbers of an input.
bool AllAre(DType dtype, const InputTensor& input, const auto& expected) {
  const int64_t count = NumElements(input.shape);
  if (dtype == DType::kBool) return AllAre<uint8_t>(input.data, count, expected);
  if (dtype == DType::kInt32) return AllAre<int32_t>(input.data, count, expected);
  return AllAre<int64_t>(input.data, count, expected);
}

}  // namespace

absl::StatusOr<std::vector<int>> CarriedSteps::CheckModel(const Model& model, const Graph& symbolic,
                                                          const Decoder& decoder) {
  std::vector<std::string> outputs;
  for (const ModelIo& output : model.outputs()) outputs.push_back(output.name);
  for (const DecoderCache& cache : decoder.caches) {
    const int position = PositionOf(model, cache.input);
    if (position == kAbsent || model.inputs()[position].dims.size() != 4) {
      return NotHere(cache.input, "has not the dims [batch, heads, past, size] in the model");
    }
    if (!IsCarried(model.inputs()[position].dtype) ||
        model.inputs()[position].dtype != DTypeOf(model, decoder.caches[0].input)) {
      return NotHere(cache.input, "is neither float32 nor float16, as all caches are");
    }
  }
  const ModelIo& logits = model.outputs()[decoder.logits];
  if (!IsCarried(logits.dtype)) {
    return absl::UnimplementedError(
        absl::StrCat("output '", logits.name, "' is neither float32 nor float16"));
  }
  return FindPresents(symbolic, decoder, outputs);
}

absl::StatusOr<std::unique_ptr<CarriedSteps>> CarriedSteps::Make(
    std::shared_ptr<const Model> model, const Graph& symbolic, const Decoder& decoder,
    const Limits& limits, const StepRecipes& recipes, const Clock& clock) {
  ASSIGN_OR_RETURN(std::vector<int> presents, CheckModel(*model, symbolic, decoder));
  std::unique_ptr<CarriedSteps> made(new CarriedSteps(std::move(model), limits, recipes, clock));
  made->decoder_ = decoder;
  made->presents_ = std::move(presents);
  made->inputs_ = {.ids = PositionOf(*made->model_, decoder.ids),
                   .positions = PositionOf(*made->model_, decoder.positions),
                   .mask = PositionOf(*made->model_, decoder.mask),
                   .last_keys = PositionOf(*made->model_, decoder.last_keys),
                   .length = PositionOf(*made->model_, decoder.length),
                   .cache_branch = PositionOf(*made->model_, decoder.cache_branch)};
  for (const DecoderCache& cache : decoder.caches) {
    made->inputs_.caches.push_back(PositionOf(*made->model_, cache.input));
  }
  for (const StepRecipe& one : recipes.all()) {
    made->most_tokens_ = std::max(made->most_tokens_, one.picks);
  }
  return made;
}

CarriedSteps::Sizes CarriedSteps::SizesOf(const Request& request) const {
  const Shape& ids = request.inputs[inputs_.ids].shape;
  const Shape& cache = request.inputs[inputs_.caches[0]].shape;
  if (ids.size() != 2 || cache.size() != 4) return {};
  return {.rows = ids[0], .tokens = ids[1], .past = cache[2]};
}

int64_t CarriedSteps::TokensOf(const Request& request) const {
  const Sizes sizes = SizesOf(request);
  return sizes.rows * sizes.tokens;
}

absl::Status CarriedSteps::CheckShapes(const Request& request, const Sizes& sizes) const {
  const auto check = [&](int position, const Shape& shape) {
    if (position == kAbsent || request.inputs[position].shape == shape) return absl::OkStatus();
    return NotHere(model_->inputs()[position].name,
                   absl::StrCat("has shape ", ShapeToString(request.inputs[position].shape),
                                ", and not ", ShapeToString(shape)));
  };
  RETURN_IF_ERROR(check(inputs_.positions, {sizes.rows, sizes.tokens}));
  RETURN_IF_ERROR(check(inputs_.mask, {sizes.rows, sizes.past + sizes.tokens}));
  for (size_t i = 0; i < decoder_.caches.size(); ++i) {
    const DecoderCache& cache = decoder_.caches[i];
    RETURN_IF_ERROR(check(inputs_.caches[i], {sizes.rows, cache.heads, sizes.past, cache.size}));
  }
  return absl::OkStatus();
}

absl::Status CarriedSteps::CheckNumbers(const Request& request, const Sizes& sizes) const {
  const auto check = [&](int position, absl::string_view why, const auto& expected) {
    if (position == kAbsent) return absl::OkStatus();
    const ModelIo& input = model_->inputs()[position];
    if (AllAre(input.dtype, request.inputs[position], expected)) return absl::OkStatus();
    return NotHere(input.name, why);
  };
  const int64_t total = sizes.past + sizes.tokens;
  RETURN_IF_ERROR(check(inputs_.ids, "has ids that the model does not know",
                        [&](int64_t id, int64_t) { return id >= 0 && id < limits_.ids; }));
  RETURN_IF_ERROR(
      check(inputs_.mask, "has holes", [](int64_t value, int64_t) { return value == 1; }));
  RETURN_IF_ERROR(
      check(inputs_.positions, "does not count on from the past",
            [&](int64_t value, int64_t i) { return value == sizes.past + i % sizes.tokens; }));
  RETURN_IF_ERROR(check(inputs_.last_keys, "says that the cache is not full",
                        [&](int64_t value, int64_t) { return value == total - 1; }));
  RETURN_IF_ERROR(check(inputs_.length, "says that the cache is not full",
                        [&](int64_t value, int64_t) { return value == total; }));
  return check(inputs_.cache_branch, "says that the cache is not read",
               [](int64_t value, int64_t) { return value != 0; });
}

int64_t CarriedSteps::AnswerBytes(const Sizes& sizes) const {
  const auto cell = [](DType dtype) { return static_cast<int64_t>(DTypeSize(dtype)); };
  const int64_t score = cell(model_->outputs()[decoder_.logits].dtype);
  const int64_t element = cell(model_->inputs()[inputs_.caches[0]].dtype);
  int64_t width = 0;  // numbers that a position has in all caches
  for (const DecoderCache& cache : decoder_.caches) width += cache.heads * cache.size;
  const int64_t scores =
      SaturatingProduct(SaturatingProduct(sizes.rows, sizes.tokens), limits_.vocabulary * score);
  const int64_t caches =
      SaturatingProduct(SaturatingProduct(sizes.rows, sizes.past + sizes.tokens), width * element);
  return SaturatingSum(scores, caches);
}

absl::Status CarriedSteps::Takes(const Request& request) const {
  for (size_t i = 0; i < request.inputs.size(); ++i) {
    const InputTensor& input = request.inputs[i];
    const bool given = input.data != nullptr || NumElements(input.shape) == 0;
    if (model_->inputs()[i].optional ? input.data != nullptr : !given) {
      return NotHere(model_->inputs()[i].name, "is one that recipes do not take");
    }
  }
  const Sizes sizes = SizesOf(request);
  if (sizes.rows < 1 || sizes.tokens < 1) return absl::UnimplementedError("it has no new tokens");
  if (sizes.past + sizes.tokens > limits_.context) {
    return absl::UnimplementedError(absl::StrCat("it ends at position ", sizes.past + sizes.tokens,
                                                 " of a context of ", limits_.context));
  }
  RETURN_IF_ERROR(CheckShapes(request, sizes));
  const ModelOptions& options = model_->options();
  const int64_t most =
      options.max_arena_bytes > 0 ? options.max_arena_bytes : options.max_request_bytes;
  if (const int64_t bytes = AnswerBytes(sizes); most > 0 && bytes > most) {
    return absl::UnimplementedError(
        absl::StrCat("its answer has ", bytes, " bytes, and the limit is ", most));
  }
  return CheckNumbers(request, sizes);
}

std::vector<Response> CarriedSteps::Run(absl::Span<const Request* const> requests, Stream& stream,
                                        StopFlag* stop, CarriedCounts& counts) const {
  const int64_t start = clock_.NowNs();
  CarriedBatch batch({.ids = inputs_.ids,
                      .caches = inputs_.caches,
                      .logits = static_cast<int>(decoder_.logits),
                      .presents = presents_,
                      .sizes = decoder_.caches,
                      .vocabulary = limits_.vocabulary,
                      .dtype = model_->inputs()[inputs_.caches[0]].dtype,
                      .logits_dtype = model_->outputs()[decoder_.logits].dtype},
                     requests);
  counts = {.tokens = batch.tokens(), .bytes = batch.cache_bytes()};
  RunControl control(clock_, {.max_ns = model_->options().max_request_ns}, stop);
  control.Begin();
  ReplayInfo info;
  // Apart from the numbers that batches of other recipes have: a time is larger.
  info.batch = start;
  info.batch_size = batch.rows();
  absl::Status status;
  while (status.ok() && batch.Next(most_tokens_)) {
    const StepRecipe& one = recipes_.For(batch.step_tokens());
    const Recipe& recipe = *one.recipe;
    const auto parameters = recipes_.ParametersOf(one);
    status = parameters.ok() ? stream.Reserve(recipe) : parameters.status();
    if (!status.ok()) break;
    FirstDataError errors(recipe);
    Frame frame = stream.MakeFrame(recipe, (*parameters)->addresses(), &errors);
    batch.Fill(recipe, stream.inputs());
    frame.live_rows = frame.live_segments = batch.step_tokens();
    const int64_t begin = clock_.NowNs();
    const int ended = stream.Replay(recipe, frame, nullptr, &control);
    info.replay_ns += clock_.NowNs() - begin;
    if (ended >= 0) {
      status = control.Ended(recipe.note.bucket);
    } else if (errors.any()) {
      status = absl::InternalError("a step met data that it could not use");
    } else {
      batch.TakeScores(reinterpret_cast<const float*>(frame.outputs[0]));
    }
    info.bucket = recipe.note.bucket;
    info.recipe = recipe.key.hex();
  }
  info.gather_ns = clock_.NowNs() - start - info.replay_ns;
  return batch.Finish(status, info);
}

}  // namespace reprise
