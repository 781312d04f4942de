#include "runtime/generate/prompt_encoder.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "runtime/base/mutex.h"
#include "runtime/base/status_macros.h"
#include "runtime/graph/tensor.h"
#include "runtime/ops/attention/paged.h"

namespace reprise {
namespace {

constexpr int64_t kPage = ops::kPagePositions;
// Buckets that are captured ahead, at most.
constexpr size_t kMostCaptured = 64;

// `count` ones, or the ids themselves, in the dtype of `input`.
template <class From>
absl::StatusOr<Tensor> RowOf(const ModelIo& input, const std::vector<From>& values) {
  const Shape shape = {1, static_cast<int64_t>(values.size())};
  switch (input.dtype) {
    case DType::kInt64:
      return Tensor::FromVector<int64_t>(DType::kInt64, shape, {values.begin(), values.end()});
    case DType::kInt32:
      return Tensor::FromVector<int32_t>(DType::kInt32, shape, {values.begin(), values.end()});
    case DType::kFloat32:
      return Tensor::FromVector<float>(DType::kFloat32, shape, {values.begin(), values.end()});
    default:
      return absl::UnimplementedError(
          absl::StrCat("input '", input.name, "' of the encoder holds neither ids nor a mask"));
  }
}

std::string DimsText(const std::vector<Dim>& dims) {
  return absl::StrCat("[",
                      absl::StrJoin(dims, ", ",
                                    [](std::string* out, const Dim& dim) {
                                      absl::StrAppend(out, dim.is_constant()
                                                               ? absl::StrCat(dim.size)
                                                               : std::string(dim.symbol));
                                    }),
                      "]");
}

// Returns the length of results [batch, length, hidden] where it is always the same.
std::optional<int64_t> FixedLength(const ModelIo& states) {
  if (states.dims.size() != 3 || !states.dims[1].is_constant()) return std::nullopt;
  return states.dims[1].size;
}

// Captures the buckets of one row, and waits for them. `length`: a size of all axes but the batch
// that every request has, and that may lie beyond the buckets.
void CaptureBuckets(Engine& engine, const Model& model, std::optional<int64_t> length) {
  const auto all = model.AllBuckets(kMostCaptured * 16);
  if (!all.has_value() || engine.options().captures == nullptr) return;
  const std::string batch =
      model.batch_axis() < 0 ? "" : model.axes()[static_cast<size_t>(model.batch_axis())].label;
  std::vector<AxisSizes> wanted;
  for (const AxisSizes& sizes : *all) {
    const auto rows = sizes.find(batch);
    if (rows != sizes.end() && rows->second > 1) continue;
    if (wanted.size() < kMostCaptured) wanted.push_back(sizes);
  }
  if (length.has_value()) {
    AxisSizes& sizes = wanted.emplace_back();
    for (const ModelAxis& axis : model.axes()) sizes[axis.label] = axis.is_batch ? 1 : *length;
  }
  struct Left {
    Mutex mutex;
    CondVar changed;
    size_t count GUARDED_BY(mutex) = 0;
  };
  const auto left = std::make_shared<Left>();
  {
    MutexLock lock(left->mutex);
    left->count = wanted.size();
  }
  for (const AxisSizes& sizes : wanted) {
    // One that cannot be captured now is when a request asks for it, which hears why not.
    engine.CaptureAhead(model, sizes, CompileReason::kWarmup, CaptureUrgency::kUrgent,
                        [left](const absl::Status&) {
                          MutexLock lock(left->mutex);
                          --left->count;
                          left->changed.NotifyAll();
                        });
  }
  MutexLock lock(left->mutex);
  while (left->count > 0) left->changed.Wait(left->mutex);
}

}  // namespace

absl::StatusOr<std::unique_ptr<PromptEncoder>> PromptEncoder::Create(Engine& engine,
                                                                     EncoderModels models,
                                                                     const PagedForm& form,
                                                                     int max_threads,
                                                                     size_t max_arena_bytes) {
  ASSIGN_OR_RETURN(std::unique_ptr<Stream> stream,
                   Stream::Create({.cores = engine.CoresOf(*models.encoder),
                                   .max_threads = max_threads,
                                   .max_arena_bytes = max_arena_bytes}));
  std::unique_ptr<PromptEncoder> made(
      new PromptEncoder(engine, std::move(models), std::move(stream)));
  RETURN_IF_ERROR(made->FindInputs());
  RETURN_IF_ERROR(made->FindOutputs(form));
  CaptureBuckets(engine, *made->encoder_.model, std::nullopt);
  CaptureBuckets(engine, *made->cross_,
                 FixedLength(made->encoder_.model->outputs()[made->encoder_.output]));
  return made;
}

absl::Status PromptEncoder::FindInputs() {
  const std::vector<ModelIo>& inputs = encoder_.model->inputs();
  bool found = false;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].optional || absl::StrContains(inputs[i].name, "mask")) continue;
    if (found) {
      return absl::UnimplementedError(absl::StrCat("input '", inputs[i].name,
                                                   "' of the encoder has no known role besides '",
                                                   inputs[main_].name, "'"));
    }
    main_ = i;
    found = true;
  }
  if (!found) return absl::UnimplementedError("no input of the encoder takes a prompt");
  takes_ids_ = inputs[main_].dtype == DType::kInt64 || inputs[main_].dtype == DType::kInt32;
  if (!takes_ids_ && inputs[main_].dtype != DType::kFloat32) {
    return absl::UnimplementedError(absl::StrCat("input '", inputs[main_].name,
                                                 "' of the encoder holds neither ids nor float32"));
  }
  return absl::OkStatus();
}

