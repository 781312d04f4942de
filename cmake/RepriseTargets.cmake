# A room is one translation unit: its headers are read and its templates are made once. Names in the
# unnamed namespaces of a room are therefore unique in it, and a clash is a build error. The preset `dev`
# is without: there, one source of a room is compiled at a time.
option(REPRISE_UNITY "Compile a room as one translation unit" ON)

# reprise_unity(<variable> <target>): replaces the sources in <variable> by one that includes them, but
# for those that are compiled once for each ISA (Highway's foreach_target includes the source itself)
# or under options of their own. Paths are those from the root, so that the compiler cache serves all
# checkouts alike (CMake's own unity builds write absolute ones).
function(reprise_unity variable target)
  if(NOT REPRISE_UNITY)
    return()
  endif()
  set(alone)
  set(includes "// Generated: the sources of ${target}.\n")
  foreach(source ${${variable}})
    file(STRINGS ${source} tiers REGEX "foreach_target\\.h" LIMIT_COUNT 1)
    get_source_file_property(skips ${source} SKIP_UNITY_BUILD_INCLUSION)
    if(tiers OR skips)
      list(APPEND alone ${source})
    else()
      file(RELATIVE_PATH path ${CMAKE_SOURCE_DIR} ${source})
      string(APPEND includes "#include \"${path}\"\n")
    endif()
  endforeach()
  set(unity ${CMAKE_BINARY_DIR}/unity/${target}.cc)
  file(CONFIGURE OUTPUT ${unity} CONTENT "${includes}" @ONLY)
  set(${variable} ${alone} ${unity} PARENT_SCOPE)
endfunction()

# reprise_library(<folder> [DEPS <target>...] [LIBS <imported target>...])
#
# One static library for `folder`, made of every .cc in it, but none of the folders below it.
# DEPS are other reprise libraries (their folders, with / for the path: "runtime/graph"); LIBS are
# outside libraries. The DEPS say the layering of DESIGN; tests/structure/test_includes.py checks
# the includes.
#
# No file is compiled for an ISA as a whole: kernels have functions for each, chosen when they run, and
# whatever else a file holds must run on any CPU.
function(reprise_library folder)
  cmake_parse_arguments(ARG "" "" "DEPS;LIBS" ${ARGN})
  string(REPLACE "/" "_" target ${folder})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${folder}/*.cc)
  list(FILTER sources EXCLUDE REGEX "/(main)\\.cc$")
  if(sources)
    reprise_unity(sources ${target})
    add_library(${target} STATIC ${sources})
    if(folder MATCHES "^(server|client|tools)(/|$)")
      reprise_use_precompiled(${target} precompiled_server)
    elseif(folder MATCHES "^runtime/ops(/|$)")
      reprise_use_precompiled(${target} precompiled_ops)
    elseif(folder MATCHES "^runtime/device/cpu(/|$)")
      reprise_use_precompiled(${target} precompiled_kernels)
    else()
      reprise_use_precompiled(${target} precompiled_plain)
    endif()
    set(scope PUBLIC)
  else()
    add_library(${target} INTERFACE)
    set(scope INTERFACE)
  endif()
  # A program that links one library of the installed package alone compiles its headers, too.
  target_compile_features(${target} ${scope} cxx_std_20)
  target_include_directories(${target} ${scope}
    $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}> $<INSTALL_INTERFACE:include/reprise>)
  foreach(dep ${ARG_DEPS})
    string(REPLACE "/" "_" dep_target ${dep})
    target_link_libraries(${target} ${scope} ${dep_target})
  endforeach()
  target_link_libraries(${target} ${scope} ${ARG_LIBS})
endfunction()

# reprise_shared_test_sources(<target> SOURCES <file>... LIBS <target>...)
#
# A library of the parts that several programs of tests/fuzz share, compiled as the libraries of the tree are.
function(reprise_shared_test_sources target)
  cmake_parse_arguments(ARG "" "" "SOURCES;LIBS" ${ARGN})
  list(TRANSFORM ARG_SOURCES PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
  reprise_unity(ARG_SOURCES ${target})
  add_library(${target} STATIC ${ARG_SOURCES})
  reprise_use_precompiled(${target} precompiled_plain)
  target_include_directories(${target} PUBLIC ${CMAKE_SOURCE_DIR})
  target_link_libraries(${target} PUBLIC ${ARG_LIBS})
endfunction()

# reprise_floor_options(<folder> <compile option>...): options of the library of `folder` and of those
# of its rooms, the folders below it that have had their reprise_library before.
function(reprise_floor_options folder)
  string(REPLACE "/" "_" floor ${folder})
  get_property(targets DIRECTORY PROPERTY BUILDSYSTEM_TARGETS)
  foreach(target ${targets})
    get_target_property(type ${target} TYPE)
    if(type STREQUAL "STATIC_LIBRARY" AND target MATCHES "^${floor}(_|$)")
      target_compile_options(${target} PRIVATE ${ARGN})
    endif()
  endforeach()
endfunction()

# reprise_test(<folder> [DEPS ...] [LIBS ...] [LABELS ...])
#
# One GoogleTest program for tests/<folder>, made of every *_test.cc in it. Its cases are found
# when ctest runs.
function(reprise_test folder)
  cmake_parse_arguments(ARG "" "" "DEPS;LIBS;LABELS" ${ARGN})
  string(REPLACE "/" "_" target ${folder})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/${folder}/*.cc)
  if(NOT sources)
    return()
  endif()
  set(target ${target}_test)
  reprise_unity(sources ${target})
  add_executable(${target} ${sources})
  target_compile_options(${target} PRIVATE ${reprise_test_options})
  reprise_use_precompiled(${target} precompiled_tests)
  target_include_directories(${target} PRIVATE ${CMAKE_SOURCE_DIR})
  foreach(dep ${ARG_DEPS})
    string(REPLACE "/" "_" dep_target ${dep})
    target_link_libraries(${target} PRIVATE ${dep_target})
  endforeach()
  target_link_libraries(${target} PRIVATE ${ARG_LIBS} GTest::gmock GTest::gtest_main)
  if(NOT ARG_LABELS)
    set(ARG_LABELS unit)
  endif()
  gtest_discover_tests(${target} DISCOVERY_MODE PRE_TEST NO_PRETTY_VALUES
    PROPERTIES LABELS "${ARG_LABELS}" TIMEOUT 120)
endfunction()
