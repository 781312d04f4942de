#include "runtime/engine/replay/stream.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <exception>
#include <new>
#include <stdexcept>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/memory_net.h"
#include "runtime/base/status_macros.h"

namespace reprise {
namespace {

// Smaller amounts of memory that data decide are treated like any other: streams hold some
// megabytes in any case.
constexpr size_t kCountedDataBytes = size_t{16} << 20;

// Waking a helper costs some microseconds and waiting for each other after each launch about one: a
// thread more pays from about this number of multiplications and additions, or other work of the
// same duration: 55 us of a Zen 5.
constexpr double kWorkPerThread = 1.5e7;

// A launch of more work than this is primed by one part of it; it is cut into at most kPrimeParts.
constexpr double kPrimeWork = 2e5;
constexpr double kPrimeParts = 1024;
// A launch that runs as a whole primes for this long: its pages are touched one after the other.
constexpr std::chrono::milliseconds kPrimeTime{50};
// ... and holds no more for itself.
constexpr int64_t kPrimeBytes = int64_t{256} << 20;
// Phases of a launch that prime it with a part of it: later ones repeat the work of these.
constexpr int kPrimePhases = 6;

// Parts into which a launch is cut so that one of them primes it. A launch whose result may decide
// a place (an integer) is computed whole: a later launch may rely on it.
bool HasIntegerResult(const std::vector<OperandNote>& notes) {
  return absl::c_any_of(notes, [](const OperandNote& note) {
    return note.role == OperandNote::Role::kOutput && IsInteger(note.dtype);
  });
}
int PartsToPrime(const Launch& launch, const std::vector<OperandNote>& notes) {
  if (HasIntegerResult(notes)) return 1;
  return static_cast<int>(std::clamp(launch.work.in_flops() / kPrimeWork, 1.0, kPrimeParts));
}

// Watches a launch that primes, whose results are not needed.
class PrimeWatch final : public WorkWatch {
 public:
  // `whole`: it is computed to its end, unless `ends` says otherwise.
  PrimeWatch(const std::function<bool()>& ends, bool whole)
      : WorkWatch(kPrimeBytes), ends_(ends), whole_(whole) {}

  bool Ends() const override {
    if (ends_ != nullptr && ends_()) return true;
    return !whole_ && std::chrono::steady_clock::now() - begin_ > kPrimeTime;
  }

 private:
  const std::function<bool()>& ends_;
  const bool whole_;
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

// A part of more work than this, some 25 ms of a Zen 5, is run in pieces.
constexpr double kWorkPerPiece = 7e9;

struct ReplayCall {
  const Recipe* recipe;
  const Frame* frame;
  const FirstDataError* end;  // nullptr, or the error that ends it
  const RunControl* control;  // nullptr, or the control that may end it
  double share;               // part of the recipe's work that this replay has
  // The first launch that threw, as launches marked `reference` or `foreign` may: they ask for
  // memory. Or the launch before or within which the replay was ended.
  std::atomic<int> left{-1};
  std::exception_ptr thrown;  // the exception; read when all parts are done