absl::Status PromptEncoder::FindOutputs(const PagedForm& form) {
  const std::vector<ModelIo>& states = encoder_.model->outputs();
  for (size_t i = 0; i < states.size(); ++i) {
    if (states[i].name == "last_hidden_state") encoder_.output = i;
  }
  if (cross_->inputs().size() != 1 || cross_->inputs()[0].dtype != states[encoder_.output].dtype) {
    return absl::UnimplementedError(
        absl::StrCat("the caches of the encoder's result are not made of '",
                     states[encoder_.output].name, "' alone"));
  }
  const std::vector<ModelIo>& outputs = cross_->outputs();
  for (const PagedCache& cache : form.caches) {
    if (!cache.cross) continue;
    const std::string name = absl::StrReplaceAll(cache.input, {{"past_key_values", "present"}});
    const auto found =
        absl::c_find_if(outputs, [&](const ModelIo& output) { return output.name == name; });
    if (found == outputs.end() || found->dtype != DType::kFloat32) {
      return absl::UnimplementedError(absl::StrCat(
          "no output '", name, "' of float32 is computed for cache '", cache.input, "'"));
    }
    caches_.push_back(cache);
    outputs_.push_back(static_cast<size_t>(found - outputs.begin()));
  }
  return absl::OkStatus();
}

absl::Status PromptEncoder::Check(const EncoderPrompt& prompt) const {
  const ModelIo& input = encoder_.model->inputs()[main_];
  if (takes_ids_) {
    if (!prompt.ids.empty()) return absl::OkStatus();
    return absl::InvalidArgumentError("the prompt has no tokens");
  }
  bool fits = prompt.shape.size() == input.dims.size();
  for (size_t i = 0; fits && i < prompt.shape.size(); ++i) {
    const bool same = !input.dims[i].is_constant() || input.dims[i].size == prompt.shape[i];
    fits = prompt.shape[i] > 0 && same;
  }
  if (!fits || prompt.shape[0] != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("input '", input.name, "' has shape ", ShapeToString(prompt.shape),
                     ", and the encoder takes one row of ", DimsText(input.dims)));
  }
  if (static_cast<int64_t>(prompt.numbers.size()) !=
      NumElements(prompt.shape) * static_cast<int64_t>(sizeof(float))) {
    return absl::InvalidArgumentError(absl::StrCat("input '", input.name, "' of shape ",
                                                   ShapeToString(prompt.shape), " does not take ",
                                                   prompt.numbers.size(), " bytes"));
  }
  return absl::OkStatus();
}

