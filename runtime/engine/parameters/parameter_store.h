// ParameterStore: the parameters of one model version, as its recipes want them.
//
// Runs the prepare program: each distinct parameter expression is evaluated once, when the first
// recipe asks for it, on idle cores as well, and kept while the model is loaded. The held
// parameters, as stored and as recipes want them, stay within a limit of the model's and one of all
// models.
//
// Threads: any. A second asker of an expression under evaluation waits for it.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/base/hash_map.h"
#include "runtime/base/mutex.h"
#include "runtime/device/device.h"
#include "runtime/engine/replay/helper_pool.h"
#include "runtime/engine/types/memory_budget.h"
#include "runtime/engine/types/own_value.h"
#include "runtime/graph/parameter_expr.h"
#include "runtime/graph/tensor.h"
#include "runtime/onnx/file/file_bytes.h"
#include "runtime/recipe/recipe.h"

namespace reprise {

// The parameter space of one recipe for one model version: an address a slot.
class ParameterTable {
 public:
  explicit ParameterTable(std::vector<Tensor> tensors) : tensors_(std::move(tensors)) {
    for (const Tensor& tensor : tensors_) addresses_.push_back(tensor.data());
  }
  const void* const* addresses() const { return addresses_.data(); }
  size_t size() const { return addresses_.size(); }
  const Tensor& tensor(size_t slot) const { return tensors_[slot]; }

 private:
  std::vector<Tensor> tensors_;  // keep the bytes alive
  std::vector<const void*> addresses_;
};

class ParameterStore {
 public:
  struct Options {
    const Device* device = nullptr;      // runs the steps
    HelperPool* cores = nullptr;         // null: steps run on the caller's thread alone
    int64_t max_bytes = 0;               // limit of this store; 0: no limit
    MemoryBudget* all_stores = nullptr;  // null: no limit
    std::vector<FileBytes> files;        // files that parameters may point into
  };

  // `parameters` by leaf index, at any address. The objects that the options point to outlive the
  // store.
  ParameterStore(std::vector<Tensor> parameters, Options options)
      : leaves_(std::move(parameters)), options_(std::move(options)) {}
  ~ParameterStore();
  ParameterStore(const ParameterStore&) = delete;
  ParameterStore& operator=(const ParameterStore&) = delete;

  // Counts the parameters themselves, once, before anything is asked for. RESOURCE_EXHAUSTED with
  // the numbers where they are more than a limit.
  absl::Status CountLeaves();

  // Returns the table of `recipe`; the prepare program runs for expressions not seen before. Cheap
  // for a recipe seen before. Errors: a step's; RESOURCE_EXHAUSTED as above.
  // `go_on` is asked between the steps, from several threads: an error ends the program with it.
  absl::StatusOr<std::shared_ptr<const ParameterTable>> TableFor(
      const std::shared_ptr<const Recipe>& recipe,
      const std::function<absl::Status()>& go_on = nullptr);

  // Returns `table`, the table of `recipe`, with the parameters that depend on `own` made of these,
  // for one replay.
  absl::StatusOr<std::shared_ptr<const ParameterTable>> TableWith(
      const Recipe& recipe, const ParameterTable& table, absl::Span<const OwnValue> own) const;

  // Returns one parameter as a tensor, made of `own` where it depends on that; kept where it does
  // not.
  absl::StatusOr<Tensor> ValueWith(const ParameterExpr& expression, absl::Span<const OwnValue> own);

  // Returns one parameter as a tensor, kept like the parameters of tables.
  absl::StatusOr<Tensor> ValueOf(const ParameterExpr& expression);

  // Returns the same, but keeps it only if it is kept already: to look at, and to release.
  absl::StatusOr<Tensor> Peek(const ParameterExpr& expression) const;

  // Takes room for a parameter in this form, which recipes hold in another one as well, until the
  // store goes: second forms take at most a tenth of the parameters together. Returns false where
  // there is none.
  bool HoldSecond(const ParameterExpr& expression);
  // Returns whether the parameter is held in this form, or room for it was taken.
  bool Holds(const ParameterExpr& expression) const;

