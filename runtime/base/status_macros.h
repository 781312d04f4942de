// Status plumbing: early return on an error, and CHECK for broken invariants of our own.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

// Returns from the enclosing function if `expr` (an absl::Status) is not OK.
#define RETURN_IF_ERROR(expr)                                                           \
  do {                                                                                  \
    if (absl::Status status_macro_ = (expr); !status_macro_.ok()) return status_macro_; \
  } while (false)

#define REPRISE_CONCAT_INNER(a, b) a##b
#define REPRISE_CONCAT(a, b) REPRISE_CONCAT_INNER(a, b)

// Evaluates `expr` (an absl::StatusOr<T>); on success moves the value into `lhs` (a declaration or
// an existing variable), otherwise returns the error.
#define ASSIGN_OR_RETURN(lhs, expr) \
  ASSIGN_OR_RETURN_IMPL(REPRISE_CONCAT(status_or_, __LINE__), lhs, expr)
#define ASSIGN_OR_RETURN_IMPL(tmp, lhs, expr)    \
  auto tmp = (expr);                             \
  if (!tmp.ok()) return std::move(tmp).status(); \
  lhs = *std::move(tmp)

// Aborts with the place and the condition. For invariants of our own, never for input.
#define REPRISE_CHECK(condition)                                                         \
  do {                                                                                   \
    if (!(condition)) [[unlikely]] {                                                     \
      std::fprintf(stderr, "%s:%d: check failed: %s\n", __FILE__, __LINE__, #condition); \
      std::abort();                                                                      \
    }                                                                                    \
  } while (false)
