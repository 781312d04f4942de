#include "runtime/engine/parameters/parameter_store.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/digest128.h"
#include "runtime/base/go_on.h"
#include "runtime/base/memory_net.h"
#include "runtime/base/status_macros.h"
#include "runtime/graph/parameter_expr.h"

namespace reprise {
namespace {

// A prepare program that makes fewer elements is not worth waking other threads.
constexpr int64_t kWorthCores = 1 << 20;
// At most one part in this many of the parameters may be held in a second form.
constexpr int64_t kSecondFormsPart = 10;
// A check takes a microsecond a file, and a model may have hundreds of them.
constexpr int64_t kLookAtFilesEveryNs = 10'000'000;

const OwnValue* OwnOf(const ParameterExpr& leaf, absl::Span<const OwnValue> own) {
  const auto it = std::find_if(own.begin(), own.end(),
                               [&](const OwnValue& one) { return one.parameter == leaf.index(); });
  return it == own.end() ? nullptr : &*it;
}

bool HangsOn(const ParameterExpr& expression, absl::Span<const OwnValue> own) {
  if (own.empty()) return false;
  if (expression.is_leaf()) return OwnOf(expression, own) != nullptr;
  return std::any_of(
      expression.inputs().begin(), expression.inputs().end(),
      [&](const ParameterExprPtr& input) { return input != nullptr && HangsOn(*input, own); });
}

}  // namespace

std::shared_ptr<const ParameterTable> ParameterStore::Known(
    const std::shared_ptr<const Recipe>& recipe) const {
  MutexLock lock(tables_mutex_);
  const auto it = tables_.find(recipe.get());
  return it != tables_.end() && it->second.recipe.lock() == recipe ? it->second.table : nullptr;
}

absl::StatusOr<std::shared_ptr<const ParameterTable>> ParameterStore::TableFor(
    const std::shared_ptr<const Recipe>& recipe, const std::function<absl::Status()>& go_on) {
  if (auto known = Known(recipe); known != nullptr) return known;
  MutexLock lock(mutex_);
  if (auto known = Known(recipe); known != nullptr) return known;  // made meanwhile
  asleep_ = false;
  RETURN_IF_ERROR(Prepare(*recipe, go_on));
  std::vector<Tensor> tensors;
  tensors.reserve(recipe->parameters.size());
  for (size_t slot = 0; slot < recipe->parameters.size(); ++slot) {
    const ParameterExpr& expression = *recipe->parameters[slot];
    tensors.push_back(ReadInPlace(*recipe, slot) ? leaves_[expression.index()]
                                                 : prepared_.at(expression.text()));
  }
  auto table = std::make_shared<const ParameterTable>(std::move(tensors));
  // Recipes of other models and of probes are destroyed without a notice; their tables are removed
  // here.
  MutexLock tables_lock(tables_mutex_);
  std::erase_if(tables_, [](const auto& known) { return known.second.recipe.expired(); });
  tables_[recipe.get()] = {recipe, table};
  return table;
}

absl::StatusOr<std::shared_ptr<const ParameterTable>> ParameterStore::TableWith(
    const Recipe& recipe, const ParameterTable& table, absl::Span<const OwnValue> own) const {
  std::vector<Tensor> tensors;
  tensors.reserve(table.size());
  for (size_t slot = 0; slot < table.size(); ++slot) {
    const ParameterExpr& expression = *recipe.parameters[slot];
    if (!HangsOn(expression, own)) {
      tensors.push_back(table.tensor(slot));
      continue;
    }
    ASSIGN_OR_RETURN(tensors.emplace_back(), Evaluate(expression, own));
  }
  return std::make_shared<const ParameterTable>(std::move(tensors));
}

absl::StatusOr<Tensor> ParameterStore::ValueWith(const ParameterExpr& expression,
                                                 absl::Span<const OwnValue> own) {
  return HangsOn(expression, own) ? Evaluate(expression, own) : ValueOf(expression);
}

absl::Status ParameterStore::Prepare(const Recipe& recipe,
                                     const std::function<absl::Status()>& go_on) {
  struct Work {
    const ParameterStore* store;
    const std::function<absl::Status()>& go_on;
    std::vector<const ParameterExpr*> missing;
    std::vector<absl::StatusOr<Tensor>> results;
    std::atomic<size_t> next{0};
  } work = {.store = this, .go_on = go_on};
  HashSet<absl::string_view> seen;
  int64_t bytes = 0;
  for (size_t slot = 0; slot < recipe.parameters.size(); ++slot) {
    const ParameterExprPtr& expression = recipe.parameters[slot];
    if (ReadInPlace(recipe, slot) || prepared_.contains(expression->text()) ||
        !seen.insert(expression->text()).second) {
      continue;
    }
    work.missing.push_back(expression.get());
    if (!expression->is_leaf()) bytes += NumElements(expression->shape());
  }
  if (work.missing.empty()) return absl::OkStatus();
  work.results.resize(work.missing.size(), absl::UnknownError("not evaluated"));
  const auto run = [](void* context, int, int, int) {
    Work& shared = *static_cast<Work*>(context);
    for (size_t i; (i = shared.next++) < shared.missing.size();) {
      const ParameterExpr& expression = *shared.missing[i];
      if (absl::Status goes_on = GoesOn(shared.go_on); !goes_on.ok()) {
        shared.results[i] = std::move(goes_on);
        continue;
      }
      shared.results[i] = WithinMemory(
          [&] {
            return absl::StrCat("parameter ", DTypeName(expression.dtype()),
                                ShapeToString(expression.shape()), " as kernels want it");
          },
          [&] { return shared.store->Evaluate(expression); });
    }
  };
  if (options_.cores != nullptr && bytes >= kWorthCores) {
    options_.cores->Run(options_.cores->cores(), 1, run, &work);
  } else {
    run(&work, 0, 0, 1);
  }
  for (size_t i = 0; i < work.missing.size(); ++i) {
    RETURN_IF_ERROR(work.results[i].status());
    RETURN_IF_ERROR(Keep(*work.missing[i], *std::move(work.results[i])));
  }
  return absl::OkStatus();
}

bool ParameterStore::ReadInPlace(const Recipe& recipe, size_t slot) const {
  const ParameterExpr& expression = *recipe.parameters[slot];
  return recipe.unaligned[slot] && expression.is_leaf() &&
         expression.index() < static_cast<int>(leaves_.size());
}

absl::Status ParameterStore::Keep(const ParameterExpr& expression, Tensor value) {
  const bool leaf = expression.is_leaf() || expression.is_constant();
  if (!leaf) {
    RETURN_IF_ERROR(Take(static_cast<int64_t>(value.bytes())));
    counted_.insert(expression.text());
  }
  prepared_.emplace(expression.text(), std::move(value));
  return absl::OkStatus();
}

absl::StatusOr<Tensor> ParameterStore::ValueOf(const ParameterExpr& expression) {
  MutexLock lock(mutex_);
  if (const auto it = prepared_.find(expression.text()); it != prepared_.end()) return it->second;
  asleep_ = false;
  ASSIGN_OR_RETURN(Tensor value, Evaluate(expression));
  RETURN_IF_ERROR(Keep(expression, value));
  return value;
}

absl::StatusOr<Tensor> ParameterStore::Peek(const ParameterExpr& expression) const {
  {
    MutexLock lock(mutex_);
    if (const auto it = prepared_.find(expression.text()); it != prepared_.end()) return it->second;
  }
  return Evaluate(expression);
}

bool ParameterStore::Holds(const ParameterExpr& expression) const {
  MutexLock lock(mutex_);
  return prepared_.contains(expression.text()) || second_forms_.contains(expression.text());
}

bool ParameterStore::HoldSecond(const ParameterExpr& expression) {
  const int64_t bytes =
      NumElements(expression.shape()) * static_cast<int64_t>(DTypeSize(expression.dtype()));
  MutexLock lock(mutex_);
  if (prepared_.contains(expression.text()) || second_forms_.contains(expression.text())) {
    return true;
  }
  if (second_bytes_ + bytes > leaf_bytes() / kSecondFormsPart) return false;
  second_bytes_ += bytes;
  second_forms_.insert(expression.text());
  return true;
}

ParameterStore::~ParameterStore() {
  if (options_.all_stores != nullptr) options_.all_stores->Give(taken_);
}

absl::Status ParameterStore::CountLeaves() {
  MutexLock lock(mutex_);
  return Take(leaf_bytes());
}

absl::Status ParameterStore::Take(int64_t bytes) {
  if (options_.max_bytes > 0 && taken_ + bytes > options_.max_bytes) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "its parameters, as stored and as kernels want them, take more than ", taken_ + bytes,
        " bytes; reprise.max_parameter_mb allows ", options_.max_bytes));
  }
  MemoryBudget* all = options_.all_stores;
  if (all != nullptr && !all->Take(bytes)) {
    return absl::ResourceExhaustedError(
        absl::StrCat("its parameters need ", bytes, " bytes more, ", all->used(),
                     " are taken by all models; --parameter-memory-mb allows ", all->max_bytes()));
  }
  taken_ += bytes;
  return absl::OkStatus();
}