  // Lets go of all that was prepared, and of the pages of files, until a parameter is wanted again,
  // which is prepared as the first time. Tables that callers hold stay as they are.
  void Sleep();
  // Prepares the parameters of the recipes that Sleep let go of. Errors: as TableFor.
  absl::Status Wake();
  // Returns whether nothing was wanted since Sleep.
  bool asleep() const { return asleep_; }

  // Drops the pages of files that were read, in place or into copies, from memory until they are
  // read again.
  void DropFilePages() const;

  // Returns UNAVAILABLE once a file that parameters may point into was changed or cut in place:
  // results computed from it may be wrong. Looks at the files at most every few milliseconds of
  // `now_ns`.
  absl::Status FilesIntact(int64_t now_ns) const;
  // Returns the same, and looks in any case.
  absl::Status LookAtFiles() const { return CheckFiles(/*looks=*/true); }

  // Forgets the table (not the parameters) of a recipe that left the cache.
  void Forget(const Recipe& recipe);

  // Drops the forms that no recipe wants any more: the ones of measurements at another precision.
  void DropUnused();

  // Returns a digest of dtypes, shapes and bytes of all parameters, in hex. Reads every weight.
  std::string Digest() const;
  int64_t leaf_bytes() const;
  int64_t prepared_bytes() const;

 private:
  absl::Status CheckFiles(bool looks) const;
  // Returns the table of a recipe seen before; null where there is none.
  std::shared_ptr<const ParameterTable> Known(const std::shared_ptr<const Recipe>& recipe) const
      EXCLUDES(tables_mutex_);
  struct KnownTable {
    std::weak_ptr<const Recipe> recipe;  // tells a reused address from the recipe that had it
    std::shared_ptr<const ParameterTable> table;
  };
  absl::StatusOr<Tensor> Evaluate(const ParameterExpr& expression,
                                  absl::Span<const OwnValue> own = {}) const;
  // Returns whether the parameter of a slot is the leaf, where it lies.
  bool ReadInPlace(const Recipe& recipe, size_t slot) const;
  // Drops the pages of a leaf that was read: only its copy is needed from now on.
  void DropPagesOf(const Tensor& leaf) const;
  // Evaluates the recipe's expressions that were not requested before.
  absl::Status Prepare(const Recipe& recipe, const std::function<absl::Status()>& go_on)
      REQUIRES(mutex_);
  // Keeps the value of an expression, within the limits.
  absl::Status Keep(const ParameterExpr& expression, Tensor value) REQUIRES(mutex_);
  // Takes `bytes` more from the limits.
  absl::Status Take(int64_t bytes) REQUIRES(mutex_);

  // Constant after construction.
  const std::vector<Tensor> leaves_;
  const Options options_;
  // Self-synchronised.
  mutable std::atomic<int64_t> look_again_ns_{0};
  std::atomic<bool> asleep_{false};
  // Guarded.
  mutable Mutex mutex_;
  HashMap<std::string, Tensor> prepared_ GUARDED_BY(mutex_);  // keyed by expression text
  std::vector<std::weak_ptr<const Recipe>> sleeping_ GUARDED_BY(mutex_);  // that Sleep let go of
  int64_t taken_ GUARDED_BY(mutex_) = 0;  // bytes: of leaves, and of these prepared parameters
  HashSet<std::string> counted_ GUARDED_BY(mutex_);
  HashSet<std::string> second_forms_ GUARDED_BY(mutex_);  // texts that HoldSecond let in
  int64_t second_bytes_ GUARDED_BY(mutex_) = 0;
  // Held for a moment, within the other one or alone: a table that is known waits for no other.
  mutable Mutex tables_mutex_;
  HashMap<const Recipe*, KnownTable> tables_ GUARDED_BY(tables_mutex_);
};

}  // namespace reprise