  void Leave(int launch) {
    int none = -1;
    left.compare_exchange_strong(none, launch);
  }
};

// Returns whether the replay is to end before `launch`.
bool Ends(const ReplayCall& call, const Launch& launch) {
  if (call.control->stopped()) return true;
  return call.recipe->has_long_launches && MayTakeLong(launch) && call.control->IsOverdue();
}

// Returns the pieces that each of `parts` parts of a phase of `launch` is cut into, so that the
// replay can end between them.
int PiecesOf(const ReplayCall& call, const Launch& launch, int parts) {
  if (call.control == nullptr || !call.recipe->has_long_launches) return 1;
  if (launch.reference) return 1;  // It runs as a whole.
  const double work = call.share * launch.work.in_flops() / launch.phases / parts;
  constexpr double kMostPieces = 4096;
  return static_cast<int>(std::clamp(std::ceil(work / kWorkPerPiece), 1.0, kMostPieces));
}

// Runs a launch as a whole. Returns false if it was ended before its end, by `control` or, where
// there is none, by the watch of the calling thread.
bool RunWhole(const Launch& launch, const LaunchArgs& args, const RunControl* control) {
  try {
    if (!launch.reference || control == nullptr) {
      launch.run(args);
      return true;
    }
    RunWatch watch(*control);
    launch.run(args);
    return true;
  } catch (const WorkEnded&) {
    return false;
  }
}

// Runs the part that `args` names, piece by piece. Returns false if it was ended before its end.
// The pieces of a part do not lie side by side: a kernel whose workspace is for few parts uses the
// first ones.
bool RunPieces(const Launch& launch, LaunchArgs args, int pieces, const RunControl& control) {
  const int parts = args.parts;
  args.parts *= pieces;
  for (int piece = 0; piece < pieces; ++piece, args.part += parts) {
    if (piece > 0 && (control.stopped() || control.IsOverdue())) return false;
    launch.run(args);
  }
  return true;
}

void RunStep(void* context, int index, int part, int parts) {
  ReplayCall& call = *static_cast<ReplayCall*>(context);
  if (call.end != nullptr && call.end->any()) return;
  if (call.left.load(std::memory_order_relaxed) >= 0) return;
  const RecipeStep step = call.recipe->StepAt(index);
  const Launch& launch = call.recipe->launches[static_cast<size_t>(step.launch)];
  if (call.frame->live_rows > 0 && launch.row >= call.frame->live_rows) return;
  if (call.control != nullptr && Ends(call, launch)) return call.Leave(step.launch);
  void* operands[kMaxOperands];
  for (size_t i = 0; i < launch.operands.size(); ++i) {
    operands[i] = Resolve(launch.operands[i], *call.frame);
  }
  const LaunchArgs args = {.operands = operands,
                           .params = launch.params.get(),
                           .frame = call.frame,
                           .launch = step.launch,
                           .part = part,
                           .parts = parts,
                           .phase = step.phase};
  try {
    const int pieces = PiecesOf(call, launch, parts);
    if (pieces == 1) {
      if (!RunWhole(launch, args, call.control)) call.Leave(step.launch);
    } else if (!RunPieces(launch, args, pieces, *call.control)) {
      call.Leave(step.launch);
    }
  } catch (...) {
    int none = -1;
    const bool first = call.left.compare_exchange_strong(none, step.launch);
    if (first) call.thrown = std::current_exception();
  }
}

// Throws `thrown`, which `launch` threw, with its name.
[[noreturn]] void Rethrow(const Launch& launch, const std::exception_ptr& thrown) {
  const auto name = [&] { return absl::StrCat(launch.node, " (", launch.kernel, ")"); };
  try {
    std::rethrow_exception(thrown);
  } catch (const NoMemory& none) {
    throw NoMemory(none.bytes(), name());
  } catch (const std::bad_alloc&) {
    throw NoMemory(0, name());
  } catch (const std::length_error&) {
    throw NoMemory(0, name());
  } catch (const std::exception& other) {
    throw std::runtime_error(absl::StrCat(name(), ": ", other.what()));
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<Stream>> Stream::Create(const StreamOptions& options) {
  ASSIGN_OR_RETURN(Arena arena, Arena::Reserve({.limit_bytes = options.max_arena_bytes,
                                                .huge_pages = options.huge_pages}));
  return std::unique_ptr<Stream>(new Stream(std::move(arena), options));
}

absl::Status Stream::HoldData(const Recipe& recipe) {
  const size_t bytes = recipe.frame_bytes();
  if (options_.data_memory == nullptr || bytes < kCountedDataBytes) return absl::OkStatus();
  needed_data_ = std::max(needed_data_, bytes);
  if (bytes <= data_bytes_) return absl::OkStatus();
  MemoryBudget& all = *options_.data_memory;
  const auto max_bytes = static_cast<size_t>(all.max_bytes());
  if (all.max_bytes() > 0 && bytes > max_bytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a replay at ", recipe.SizesText(), ", which values of the inputs decide, needs ", bytes,
        " bytes; such memory of all requests may be ", max_bytes, " (see --data-memory-mb)"));
  }
  const auto more = static_cast<int64_t>(bytes - data_bytes_);
  if (!all.Take(more)) {
    options_.make_room();
    if (!all.Take(more)) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "a replay at ", recipe.SizesText(), ", which values of the inputs decide, needs ", bytes,
          " bytes; of the ", max_bytes, " of such memory ", all.used(),
          " are taken (see --data-memory-mb)"));
    }
  }
  data_bytes_ = bytes;
  return absl::OkStatus();
}

absl::Status Stream::Reserve(const Recipe& recipe, SizedBy sized_by) {
  if (sized_by == SizedBy::kData) RETURN_IF_ERROR(HoldData(recipe));
  needed_ = std::max(needed_, recipe.frame_bytes());
  if (const absl::Status status = arena_.Ensure(recipe.frame_bytes()); !status.ok()) {
    return absl::Status(status.code(),
                        absl::StrCat("a replay at ", recipe.SizesText(), ": ",
                                     std::string(status.message()), " (see --arena-memory-mb)"));
  }
  if (Hold(recipe.frame_bytes())) return absl::OkStatus();
  options_.make_room();
  if (Hold(recipe.frame_bytes())) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      "a replay at ", recipe.SizesText(), " needs ", recipe.frame_bytes(), " bytes; of the ",
      options_.memory->max_bytes(), " that all arenas may take together, ", options_.memory->used(),
      " are taken (see --arena-memory-mb)"));
}