absl::StatusOr<Tensor> ParameterStore::Evaluate(const ParameterExpr& expression,
                                                absl::Span<const OwnValue> own) const {
  if (expression.is_leaf()) {
    if (const OwnValue* sent = OwnOf(expression, own); sent != nullptr) return sent->value;
    if (expression.index() >= static_cast<int>(leaves_.size())) {
      return absl::InternalError(absl::StrCat("parameter ", expression.index(), " of ",
                                              leaves_.size(), " does not exist"));
    }
    const Tensor& leaf = leaves_[expression.index()];
    if (leaf.aligned()) return leaf;
    Tensor copy = leaf.Aligned();
    DropPagesOf(leaf);
    return copy;
  }
  if (expression.is_constant()) return expression.constant();
  std::vector<std::optional<Tensor>> inputs;
  for (const ParameterExprPtr& input : expression.inputs()) {
    inputs.emplace_back();
    if (input == nullptr) continue;
    ASSIGN_OR_RETURN(inputs.back(), Evaluate(*input, own));
  }
  auto result = options_.device->Prepare(expression.op(), expression.attributes(), inputs);
  for (const ParameterExprPtr& input : expression.inputs()) {
    if (input != nullptr && input->is_leaf()) DropPagesOf(leaves_[input->index()]);
  }
  return result;
}