std::optional<int64_t> PromptEncoder::LengthOf(const EncoderPrompt& prompt) const {
  if (!takes_ids_) return std::nullopt;
  return static_cast<int64_t>(prompt.ids.size());
}

absl::StatusOr<OutputTensor> PromptEncoder::Encode(const EncoderPrompt& prompt) {
  const std::vector<ModelIo>& inputs = encoder_.model->inputs();
  std::vector<Tensor> held;
  Request request;
  request.inputs.resize(inputs.size());
  held.reserve(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].optional) continue;
    if (i == main_ && !takes_ids_) {
      request.inputs[i] = {.shape = prompt.shape, .data = prompt.numbers.data()};
      continue;
    }
    if (i == main_) {
      ASSIGN_OR_RETURN(Tensor ids, RowOf(inputs[i], prompt.ids));
      held.push_back(std::move(ids));
    } else {
      const int64_t count =
          takes_ids_ ? static_cast<int64_t>(prompt.ids.size()) : prompt.shape.back();
      ASSIGN_OR_RETURN(Tensor ones,
                       RowOf(inputs[i], std::vector<int64_t>(static_cast<size_t>(count), 1)));
      held.push_back(std::move(ones));
    }
    request.inputs[i] = {.shape = held.back().shape(), .data = held.back().data()};
  }
  request.wanted_outputs.assign(encoder_.model->outputs().size(), false);
  request.wanted_outputs[encoder_.output] = true;
  Response response = engine_.RunOne(*encoder_.model, request, *stream_);
  RETURN_IF_ERROR(response.status);
  return std::move(response.outputs[encoder_.output]);
}

absl::Status PromptEncoder::Run(const EncoderPrompt& prompt, int64_t most) {
  made_.clear();
  ASSIGN_OR_RETURN(const OutputTensor states, Encode(prompt));
  if (states.shape.size() != 3 || states.shape[0] != 1) {
    return absl::InternalError(
        absl::StrCat("the encoder's result has the shape ", ShapeToString(states.shape)));
  }
  length_ = states.shape[1];
  if (length_ > most) {
    return absl::InvalidArgumentError(absl::StrCat("the encoder's result has ", length_,
                                                   " places, and there is room for ", most));
  }
  Request request;
  request.inputs = {{.shape = states.shape, .data = states.bytes.data()}};
  Response response = engine_.RunOne(*cross_, request, *stream_);
  RETURN_IF_ERROR(response.status);
  made_ = std::move(response.outputs);
  for (size_t i = 0; i < caches_.size(); ++i) {
    const Shape wanted = {1, caches_[i].heads, length_, caches_[i].size};
    if (made_[outputs_[i]].shape == wanted) continue;
    return absl::InternalError(absl::StrCat("cache '", caches_[i].input, "' is made with shape ",
                                            ShapeToString(made_[outputs_[i]].shape), ", not ",
                                            ShapeToString(wanted)));
  }
  return absl::OkStatus();
}

void PromptEncoder::WriteCache(size_t index, absl::Span<std::byte* const> pages) const {
  const PagedCache& cache = caches_[index];
  const int64_t stride = ops::PagedValueStride(cache.size);
  const auto* from = reinterpret_cast<const float*>(made_[outputs_[index]].bytes.data());
  for (int64_t head = 0; head < cache.heads; ++head) {
    for (int64_t place = 0; place < length_; ++place, from += cache.size) {
      float* page = reinterpret_cast<float*>(pages[static_cast<size_t>(place / kPage)]);
      const int64_t slot = place % kPage;
      if (cache.is_key) {
        float* to = page + cache.offset + head * cache.size * kPage + slot;
        for (int64_t i = 0; i < cache.size; ++i) to[i * kPage] = from[i];
        continue;
      }
      float* to = page + cache.offset + (head * kPage + slot) * stride;
      std::memcpy(to, from, static_cast<size_t>(cache.size) * sizeof(float));
      std::fill(to + cache.size, to + stride, 0.0f);
    }
  }
}

void PromptEncoder::Write(absl::Span<std::byte* const> pages) const {
  for (size_t i = 0; i < caches_.size(); ++i) WriteCache(i, pages);
}

}  // namespace reprise