absl::Status Stream::ReserveForRequest(const Recipe& recipe, SizedBy sized_by) {
  absl::Status reserved = Reserve(recipe, sized_by);
  const size_t bytes = recipe.frame_bytes();
  const auto all =
      options_.memory == nullptr ? 0 : static_cast<size_t>(options_.memory->max_bytes());
  const bool never = bytes > options_.max_arena_bytes || (all > 0 && bytes > all);
  if (!absl::IsResourceExhausted(reserved) || !never) return reserved;
  return absl::InvalidArgumentError(reserved.message());
}

void Stream::Touch(size_t bytes) {
  if (bytes <= arena_.limit_bytes() && Hold(bytes)) arena_.Touch(bytes);
}

void Stream::Release() {
  MutexLock lock(holding_);
  arena_.Release();
  if (options_.memory != nullptr) options_.memory->Give(static_cast<int64_t>(held_));
  held_ = 0;
  if (options_.data_memory != nullptr) {
    options_.data_memory->Give(static_cast<int64_t>(data_bytes_));
  }
  data_bytes_ = 0;
}

bool Stream::Hold(size_t bytes) {
  if (bytes <= held_) return true;
  MutexLock lock(holding_);
  if (bytes <= held_) return true;
  const auto more = static_cast<int64_t>(bytes - held_);
  if (options_.memory != nullptr && !options_.memory->Take(more)) return false;
  held_ = bytes;
  return true;
}

Frame Stream::MakeFrame(const Recipe& recipe, const void* const* parameters, ReplayErrors* errors) {
  std::byte* base = arena_.base();
  if (options_.poison) FillWithPoison(base, recipe.frame_bytes());
  inputs_.clear();
  for (const TensorSlot& slot : recipe.inputs) inputs_.push_back(base + slot.offset);
  outputs_.clear();
  std::byte* const outputs = base + recipe.input_bytes;
  for (const TensorSlot& slot : recipe.outputs) outputs_.push_back(outputs + slot.offset);
  return {.arena = outputs + recipe.output_bytes,
          .inputs = inputs_.data(),
          .outputs = outputs_.data(),
          .constants = recipe.constants.data(),
          .parameters = parameters,
          .errors = errors,
          .segments = recipe.segments};
}

absl::Span<std::byte> Stream::Block(const Recipe& recipe) const {
  return {arena_.base(), recipe.frame_bytes()};
}

int Stream::Replay(const Recipe& recipe, const Frame& frame, const FirstDataError* end,
                   const RunControl* control) {
  const bool some = frame.live_rows > 0 && frame.live_rows < recipe.rows;
  const double share = some ? static_cast<double>(frame.live_rows) / recipe.rows : 1;
  const double worthwhile = 1 + share * recipe.work / kWorkPerThread;
  HelperPool* const cores = lent_ == nullptr ? options_.cores : lent_;
  const int most = lent_ == nullptr ? options_.max_threads : lent_->cores();
  const int threads = worthwhile < most ? static_cast<int>(worthwhile) : most;
  ReplayCall call = {
      .recipe = &recipe, .frame = &frame, .end = end, .control = control, .share = share};
  const int steps = recipe.num_steps();
  if (cores == nullptr) {
    for (int i = 0; i < steps; ++i) RunStep(&call, i, 0, 1);
  } else {
    cores->Run(threads, steps, RunStep, &call);
  }
  const int left = call.left;
  if (call.thrown != nullptr) Rethrow(recipe.launches[static_cast<size_t>(left)], call.thrown);
  return left;
}

bool Stream::Prime(const Recipe& recipe, const Frame& frame,
                   const std::function<bool()>& ends) const {
  void* operands[kMaxOperands];
  LaunchArgs args = {.operands = operands,
                     .params = nullptr,
                     .frame = &frame,
                     .launch = 0,
                     .part = 0,
                     .parts = 1,
                     .lone_part = true};
  for (const Launch& launch : recipe.launches) {
    if (ends != nullptr && ends()) return false;
    for (size_t i = 0; i < launch.operands.size(); ++i) {
      operands[i] = Resolve(launch.operands[i], frame);
    }
    args.params = launch.params.get();
    args.parts = PartsToPrime(launch, recipe.operand_notes[args.launch]);
    try {
      const int phases = args.parts == 1 ? launch.phases : std::min(launch.phases, kPrimePhases);
      const bool whole = HasIntegerResult(recipe.operand_notes[args.launch]);
      PrimeWatch watch(ends, whole);
      for (args.phase = 0; args.phase < phases; ++args.phase) launch.run(args);
    } catch (const WorkEnded&) {
      if (ends != nullptr && ends()) return false;
    } catch (...) {
      Rethrow(launch, std::current_exception());
    }
    ++args.launch;
  }
  return true;
}

}  // namespace reprise