void ParameterStore::DropPagesOf(const Tensor& leaf) const {
  const absl::string_view bytes(static_cast<const char*>(leaf.data()), leaf.bytes());
  for (const FileBytes& file : options_.files) DropPages(file, bytes);
}

void ParameterStore::DropFilePages() const {
  for (const FileBytes& file : options_.files) DropPages(file, file.bytes);
}

absl::Status ParameterStore::FilesIntact(int64_t now_ns) const {
  int64_t due_ns = look_again_ns_;
  const bool looks = now_ns >= due_ns &&
                     look_again_ns_.compare_exchange_strong(due_ns, now_ns + kLookAtFilesEveryNs);
  return CheckFiles(looks);
}

absl::Status ParameterStore::CheckFiles(bool looks) const {
  for (const FileBytes& bytes : options_.files) {
    if (!bytes.mapped()) continue;
    const absl::Status intact = looks ? bytes.file->LookAgain() : bytes.file->Intact();
    // A parameter that was copied out of the file has its bytes still.
    const bool used = !intact.ok() && std::any_of(leaves_.begin(), leaves_.end(), [&](auto& leaf) {
      const char* begin = bytes.bytes.data();
      const std::less_equal<> at_most;
      return at_most(begin, static_cast<const char*>(leaf.data())) &&
             !at_most(begin + bytes.bytes.size(), static_cast<const char*>(leaf.data()));
    });
    if (used) return absl::UnavailableError(intact.message());
  }
  return absl::OkStatus();
}

void ParameterStore::Sleep() {
  MutexLock lock(mutex_);
  if (!asleep_) sleeping_.clear();
  {
    MutexLock tables_lock(tables_mutex_);
    for (const auto& [recipe, known] : tables_) sleeping_.push_back(known.recipe);
    tables_.clear();
  }
  int64_t freed = 0;
  for (const auto& [text, tensor] : prepared_) {
    if (counted_.contains(text)) freed += static_cast<int64_t>(tensor.bytes());
  }
  prepared_.clear();
  counted_.clear();
  taken_ -= freed;
  if (options_.all_stores != nullptr) options_.all_stores->Give(freed);
  DropFilePages();
  asleep_ = true;
}

absl::Status ParameterStore::Wake() {
  std::vector<std::weak_ptr<const Recipe>> recipes;
  {
    MutexLock lock(mutex_);
    recipes = std::exchange(sleeping_, {});
    asleep_ = false;
  }
  for (const std::weak_ptr<const Recipe>& one : recipes) {
    const std::shared_ptr<const Recipe> recipe = one.lock();
    if (recipe != nullptr) RETURN_IF_ERROR(TableFor(recipe).status());
  }
  return absl::OkStatus();
}

void ParameterStore::Forget(const Recipe& recipe) {
  MutexLock lock(tables_mutex_);
  tables_.erase(&recipe);
}

void ParameterStore::DropUnused() {
  MutexLock lock(mutex_);
  MutexLock tables_lock(tables_mutex_);
  std::erase_if(tables_, [](const auto& one) { return one.second.recipe.expired(); });
  HashSet<const void*> used;
  for (const auto& [recipe, known] : tables_) {
    const void* const* addresses = known.table->addresses();
    used.insert(addresses, addresses + known.table->size());
  }
  for (const Tensor& leaf : leaves_) used.insert(leaf.data());
  int64_t freed = 0;
  std::erase_if(prepared_, [&](const auto& one) {
    if (used.contains(one.second.data())) return false;
    // Copies of leaves were not counted: see Keep.
    if (!counted_.contains(one.first)) return true;
    freed += static_cast<int64_t>(one.second.bytes());
    counted_.erase(one.first);
    return true;
  });
  taken_ -= freed;
  if (options_.all_stores != nullptr) options_.all_stores->Give(freed);
}

std::string ParameterStore::Digest() const {
  Digest128 digest;
  for (const Tensor& leaf : leaves_) {
    digest.Add(absl::StrCat(std::string(DTypeName(leaf.dtype())), ShapeToString(leaf.shape())));
    digest.Add({static_cast<const char*>(leaf.data()), leaf.bytes()});
    DropPagesOf(leaf);
  }
  return digest.Hex();
}

int64_t ParameterStore::leaf_bytes() const {
  int64_t bytes = 0;
  for (const Tensor& leaf : leaves_) bytes += leaf.bytes();
  return bytes;
}

int64_t ParameterStore::prepared_bytes() const {
  MutexLock lock(mutex_);
  int64_t bytes = 0;
  for (const auto& [text, tensor] : prepared_) bytes += tensor.bytes();
  return bytes;
}

}  // namespace reprise
