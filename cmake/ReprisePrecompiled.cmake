# Precompiled headers: the standard library and Abseil take longer to read than most sources take to
# compile. A compiler takes a precompiled header only under the options that it was made with, so there
# is one for each set of options:
#
#   precompiled_plain    libraries
#   precompiled_ops      the reference kernels (runtime/ops)
#   precompiled_kernels  the fast kernels (runtime/device/cpu)
#   precompiled_server   server, client, tools
#   precompiled_tests    test programs
#
# A source with options of its own (set_source_files_properties) goes without, by
# SKIP_PRECOMPILE_HEADERS: the compiler would warn (-Winvalid-pch) and read it all again.
#
# No header of ours is in any of them: a change of ours rebuilds its includers and nothing else. Every
# source still includes all that it uses, and -DREPRISE_PRECOMPILED=OFF builds without.
option(REPRISE_PRECOMPILED "Build with precompiled headers" ON)

# Lets the preprocessor, which ccache runs where it has not met a source yet, leave a precompiled header
# as it is instead of reading all of it.
if(REPRISE_PRECOMPILED AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fpch-preprocess>)
endif()

set(REPRISE_COMMON_HEADERS
  <algorithm> <array> <atomic> <chrono> <cmath> <condition_variable> <cstdint> <cstring> <deque>
  <functional> <limits> <map> <memory> <mutex> <numeric> <optional> <set> <string> <string_view>
  <thread> <tuple> <unordered_map> <utility> <variant> <vector>
  <absl/algorithm/container.h> <absl/container/inlined_vector.h> <absl/functional/function_ref.h>
  <absl/status/status.h> <absl/status/statusor.h> <absl/strings/match.h> <absl/strings/numbers.h>
  <absl/strings/str_cat.h> <absl/strings/str_join.h> <absl/strings/str_split.h>
  <absl/strings/string_view.h> <absl/types/span.h>)

# reprise_precompiled(<name> [OPTIONS <compile option>...] [HEADERS <header>...] [LIBS <target>...])
function(reprise_precompiled name)
  cmake_parse_arguments(ARG "" "" "OPTIONS;HEADERS;LIBS" ${ARGN})
  if(NOT REPRISE_PRECOMPILED)
    return()
  endif()
  set(source ${CMAKE_BINARY_DIR}/${name}.cc)
  file(CONFIGURE OUTPUT ${source} CONTENT "// Holds nothing: ${name} is made for its header.\n")
  add_library(${name} OBJECT ${source})
  target_link_libraries(${name} PRIVATE absl::statusor absl::strings absl::span absl::inlined_vector
    ${ARG_LIBS})
  target_compile_options(${name} PRIVATE ${ARG_OPTIONS})
  target_precompile_headers(${name} PRIVATE ${REPRISE_COMMON_HEADERS} ${ARG_HEADERS})
endfunction()

# reprise_use_precompiled(<target> <name>)
function(reprise_use_precompiled target name)
  if(REPRISE_PRECOMPILED)
    target_precompile_headers(${target} REUSE_FROM ${name})
  endif()
endfunction()
